"""Operations on registers: the assembler's `vcvt`, which is PyPTO's `vf.astype` (spec A1).

`part` is its layout, `rnd` its round mode, `sat` its saturate. Loads, stores and predicates have no
class of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from pto.dialect.machine_ops import REPEAT_BYTES
from pto.dialect.ops import OpaqueOp
from pto.dialect.types import OpaqueType, element_format, type_text
from pto.numerics import FORMATS
from pto.targets import Pair, astype_pair

LETTER_OF_MODE = {
    "RINT": "R",
    "ROUND": "A",
    "FLOOR": "F",
    "CEIL": "C",
    "TRUNC": "Z",
    "ODD": "O",
    "HYBRID": "H",
}
"""The assembler's `rnd` letters."""
MODE_OF_LETTER = {letter: mode for mode, letter in LETTER_OF_MODE.items()}

LAYOUTS = ("ZERO", "ONE", "TWO", "THREE")
"""astype's layouts: which of the narrow lanes hold the elements (spec L3)."""
PARTS = {2: ("EVEN", "ODD"), 4: ("P0", "P1", "P2", "P3")}
"""The assembler's `part` by the ratio of the widths, in the order of `LAYOUTS`."""

_VREG = re.compile(r"(\d+)x(.+)")


@cache
def vreg_type(dtype: Attribute) -> OpaqueType:
    """`!pto.vreg<64xf32>`: the type of a register of 256 bytes of `dtype`."""
    from pto.dialect.types import elements_per_column, opaque_type_class

    name = element_format(dtype)
    assert name is not None
    lanes = REPEAT_BYTES * 8 // (FORMATS[name].bits * elements_per_column(dtype))
    return opaque_type_class("pto.vreg")(f"{lanes}x{type_text(dtype)}")


@cache
def mask_type(bits: int) -> OpaqueType:
    """`!pto.mask<b32>`: the type of a predicate of lanes of this width."""
    from pto.dialect.types import opaque_type_class

    return opaque_type_class("pto.mask")(f"b{bits}")


@cache
def vreg_format(type_: Attribute) -> str | None:
    """Spec name of a register's element format; None where the type is no register of one."""
    from pto.frontend.types import parse_type

    if not isinstance(type_, OpaqueType) or type_.name != "pto.vreg":
        return None
    match = _VREG.fullmatch(type_.data)
    return element_format(parse_type(match.group(2).strip())) if match else None


def width_ratio(src: str, dst: str) -> int:
    """How many times wider one side is, per instruction: packed pairs count as 4 (spec L3)."""
    wide, narrow = sorted((FORMATS[src].bits, FORMATS[dst].bits), reverse=True)
    return wide // narrow


@dataclass(frozen=True)
class RegisterCast:
    """What a `vcvt` says, as astype calls it (spec A1)."""

    src: str
    dst: str
    layout: int
    """Index into `LAYOUTS`."""
    mode: str | None
    saturation: str
    """ON or OFF; the default is OFF."""


class VcvtOp(OpaqueOp):
    """astype (spec A1): `%d = pto.vcvt %s, %mask {rnd, sat, part} : vreg, mask -> vreg`.

    Lanes that the predicate does not select are zero (ZEROING).
    """

    name = "pto.vcvt"

    def verify_(self) -> None:
        formats = [vreg_format(value.type) for value in (*self.operands[:1], *self.results)]
        if None not in formats:  # types that this project does not know are not judged
            self.register_cast()

    def register_cast(self) -> RegisterCast:
        """The conversion, checked against the astype table. Raises VerifyException."""
        if len(self.operands) != 2 or len(self.results) != 1:
            raise VerifyException("vcvt takes a register and a predicate and yields a register")
        src, dst = vreg_format(self.operands[0].type), vreg_format(self.results[0].type)
        pair = None if src is None or dst is None else astype_pair(src, dst)
        if pair is None:
            raise VerifyException(f"astype {src} to {dst} is not offered")
        self._check_mask(pair.src)
        if (merge := self._text("mode")) not in (None, "ZEROING"):
            raise VerifyException(f"mode {merge} is not supported: only ZEROING is")
        return RegisterCast(
            pair.src, pair.dst, self._layout(pair), self._mode(pair), self._saturation(pair)
        )

    def _check_mask(self, src: str) -> None:
        """The predicate has the source's granularity; there is none of 64-bit or 4-bit lanes."""
        expected = mask_type(max(8, min(32, FORMATS[src].bits)))
        if self.operands[1].type != expected:
            raise VerifyException(
                f"the predicate of astype from {src} is {type_text(expected)},"
                f" not {type_text(self.operands[1].type)}"
            )

    def _text(self, key: str) -> str | None:
        attr = self.attributes.get(key)
        if attr is not None and not isinstance(attr, StringAttr):
            raise VerifyException(f"{key} is a string, not {attr}")
        return None if attr is None else attr.data

    def _layout(self, pair: Pair) -> int:
        part = self._text("part")
        ratio = width_ratio(pair.src, pair.dst)
        if not pair.layouts:
            if part is not None:
                raise VerifyException(f"astype {pair.src} to {pair.dst} has no part: equal widths")
            return 0
        offered = PARTS[ratio][: len(pair.layouts)]
        if part is not None and part not in offered:
            raise VerifyException(
                f"part of astype {pair.src} to {pair.dst} is one of {' '.join(offered)}, not {part}"
            )
        return 0 if part is None else offered.index(part)

    def _mode(self, pair: Pair) -> str | None:
        letter = self._text("rnd")
        if letter is None:
            return None
        mode = MODE_OF_LETTER.get(letter)
        if mode is None or not pair.accepts(mode):
            letters = " ".join(LETTER_OF_MODE[m] for m in pair.modes)
            raise VerifyException(
                f"rnd of astype {pair.src} to {pair.dst} is one of {letters}, not {letter}"
            )
        return mode

    def _saturation(self, pair: Pair) -> str:
        sat = self._text("sat")
        if sat is None:
            return "OFF"
        if not pair.has_saturation:
            raise VerifyException(f"astype {pair.src} to {pair.dst} has no saturation mode")
        if sat not in ("SAT", "NOSAT"):
            raise VerifyException(f"sat is SAT or NOSAT, not {sat}")
        return "ON" if sat == "SAT" else "OFF"


REGISTER_OPS: dict[str, type[OpaqueOp]] = {VcvtOp.name: VcvtOp}
"""The operations of this module by name."""
