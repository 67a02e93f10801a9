"""Control flow: scf, cf, func and the sections of the pto dialect."""

from __future__ import annotations

from xdsl.dialects import cf, func, scf
from xdsl.ir import Operation

from pto.dialect.location import location_of
from pto.runtime.compiler import MAX_DEPTH, Compiler, Implementations
from pto.runtime.errors import ExecutionError, RuntimeFault
from pto.runtime.frame import Frame, Slots, Step, move
from pto.runtime.vector_core import VectorCore

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements


@implements("scf.for")
def _for(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, scf.ForOp)
    lower, upper, increment = compiler.slots((op.lb, op.ub, op.step))
    variable, *carried = compiler.slots(op.body.block.args)
    initial, results = compiler.slots(op.iter_args), compiler.slots(op.results)
    is_outermost = compiler.loop_depth == 0
    compiler.loop_depth += 1
    body, yielded = compiler.region(op.body)
    compiler.loop_depth -= 1
    targets = tuple(carried)

    def step(frame: Frame) -> None:
        start, stop, by = frame[lower], frame[upper], frame[increment]
        if by <= 0:
            raise RuntimeFault(f"the step is {by}; it must be positive")
        if targets:
            move(frame, initial, targets)
        steps = range(start, stop, by)
        progress = frame[Slots.CORE].progress if is_outermost else None
        for iteration, frame[variable] in enumerate(steps):
            if progress is not None:
                progress(iteration, len(steps))
            body(frame)
            if targets:
                move(frame, yielded, targets)
        move(frame, targets, results)

    return step


@implements("scf.if")
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
            move(frame, values, results)

    return step


@implements("scf.while")
def _while(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, scf.WhileOp)
    initial, results = compiler.slots(op.arguments), compiler.slots(op.results)
    before_arguments = compiler.slots(op.before_region.block.args)
    after_arguments = compiler.slots(op.after_region.block.args)
    before, (condition, *passed) = compiler.region(op.before_region)
    after, yielded = compiler.region(op.after_region)
    values = tuple(passed)

    def step(frame: Frame) -> None:
        move(frame, initial, before_arguments)
        while True:
            before(frame)
            if not frame[condition]:
                move(frame, values, results)
                return
            move(frame, values, after_arguments)
            after(frame)
            move(frame, yielded, before_arguments)

    return step


@implements("scf.execute_region", "pto.section.vector")
def _inline(op: Operation, compiler: Compiler) -> Step:
    if not op.regions:  # an empty section
        return lambda frame: None
    body, yielded = compiler.region(op.regions[0])
    results = compiler.slots(op.results)

    def step(frame: Frame) -> None:
        body(frame)
        move(frame, yielded, results)

    return step


@implements("scf.index_switch")
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
        move(frame, yielded, results)

    return step


@implements("func.call")
def _call(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, func.CallOp)
    name = op.callee.root_reference.data
    program = compiler.program
    arguments, results = compiler.slots(op.arguments), compiler.slots(op.results)
    note = f"called from {location_of(op)}"

    def step(frame: Frame) -> None:
        core: VectorCore = frame[Slots.CORE]
        if core.depth >= MAX_DEPTH:
            raise RuntimeFault(f"more than {MAX_DEPTH} nested calls")
        callee = program.called(name, op)
        if len(callee.arguments) != len(arguments):
            raise RuntimeFault(
                f"@{name} takes {len(callee.arguments)} arguments, not {len(arguments)}"
            )
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


@implements("cf.assert")
def _assert(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, cf.AssertOp)
    condition, message = compiler.slot(op.arg), op.msg.data

    def step(frame: Frame) -> None:
        if not frame[condition]:
            raise RuntimeFault(f"assertion failed: {message}")

    return step
