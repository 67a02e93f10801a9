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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i64,
)
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from pto.dialect.attributes import RoundModeAttr
from pto.dialect.ops import REGULAR_OPS, RegularOp, Signature
from pto.dialect.types import PtrType, element_format, type_text
from pto.numerics import FORMATS
from pto.targets import Pair, cast_pair, mulcast_pair
from pto.targets.products import TARGETS, UnknownTarget, resolve

REPEAT_BYTES = 256
BLOCK_BYTES = 32
REPEAT_MAX = 255
STRIDE_MAX = 255

SATURATION_BIT = 59
"""CTRL bit of conversions to integers: 0 saturates, 1 keeps the lowest bits."""
FLOAT_SATURATION_BIT = 48
"""CTRL bit of conversions to narrower floats: 0 saturates, 1 gives infinity and NaN (spec S2)."""
NAN_BIT = 50
"""CTRL bit that keeps NaN in saturating conversions to 8-bit floats (spec S2)."""


def saturation_bit(dst: str) -> int:
    """The CTRL bit that decides how conversions to this format saturate."""
    return SATURATION_BIT if FORMATS[dst].is_integer else FLOAT_SATURATION_BIT


def lanes_per_repeat(*formats: str) -> int:
    """Elements of one repeat of 256 bytes, by the widest format; 128 for 4-bit ones (spec L2)."""
    return REPEAT_BYTES * 8 // max(16 if FORMATS[f].bits == 4 else FORMATS[f].bits for f in formats)


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


def ub_format(value: SSAValue, role: str) -> str:
    """Spec name of the format behind a pointer into the unified buffer.

    Raises VerifyException for another type.
    """
    type_ = value.type
    name = element_format(type_.dtype) if isinstance(type_, PtrType) else None
    if not isinstance(type_, PtrType) or type_.space != "ub" or name is None:
        raise VerifyException(
            f"{role} is a pointer into the unified buffer, !pto.ptr<T, ub>, not {type_text(type_)}"
        )
    return name


def named_product(op: Operation) -> str | None:
    """The target that a module around `op` names, None if none does or it is not known."""
    current: Operation | None = op
    while current is not None:
        for key in ("pto.target_arch", "pto.device-spec"):
            attr = current.attributes.get(key)
            if isinstance(attr, StringAttr):
                try:
                    return resolve(attr.data)
                except UnknownTarget:
                    return None
        current = current.parent_op()
    return None


def _offered(op: Operation, lookup: Callable[[str], Pair | None], what: str) -> list[Pair]:
    """The rows of the pair's tables: of the named target, or of all."""
    product = named_product(op)
    products: Iterable[str] = TARGETS if product is None else (product,)
    rows = [row for row in map(lookup, products) if row is not None]
    if not rows:
        where = "any target" if product is None else product
        raise VerifyException(f"{what} is not offered on {where}")
    return rows


class BufferOp(RegularOp):
    """A repeat-based operation on the unified buffer."""

    POINTERS: ClassVar[tuple[str, ...]]
    """Roles of the pointers in the order of the strides: the destination first."""
    ATTRIBUTES: ClassVar[frozenset[str]] = frozenset(("count", "mask", "repeat", "strides"))
    SCALARS: ClassVar[int] = 0
    """How many scalars follow the pointers of `ins`."""
    signature: ClassVar[Signature]

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

    def verify_(self) -> None:
        super().verify_()
        if unknown := sorted(set(self.attributes) - self.ATTRIBUTES):
            known = " ".join(sorted(self.ATTRIBUTES))
            raise VerifyException(f"unknown attribute {unknown[0]}; {self.name} has {known}")
        extra = self._extra()
        if len(extra) == 1 or any(value.type != i64 for value in extra):
            raise VerifyException(
                "mask and repeat are both operands, of type i64, or both attributes"
            )
        if self.dynamic() is None:
            self.form()
        else:
            self.form(1 if _four_bit(self.formats()) is None else 2, 0)

    def formats(self) -> tuple[str, ...]:
        """Formats of the pointers, destination first. Raises VerifyException."""
        return tuple(
            ub_format(value, role)
            for role, value in zip(self.POINTERS, self.pointers(), strict=True)
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
        mask_attr = self.attributes.get("mask")
        listed = isinstance(mask_attr, DenseArrayBase | ArrayAttr)
        mask = None if listed else _integer(self, "mask")
        bits = _integers(self, "mask") if listed else None
        strides = _integers(self, "strides")
        if count is not None:
            if any(given is not None for given in (mask, bits, repeat, strides)):
                raise VerifyException("count goes without mask, repeat and strides")
            _check_count(count, formats)
            return VectorForm(count, None, None, 1, ())
        if mask_attr is None or repeat is None or strides is None:
            raise VerifyException("give count, or mask, repeat and strides")
        self._check_counted_only(formats)
        _check_range("repeat", repeat, 0, REPEAT_MAX)
        _check_strides(strides, self.POINTERS)
        if mask is not None:
            _check_mask(mask, formats)
        if bits is not None:
            _check_bits(bits, formats)
        return VectorForm(None, mask, bits, repeat, strides)

    def _dynamic_form(self, mask: int, repeat: int, formats: tuple[str, ...]) -> VectorForm:
        if {"count", "mask", "repeat"} & set(self.attributes):
            raise VerifyException("mask and repeat are operands; give only strides")
        strides = _integers(self, "strides") or ()
        self._check_counted_only(formats)
        _check_range("repeat", repeat, 0, REPEAT_MAX)
        _check_strides(strides, self.POINTERS)
        _check_mask(mask, formats)
        return VectorForm(None, mask, None, repeat, strides)

    def _check_counted_only(self, formats: tuple[str, ...]) -> None:
        wide = [f for f in formats if FORMATS[f].bits == 64 or f.startswith("c")]
        if wide and named_product(self) == "a5":
            raise VerifyException(
                f"{wide[0]} has the form with count only on a5, not the forms with a mask"
            )


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise VerifyException(f"{name} is {value}, but must be in [{low}, {high}]")


def _check_strides(strides: tuple[int, ...], roles: tuple[str, ...]) -> None:
    names = [f"{r} block stride" for r in roles] + [f"{r} repeat stride" for r in roles]
    if len(strides) != len(names):
        raise VerifyException(f"strides are {len(names)}: {', '.join(names)}; not {len(strides)}")
    for name, stride in zip(names, strides, strict=True):
        _check_range(name, stride, 0, STRIDE_MAX)


def _check_count(count: int, formats: tuple[str, ...]) -> None:
    _check_range("count", count, 0, 2**32 - 1)
    if count % 2 and (narrow := _four_bit(formats)):
        raise VerifyException(f"count is {count}, but must be even for {narrow}")


def _check_mask(mask: int, formats: tuple[str, ...]) -> None:
    _check_range("mask", mask, 1, lanes_per_repeat(*formats))
    if mask % 2 and (narrow := _four_bit(formats)):
        raise VerifyException(f"mask is {mask}, but must be even for {narrow}")


def _check_bits(words: tuple[int, ...], formats: tuple[str, ...]) -> None:
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


def _four_bit(formats: tuple[str, ...]) -> str | None:
    return next((f for f in formats if FORMATS[f].bits == 4), None)


class CastOp(BufferOp):
    """Cast (spec C1): converts the selected elements of `src` into `dst`.

    `rmode` absent is the pair's natural mode. Elements outside the mask keep their bytes.
    """

    name = "pto.cast"
    signature = REGULAR_OPS[name]
    POINTERS = ("dst", "src")
    ATTRIBUTES = BufferOp.ATTRIBUTES | {"rmode"}

    @property
    def rmode(self) -> str | None:
        """The rounding mode as written."""
        attr = self.attributes.get("rmode")
        if attr is not None and not isinstance(attr, RoundModeAttr):
            raise VerifyException(f"rmode is a #pto<round_mode ..>, not {attr}")
        return None if attr is None else attr.data

    def verify_(self) -> None:
        super().verify_()
        dst, src = self.formats()
        rows = _offered(self, lambda product: cast_pair(product, src, dst), f"Cast {src} to {dst}")
        if not any(row.accepts(self.rmode) for row in rows):
            raise VerifyException(
                f"Cast {src} to {dst} has no mode {self.rmode}; "
                f"it has {' '.join(dict.fromkeys(m for row in rows for m in row.modes))}"
            )


class MulCastOp(BufferOp):
    """MulCast (spec M1): the product in the source's type, then Cast with NONE, saturating."""

    name = "pto.mulcast"
    signature = REGULAR_OPS[name]
    POINTERS = ("dst", "src0", "src1")

    def verify_(self) -> None:
        super().verify_()
        dst, src, other = self.formats()
        if src != other:
            raise VerifyException(f"src0 is {src} and src1 is {other}, but must be of one type")
        _offered(self, lambda product: mulcast_pair(product, src, dst), f"MulCast {src} to {dst}")


class DuplicateOp(BufferOp):
    """Duplicate: writes an integer into the selected elements of `dst`."""

    name = "pto.duplicate"
    signature = REGULAR_OPS[name]
    POINTERS = ("dst",)
    SCALARS = 1

    def verify_(self) -> None:
        super().verify_()
        (dst,) = self.formats()
        if dst not in ("i16", "ui16", "i32", "ui32"):
            raise VerifyException(f"duplicate writes 16-bit and 32-bit integers, not {dst}")
        (value,) = self.scalars()
        if element_format(value.type) != dst:
            raise VerifyException(f"the value is of type {type_text(value.type)}, not {dst}")


class AndOp(BufferOp):
    """And: bitwise, of 16-bit integers, in the selected elements."""

    name = "pto.and"
    signature = REGULAR_OPS[name]
    POINTERS = ("dst", "src0", "src1")

    def verify_(self) -> None:
        super().verify_()
        formats = set(self.formats())
        if formats not in ({"i16"}, {"ui16"}):
            raise VerifyException("and takes three operands of i16 or of ui16")


BUFFER_OPS: dict[str, type[BufferOp]] = {
    op.name: op for op in (CastOp, MulCastOp, DuplicateOp, AndOp)
}
"""The operations of this module by name."""
