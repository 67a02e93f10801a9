"""The position in the grid, and the order of a core's pipes."""

from __future__ import annotations

from xdsl.ir import Operation

from pto.dialect.sync_ops import FlagOp
from pto.runtime.compiler import Compiler, Implementations
from pto.runtime.errors import RuntimeFault
from pto.runtime.frame import Frame, Slots, Step
from pto.runtime.vector_core import VectorCore

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements

_GRID = {
    "pto.get_block_idx": "block_idx",
    "pto.get_block_num": "block_num",
    "pto.get_subblock_idx": "subblock_idx",
    "pto.get_subblock_num": "subblock_num",
}


@implements(*_GRID)
def grid_position(op: Operation, compiler: Compiler) -> Step:
    """Where the core is in the grid, or how large the grid is."""
    name, (result,) = _GRID[op.name], compiler.results(op)

    def step(frame: Frame) -> None:
        frame[result] = getattr(frame[Slots.CORE].position, name)

    return step


@implements(
    *("pto.barrier", "pto.barrier_sync", "pto.mem_bar", "pto.fence.barrier_all", "pto.dsb"),
    *("pto.record_event", "pto.wait_event", "pto.tsync", "pto.tprefetch", "pto.dcci"),
    *("pto.cmo.cacheinvalid", "pto.set_ffts", "pto.get_buf", "pto.rls_buf", "pto.keep"),
)
def no_step(op: Operation, compiler: Compiler) -> None:
    """Operations run one after the other here, in the order that these ones ask for."""


@implements("pto.set_flag", "pto.wait_flag")
def flag(op: Operation, compiler: Compiler) -> Step:
    """A flag is a counter by pipes and event; waiting for one that was never set hangs."""
    if not isinstance(op, FlagOp):  # in generic form with properties of other names
        raise RuntimeFault("its properties are not those of a flag: src_pipe, dst_pipe, event_id")
    event = op.event()
    change = 1 if op.name == "pto.set_flag" else -1

    def step(frame: Frame) -> None:
        core: VectorCore = frame[Slots.CORE]
        count = core.flags.get(event, 0) + change
        if count < 0:
            raise RuntimeFault(f"waits for {event}, which was not set: the device would hang here")
        core.flags[event] = count

    return step
