"""The dialect as xDSL's tools load it: every operation, attribute and type that has a name."""

from __future__ import annotations

from xdsl.ir import Dialect

from pto.dialect.attributes import all_attributes
from pto.dialect.names import KNOWN_OPERATIONS
from pto.dialect.ops import WRITTEN_OUT, operation_class
from pto.dialect.types import ALL_TYPES

_WRITTEN_OUT_NAMES = {op.name for op in WRITTEN_OUT}

PTO = Dialect(
    "pto",
    [
        *WRITTEN_OUT,
        *(
            operation_class(name)
            for name in sorted(KNOWN_OPERATIONS)
            if name.startswith("pto.") and name not in _WRITTEN_OUT_NAMES
        ),
    ],
    [*all_attributes(), *ALL_TYPES],
)
