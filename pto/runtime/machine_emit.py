"""What the machine's operations do in a running kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import cast

import numpy as np
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from pto.dialect.machine_ops import BUFFER_OPS, BufferOp
from pto.dialect.ops import OpaqueOp
from pto.dialect.register_ops import MODE_OF_LETTER, RegisterCast, VcvtOp, vreg_format
from pto.dialect.types import PtrType, element_format, elements_per_column
from pto.numerics import FORMATS
from pto.runtime import structure  # noqa: F401  (its pointer cast is extended here)
from pto.runtime.compiler import EMITTERS, Compiler, Emit, Frame, Program, Step, emits
from pto.runtime.errors import Fault
from pto.runtime.machine_core import MachineCore
from pto.runtime.machine_registers import astype, less_than, load, pattern, store
from pto.runtime.machine_vector import Instruction, prepare
from pto.runtime.tile import Tile


class MachineProgram(Program):
    """A module whose functions run on cores with a vector unit."""


def machine_emits(*names: str, attributes: Iterable[str] = ()) -> Callable[[Emit], Emit]:
    """As `emits`, for operations that need the machine's core."""

    def register(emit: Emit) -> Emit:
        def on_machine(op: Operation, compiler: Compiler) -> Step | None:
            if not isinstance(compiler.program, MachineProgram):
                raise Fault("it runs on the machine only: pto-opt run --machine")
            return emit(op, compiler)

        emits(*names, attributes=attributes)(on_machine)
        return emit

    return register


def _bits(type_: object) -> int:
    """Bits of what a pointer of this type points to: 8 for packed pairs."""
    name = element_format(type_.dtype) if isinstance(type_, PtrType) else None
    if not isinstance(type_, PtrType) or name is None:
        raise Fault("not a pointer into the unified buffer")
    return FORMATS[name].bits * elements_per_column(type_.dtype)


@machine_emits("pto.tile_buf_addr")
def _tile_address(op: Operation, compiler: Compiler) -> Step:
    source, result = compiler.slot(op.operands[0]), compiler.slot(op.results[0])
    bits = _bits(op.results[0].type)
    name = f"%{op.operands[0].name_hint or 'tile'}"

    def step(frame: Frame) -> None:
        core: MachineCore = frame[0]
        tile: Tile = frame[source]
        frame[result] = core.pointer(name, tile, bits)

    return step


@machine_emits("pto.get_ctrl")
def _get_ctrl(op: Operation, compiler: Compiler) -> Step:
    result = compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        frame[result] = frame[0].vector_unit.ctrl

    return step


@machine_emits("pto.set_ctrl")
def _set_ctrl(op: Operation, compiler: Compiler) -> Step:
    source = compiler.slot(op.operands[0])

    def step(frame: Frame) -> None:
        frame[0].vector_unit.ctrl = frame[source] & (1 << 64) - 1

    return step


@machine_emits("pto.sbitset0", "pto.sbitset1")
def _set_bit(op: Operation, compiler: Compiler) -> Step:
    source, bit = compiler.slots(op.operands)
    result = compiler.slot(op.results[0])
    clears = op.name == "pto.sbitset0"

    def step(frame: Frame) -> None:
        mask = 1 << frame[bit]
        frame[result] = frame[source] & ~mask if clears else frame[source] | mask

    return step


@machine_emits("pto.set_deqscale")
def _set_deq_scale(op: Operation, compiler: Compiler) -> Step:
    source = compiler.slot(op.operands[0])

    def step(frame: Frame) -> None:
        frame[0].vector_unit.deq_scale = float(frame[source])

    return step


@machine_emits("pto.get_deqscale")
def _get_deq_scale(op: Operation, compiler: Compiler) -> Step:
    result = compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        frame[result] = np.float16(frame[0].vector_unit.deq_scale)

    return step


@machine_emits(*BUFFER_OPS, attributes=BufferOp.ATTRIBUTES | {"rmode"})
def _buffer_operation(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, BufferOp)
    slots, scalars = compiler.slots(op.pointers()), compiler.slots(op.scalars())
    if (dynamic := op.dynamic()) is not None:
        return _dynamic_operation(op, slots, scalars, compiler.slots(dynamic))
    run = _prepared(op)

    def step(frame: Frame) -> None:
        run(frame[0].vector_unit, [frame[s] for s in slots], [frame[s] for s in scalars])

    return step


def _dynamic_operation(
    op: BufferOp, slots: tuple[int, ...], scalars: tuple[int, ...], sizes: tuple[int, ...]
) -> Step:
    """An instruction whose mask and repeat are values; each pair of them is prepared once."""
    mask, repeat = sizes
    known: dict[tuple[int, int], Instruction] = {}

    def step(frame: Frame) -> None:
        key = frame[mask], frame[repeat]
        if key not in known:
            known[key] = _prepared(op, *key)
        known[key](frame[0].vector_unit, [frame[s] for s in slots], [frame[s] for s in scalars])

    return step


def _prepared(op: BufferOp, *sizes: int) -> Instruction:
    try:
        return prepare(op, *sizes)
    except VerifyException as error:
        raise Fault(str(error)) from None


@machine_emits("pto.vecscope")
def _vecscope(op: Operation, compiler: Compiler) -> Step:
    body, _ = compiler.region(op.regions[0])
    return body


def _granularity(op: Operation) -> int:
    return int(op.name.rpartition("_b")[2])


@machine_emits(*(f"pto.{name}_b{bits}" for name in ("pset", "pge") for bits in (8, 16, 32)))
def _predicate(op: Operation, compiler: Compiler) -> Step | None:
    name = re.search(r'"(\w+)"', cast(OpaqueOp, op).syntax or "")
    if name is None:
        raise Fault("names no pattern")
    compiler.constant(op.results[0], pattern(name.group(1), _granularity(op)))
    return None


@machine_emits(*(f"pto.plt_b{bits}" for bits in (8, 16, 32)))
def _less_than(op: Operation, compiler: Compiler) -> Step:
    count, bits = compiler.slot(op.operands[0]), _granularity(op)
    predicate, rest = compiler.slots(op.results)

    def step(frame: Frame) -> None:
        frame[predicate], frame[rest] = less_than(frame[count], bits)

    return step


def _dist(op: Operation, default: str) -> str:
    attr = op.attributes.get("dist")
    return default if attr is None else str(getattr(attr, "data", attr))


@machine_emits("pto.vlds", attributes=("dist",))
def _load(op: Operation, compiler: Compiler) -> Step:
    if len(op.operands) != 2 or len(op.results) != 1:
        raise Fault("the form that updates its address is not executed here")
    vlds = load(_dist(op, "NORM"))
    pointer, offset = compiler.slots(op.operands)
    result = compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        core: MachineCore = frame[0]
        source = frame[pointer].advance(frame[offset])
        bounded = source.use.memory is core.unified_buffer
        frame[result] = vlds(core.vector_unit, source, bounded)

    return step


@machine_emits("pto.vsts", attributes=("dist",))
def _store(op: Operation, compiler: Compiler) -> Step:
    if len(op.operands) != 4 or op.results:
        raise Fault("the form that updates its address is not executed here")
    value, pointer, offset, predicate = compiler.slots(op.operands)
    bits = min(32, _bits(op.operands[1].type))
    vsts = store(_dist(op, f"NORM_B{bits}"))

    def step(frame: Frame) -> None:
        target = frame[pointer].advance(frame[offset])
        vsts(frame[0].vector_unit, frame[value], target, frame[predicate])

    return step


@machine_emits("pto.vcvt", attributes=("rnd", "sat", "part", "mode"))
def _convert(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, VcvtOp)
    try:
        vcvt = astype(op.register_cast())
    except VerifyException as error:
        raise Fault(str(error)) from None
    source, predicate = compiler.slots(op.operands)
    result = compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        frame[result] = vcvt(frame[0].vector_unit, frame[source], frame[predicate])

    return step


_cast_global_pointer = EMITTERS["pto.castptr"]


@emits("pto.castptr")
def _cast_pointer(op: Operation, compiler: Compiler) -> Step | None:
    """A pointer into the unified buffer from another one or from a byte address."""
    type_ = op.results[0].type
    if not isinstance(type_, PtrType) or type_.space != "ub":
        return _cast_global_pointer(op, compiler)
    if not isinstance(compiler.program, MachineProgram):
        raise Fault("pointers into the unified buffer are the machine's: pto-opt run --machine")
    bits, from_pointer = _bits(type_), isinstance(op.operands[0].type, PtrType)
    source, result = compiler.slot(op.operands[0]), compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        core: MachineCore = frame[0]
        value = frame[source]
        frame[result] = value.retype(bits) if from_pointer else core.address(value, bits)

    return step


@machine_emits("pto.vtrc")
def _round(op: Operation, compiler: Compiler) -> Step:
    """Rounds to integral values of the same type (spec R11)."""
    letter = re.search(r'"(?:ROUND_)?(\w)"', cast(OpaqueOp, op).syntax or "")
    name = vreg_format(op.operands[0].type)
    mode = MODE_OF_LETTER.get(letter.group(1)) if letter else None
    if name != "f32" or mode is None or len(op.operands) != 2:
        raise Fault(
            "only f32 under a predicate, with one of the letters R A F C Z, is rounded here"
        )
    vtrc = astype(RegisterCast(name, name, 0, mode, "OFF"), "vtrc")
    source, predicate = compiler.slots(op.operands)
    result = compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        frame[result] = vtrc(frame[0].vector_unit, frame[source], frame[predicate])

    return step
