"""Pointers into global memory, and scalars there and in tiles."""

from __future__ import annotations

from xdsl.ir import Operation

from pto.dialect.ops import LoadScalarOp, StoreScalarOp
from pto.dialect.types import PtrType
from pto.runtime.compiler import Compiler, Implementations
from pto.runtime.elements import element_of
from pto.runtime.errors import RuntimeFault, unsupported
from pto.runtime.frame import Frame, Step
from pto.runtime.memory import Pointer
from pto.runtime.ops.scalars import loaded, stored

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements


@implements("pto.addptr")
def add_to_pointer(op: Operation, compiler: Compiler) -> Step:
    """The pointer so many elements further on."""
    pointer, count = compiler.operands(op, 2)
    (result,) = compiler.results(op)

    def step(frame: Frame) -> None:
        frame[result] = frame[pointer].advance(frame[count])

    return step


@implements("pto.castptr")
def cast_pointer(op: Operation, compiler: Compiler) -> Step:
    """A pointer to elements of another type."""
    (source,), (result,) = compiler.operands(op, 1), compiler.results(op)
    type_ = op.results[0].type
    if isinstance(type_, PtrType) and type_.space == "ub":
        raise RuntimeFault(
            "pointers into the unified buffer are the machine's: pto-opt run --machine"
        )
    if not isinstance(type_, PtrType) or not isinstance(op.operands[0].type, PtrType):
        raise unsupported("a cast of anything but a pointer to a pointer")
    element = element_of(type_.dtype)

    def step(frame: Frame) -> None:
        pointer: Pointer = frame[source]
        frame[result] = Pointer(pointer.buffer, pointer.offset, element)

    return step


@implements("pto.load_scalar")
def load_scalar(op: Operation, compiler: Compiler) -> Step:
    """One element behind a pointer."""
    assert isinstance(op, LoadScalarOp)
    pointer, offset, result = compiler.slots((op.ptr, op.offset, op.result))
    load = loaded(op.result.type)

    def step(frame: Frame) -> None:
        frame[result] = load(frame[pointer].item(frame[offset], store=False)[0])

    return step


@implements("pto.store_scalar")
def store_scalar(op: Operation, compiler: Compiler) -> Step:
    """Writes one element behind a pointer."""
    assert isinstance(op, StoreScalarOp)
    value, pointer, offset = compiler.slots((op.value, op.ptr, op.offset))

    def step(frame: Frame) -> None:
        target: Pointer = frame[pointer]
        target.item(frame[offset], store=True)[0] = stored(target.element, frame[value])

    return step


@implements("pto.tgetval")
def get_value(op: Operation, compiler: Compiler) -> Step:
    """One element of a tile, or behind a pointer."""
    source, offset = compiler.operands(op, 2)
    (result,) = compiler.results(op)
    load = loaded(op.results[0].type)

    def step(frame: Frame) -> None:
        frame[result] = load(frame[source].item(frame[offset], store=False)[0])

    return step


@implements("pto.tsetval")
def set_value(op: Operation, compiler: Compiler) -> Step:
    """Writes one element of a tile, or behind a pointer."""
    offset, value, target = compiler.operands(op, 3)

    def step(frame: Frame) -> None:
        place = frame[target]
        place.item(frame[offset], store=True)[0] = stored(place.element, frame[value])

    return step
