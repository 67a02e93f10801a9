"""The vector unit on the unified buffer: Cast, MulCast, and the steps of a2a3 (spec C, M)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.dialect.machine_ops import (
    BLOCK_BYTES,
    NAN_BIT,
    BufferOp,
    CastOp,
    DuplicateOp,
    MulCastOp,
    VectorForm,
    lanes_per_repeat,
    saturation_bit,
)
from pto.numerics import FORMATS, convert_bits
from pto.runtime.machine_lanes import Lanes, UbPointer, lanes_of
from pto.runtime.machine_report import Report

Array = NDArray[Any]
Compute = Callable[..., Array]
"""From the codes of the sources to those of the destination."""


class Converter:
    """The conversion of arrays of codes; nothing but the numerics' own rules.

    Sources of up to 16 bits get a table of all their codes once they have been asked for often:
    for the few lanes of an instruction, looking up costs a tenth of a call of the numerics.
    """

    _CALLS = 64
    _LANES = 512

    def __init__(
        self, src: str, dst: str, mode: str | None, saturation: str, keep_nan: bool, scale: float
    ) -> None:
        self._formats = (FORMATS[src], FORMATS[dst])
        self._rule = (mode, saturation)
        self._options: dict[str, Any] = {
            "nan_saturation": "keep" if keep_nan else "zero",
            "deq_scale": scale,
        }
        self._calls = 0
        self._table: Array | None = None

    def __call__(self, codes: Array) -> Array:
        """The codes of the results, one for each."""
        if self._table is not None and codes.size <= self._LANES:
            return self._table.take(codes)
        self._calls += 1
        source = self._formats[0]
        if self._calls == self._CALLS and source.bits <= 16:
            self._table = self._convert(np.arange(1 << source.bits, dtype=source.code_dtype))
        return self._convert(codes)

    def _convert(self, codes: Array) -> Array:
        return convert_bits(codes, *self._formats, *self._rule, **self._options)


@lru_cache(maxsize=256)
def converter(
    src: str, dst: str, mode: str | None, saturation: str, keep_nan: bool, deq_scale: float = 1.0
) -> Converter:
    """The conversion under these rules, kept with its table."""
    return Converter(src, dst, mode, saturation, keep_nan, deq_scale)


def operand_lanes(form: VectorForm, formats: tuple[str, ...]) -> list[Lanes]:
    """The lanes of each pointer, in the order of the strides."""
    if form.count is not None:
        return [lanes_of(FORMATS[f].bits, 1, 1, 0, range(form.count)) for f in formats]
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
        lanes_of(FORMATS[f].bits, form.repeat, block, repeat, selected)
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

        Raises Fault for an operand that is not aligned, out of range or never written.
        """
        for index, (pointer, lane) in enumerate(zip(pointers, lanes, strict=True)):
            if pointer.address % BLOCK_BYTES:
                pointer.require_block(_ROLES[index])
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


_ROLES = ("dst", "src0", "src1")
_NO_SHIFTS = (0, 0, 0)


def _run(
    lanes: list[Lanes], shifts: Sequence[int], pointers: list[UbPointer], compute: Compute
) -> None:
    sources = []
    undefined: Array | None = None
    memory = pointers[0].use.memory
    for lane, pointer, shift in zip(lanes[1:], pointers[1:], shifts[1:], strict=False):
        source, address = pointer.use.memory, pointer.address + shift
        sources.append(lane.codes(source, address))
        if (found := lane.undefined(source, address)) is not None:
            undefined = found if undefined is None else undefined | found
            memory.cause = source.cause
    lanes[0].store(memory, pointers[0].address + shifts[0], compute(*sources), undefined)


Instruction = Callable[[VectorUnit, list[UbPointer], list[int]], None]
"""Runs on a unit with the addresses, destination first, and the scalars."""


@dataclass(frozen=True)
class _Plan:
    """What is the same each time an operation runs."""

    name: str
    formats: tuple[str, ...]
    lanes: list[Lanes]
    repeats: int


def prepare(op: BufferOp, mask: int | None = None, repeat: int | None = None) -> Instruction:
    """The instruction of an operation, its form resolved once.

    `mask` and `repeat` are the values of those operands, where there are any. Raises
    VerifyException for a form that breaks a limit.
    """
    form, formats = op.form(mask, repeat), op.formats()
    repeats = form.repeat
    if form.count is not None:
        repeats = -(-form.count // lanes_per_repeat(*formats))
    plan = _Plan(op.name.removeprefix("pto."), formats, operand_lanes(form, formats), repeats)
    match op:
        case CastOp():
            return _cast(plan, op.rmode)
        case MulCastOp():
            return _mulcast(plan)
        case DuplicateOp():
            return _duplicate(plan)
        case _:
            return _bitwise(plan, np.bitwise_and)


def _cast(plan: _Plan, mode: str | None) -> Instruction:
    dst, src = plan.formats
    bit = saturation_bit(dst)
    scaled = (src, dst) == ("i32", "f16")
    lanes = plan.lanes

    def cast(unit: VectorUnit, pointers: list[UbPointer], scalars: list[int]) -> None:
        saturation = "OFF" if unit.ctrl >> bit & 1 else "ON"
        scale = unit.deq_scale if scaled else 1.0
        unit.report.elements += lanes[0].elements
        convert = converter(src, dst, mode, saturation, unit.keeps_nan(), scale)
        unit.issue("cast", plan.repeats, lanes, pointers, convert)

    return cast


def _mulcast(plan: _Plan) -> Instruction:
    dst, src, _ = plan.formats
    convert = converter(src, dst, "NONE", "ON", False)

    def product(left: Array, right: Array) -> Array:
        if src != "f16":
            return convert(left * right)  # the lowest 64 bits
        with np.errstate(all="ignore"):
            return convert((left.view(np.float16) * right.view(np.float16)).view(np.uint16))

    def mulcast(unit: VectorUnit, pointers: list[UbPointer], scalars: list[int]) -> None:
        unit.report.elements += plan.lanes[0].elements
        unit.issue("mulcast", plan.repeats, plan.lanes, pointers, product)

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
