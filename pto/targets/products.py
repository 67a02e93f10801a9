"""The products: their names, and what differs between them beside their tables."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal


class UnknownTarget(ValueError):
    """A name that is no target and no alias of one; the message lists the targets that exist."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Product:
    """One target. `products.toml` says what the fields mean; there is one record of each."""

    name: str
    """The canonical target."""
    title: str
    """The vendor's name, for tables and messages."""
    aliases: tuple[str, ...]
    tables: Mapping[str, tuple[str, ...]]
    unified_buffer_kib: int | None = None
    i32_path: Literal["always", "with-tmp"] | None = None
    lowering: Literal["repeats", "registers"] | None = None
    tails_last: bool = False
    none_may_truncate: bool = False
    float_saturation_control: str | None = None
    count_only: frozenset[str] = field(default=frozenset())

    @property
    def unified_buffer_bytes(self) -> int:
        """Bytes of the unified buffer, where vec tiles live (spec V).

        Raises UnknownTarget for a product whose documents do not give the size.
        """
        if self.unified_buffer_kib is None:
            raise UnknownTarget(f"the unified buffer size of {self} is not documented")
        return self.unified_buffer_kib * 1024

    @property
    def takes_tmp(self) -> bool:
        """Whether a tmp operand makes TCVT take the PyTorch-compatible path (spec S10)."""
        return self.i32_path == "with-tmp"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return product_of, (self.name,)


@cache
def load(file: str) -> dict[str, Any]:
    """Parse one of the TOML files of this package."""
    return tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))


def _product(name: str, entry: dict[str, Any]) -> Product:
    tables = {instruction: tuple(files) for instruction, files in entry["tables"].items()}
    converted = {
        "aliases": tuple(entry["aliases"]),
        "tables": tables,
        "count_only": frozenset(entry.get("count_only", ())),
    }
    return Product(name=name, **{**entry, **converted})


PRODUCTS: dict[str, Product] = {
    name: _product(name, entry) for name, entry in load("products.toml").items()
}
"""Every product by its canonical target (spec V)."""

TARGETS = tuple(PRODUCTS)
"""Every canonical target; all of them have a Cast table."""

TCVT_TARGETS = tuple(name for name, product in PRODUCTS.items() if "TCVT" in product.tables)
"""The targets that have the TCVT tile instruction."""

DEFAULT_TARGET = "a5"
"""The target where nothing names one."""

TMP_TARGET = next(name for name, product in PRODUCTS.items() if product.takes_tmp)
"""The target whose TCVT uses a tmp operand: what scratch tiles are sized for by default."""


def _fold(name: str) -> str:
    return "".join(c for c in name.lower() if c not in " -_")


@cache
def _aliases() -> list[tuple[str, bool, Product]]:
    """(folded alias, matches any suffix, product), the longest alias first."""
    found = [
        (_fold(alias.removesuffix("*")), alias.endswith("*"), product)
        for product in PRODUCTS.values()
        for alias in (*product.aliases, product.title)
    ]
    return sorted(found, key=lambda a: -len(a[0]))


@cache
def product_of(name: str) -> Product:
    """The product that `name` (a target, an alias or a title, in any case) stands for (spec V).

    Raises UnknownTarget, which names the nearest target or alias and lists all targets.
    """
    if not isinstance(name, str):
        raise TypeError(f"a target is a name such as {DEFAULT_TARGET!r}, not {name!r}")
    folded = _fold(name)
    for alias, any_suffix, product in _aliases():
        if folded == alias or (any_suffix and folded.startswith(alias)):
            return product
    spellings = {_fold(s): s for s in TARGETS} | {
        _fold(s): s.removesuffix("*") for p in PRODUCTS.values() for s in p.aliases
    }
    near = difflib.get_close_matches(folded, spellings, n=1, cutoff=0.5)
    hint = f" (did you mean {spellings[near[0]]!r}?)" if near else ""
    raise UnknownTarget(f"unknown target {name!r}{hint}; known targets: {', '.join(TARGETS)}")


def tile_products(target: str | None) -> tuple[Product, ...]:
    """The products to ask about tile conversions: the one that is named, or all that have them."""
    return tuple(map(product_of, TCVT_TARGETS if target is None else (target,)))
