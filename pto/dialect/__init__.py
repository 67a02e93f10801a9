"""The pto dialect for xDSL: types, attributes and operations."""

from __future__ import annotations

from xdsl.ir import Dialect

from pto.dialect.attributes import ALL_ATTRIBUTES
from pto.dialect.ops import REGULAR_OPS, WRITTEN_OUT, opaque_op_class
from pto.dialect.types import ALL_TYPES

PTO = Dialect(
    "pto",
    [*WRITTEN_OUT, *(opaque_op_class(name) for name in REGULAR_OPS)],
    [*ALL_ATTRIBUTES, *ALL_TYPES],
)
"""Every operation, attribute and type of the dialect that has a name."""

__all__ = ["PTO"]
