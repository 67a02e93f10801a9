"""Branches between the blocks of a function (the cf dialect)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import cf
from xdsl.ir import Block, SSAValue

from pto.runtime.frame import Frame, Slots, move

NextBlock = Callable[[Frame], int | None]
"""The number of the block that follows, None at a return; passes the block's arguments."""


def next_block(block: Block, numbers: dict[Block, int], slots: Slots) -> NextBlock:
    """What follows a block, as its terminator says."""
    last = block.last_op
    if isinstance(last, cf.BranchOp):
        return _branch(numbers[last.successor], last.arguments, last.successor, slots)
    if isinstance(last, cf.ConditionalBranchOp):
        condition = slots.slot(last.cond)
        then = _branch(numbers[last.then_block], last.then_arguments, last.then_block, slots)
        other = _branch(numbers[last.else_block], last.else_arguments, last.else_block, slots)
        return lambda frame: then(frame) if frame[condition] else other(frame)
    if isinstance(last, cf.SwitchOp):
        return _switch(last, numbers, slots)
    return lambda frame: None


def _branch(number: int, values: Sequence[SSAValue], target: Block, slots: Slots) -> NextBlock:
    sources, targets = slots.slots(values), slots.slots(target.args)

    def jump(frame: Frame) -> int:
        move(frame, sources, targets)
        return number

    return jump


def _switch(op: cf.SwitchOp, numbers: dict[Block, int], slots: Slots) -> NextBlock:
    flag = slots.slot(op.flag)
    default = _branch(numbers[op.default_block], op.default_operands, op.default_block, slots)
    values = [] if op.case_values is None else [int(v) for v in op.case_values.get_values()]
    jumps = {
        value: _branch(numbers[block], operands, block, slots)
        for value, block, operands in zip(values, op.case_blocks, op.case_operand, strict=True)
    }
    return lambda frame: jumps.get(frame[flag], default)(frame)
