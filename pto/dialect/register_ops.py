"""Operations on registers, predicates and the state of the machine, which lowered programs are made
of. Their syntax is declared as MLIR declares it (`assembly_format`).

The assembler's `vcvt` is PyPTO's `vf.astype` (spec A1): `part` is its layout, `rnd` its round mode,
`sat` its saturate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from pto.dialect.ops import parsed_by_grammar
from pto.dialect.type_records import type_text
from pto.dialect.types import MaskType, VRegType, element_format
from pto.numerics.formats import Format
from pto.targets import PRODUCTS, Pair, ResolvedConversion, pair_of, resolve_generally

INDEX = IndexType()

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

BINARY_I64 = "$input `,` $bit attr-dict `:` type($input) `,` type($bit) `->` type($result)"


def width_ratio(src: Format, dst: Format) -> int:
    """How many times wider one side is, per instruction: packed pairs count as 4 (spec L3)."""
    wide, narrow = sorted((src.memory_bits, dst.memory_bits), reverse=True)
    return wide // narrow


def mask_bits(src: Format) -> int:
    """Granularity of the predicate of a conversion: there is none of 64-bit or 4-bit lanes."""
    return max(8, min(32, src.memory_bits))


# ---- Addresses and state


@irdl_op_definition
class TileBufAddrOp(IRDLOperation):
    """The address of a tile, as a pointer into the unified buffer."""

    name = "pto.tile_buf_addr"
    src = operand_def()
    dst = result_def()
    assembly_format = "$src attr-dict `:` type($src) `->` type($dst)"


@irdl_op_definition
class TileValidRowsOp(IRDLOperation):
    """The valid rows of a tile."""

    name = "pto.tile_valid_rows"
    src = operand_def()
    result = result_def()
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"


@irdl_op_definition
class TileValidColsOp(IRDLOperation):
    """The valid columns of a tile, as its type counts them."""

    name = "pto.tile_valid_cols"
    src = operand_def()
    result = result_def()
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"


@irdl_op_definition
class AddPtrOp(IRDLOperation):
    """A pointer so many elements further on."""

    name = "pto.addptr"
    ptr = operand_def()
    offset = operand_def(INDEX)
    result = result_def()
    assembly_format = "$ptr `,` $offset attr-dict `:` type($ptr) `->` type($result)"


@irdl_op_definition
class CastPtrOp(IRDLOperation):
    """A pointer to elements of another type, from a pointer or a byte address."""

    name = "pto.castptr"
    input = operand_def()
    result = result_def()
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"


@irdl_op_definition
class GetCtrlOp(IRDLOperation):
    """Reads the control register."""

    name = "pto.get_ctrl"
    result = result_def()
    assembly_format = "attr-dict `:` type($result)"


@irdl_op_definition
class SetCtrlOp(IRDLOperation):
    """Writes the control register."""

    name = "pto.set_ctrl"
    value = operand_def()
    assembly_format = "$value attr-dict `:` type($value)"


@irdl_op_definition
class ClearBitOp(IRDLOperation):
    """A word with a bit cleared."""

    name = "pto.sbitset0"
    input = operand_def()
    bit = operand_def()
    result = result_def()
    assembly_format = BINARY_I64


@irdl_op_definition
class SetBitOp(IRDLOperation):
    """A word with a bit set."""

    name = "pto.sbitset1"
    input = operand_def()
    bit = operand_def()
    result = result_def()
    assembly_format = BINARY_I64


@irdl_op_definition
class GetDeqScaleOp(IRDLOperation):
    """Reads the scale of dequantisation (spec S13)."""

    name = "pto.get_deqscale"
    result = result_def()
    assembly_format = "attr-dict `:` type($result)"


@irdl_op_definition
class SetDeqScaleOp(IRDLOperation):
    """Sets what an i32 is multiplied with on its way to f16 (spec S13)."""

    name = "pto.set_deqscale"
    scale = operand_def()
    assembly_format = "$scale attr-dict `:` type($scale)"


# ---- Predicates


class _PatternOp(IRDLOperation):
    """A predicate by the name of its pattern, such as "PAT_ALL"."""

    pattern = prop_def(StringAttr)
    result = result_def(MaskType)


class _CountOp(IRDLOperation):
    """The first `scalar` lanes, or all, and what is left of the count after a register."""

    scalar = operand_def()
    mask = result_def(MaskType)
    scalar_out = result_def()


def _predicate(base: type[IRDLOperation], name: str, syntax: str) -> type[IRDLOperation]:
    fields = {"name": name, "assembly_format": syntax, "__doc__": base.__doc__}
    return irdl_op_definition(type(base.__name__, (base,), fields))


_PATTERN = "$pattern attr-dict `:` type($result)"
_COUNT = "$scalar attr-dict `:` type($scalar) `->` type($mask) `,` type($scalar_out)"
PSET = {bits: _predicate(_PatternOp, f"pto.pset_b{bits}", _PATTERN) for bits in (8, 16, 32)}
"""`pto.pset_bN`, by the width of a lane."""
PGE = {bits: _predicate(_PatternOp, f"pto.pge_b{bits}", _PATTERN) for bits in (8, 16, 32)}
PLT = {bits: _predicate(_CountOp, f"pto.plt_b{bits}", _COUNT) for bits in (8, 16, 32)}


# ---- Registers


@irdl_op_definition
class VecScopeOp(IRDLOperation):
    """The part of a program that the vector core's registers run."""

    name = "pto.vecscope"
    body = region_def()
    traits = traits_def(NoTerminator())
    assembly_format = "$body attr-dict"


@irdl_op_definition
class VldsOp(IRDLOperation):
    """Loads a register; `dist` says how memory is spread over its lanes."""

    name = "pto.vlds"
    source = operand_def()
    offset = operand_def(INDEX)
    dist = opt_prop_def()
    result = result_def()
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source `[` $offset `]` attr-dict `:` type($source) `->` type($result)"


@irdl_op_definition
class VstsOp(IRDLOperation):
    """Stores the selected lanes of a register; `dist` says how they are packed."""

    name = "pto.vsts"
    value = operand_def()
    destination = operand_def()
    offset = operand_def(INDEX)
    mask = operand_def()
    dist = opt_prop_def()
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$value `,` $destination `[` $offset `]` `,` $mask attr-dict"
        " `:` type($value) `,` type($destination) `,` type($mask)"
    )


@irdl_op_definition
class VtrcOp(IRDLOperation):
    """Rounds to integral values of the same type (spec R11)."""

    name = "pto.vtrc"
    input = operand_def()
    mask = operand_def()
    round_mode = prop_def(StringAttr)
    result = result_def()
    assembly_format = (
        "$input `,` $mask `,` $round_mode attr-dict"
        " `:` type($input) `,` type($mask) `->` type($result)"
    )


@dataclass(frozen=True)
class RegisterCast:
    """What a `vcvt` says, as astype calls it (spec A1)."""

    src: Format
    dst: Format
    layout: int
    """Index into `LAYOUTS`."""
    mode: str | None
    saturation: str
    """ON or OFF; the default is OFF."""

    def conversion(self) -> ResolvedConversion:
        """What the conversion means."""
        return resolve_generally(self.src, self.dst, mode=self.mode, saturation=self.saturation)


@dataclass(frozen=True)
class RegisterProblem:
    """One thing that is wrong with a register conversion."""

    id: str
    """What it is about; "type-pair", "round-mode" and "sat-mode" are those of the diagnostics."""
    message: str
    attribute: str = ""
    """The attribute at fault, if it is one."""
    notes: tuple[str, ...] = ()


def astype_pair(src: Format, dst: Format) -> Pair | None:
    """The row of the astype table, on the first product that has the pair."""
    found = (pair_of("astype", product, src, dst) for product in PRODUCTS.values())
    return next((pair for pair in found if pair is not None), None)


def vreg_format(type_: Attribute) -> Format | None:
    """A register's element format; None where the type is no register of one."""
    return element_format(type_.dtype) if isinstance(type_, VRegType) else None


@irdl_op_definition
class VcvtOp(IRDLOperation):
    """astype (spec A1): `%d = pto.vcvt %s, %mask {rnd, sat, part} : vreg, mask -> vreg`.

    Lanes that the predicate does not select are zero (ZEROING).
    """

    name = "pto.vcvt"
    input = operand_def()
    mask = opt_operand_def()
    rnd = opt_prop_def()
    sat = opt_prop_def()
    part = opt_prop_def()
    result = result_def()
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$input (`,` $mask^)? attr-dict `:` type($input) (`,` type($mask)^)? `->` type($result)"
    )

    KEYS: ClassVar = ("rnd", "sat", "part", "mode")

    def verify_(self) -> None:
        formats = vreg_format(self.input.type), vreg_format(self.result.type)
        if None not in formats:  # types that this project does not know are not judged
            self.register_cast()

    def register_cast(self) -> RegisterCast:
        """The conversion, checked against the astype table. Raises VerifyException."""
        for problem in self.problems():
            raise VerifyException("; ".join((problem.message, *problem.notes)))
        src, dst = vreg_format(self.input.type), vreg_format(self.result.type)
        assert src is not None
        assert dst is not None
        part, letter = self._text("part"), self._text("rnd")
        return RegisterCast(
            src,
            dst,
            0 if part is None else PARTS[width_ratio(src, dst)].index(part),
            None if letter is None else MODE_OF_LETTER[letter],
            "ON" if self._text("sat") == "SAT" else "OFF",
        )

    def problems(self) -> Iterator[RegisterProblem]:
        """Everything that is wrong with the conversion; nothing where its types are not known."""
        src, dst = vreg_format(self.input.type), vreg_format(self.result.type)
        if src is None or dst is None:
            yield RegisterProblem("register", "vcvt converts registers of a known element type")
            return
        if (pair := astype_pair(src, dst)) is None:
            yield RegisterProblem("type-pair", f"no register conversion of {src} to {dst}")
            return
        for key in self.KEYS:
            attr = self._attribute(key)
            if attr is not None and not isinstance(attr, StringAttr):
                yield RegisterProblem(key, f"{key} is a string, not {attr}", key)
                return
        what = f"a register conversion of {src} to {dst}"
        yield from self._round_mode(pair, what)
        yield from self._saturation(pair, what)
        yield from self._predicate(src, what)
        yield from self._part(pair, what)
        if (merge := self._text("mode")) not in (None, "ZEROING"):
            message = f"mode {merge} is not supported: only ZEROING is"
            yield RegisterProblem("mode", message, "mode")

    def _attribute(self, key: str) -> Attribute | None:
        return self.properties.get(key, self.attributes.get(key))

    def _text(self, key: str) -> str | None:
        attr = self._attribute(key)
        return attr.data if isinstance(attr, StringAttr) else None

    def _round_mode(self, pair: Pair, what: str) -> Iterator[RegisterProblem]:
        letter = self._text("rnd")
        mode = MODE_OF_LETTER.get(letter or "")
        if letter is None or (mode is not None and pair.accepts(mode)):
            return
        letters = " ".join(LETTER_OF_MODE[m] for m in pair.modes)
        notes = (f"modes of this pair: {' '.join(pair.modes)} (rnd = {letters})",)
        if mode is None:
            yield RegisterProblem("rnd", f"{what} has no rnd {letter}", "rnd", notes)
        else:
            yield RegisterProblem("round-mode", f"{what} does not round by {mode}", "rnd", notes)

    def _saturation(self, pair: Pair, what: str) -> Iterator[RegisterProblem]:
        sat = self._text("sat")
        if sat is not None and not pair.has_saturation:
            yield RegisterProblem(
                "sat-mode", f"{what} has no saturation mode", "sat", ("remove sat",)
            )
        elif sat not in (None, "SAT", "NOSAT"):
            yield RegisterProblem("sat", f"sat is SAT or NOSAT, not {sat}", "sat")

    def _predicate(self, src: Format, what: str) -> Iterator[RegisterProblem]:
        if self.mask is None:
            yield RegisterProblem("predicate", f"{what} takes a predicate")
        elif self.mask.type != (expected := MaskType(mask_bits(src))):
            message = f"the predicate of {what} is {type_text(expected)}"
            yield RegisterProblem("predicate", f"{message}, not {type_text(self.mask.type)}")

    def _part(self, pair: Pair, what: str) -> Iterator[RegisterProblem]:
        part = self._text("part")
        if part is None:
            return
        if not pair.layouts:
            yield RegisterProblem("part", f"{what} has no part: equal widths", "part")
            return
        offered = PARTS[width_ratio(pair.src, pair.dst)][: len(pair.layouts)]
        if part not in offered:
            message = f"part of {what} is one of {' '.join(offered)}, not {part}"
            yield RegisterProblem("part", message, "part")


_ALL: tuple[type[Operation], ...] = (
    *(TileBufAddrOp, TileValidRowsOp, TileValidColsOp, AddPtrOp, CastPtrOp),
    *(GetCtrlOp, SetCtrlOp, ClearBitOp, SetBitOp, GetDeqScaleOp, SetDeqScaleOp),
    *(*PSET.values(), *PGE.values(), *PLT.values()),
    *(VecScopeOp, VldsOp, VstsOp, VtrcOp, VcvtOp),
)
OPERATIONS: dict[str, type[Operation]] = {op.name: parsed_by_grammar(op) for op in _ALL}
"""The operations of this module by name."""
