"""Views on global memory."""

from __future__ import annotations

from xdsl.ir import Operation

from pto.dialect.ops import MakeTensorViewOp, PartitionViewOp
from pto.runtime.compiler import Compiler, Implementations
from pto.runtime.errors import RuntimeFault
from pto.runtime.frame import Frame, Step
from pto.runtime.memory import View

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements


@implements("pto.make_tensor_view")
def make_tensor_view(op: Operation, compiler: Compiler) -> Step:
    """A strided view on what a pointer points to."""
    assert isinstance(op, MakeTensorViewOp)
    pointer, result = compiler.slots((op.ptr, op.result))
    extents, strides = compiler.slots(op.shape), compiler.slots(op.strides)

    def step(frame: Frame) -> None:
        shape = tuple(frame[slot] for slot in extents)
        view = View(frame[pointer], shape, tuple(frame[slot] for slot in strides))
        if len(view.shape) != len(view.strides) or min(view.shape, default=0) < 0:
            raise RuntimeFault(f"shape {view.shape} with strides {view.strides}")
        view.reserve()
        frame[result] = view

    return step


@implements("pto.partition_view")
def partition_view(op: Operation, compiler: Compiler) -> Step:
    """A window of a view."""
    assert isinstance(op, PartitionViewOp)
    source, result = compiler.slots((op.source, op.result))
    offsets, sizes = compiler.slots(op.offsets), compiler.slots(op.sizes)

    def step(frame: Frame) -> None:
        view: View = frame[source]
        first = tuple(frame[slot] for slot in offsets)
        frame[result] = view.window(first, tuple(frame[slot] for slot in sizes))

    return step


@implements("pto.get_tensor_view_dim", "pto.get_tensor_view_stride")
def view_extent(op: Operation, compiler: Compiler) -> Step:
    """The extent or the stride of an axis."""
    view, axis = compiler.operands(op, 2)
    (result,) = compiler.results(op)
    wants_stride = op.name == "pto.get_tensor_view_stride"

    def step(frame: Frame) -> None:
        extents = frame[view].strides if wants_stride else frame[view].shape
        if not 0 <= frame[axis] < len(extents):
            raise RuntimeFault(f"axis {frame[axis]} of a view of rank {len(extents)}")
        frame[result] = extents[frame[axis]]

    return step
