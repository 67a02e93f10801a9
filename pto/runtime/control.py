"""Control flow: scf, cf, func and the sections of the pto dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import cf, func, scf
from xdsl.ir import Block, Operation

from pto.runtime.compiler import MAX_DEPTH, Compiler, Frame, Step, emits
from pto.runtime.core import Core
from pto.runtime.errors import ExecutionError, Fault, place_of


def _move(frame: Frame, sources: tuple[int, ...], targets: tuple[int, ...]) -> None:
    """Assigns in parallel."""
    values = [frame[source] for source in sources]
    for target, value in zip(targets, values, strict=True):
        frame[target] = value


@emits("scf.for")
def _for(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, scf.ForOp)
    lower, upper, stride = compiler.slots((op.lb, op.ub, op.step))
    variable, *carried = compiler.slots(op.body.block.args)
    initial, results = compiler.slots(op.iter_args), compiler.slots(op.results)
    is_outermost = compiler.loop_depth == 0
    compiler.loop_depth += 1
    body, yielded = compiler.region(op.body)
    compiler.loop_depth -= 1
    targets = tuple(carried)

    def step(frame: Frame) -> None:
        start, stop, by = frame[lower], frame[upper], frame[stride]
        if by <= 0:
            raise Fault(f"the step is {by}; it must be positive")
        if targets:
            _move(frame, initial, targets)
        steps = range(start, stop, by)
        progress = frame[0].progress if is_outermost else None
        for iteration, frame[variable] in enumerate(steps):
            if progress is not None:
                progress(iteration, len(steps))
            body(frame)
            if targets:
                _move(frame, yielded, targets)
        _move(frame, targets, results)

    return step


@emits("scf.if")
def _if(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, scf.IfOp)
    condition = compiler.slot(op.cond)
    results = compiler.slots(op.results)
    then, then_values = compiler.region(op.true_region)
    otherwise, other_values = (
        compiler.region(op.false_region) if op.false_region.blocks else (None, ())
    )

    def step(frame: Frame) -> None:
        if frame[condition]:
            then(frame)
            values = then_values
        elif otherwise is not None:
            otherwise(frame)
            values = other_values
        else:
            return
        if results:
            _move(frame, values, results)

    return step


@emits("scf.while")
def _while(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, scf.WhileOp)
    initial, results = compiler.slots(op.arguments), compiler.slots(op.results)
    before_arguments = compiler.slots(op.before_region.block.args)
    after_arguments = compiler.slots(op.after_region.block.args)
    before, (condition, *passed) = compiler.region(op.before_region)
    after, yielded = compiler.region(op.after_region)
    values = tuple(passed)

    def step(frame: Frame) -> None:
        _move(frame, initial, before_arguments)
        while True:
            before(frame)
            if not frame[condition]:
                _move(frame, values, results)
                return
            _move(frame, values, after_arguments)
            after(frame)
            _move(frame, yielded, before_arguments)

    return step


@emits("scf.execute_region", "pto.section.vector")
def _inline(op: Operation, compiler: Compiler) -> Step:
    if not op.regions:  # an empty section
        return lambda frame: None
    body, yielded = compiler.region(op.regions[0])
    results = compiler.slots(op.results)

    def step(frame: Frame) -> None:
        body(frame)
        _move(frame, yielded, results)

    return step


@emits("scf.index_switch")
def _index_switch(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, scf.IndexSwitchOp)
    selector, results = compiler.slot(op.arg), compiler.slots(op.results)
    default = compiler.region(op.default_region)
    cases = {
        int(value): compiler.region(region)
        for value, region in zip(op.cases.get_values(), op.case_regions, strict=True)
    }

    def step(frame: Frame) -> None:
        body, yielded = cases.get(frame[selector], default)
        body(frame)
        _move(frame, yielded, results)

    return step


@emits("func.call")
def _call(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, func.CallOp)
    name = op.callee.root_reference.data
    program = compiler.program
    arguments, results = compiler.slots(op.arguments), compiler.slots(op.results)
    filename, line, column = place_of(op)
    note = f"called from {filename}:{line}:{column}"

    def step(frame: Frame) -> None:
        core: Core = frame[0]
        if core.depth >= MAX_DEPTH:
            raise Fault(f"more than {MAX_DEPTH} nested calls")
        callee = program.called(name, op)
        if len(callee.arguments) != len(arguments):
            raise Fault(f"@{name} takes {len(callee.arguments)} arguments, not {len(arguments)}")
        core.depth += 1
        try:
            values = callee(core, [frame[slot] for slot in arguments])
        except ExecutionError as error:
            error.notes.append(note)
            raise
        finally:
            core.depth -= 1
        for slot, value in zip(results, values, strict=True):
            frame[slot] = value

    return step


@emits("cf.assert")
def _assert(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, cf.AssertOp)
    condition, message = compiler.slot(op.arg), op.msg.data

    def step(frame: Frame) -> None:
        if not frame[condition]:
            raise Fault(f"assertion failed: {message}")

    return step


def next_block(
    block: Block, numbers: dict[Block, int], compiler: Compiler
) -> Callable[[Frame], int | None]:
    """The number of the block that follows, None at a return; passes the block's arguments."""
    last = block.last_op
    if isinstance(last, cf.BranchOp):
        return _branch(numbers[last.successor], last.arguments, last.successor, compiler)
    if isinstance(last, cf.ConditionalBranchOp):
        condition = compiler.slot(last.cond)
        then = _branch(numbers[last.then_block], last.then_arguments, last.then_block, compiler)
        other = _branch(numbers[last.else_block], last.else_arguments, last.else_block, compiler)
        return lambda frame: then(frame) if frame[condition] else other(frame)
    if isinstance(last, cf.SwitchOp):
        return _switch(last, numbers, compiler)
    return lambda frame: None


def _branch(
    number: int, values: Any, target: Block, compiler: Compiler
) -> Callable[[Frame], int | None]:
    sources, targets = compiler.slots(values), compiler.slots(target.args)

    def jump(frame: Frame) -> int:
        _move(frame, sources, targets)
        return number

    return jump


def _switch(
    op: cf.SwitchOp, numbers: dict[Block, int], compiler: Compiler
) -> Callable[[Frame], int | None]:
    flag = compiler.slot(op.flag)
    default = _branch(numbers[op.default_block], op.default_operands, op.default_block, compiler)
    values = [] if op.case_values is None else [int(v) for v in op.case_values.get_values()]
    jumps = {
        value: _branch(numbers[block], operands, block, compiler)
        for value, block, operands in zip(values, op.case_blocks, op.case_operand, strict=True)
    }
    return lambda frame: jumps.get(frame[flag], default)(frame)
