"""Operations on the unified buffer: Cast, MulCast and what a lowered conversion needs beside them.

They have the regular shape, their operands being pointers into the buffer:

    pto.cast ins(%s {rmode = #pto<round_mode RINT>, mask = 64, repeat = 4,
                     strides = array<i64: 1, 1, 4, 8>} : !pto.ptr<f32, ub>)
             outs(%d : !pto.ptr<f16, ub>)

Three forms (spec C1): `count` alone; `mask` an integer (the first elements of each repeat); `mask`
an array of 64-bit words (one bit an element). The last two go with `repeat` and `strides`, the
numbers of AscendC's repeat parameters in their order: block strides, destination first, then repeat
strides, all in blocks of 32 bytes. The number of lanes and the mask follow the wider type. Where
they are known only at run time, an integer mask and the repeat are two operands after the pointers.
Saturation is the machine's state (CTRL), not an operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, IntegerType, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_attr_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from pto.dialect.attributes import RoundModeAttr
from pto.dialect.ops import GroupedOp
from pto.dialect.target import target_of
from pto.dialect.tile_operations import SIGNATURES
from pto.dialect.type_records import type_text
from pto.dialect.types import PtrType, element_format
from pto.numerics.formats import Format
from pto.targets import PRODUCTS, Pair, Product, pair_of
from pto.targets.vector_unit import REPEAT_MAX, STRIDE_MAX, lanes_per_repeat


@dataclass(frozen=True)
class VectorForm:
    """Which elements a buffer operation computes.

    Exactly one of `count`, `mask` (elements of each repeat, from the first) and `bits` (one bit an
    element of each repeat, lowest first) is given; the latter two with `repeat` and `strides`.
    """

    count: int | None
    mask: int | None
    bits: tuple[int, ...] | None
    repeat: int
    strides: tuple[int, ...]


def _integer(op: Operation, key: str) -> int | None:
    attr = op.attributes.get(key)
    if attr is None:
        return None
    if not isinstance(attr, IntegerAttr) or not isinstance(attr.type, IntegerType):
        raise VerifyException(f"{key} is an integer, not {attr}")
    return attr.value.data


def _integers(op: Operation, key: str) -> tuple[int, ...] | None:
    attr = op.attributes.get(key)
    if isinstance(attr, DenseArrayBase):
        return tuple(int(n) for n in attr.get_values())
    if isinstance(attr, ArrayAttr) and all(isinstance(n, IntegerAttr) for n in attr.data):
        return tuple(n.value.data for n in attr.data)
    if attr is None:
        return None
    raise VerifyException(f"{key} is a list of integers, not {attr}")


def ub_format(value: SSAValue, name: str) -> Format:
    """The format behind a pointer into the unified buffer. Raises VerifyException."""
    type_ = value.type
    fmt = element_format(type_.dtype) if isinstance(type_, PtrType) else None
    if not isinstance(type_, PtrType) or type_.space != "ub" or fmt is None:
        raise VerifyException(
            f"{name} is a pointer into the unified buffer, !pto.ptr<T, ub>, not {type_text(type_)}"
        )
    return fmt


class BufferOp(IRDLOperation, GroupedOp):
    """A repeat-based operation on the unified buffer."""

    ins = var_operand_def()
    outs = var_operand_def()
    count = opt_attr_def()
    mask = opt_attr_def()
    repeat = opt_attr_def()
    strides = opt_attr_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    POINTERS: ClassVar[tuple[str, ...]]
    """The pointers in the order of the strides: the destination first."""
    INSTRUCTION: ClassVar[str] = ""
    """The instruction whose table says what it converts, if it converts."""
    SCALARS: ClassVar[int] = 0
    """How many scalars follow the pointers of `ins`."""

    def pointers(self) -> list[SSAValue]:
        """The pointers in the order of `POINTERS`."""
        return [*self.outs, *self.ins[: len(self.POINTERS) - 1]]

    def scalars(self) -> list[SSAValue]:
        """The scalar operand, where there is one."""
        first = len(self.POINTERS) - 1
        return list(self.ins[first : first + self.SCALARS])

    def _extra(self) -> Sequence[SSAValue]:
        return self.ins[len(self.POINTERS) - 1 + self.SCALARS :]

    def dynamic(self) -> tuple[SSAValue, SSAValue] | None:
        """Mask and repeat where they are operands, of type i64."""
        extra = self._extra()
        return (extra[0], extra[1]) if len(extra) == 2 else None

    def check_form(self) -> None:
        """Raises VerifyException that names the limit which the operation breaks."""
        self.check_groups()
        known = self.get_irdl_definition().attributes
        if unknown := sorted(set(self.attributes) - set(known)):
            listed = " ".join(sorted(known))
            raise VerifyException(f"unknown attribute {unknown[0]}; {self.name} has {listed}")
        extra = self._extra()
        if len(extra) == 1 or any(value.type != i64 for value in extra):
            raise VerifyException(
                "mask and repeat are both operands, of type i64, or both attributes"
            )
        if self.dynamic() is None:
            self.form()
        else:
            self.form(1 if _four_bit(self.formats()) is None else 2, 0)

    def formats(self) -> tuple[Format, ...]:
        """Formats of the pointers, destination first. Raises VerifyException."""
        return tuple(
            ub_format(value, name)
            for name, value in zip(self.POINTERS, self.pointers(), strict=True)
        )

    def form(self, mask: int | None = None, repeat: int | None = None) -> VectorForm:
        """The form, checked against every limit of the documents (spec C1).

        `mask` and `repeat` are the values of those operands, where there are any.
        Raises VerifyException that names the limit.
        """
        formats = self.formats()
        if mask is not None and repeat is not None:
            return self._dynamic_form(mask, repeat, formats)
        count, repeat = _integer(self, "count"), _integer(self, "repeat")
        listed = isinstance(self.mask, DenseArrayBase | ArrayAttr)
        mask = None if listed else _integer(self, "mask")
        bits = _integers(self, "mask") if listed else None
        strides = _integers(self, "strides")
        if count is not None:
            if any(given is not None for given in (mask, bits, repeat, strides)):
                raise VerifyException("count goes without mask, repeat and strides")
            _check_count(count, formats)
            return VectorForm(count, None, None, 1, ())
        if self.mask is None or repeat is None or strides is None:
            raise VerifyException("give count, or mask, repeat and strides")
        self._check_counted_only(formats)
        _check_range("repeat", repeat, 0, REPEAT_MAX)
        _check_strides(strides, self.POINTERS)
        if mask is not None:
            _check_mask(mask, formats)
        if bits is not None:
            _check_bits(bits, formats)
        return VectorForm(None, mask, bits, repeat, strides)

    def _dynamic_form(self, mask: int, repeat: int, formats: tuple[Format, ...]) -> VectorForm:
        if {"count", "mask", "repeat"} & set(self.attributes):
            raise VerifyException("mask and repeat are operands; give only strides")
        strides = _integers(self, "strides") or ()
        self._check_counted_only(formats)
        _check_range("repeat", repeat, 0, REPEAT_MAX)
        _check_strides(strides, self.POINTERS)
        _check_mask(mask, formats)
        return VectorForm(None, mask, None, repeat, strides)

    def _check_counted_only(self, formats: tuple[Format, ...]) -> None:
        named = target_of(self)
        product = None if named is None else named.product
        wide = [f for f in formats if product is not None and f.name in product.count_only]
        if wide:
            raise VerifyException(
                f"{wide[0]} has the form with count only on {product}, not the forms with a mask"
            )

    def offering(self) -> list[tuple[Product, Pair]]:
        """The products that have the conversion, with its row: of the named one, or of all.

        Raises VerifyException for none.
        """
        dst, src, *_ = self.formats()
        named = target_of(self)
        product = None if named is None else named.product
        products = list(PRODUCTS.values()) if product is None else [product]
        found = [(p, pair_of(self.INSTRUCTION, p, src, dst)) for p in products]
        rows = [(p, pair) for p, pair in found if pair is not None]
        if not rows:
            where = "any target" if product is None else product
            raise VerifyException(f"{self.INSTRUCTION} {src} to {dst} is not offered on {where}")
        return rows


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise VerifyException(f"{name} is {value}, but must be in [{low}, {high}]")


def _check_strides(strides: tuple[int, ...], pointers: tuple[str, ...]) -> None:
    names = [f"{p} block stride" for p in pointers] + [f"{p} repeat stride" for p in pointers]
    if len(strides) != len(names):
        raise VerifyException(f"strides are {len(names)}: {', '.join(names)}; not {len(strides)}")
    for name, stride in zip(names, strides, strict=True):
        _check_range(name, stride, 0, STRIDE_MAX)


def _check_count(count: int, formats: tuple[Format, ...]) -> None:
    _check_range("count", count, 0, 2**32 - 1)
    if count % 2 and (narrow := _four_bit(formats)):
        raise VerifyException(f"count is {count}, but must be even for {narrow}")


def _check_mask(mask: int, formats: tuple[Format, ...]) -> None:
    _check_range("mask", mask, 1, lanes_per_repeat(*formats))
    if mask % 2 and (narrow := _four_bit(formats)):
        raise VerifyException(f"mask is {mask}, but must be even for {narrow}")


def _check_bits(words: tuple[int, ...], formats: tuple[Format, ...]) -> None:
    """A bitwise mask: two words for 128 lanes, one for 64, the low half of one for 32."""
    lanes = lanes_per_repeat(*formats)
    expected = 2 if lanes > 64 else 1
    if len(words) != expected:
        raise VerifyException(
            f"a bitwise mask of {lanes} elements has {expected} words of 64 bits, not {len(words)}"
        )
    joined = sum((word & (2**64 - 1)) << (64 * i) for i, word in enumerate(words))
    if joined == 0 or joined >> lanes:
        raise VerifyException(
            f"a bitwise mask selects 1 to {lanes} elements: mask in (0, 2^{lanes} - 1]"
        )
    if narrow := _four_bit(formats):
        even = int("01" * (lanes // 2), 2)
        if joined & even != joined >> 1 & even:
            raise VerifyException(
                f"both bits of a pair are equal in a bitwise mask of {narrow}: it shares a byte"
            )


def _four_bit(formats: tuple[Format, ...]) -> Format | None:
    return next((f for f in formats if f.per_byte == 2), None)


@irdl_op_definition
class CastOp(BufferOp):
    """Cast (spec C1): converts the selected elements of `src` into `dst`.

    `rmode` absent is the pair's natural mode. Elements outside the mask keep their bytes.
    """

    name = "pto.cast"
    SIGNATURE: ClassVar = SIGNATURES[name]
    POINTERS: ClassVar = ("dst", "src")
    INSTRUCTION: ClassVar = "Cast"

    rmode = opt_attr_def()

    @property
    def mode(self) -> str | None:
        """The rounding mode as written. Raises VerifyException for another kind of attribute."""
        if self.rmode is not None and not isinstance(self.rmode, RoundModeAttr):
            raise VerifyException(f"rmode is a #pto<round_mode ..>, not {self.rmode}")
        return None if self.rmode is None else self.rmode.data

    def verify_(self) -> None:
        self.check_form()
        dst, src = self.formats()
        rows = [pair for _, pair in self.offering()]
        if not any(row.accepts(self.mode) for row in rows):
            raise VerifyException(
                f"Cast {src} to {dst} has no mode {self.mode}; "
                f"it has {' '.join(dict.fromkeys(m for row in rows for m in row.modes))}"
            )


@irdl_op_definition
class MulCastOp(BufferOp):
    """MulCast (spec M1): the product in the source's type, then Cast with NONE, saturating."""

    name = "pto.mulcast"
    SIGNATURE: ClassVar = SIGNATURES[name]
    POINTERS: ClassVar = ("dst", "src0", "src1")
    INSTRUCTION: ClassVar = "MulCast"

    def verify_(self) -> None:
        self.check_form()
        _, src, other = self.formats()
        if src is not other:
            raise VerifyException(f"src0 is {src} and src1 is {other}, but must be of one type")
        self.offering()


@irdl_op_definition
class DuplicateOp(BufferOp):
    """Duplicate: writes an integer into the selected elements of `dst`."""

    name = "pto.duplicate"
    SIGNATURE: ClassVar = SIGNATURES[name]
    POINTERS: ClassVar = ("dst",)
    SCALARS: ClassVar = 1

    def verify_(self) -> None:
        self.check_form()
        (dst,) = self.formats()
        if not dst.is_integer or dst.bits not in (16, 32):
            raise VerifyException(f"duplicate writes 16-bit and 32-bit integers, not {dst}")
        (value,) = self.scalars()
        if element_format(value.type) is not dst:
            raise VerifyException(f"the value is of type {type_text(value.type)}, not {dst}")


@irdl_op_definition
class AndOp(BufferOp):
    """And: bitwise, of 16-bit integers, in the selected elements."""

    name = "pto.and"
    SIGNATURE: ClassVar = SIGNATURES[name]
    POINTERS: ClassVar = ("dst", "src0", "src1")

    def verify_(self) -> None:
        self.check_form()
        formats = set(self.formats())
        if len(formats) > 1 or not all(f.is_integer and f.bits == 16 for f in formats):
            raise VerifyException("and takes three operands of i16 or of ui16")


OPERATIONS: dict[str, type[Operation]] = {
    op.name: op for op in (CastOp, MulCastOp, DuplicateOp, AndOp)
}
"""The operations of this module by name."""
