"""The TCVT table of spec V as it is written there, read independently of `pto.targets`."""

from __future__ import annotations

import re
from dataclasses import dataclass

FIVE = ("RINT", "ROUND", "FLOOR", "CEIL", "TRUNC")
ALL_MODES = (*FIVE, "ODD", "NONE", "HYBRID")

_TABLE = """
f32 | f16[5 ODD] f32[5] bf16[5] i16[5] i32[5] i64[5] | f16[5 ODD] f32[5] bf16[5] i16[5] i32[5] i64[5] f8e4m3fn[RINT] f8e5m2[RINT] hif8[ROUND HYBRID]
f16 | f32[=] i32[5] i16[5] i8[5] ui8[5] i4[5] | f32[=] i32[5] i16[5] i8[5] ui8[5] hif8[ROUND HYBRID]
bf16 | f32[=] i32[5] | f32[=] i32[5] f16[5] f4e1m2[5] f4e2m1[5]
i16 | f16[5] f32[=] | f16[5] f32[=] ui8[int] ui32[S12] i32[=]
i32 | f32[5] i16[int] i64[=] f16[S13] | f32[5] i16[int] ui16[int] i64[=] ui8[int]
i64 | f32[5] i32[int] | f32[5] i32[int]
ui8 | f16[=] | f16[=] ui16[=]
i8 | f16[=] | f16[=] i16[=] i32[=]
i4 | f16[=] | -
ui32 | - | ui8[int] ui16[int] i16[int]
f8e4m3fn f8e5m2 hif8 | - | f32[=]
f4e1m2 f4e2m1 | - | bf16[=]
"""

OFF_BY_DEFAULT = {
    ("f16", "ui8"),
    ("f16", "i8"),
    ("f32", "i16"),
    ("f16", "i16"),
    ("i64", "i32"),
    ("i32", "i16"),
}
"""Spec S14."""

PYTORCH = {("f32", "i16"), ("f16", "i16"), ("f16", "i8")}
"""Spec S10."""

FORMATS = (
    *("f32", "f16", "bf16", "f8e4m3fn", "f8e5m2", "hif8", "f4e1m2", "f4e2m1"),
    *("i4", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32"),
)


@dataclass(frozen=True)
class Row:
    """One cell of the table: what is in the brackets."""

    src: str
    dst: str
    rule: str

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes listed, none where the rule is not a list of modes."""
        if self.rule in ("=", "int", "S12", "S13"):
            return ()
        return tuple(self.rule.replace("5", " ".join(FIVE)).split())

    def accepts(self, mode: str | None) -> bool:
        """Spec R7, R9, R10."""
        if mode is None or not self.modes:
            return True
        return mode in self.modes or (mode == "NONE" and "RINT" in self.modes)


def _parse() -> dict[tuple[str, str, str], Row]:
    rows = {}
    for line in _TABLE.strip().splitlines():
        sources, *columns = line.split("|")
        for arch, cells in zip(("a2a3", "a5"), columns, strict=True):
            for src in sources.split():
                for dst, rule in re.findall(r"(\w+)\[([^\]]*)\]", cells):
                    rows[arch, src, dst] = Row(src, dst, rule)
    return rows


ROWS = _parse()
"""(arch, src, dst) → row."""
