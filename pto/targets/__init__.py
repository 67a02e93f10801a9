"""What each product supports, as data: the only place where a product's name means anything.

The tables are the TOML files beside this module, one per source document and product (spec V).
Importing is cheap: a file is parsed when a question first needs it.
"""

from pto.targets.products import (
    TARGETS,
    TCVT_TARGETS,
    TMP_TARGET,
    Product,
    UnknownTarget,
    product,
    resolve,
    unified_buffer_bytes,
)
from pto.targets.tables import (
    ELEMENT_FORMATS,
    ROUND_MODES,
    Pair,
    Table,
    astype_pair,
    cast_pair,
    lookup,
    mulcast_pair,
    tables,
    tcvt_table,
)

__all__ = [
    "ELEMENT_FORMATS",
    "ROUND_MODES",
    "TARGETS",
    "TCVT_TARGETS",
    "TMP_TARGET",
    "Pair",
    "Product",
    "Table",
    "UnknownTarget",
    "astype_pair",
    "cast_pair",
    "lookup",
    "mulcast_pair",
    "product",
    "resolve",
    "tables",
    "tcvt_table",
    "unified_buffer_bytes",
]
