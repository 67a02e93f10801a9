"""The rules that one tile conversion is checked against (spec V).

Each rule is a generator of findings over a `Conversion`. A finding names the part of the statement
that it is about; turning that into a line and column is `locate`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pto.passes.rules import tcvt_saturation, tcvt_tiles, tcvt_tmp, tcvt_types
from pto.passes.rules.tcvt_findings import Conversion, Finding

RULES: tuple[Callable[[Conversion], Iterator[Finding]], ...] = (
    tcvt_types.type_pair,
    tcvt_types.round_mode,
    tcvt_tiles.shape,
    tcvt_tiles.valid_region,
    tcvt_tiles.location,
    tcvt_tiles.row_align,
    tcvt_tiles.capacity,
    tcvt_tiles.overlap,
    tcvt_tmp.tmp_tile,
    tcvt_types.ambiguous_none,
    tcvt_types.unknown_attribute,
    tcvt_saturation.nan_to_zero,
    tcvt_saturation.negative_to_unsigned,
    tcvt_types.rmode_ignored,
    tcvt_saturation.satmode_ignored,
    tcvt_saturation.float_saturation,
)
"""In the order in which the findings of one place are reported."""
