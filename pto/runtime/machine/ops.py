"""What the machine's instructions do in a running kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from pto.dialect.buffer_ops import OPERATIONS as BUFFER_OPERATIONS
from pto.dialect.buffer_ops import BufferOp
from pto.dialect.register_ops import (
    MODE_OF_LETTER,
    PGE,
    PLT,
    PSET,
    RegisterCast,
    VcvtOp,
    VldsOp,
    VstsOp,
    VtrcOp,
    vreg_format,
)
from pto.dialect.target import target_of
from pto.dialect.type_records import type_text
from pto.dialect.types import PtrType, element_format, elements_per_column
from pto.runtime.compiler import Compiler, Implementations
from pto.runtime.errors import RuntimeFault, unsupported
from pto.runtime.frame import Frame, Slots, Step
from pto.runtime.machine.core import MachineCore
from pto.runtime.machine.registers import astype, less_than, load, pattern, store
from pto.runtime.machine.vector_unit import Instruction, VectorUnit, prepare
from pto.runtime.ops import IMPLEMENTATIONS as ABOVE_THE_MACHINE
from pto.runtime.ops.pointers import cast_pointer
from pto.targets import Product

MACHINE = Implementations()
implements = MACHINE.implements


def is_ub_pointer(type_: Attribute) -> bool:
    """Whether values of the type are addresses of the unified buffer."""
    return isinstance(type_, PtrType) and type_.space == "ub"


def _ub_bits(type_: Attribute) -> int:
    """Bits of what a pointer of this type points to: 8 for packed pairs.

    Raises RuntimeFault where it does not point into the unified buffer.
    """
    if not isinstance(type_, PtrType) or type_.space != "ub":
        raise RuntimeFault(
            f"{type_text(type_)} is no pointer into the unified buffer, !pto.ptr<T, ub>"
        )
    if (fmt := element_format(type_.dtype)) is None:
        raise unsupported(f"the type {type_text(type_.dtype)}")
    return fmt.memory_bits * elements_per_column(type_.dtype)


def _unit(frame: Frame) -> VectorUnit:
    core: MachineCore = frame[Slots.CORE]
    return core.vector_unit


# Addresses ---------------------------------------------------------------------------------------


@implements("pto.tile_buf_addr")
def tile_address(op: Operation, compiler: Compiler) -> Step:
    """The address of a tile."""
    (source,), (result,) = compiler.operands(op, 1), compiler.results(op)
    bits = _ub_bits(op.results[0].type)
    name = f"%{op.operands[0].name_hint or 'tile'}"

    def step(frame: Frame) -> None:
        core: MachineCore = frame[Slots.CORE]
        frame[result] = core.pointer(name, frame[source], bits)

    return step


def cast_any_pointer(op: Operation, compiler: Compiler) -> Step | None:
    """A pointer into the unified buffer from another one or from a byte address; those into global
    memory as everywhere."""
    (source,), (result,) = compiler.operands(op, 1), compiler.results(op)
    source_type, type_ = op.operands[0].type, op.results[0].type
    if not is_ub_pointer(type_) and not is_ub_pointer(source_type):
        return cast_pointer(op, compiler)
    bits = _ub_bits(type_)
    if isinstance(source_type, PtrType):
        _ub_bits(source_type)

        def retype(frame: Frame) -> None:
            frame[result] = frame[source].retype(bits)

        return retype

    def step(frame: Frame) -> None:
        core: MachineCore = frame[Slots.CORE]
        frame[result] = core.address(frame[source], bits)

    return step


# The state of the machine ------------------------------------------------------------------------


@implements("pto.get_ctrl")
def get_ctrl(op: Operation, compiler: Compiler) -> Step:
    """The control register."""
    (result,) = compiler.results(op)

    def step(frame: Frame) -> None:
        frame[result] = _unit(frame).ctrl

    return step


@implements("pto.set_ctrl")
def set_ctrl(op: Operation, compiler: Compiler) -> Step:
    """Writes the control register."""
    (source,) = compiler.operands(op, 1)

    def step(frame: Frame) -> None:
        _unit(frame).ctrl = frame[source] & (1 << 64) - 1

    return step


@implements("pto.sbitset0", "pto.sbitset1")
def set_bit(op: Operation, compiler: Compiler) -> Step:
    """A word with a bit cleared, or set."""
    source, bit = compiler.operands(op, 2)
    (result,) = compiler.results(op)
    clears = op.name == "pto.sbitset0"

    def step(frame: Frame) -> None:
        mask = 1 << frame[bit]
        frame[result] = frame[source] & ~mask if clears else frame[source] | mask

    return step


@implements("pto.set_deqscale")
def set_deq_scale(op: Operation, compiler: Compiler) -> Step:
    """Sets the scale of dequantisation."""
    (source,) = compiler.operands(op, 1)

    def step(frame: Frame) -> None:
        _unit(frame).deq_scale = float(frame[source])

    return step


@implements("pto.get_deqscale")
def get_deq_scale(op: Operation, compiler: Compiler) -> Step:
    """The scale of dequantisation."""
    (result,) = compiler.results(op)

    def step(frame: Frame) -> None:
        frame[result] = np.float16(_unit(frame).deq_scale)

    return step


# Instructions on the unified buffer --------------------------------------------------------------


@implements(*BUFFER_OPERATIONS, attributes=("count", "mask", "repeat", "strides", "rmode"))
def buffer_operation(op: Operation, compiler: Compiler) -> Step:
    """An instruction by count, or by mask and repeat, which may be values."""
    assert isinstance(op, BufferOp)
    slots, scalars = compiler.slots(op.pointers()), compiler.slots(op.scalars())
    product = _product(op, compiler)
    sizes = op.dynamic()
    if sizes is None:
        run = _prepared(op, product)

        def step(frame: Frame) -> None:
            run(_unit(frame), [frame[s] for s in slots], [frame[s] for s in scalars])

        return step
    mask, repeat = compiler.slots(sizes)
    known: dict[tuple[int, int], Instruction] = {}

    def dynamic_step(frame: Frame) -> None:
        key = frame[mask], frame[repeat]
        if key not in known:
            known[key] = _prepared(op, product, *key)
        known[key](_unit(frame), [frame[s] for s in slots], [frame[s] for s in scalars])

    return dynamic_step


def _product(op: BufferOp, compiler: Compiler) -> Product:
    """The target; where none is named, the first that has the instruction's pair."""
    options = compiler.options
    if op.INSTRUCTION and options.product is None and target_of(op) is None:
        return op.offering()[0][0]
    return options.product_for(op)


def _prepared(op: BufferOp, product: Product, *sizes: int) -> Instruction:
    try:
        return prepare(op, product, *sizes)
    except VerifyException as error:
        raise RuntimeFault(str(error)) from None


# Registers ---------------------------------------------------------------------------------------


@implements("pto.vecscope")
def vecscope(op: Operation, compiler: Compiler) -> Step:
    """The operations of the region, once."""
    body, _ = compiler.region(op.regions[0])
    return body


def _lane_bits(op: Operation) -> int:
    return int(op.name.rpartition("_b")[2])


@implements(*(cls.name for family in (PSET, PGE) for cls in family.values()))
def predicate_of_pattern(op: Operation, compiler: Compiler) -> None:
    """The lanes that a pattern names."""
    name: Any = op.properties["pattern"]
    compiler.constant(op.results[0], pattern(name.data, _lane_bits(op)))


@implements(*(cls.name for cls in PLT.values()))
def predicate_of_count(op: Operation, compiler: Compiler) -> Step:
    """The first lanes, and what is left of the count."""
    (count,), bits = compiler.operands(op, 1), _lane_bits(op)
    predicate, rest = compiler.results(op, 2)

    def step(frame: Frame) -> None:
        frame[predicate], frame[rest] = less_than(frame[count], bits)

    return step


def _dist(op: VldsOp | VstsOp, default: str) -> str:
    return default if op.dist is None else str(getattr(op.dist, "data", op.dist))


@implements("pto.vlds", attributes=("dist",))
def load_register(op: Operation, compiler: Compiler) -> Step:
    """A register from memory."""
    if not isinstance(op, VldsOp):
        raise unsupported("the form that updates its address")
    _ub_bits(op.source.type)
    vlds = load(_dist(op, "NORM"))
    pointer, offset, result = compiler.slots((op.source, op.offset, op.result))

    def step(frame: Frame) -> None:
        core: MachineCore = frame[Slots.CORE]
        source = frame[pointer].advance(frame[offset])
        bounded = source.use.memory is core.unified_buffer
        frame[result] = vlds(core.vector_unit, source, bounded)

    return step


@implements("pto.vsts", attributes=("dist",))
def store_register(op: Operation, compiler: Compiler) -> Step:
    """The selected lanes of a register into memory."""
    if not isinstance(op, VstsOp):
        raise unsupported("the form that updates its address")
    vsts = store(_dist(op, f"NORM_B{min(32, _ub_bits(op.destination.type))}"))
    value, pointer, offset, predicate = compiler.slots(op.operands)

    def step(frame: Frame) -> None:
        target = frame[pointer].advance(frame[offset])
        vsts(_unit(frame), frame[value], target, frame[predicate])

    return step


@implements("pto.vcvt", attributes=("rnd", "sat", "part", "mode"))
def convert_register(op: Operation, compiler: Compiler) -> Step:
    """The conversion of the selected lanes; every other lane becomes zero."""
    if not isinstance(op, VcvtOp):
        raise unsupported("this form of it")
    try:
        vcvt = astype(op.register_cast())
    except VerifyException as error:
        raise RuntimeFault(str(error)) from None
    source, predicate = compiler.operands(op, 2)
    (result,) = compiler.results(op)

    def step(frame: Frame) -> None:
        frame[result] = vcvt(_unit(frame), frame[source], frame[predicate])

    return step


@implements("pto.vtrc")
def round_register(op: Operation, compiler: Compiler) -> Step:
    """Rounds to integral values of the same type (spec R11)."""
    fmt = vreg_format(op.operands[0].type)
    letter = op.round_mode.data.removeprefix("ROUND_") if isinstance(op, VtrcOp) else ""
    mode = MODE_OF_LETTER.get(letter)
    if fmt is None or fmt.name != "f32" or mode is None:
        raise unsupported("rounding of anything but f32 with one of the letters R A F C Z")
    vtrc = astype(RegisterCast(fmt, fmt, 0, mode, "OFF"), "vtrc")
    source, predicate = compiler.operands(op, 2)
    (result,) = compiler.results(op)

    def step(frame: Frame) -> None:
        frame[result] = vtrc(_unit(frame), frame[source], frame[predicate])

    return step


IMPLEMENTATIONS = Implementations.joined((ABOVE_THE_MACHINE, MACHINE))
"""What operations do on the machine."""
IMPLEMENTATIONS.replace("pto.castptr", cast_any_pointer)
