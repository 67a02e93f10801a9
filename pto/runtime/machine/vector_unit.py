"""The vector unit on the unified buffer: Cast, MulCast, and the steps of a2a3 (spec C, M)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.utils.exceptions import VerifyException

from pto.dialect.buffer_ops import BufferOp, CastOp, DuplicateOp, MulCastOp, VectorForm
from pto.numerics import Format
from pto.runtime.machine.lanes import Lanes, UbPointer, lanes_of
from pto.runtime.machine.report import Report
from pto.targets import Product, ResolvedConversion, resolve
from pto.targets.vector_unit import BLOCK_BYTES, NAN_BIT, lanes_per_repeat, saturation_bit

Array = NDArray[Any]
Compute = Callable[..., Array]
"""From the codes of the sources to those of the destination."""


class Converter:
    """A conversion of arrays of codes, with the state of CTRL that it depends on.

    Sources of up to 16 bits get a table of all their codes once they have been asked for often:
    for the few lanes of an instruction, looking up costs a tenth of a call of the numerics.
    """

    _CALLS = 64
    _LANES = 512

    def __init__(self, conversion: ResolvedConversion, keeps_nan: bool) -> None:
        self._conversion = conversion
        self._nan_saturation = "keep" if keeps_nan else "zero"
        self._calls = 0
        self._table: Array | None = None

    def __call__(self, codes: Array) -> Array:
        """The codes of the results, one for each."""
        if self._table is not None and codes.size <= self._LANES:
            return self._table.take(codes)
        self._calls += 1
        source = self._conversion.src
        if self._calls == self._CALLS and source.bits <= 16:
            self._table = self._convert(np.arange(1 << source.bits, dtype=source.code_dtype))
        return self._convert(codes)

    def _convert(self, codes: Array) -> Array:
        return self._conversion.convert(codes, nan_saturation=self._nan_saturation)


@lru_cache(maxsize=256)
def converter(conversion: ResolvedConversion, keeps_nan: bool) -> Converter:
    """The converter of a conversion, kept with its table."""
    return Converter(conversion, keeps_nan)


def operand_lanes(form: VectorForm, formats: tuple[Format, ...]) -> list[Lanes]:
    """The lanes of each pointer, in the order of the strides."""
    if form.count is not None:
        return [lanes_of(f.memory_bits, 1, 1, 0, range(form.count)) for f in formats]
    selected: range | tuple[int, ...]
    if form.mask is not None:
        selected = range(form.mask)
    else:
        assert form.bits is not None
        selected = tuple(
            n for n in range(lanes_per_repeat(*formats)) if form.bits[n // 64] >> (n % 64) & 1
        )
    blocks, repeats = form.strides[: len(formats)], form.strides[len(formats) :]
    return [
        lanes_of(f.memory_bits, form.repeat, block, repeat, selected)
        for f, block, repeat in zip(formats, blocks, repeats, strict=True)
    ]


class VectorUnit:
    """State that vector instructions share: CTRL, the dequantisation scale, the report.

    CTRL starts as 0: everything saturates, which is Cast's default (spec S14).
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self.ctrl = 0
        self.deq_scale = 1.0

    def keeps_nan(self) -> bool:
        """Whether a NaN stays one in a saturating conversion to an 8-bit float."""
        return bool(self.ctrl >> NAN_BIT & 1)

    def issue(
        self,
        name: str,
        repeats: int,
        lanes: list[Lanes],
        pointers: list[UbPointer],
        compute: Compute,
    ) -> None:
        """Runs one instruction: `pointers` destination first, `compute` from codes to codes.

        Raises RuntimeFault for an operand that is not aligned, out of range or never written.
        """
        for index, (pointer, lane) in enumerate(zip(pointers, lanes, strict=True)):
            if pointer.address % BLOCK_BYTES:
                pointer.require_block(_POINTERS[index])
            if lane.elements:
                first, last = lane.reach
                pointer.use.touch(pointer.address + first, pointer.address + last)
        report = self.report
        report.instructions[name] += 1
        report.repeats += repeats
        report.bytes_written += lanes[0].bytes
        for lane in lanes[1:]:
            report.bytes_read += lane.bytes
        if not lanes[0].elements:
            return
        if lanes[0].repeat > 1 and self._order_matters(lanes, pointers):
            for parts in zip(*(lane.one_by_one() for lane in lanes), strict=True):
                _run([p[0] for p in parts], [p[1] for p in parts], pointers, compute)
        else:
            _run(lanes, _NO_SHIFTS, pointers, compute)

    @staticmethod
    def _order_matters(lanes: list[Lanes], pointers: list[UbPointer]) -> bool:
        """Whether a repeat may read or overwrite what an earlier one wrote."""
        if lanes[0].repeats_overlap:
            return True
        memory = pointers[0].use.memory
        start, end = (pointers[0].address + edge for edge in lanes[0].reach)
        return any(
            pointer.use.memory is memory
            and pointer.address + lane.reach[0] < end
            and start < pointer.address + lane.reach[1]
            for lane, pointer in zip(lanes[1:], pointers[1:], strict=True)
        )


_POINTERS = ("dst", "src0", "src1")
_NO_SHIFTS = (0, 0, 0)


def _run(
    lanes: list[Lanes], shifts: Sequence[int], pointers: list[UbPointer], compute: Compute
) -> None:
    sources = []
    poison: Array | None = None
    memory = pointers[0].use.memory
    for lane, pointer, shift in zip(lanes[1:], pointers[1:], shifts[1:], strict=False):
        source, address = pointer.use.memory, pointer.address + shift
        sources.append(lane.codes(source, address))
        if (found := lane.poison(source, address)) is not None:
            poison = found if poison is None else poison | found
            memory.cause = source.cause
    lanes[0].store(memory, pointers[0].address + shifts[0], compute(*sources), poison)


Instruction = Callable[[VectorUnit, list[UbPointer], list[int]], None]
"""Runs on a unit with the addresses, destination first, and the scalars."""


@dataclass(frozen=True)
class _Plan:
    """What is the same each time an operation runs."""

    name: str
    formats: tuple[Format, ...]
    lanes: list[Lanes]
    repeats: int


def prepare(
    op: BufferOp, product: Product, mask: int | None = None, repeat: int | None = None
) -> Instruction:
    """The instruction of an operation on a product, its form resolved once.

    `mask` and `repeat` are the values of those operands, where there are any. Raises
    VerifyException for a form that breaks a limit, or that the product lacks.
    """
    form, formats = op.form(mask, repeat), op.formats()
    repeats = form.repeat
    if form.count is not None:
        repeats = -(-form.count // lanes_per_repeat(*formats))
    plan = _Plan(op.name.removeprefix("pto."), formats, operand_lanes(form, formats), repeats)
    match op:
        case CastOp():
            return _cast(plan, op.mode, product)
        case MulCastOp():
            return _mulcast(plan, product)
        case DuplicateOp():
            return _duplicate(plan)
        case _:
            return _bitwise(plan, np.bitwise_and)


def _resolved(
    src: Format,
    dst: Format,
    product: Product,
    instruction: str,
    mode: str | None,
    saturation: str,
) -> ResolvedConversion:
    conversion = resolve(
        src, dst, product, instruction=instruction, mode=mode, saturation=saturation
    )
    if conversion.illegal is not None:
        raise VerifyException(f"{instruction}: {conversion.illegal.message}")
    return conversion


def _cast(plan: _Plan, mode: str | None, product: Product) -> Instruction:
    dst, src = plan.formats
    bit, lanes = saturation_bit(dst), plan.lanes
    saturating, wrapping = (
        _resolved(src, dst, product, "Cast", mode, saturation) for saturation in ("ON", "OFF")
    )

    def cast(unit: VectorUnit, pointers: list[UbPointer], scalars: list[int]) -> None:
        conversion = wrapping if unit.ctrl >> bit & 1 else saturating
        unit.report.elements += lanes[0].elements
        compute: Compute = converter(conversion, unit.keeps_nan())
        if conversion.is_dequantisation:
            compute = partial(conversion.convert, deq_scale=unit.deq_scale)
        unit.issue("cast", plan.repeats, lanes, pointers, compute)

    return cast


def _mulcast(plan: _Plan, product: Product) -> Instruction:
    dst, src, _ = plan.formats
    convert = converter(_resolved(src, dst, product, "MulCast", "NONE", "ON"), False)

    def multiply(left: Array, right: Array) -> Array:
        if src.is_integer:
            return convert(left * right)  # the lowest bits
        with np.errstate(all="ignore"):
            product = left.view(src.carrier) * right.view(src.carrier)
        return convert(product.view(src.code_dtype))

    def mulcast(unit: VectorUnit, pointers: list[UbPointer], scalars: list[int]) -> None:
        unit.report.elements += plan.lanes[0].elements
        unit.issue("mulcast", plan.repeats, plan.lanes, pointers, multiply)

    return mulcast


def _duplicate(plan: _Plan) -> Instruction:
    lanes = plan.lanes[0]
    per_run = len(lanes.lanes) if lanes.repeats_overlap else lanes.elements

    def duplicate(unit: VectorUnit, pointers: list[UbPointer], scalars: list[int]) -> None:
        codes = np.full(per_run, scalars[0] & (1 << lanes.bits) - 1, lanes.item)
        unit.issue("duplicate", plan.repeats, plan.lanes, pointers, lambda: codes)

    return duplicate


def _bitwise(plan: _Plan, operation: Compute) -> Instruction:
    def bitwise(unit: VectorUnit, pointers: list[UbPointer], scalars: list[int]) -> None:
        unit.issue(plan.name, plan.repeats, plan.lanes, pointers, operation)

    return bitwise
