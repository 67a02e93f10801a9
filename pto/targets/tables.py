"""Legality tables: which conversions each instruction offers on each product."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from pto.targets.products import TARGETS, TCVT_TARGETS, load, resolve

ROUND_MODES = ("RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD", "NONE", "HYBRID")
"""Every rounding mode, in the spec's spelling (spec R)."""


ELEMENT_FORMATS = (
    *("f64", "f32", "f16", "bf16", "f8e4m3fn", "f8e5m2", "f8e8m0", "hif8", "f4e2m1", "f4e1m2"),
    *("i4", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "c32", "c64"),
)
"""Every element format by its spec name (spec F)."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One row of a table: a conversion from `src` to `dst` (spec F names)."""

    src: str
    dst: str
    kind: str
    """"round" | "exact" | "int" (narrowing) | "s12" | "s13" | "s6": the rule that applies."""
    modes: tuple[str, ...]
    """Rounding modes as the document lists them; empty where the mode means nothing."""
    default_saturation: str
    """"ON" or "OFF": what an absent saturation mode means for this pair (spec S14)."""
    has_saturation: bool
    """The pair's result depends on the saturation mode."""
    pytorch_pair: bool
    """satmode OFF takes the PyTorch-compatible path: on a5 always, on a2a3 with tmp (spec S10)."""
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
            return mode is None or mode in ROUND_MODES
        return mode in self.modes or (mode == "NONE" and "RINT" in self.modes)


@dataclass(frozen=True)
class Table:
    """The conversions of one instruction on one product, from one document."""

    instruction: str
    """"TCVT" | "Cast" | "astype" | "MulCast"."""
    product: str
    """The product as the document splits them: Cast has one table for "a2" and one for "a3"."""
    document: str
    rows: tuple[Pair, ...]

    def pair(self, src: str, dst: str) -> Pair | None:
        """The row for `src` to `dst`, if the table has one."""
        return self._index.get((src, dst))

    @cached_property
    def _index(self) -> dict[tuple[str, str], Pair]:
        return {(row.src, row.dst): row for row in self.rows}


_FILES = {
    ("TCVT", "a2a3"): "tcvt_a2a3.toml",
    ("TCVT", "a5"): "tcvt_a5.toml",
    ("Cast", "a2"): "cast_a2.toml",
    ("Cast", "a3"): "cast_a3.toml",
    ("Cast", "a5"): "cast_a5.toml",
    ("Cast", "atlas-200i-500-a2"): "cast_atlas_200i_500_a2.toml",
    ("Cast", "atlas-inference"): "cast_atlas_inference.toml",
    ("Cast", "atlas-training"): "cast_atlas_training.toml",
    ("Cast", "kirin-x90"): "cast_kirin_x90.toml",
    ("Cast", "kirin-9030"): "cast_kirin_9030.toml",
    ("astype", "a5"): "astype_a5.toml",
    ("MulCast", "a2a3"): "mulcast_a2a3.toml",
    ("MulCast", "a5"): "mulcast_a5.toml",
}


@cache
def _table(instruction: str, product: str) -> Table:
    data = load(_FILES[instruction, product])
    rows = tuple(
        _pair(instruction, dict(zip(data["columns"], row, strict=True))) for row in data["rows"]
    )
    return Table(data["instruction"], data["product"], data["document"], rows)


def _pair(instruction: str, row: dict[str, str]) -> Pair:
    # astype defaults to OFF, the others to ON, also where the choice has no effect (spec S14).
    default = "OFF" if instruction == "astype" else "ON"
    saturation = row["saturation"]
    return Pair(
        src=row["src"],
        dst=row["dst"],
        kind=row["kind"],
        modes=tuple(row["modes"].split()),
        default_saturation=default if saturation == "-" else saturation,
        has_saturation=saturation != "-",
        pytorch_pair=row.get("path") == "pytorch",
        layouts=tuple(row.get("layouts", "").split()),
    )


def tcvt_table(arch: str) -> Table | None:
    """The TCVT table of a target, or None where the instruction does not exist."""
    target = resolve(arch)
    return _table("TCVT", target) if target in TCVT_TARGETS else None


def lookup(arch: str, src: str, dst: str) -> Pair | None:
    """The TCVT row for `src` to `dst` on `arch` (spec V), or None: the conversion is illegal."""
    table = tcvt_table(arch)
    return table.pair(src, dst) if table else None


def cast_pair(product: str, src: str, dst: str) -> Pair | None:
    """The Cast row for `src` to `dst`; "a2a3" reads the A2 table (A3's has the same rows)."""
    return _table("Cast", _cast_product(product)).pair(src, dst)


def astype_pair(src: str, dst: str) -> Pair | None:
    """The astype row for `src` to `dst` (a5 only), with its register layouts."""
    return _table("astype", "a5").pair(src, dst)


def mulcast_pair(product: str, src: str, dst: str) -> Pair | None:
    """The MulCast row for `src` to `dst`, or None."""
    target = resolve(product)
    if ("MulCast", target) not in _FILES:
        return None
    return _table("MulCast", target).pair(src, dst)


def tables(arch: str | None = None) -> list[Table]:
    """All tables that apply to a target, TCVT first; all tables there are for None."""
    wanted = TARGETS if arch is None else (resolve(arch),)
    return [
        _table(instruction, product)
        for instruction, product in _FILES
        if resolve(product) in wanted
    ]


def _cast_product(product: str) -> str:
    if product.lower() in ("a2", "a3"):
        return product.lower()
    target = resolve(product)
    return "a2" if target == "a2a3" else target
