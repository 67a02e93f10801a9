"""Legality tables: which conversions each instruction offers on each product."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from pto.numerics.formats import Format, format_of
from pto.numerics.rules import MODES
from pto.targets.products import PRODUCTS, Product, load, product_of

INSTRUCTIONS = ("TCVT", "Cast", "astype", "MulCast")
"""The instructions that convert, in the order in which they are listed and asked."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One row of a table: a conversion from `src` to `dst`."""

    src: Format
    dst: Format
    kind: str
    """"round" | "exact" | "int" (narrowing) | "s12" | "s13" | "s6": the rule that applies."""
    modes: tuple[str, ...]
    """Rounding modes as the document lists them; empty where the mode means nothing."""
    default_saturation: str
    """"ON" or "OFF": what an absent saturation mode means for this pair (spec S14)."""
    has_saturation: bool
    """The pair's result depends on the saturation mode."""
    through_i32: bool
    """Without saturation it may take the PyTorch-compatible path (spec S10)."""
    layouts: tuple[str, ...]
    """astype only: where the narrow elements may lie in the register; empty for equal widths."""

    @property
    def rounds(self) -> bool:
        """A rounding mode has an effect on this pair."""
        return self.kind == "round"

    @property
    def natural_mode(self) -> str:
        """The mode that applies when none is given (spec R9)."""
        if not self.rounds or "RINT" in self.modes or "NONE" in self.modes:
            return "RINT"
        return self.modes[0]

    def accepts(self, mode: str | None) -> bool:
        """Whether `mode` may be written: NONE wherever RINT may (spec R7), any where none matters
        (spec R10), and leaving it out always (spec R9)."""
        if mode is None or not self.rounds:
            return mode is None or mode in MODES
        return mode in self.modes or (mode == "NONE" and "RINT" in self.modes)


@dataclass(frozen=True)
class Table:
    """The conversions of one instruction on one product, from one document."""

    instruction: str
    """One of INSTRUCTIONS."""
    product: str
    """The product as the document splits them: Cast has one table for "a2" and one for "a3"."""
    document: str
    rows: tuple[Pair, ...]

    def pair(self, src: Format, dst: Format) -> Pair | None:
        """The row for `src` to `dst`, if the table has one."""
        return self._index.get((src, dst))

    def destinations(self, src: Format) -> list[Format]:
        """What `src` converts to."""
        return [row.dst for row in self.rows if row.src is src]

    def sources(self, dst: Format) -> list[Format]:
        """What converts to `dst`."""
        return [row.src for row in self.rows if row.dst is dst]

    @cached_property
    def _index(self) -> dict[tuple[Format, Format], Pair]:
        return {(row.src, row.dst): row for row in self.rows}


@cache
def _table(file: str) -> Table:
    """A table from its file. One that `extends` another file has its rows, but for the pairs that
    are listed as `without` and for those that its own rows replace."""
    data = load(file)
    rows: dict[tuple[Format, Format], Pair] = {}
    if "extends" in data:
        rows = {(row.src, row.dst): row for row in _table(data["extends"]).rows}
    for src, dst in data.get("without", ()):
        del rows[format_of(src), format_of(dst)]
    for values in data.get("rows", ()):
        row = _pair(data["instruction"], dict(zip(data["columns"], values, strict=True)))
        rows[row.src, row.dst] = row
    return Table(data["instruction"], data["product"], data["document"], tuple(rows.values()))


def _pair(instruction: str, row: dict[str, Any]) -> Pair:
    # astype defaults to OFF, the others to ON, also where the choice has no effect (spec S14).
    default = "OFF" if instruction == "astype" else "ON"
    saturation = row["saturation"]
    return Pair(
        src=format_of(row["src"]),
        dst=format_of(row["dst"]),
        kind=row["kind"],
        modes=tuple(row["modes"].split()),
        default_saturation=default if saturation == "-" else saturation,
        has_saturation=saturation != "-",
        through_i32=row.get("path") == "pytorch",
        layouts=tuple(row.get("layouts", "").split()),
    )


def table_of(instruction: str, product: Product) -> Table | None:
    """The table of an instruction on a product, None where it does not exist there."""
    files = product.tables.get(instruction)
    return None if files is None else _table(files[0])


def pair_of(instruction: str, product: Product, src: Format, dst: Format) -> Pair | None:
    """The row for `src` to `dst` (spec V), or None: the conversion is illegal."""
    table = table_of(instruction, product)
    return None if table is None else table.pair(src, dst)


def tables(arch: str | None = None) -> list[Table]:
    """All tables that apply to a target, TCVT first; all tables there are for None."""
    products = PRODUCTS.values() if arch is None else (product_of(arch),)
    return [
        _table(file)
        for instruction in INSTRUCTIONS
        for product in products
        for file in product.tables.get(instruction, ())
    ]
