"""Turns functions into closures over a frame of values.

Every SSA value has a slot in its function's frame, every operation becomes one step, a function of
the frame. That costs a tenth of what looking each operation and value up costs at run time, which
is what a kernel of scalar loops over small tiles is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from pto.dialect.ops import SEGMENTS
from pto.runtime.core import Core
from pto.runtime.errors import ExecutionError, Fault

Frame = list[Any]
"""Values by slot; slot 0 holds the Core."""

Step = Callable[[Frame], None]
Emit = Callable[[Operation, "Compiler"], Step | None]
"""Makes the step of an operation; None where nothing happens at run time."""

Observe = Callable[[Operation, "Compiler", Step], Step]
"""Makes the step that runs in place of a tile operation's own, and runs that one."""

EMITTERS: dict[str, Emit] = {}
"""What each operation does, by name."""

ATTRIBUTES: dict[str, frozenset[str]] = {}
"""The attributes of each operation that its emitter knows; all others are refused."""

MAX_DEPTH = 100
"""Nested calls; PTO functions do not recurse."""


def emits(*names: str, attributes: Iterable[str] = ()) -> Callable[[Emit], Emit]:
    """Registers the function that makes the steps of these operations.

    `attributes` are those that it honours, or that change no result.
    """

    def register(emit: Emit) -> Emit:
        EMITTERS.update(dict.fromkeys(names, emit))
        ATTRIBUTES.update(dict.fromkeys(names, frozenset(attributes)))
        return emit

    return register


@dataclass
class Function:
    """A compiled function."""

    op: func.FuncOp
    template: Frame
    """A frame with the constants in place."""
    arguments: tuple[int, ...]
    """Slots of the arguments."""
    run: Callable[[Frame], tuple[Any, ...]]
    """Runs the body on a frame and returns the results."""

    def __call__(self, core: Core, values: Sequence[Any]) -> tuple[Any, ...]:
        frame = self.template.copy()
        frame[0] = core
        for slot, value in zip(self.arguments, values, strict=True):
            frame[slot] = value
        return self.run(frame)


@dataclass(frozen=True)
class Options:
    """What the meaning of a conversion depends on, beside its operation."""

    arch: str
    """Canonical target."""
    default_sat: str = "target"
    """What an absent satmode means: `target`, `on` or `off` (spec S14)."""
    observe: Observe | None = None
    """Wraps the steps of tile operations, for traces."""


@dataclass
class Program:
    """A module whose functions are compiled when first called."""

    module: ModuleOp
    options: Options
    functions: dict[func.FuncOp, Function] = field(default_factory=dict)

    def called(self, name: str, call: Operation) -> Function:
        """The function that a call names: in the innermost module that has it, else in any.

        Raises Fault where it has no body here.
        """
        scope = call.parent_op()
        while scope is not None:
            if isinstance(scope, ModuleOp) and (op := _with_body(scope.ops, name)) is not None:
                return self.compiled(op)
            scope = scope.parent_op()
        if (op := _with_body(self.module.walk(), name)) is None:
            raise Fault(f"@{name} has no body in this module")
        return self.compiled(op)

    def compiled(self, op: func.FuncOp) -> Function:
        """The compiled function."""
        if (found := self.functions.get(op)) is None:
            found = self.functions[op] = Compiler(self).compile(op)
        return found


def _with_body(operations: Iterable[Operation], name: str) -> func.FuncOp | None:
    for op in operations:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name and op.body.blocks:
            return op
    return None


class Compiler:
    """Compiles one function."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.options = program.options
        self._slots: dict[SSAValue, int] = {}
        self._template: Frame = [None]
        self.loop_depth = 0
        """How many loops are around the operation that is being compiled."""

    def compile(self, op: func.FuncOp) -> Function:
        """The function, ready to be called."""
        arguments = tuple(self.slot(argument) for argument in op.body.blocks[0].args)
        run = self._body(op.body)
        return Function(op, self._template, arguments, run)

    def slot(self, value: SSAValue) -> int:
        """The slot of a value."""
        slot = self._slots.get(value)
        if slot is None:
            slot = self._slots[value] = len(self._template)
            self._template.append(None)
        return slot

    def slots(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        """The slots of values."""
        return tuple(self.slot(value) for value in values)

    def constant(self, value: SSAValue, constant: object) -> None:
        """Puts the value of a constant into every frame."""
        self._template[self.slot(value)] = constant

    def block(self, block: Block) -> Callable[[Frame], None]:
        """Runs the operations of a block before its terminator."""
        steps: list[Step] = []
        origins: dict[int, Operation] = {}
        last = block.last_op
        is_terminator = last is not None and last.name in TERMINATORS
        for op in block.ops:
            if op is last and is_terminator:
                break
            step = self._step(op)
            if step is not None:
                origins[id(step)] = op
                steps.append(step)
        return _runner(tuple(steps), origins)

    def _step(self, op: Operation) -> Step | None:
        emit = EMITTERS.get(op.name)
        if emit is None:
            return _not_executed(op)
        try:
            _check_attributes(op)
            step = emit(op, self)
        except Fault as fault:  # an operation that is never reached does no harm
            return _raising(ExecutionError(op, fault))
        except (IndexError, ValueError):  # operands that no executed form has
            return _raising(ExecutionError(op, Fault("this form of it is not executed here")))
        observe = self.options.observe
        if observe is None or step is None or not op.name.startswith("pto.t"):
            return step
        return observe(op, self, step)

    def region(self, region: Region) -> tuple[Callable[[Frame], None], tuple[int, ...]]:
        """Runs a region of one block; the slots of what it yields."""
        if not region.blocks:
            return lambda frame: None, ()
        if len(region.blocks) > 1:
            raise Fault("a region of several blocks inside a structured operation")
        block = region.blocks[0]
        last = block.last_op
        yields = last.operands if last is not None and last.name in TERMINATORS else ()
        return self.block(block), self.slots(tuple(yields))

    def _body(self, region: Region) -> Callable[[Frame], tuple[Any, ...]]:
        blocks = list(region.blocks)
        if len(blocks) == 1 and blocks[0].last_op is not None:
            return self._straight_body(blocks[0])
        return self._branching_body(blocks)

    def _straight_body(self, block: Block) -> Callable[[Frame], tuple[Any, ...]]:
        run, last = self.block(block), block.last_op
        results: tuple[int, ...] = ()
        if last is not None and last.name == RETURN:
            results = self.slots(last.operands)

        def body(frame: Frame) -> tuple[Any, ...]:
            run(frame)
            return tuple(frame[slot] for slot in results)

        return body

    def _branching_body(self, blocks: list[Block]) -> Callable[[Frame], tuple[Any, ...]]:
        from pto.runtime.control import next_block

        numbers = {block: number for number, block in enumerate(blocks)}
        runs = [self.block(block) for block in blocks]
        exits = [next_block(block, numbers, self) for block in blocks]
        results = [
            self.slots(last.operands) if (last := block.last_op) is not None else ()
            for block in blocks
        ]

        def body(frame: Frame) -> tuple[Any, ...]:
            number = 0
            while True:
                runs[number](frame)
                target = exits[number](frame)
                if target is None:
                    return tuple(frame[slot] for slot in results[number])
                number = target

        return body


RETURN = "func.return"
TERMINATORS = frozenset(
    (RETURN, "cf.br", "cf.cond_br", "cf.switch", "scf.yield", "scf.condition", "pto.yield")
)


def _runner(steps: tuple[Step, ...], origins: dict[int, Operation]) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        step = None
        try:
            for step in steps:
                step(frame)
        except Fault as fault:
            raise ExecutionError(origins[id(step)], fault) from fault

    return run


def _check_attributes(op: Operation) -> None:
    """Raises Fault for an attribute that would be ignored; one with a dialect's prefix may be."""
    if not op.name.startswith("pto."):
        return
    known = ATTRIBUTES[op.name]
    for key in op.attributes:
        if key not in known and "." not in key and key != SEGMENTS:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
            raise Fault(f"the attribute {key} is not executed here", *[hint] * bool(known))


def _raising(error: ExecutionError) -> Step:
    def step(frame: Frame) -> None:
        raise error

    return step


_CUBE = ("tmatmul", "tgemv", "mad", "section.cube")
_OTHER_CORE = (
    *("tpush", "tpop", "tfree", "talloc", "comm.", "initialize_l2", "aic_initialize_pipe"),
    *("aiv_initialize_pipe", "reserve_buffer", "import_reserved_buffer", "sync.", "syncall"),
)


def _not_executed(op: Operation) -> Step:
    name = op.name.removeprefix("pto.")
    reason = "it is not executed here"
    if name.startswith(_CUBE):
        reason = "the cube side is not executed here"
    elif name.startswith(_OTHER_CORE):
        reason = "communication between cores is not executed here"
    return _raising(ExecutionError(op, Fault(reason)))
