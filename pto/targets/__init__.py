"""What each product supports, and what a conversion means there.

The only place where a product's name decides anything. The tables are the TOML files beside this
module, one per source document and product (spec V); a file is parsed when a question first needs
it. `resolve` answers what a conversion means, `find_chain` what takes its place where it lacks.
"""

from pto.targets.products import (
    DEFAULT_TARGET,
    PRODUCTS,
    TARGETS,
    TCVT_TARGETS,
    TMP_TARGET,
    Product,
    UnknownTarget,
    product_of,
    tile_products,
)
from pto.targets.resolution import (
    DEFAULT_SATURATIONS,
    Illegal,
    ResolvedConversion,
    resolve,
    resolve_generally,
)
from pto.targets.tables import INSTRUCTIONS, Pair, Table, pair_of, table_of, tables

__all__ = [
    "DEFAULT_SATURATIONS",
    "DEFAULT_TARGET",
    "INSTRUCTIONS",
    "PRODUCTS",
    "TARGETS",
    "TCVT_TARGETS",
    "TMP_TARGET",
    "Illegal",
    "Pair",
    "Product",
    "ResolvedConversion",
    "Table",
    "UnknownTarget",
    "pair_of",
    "product_of",
    "resolve",
    "resolve_generally",
    "table_of",
    "tables",
    "tile_products",
]
