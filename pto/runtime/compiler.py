"""Turns functions into closures over a frame of values.

Every SSA value has a slot in its function's frame, every operation becomes one step, a function of
the frame. That costs a tenth of what looking each operation and value up costs at run time, which
is what a kernel of scalar loops over small tiles is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region

from pto.dialect.names import BUFFER_OPERATIONS, REGISTER_OPERATIONS
from pto.dialect.ops import SEGMENTS
from pto.dialect.target import target_of
from pto.runtime.branches import next_block
from pto.runtime.errors import ExecutionError, RuntimeFault, unsupported
from pto.runtime.frame import Frame, Slots, Step
from pto.runtime.vector_core import VectorCore
from pto.spelling import close_match
from pto.targets import DEFAULT_TARGET, Product, product_of

Implement = Callable[[Operation, "Compiler"], Step | None]
"""Makes the step of an operation; None where nothing happens at run time."""

Observe = Callable[[Operation, "Compiler", Step], Step]
"""Makes the step that runs in place of a tile operation's own, and runs that one."""

MAX_DEPTH = 100
"""Nested calls; PTO functions do not recurse."""


@dataclass(frozen=True)
class Implementation:
    """What an operation does."""

    implement: Implement
    attributes: frozenset[str]
    """The attributes that it honours, or that change no result; all others are refused."""


class Implementations(dict[str, Implementation]):
    """What operations do, by name."""

    def implements(
        self, *names: str, attributes: Iterable[str] = ()
    ) -> Callable[[Implement], Implement]:
        """Says that a function makes the steps of these operations."""

        def register(implement: Implement) -> Implement:
            found = Implementation(implement, frozenset(attributes))
            for name in names:
                self.add(name, found)
            return implement

        return register

    def add(self, name: str, found: Implementation) -> None:
        """One more; no name is implemented twice."""
        assert name not in self, f"{name} is implemented twice"
        self[name] = found

    def replace(self, name: str, implement: Implement) -> None:
        """Another way to do what one does; it honours the same attributes."""
        self[name] = Implementation(implement, self[name].attributes)

    @classmethod
    def joined(cls, parts: Iterable[Implementations]) -> Implementations:
        """All of these."""
        joined = cls()
        for part in parts:
            for name, found in part.items():
                joined.add(name, found)
        return joined


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

    def __call__(self, core: VectorCore, values: Sequence[Any]) -> tuple[Any, ...]:
        frame = self.template.copy()
        frame[Slots.CORE] = core
        for slot, value in zip(self.arguments, values, strict=True):
            frame[slot] = value
        return self.run(frame)


@dataclass(frozen=True)
class Options:
    """What the meaning of a conversion depends on, beside its operation."""

    product: Product | None = None
    """The target asked for; None for the one that a module around each operation names."""
    default_saturation: str = "target"
    """What an absent satmode means: `target`, `on` or `off` (spec S14)."""
    observe: Observe | None = None
    """Wraps the steps of tile operations, for traces."""

    def product_for(self, op: Operation) -> Product:
        """The target of an operation. Raises UnknownTarget for a name that is none."""
        if self.product is not None:
            return self.product
        named = target_of(op)
        return product_of(DEFAULT_TARGET if named is None else named.name)


@dataclass
class Program:
    """A module whose functions are compiled when first called."""

    module: ModuleOp
    options: Options
    implementations: Mapping[str, Implementation]
    functions: dict[func.FuncOp, Function] = field(default_factory=dict)

    def called(self, name: str, call: Operation) -> Function:
        """The function that a call names: in the innermost module that has it, else in any.

        Raises RuntimeFault where it has no body here.
        """
        scope = call.parent_op()
        while scope is not None:
            if isinstance(scope, ModuleOp) and (op := _with_body(scope.ops, name)) is not None:
                return self.compiled(op)
            scope = scope.parent_op()
        if (op := _with_body(self.module.walk(), name)) is None:
            raise RuntimeFault(f"@{name} has no body in this module")
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


class Compiler(Slots):
    """Compiles one function."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.options = program.options
        self.loop_depth = 0
        """How many loops are around the operation that is being compiled."""

    def compile(self, op: func.FuncOp) -> Function:
        """The function, ready to be called."""
        arguments = self.slots(op.body.blocks[0].args)
        run = self._body(op.body)
        return Function(op, self.template, arguments, run)

    def operands(self, op: Operation, count: int) -> tuple[int, ...]:
        """The slots of an operation's operands. Raises RuntimeFault for another count of them."""
        if len(op.operands) != count:
            raise unsupported("this form of it")
        return self.slots(op.operands)

    def results(self, op: Operation, count: int = 1) -> tuple[int, ...]:
        """The slots of an operation's results. Raises RuntimeFault for another count of them."""
        if len(op.results) != count:
            raise unsupported("this form of it")
        return self.slots(op.results)

    def block(self, block: Block) -> Callable[[Frame], None]:
        """Runs the operations of a block before its terminator."""
        steps: list[Step] = []
        origins: dict[int, Operation] = {}
        for op in _before_terminator(block):
            step = self._step(op)
            if step is not None:
                origins[id(step)] = op
                steps.append(step)
        return _runner(tuple(steps), origins)

    def _step(self, op: Operation) -> Step | None:
        """The step of an operation; where it has none, it is an error to reach it."""
        try:
            found = self.program.implementations.get(op.name)
            if found is None:
                raise _not_supported(op)
            _check_attributes(op, found.attributes)
            step = found.implement(op, self)
        except RuntimeFault as fault:
            return _raising(ExecutionError(op, fault))
        observe = self.options.observe
        if observe is None or step is None or not op.name.startswith("pto.t"):
            return step
        return observe(op, self, step)

    def region(self, region: Region) -> tuple[Callable[[Frame], None], tuple[int, ...]]:
        """Runs a region of one block; the slots of what it yields."""
        if not region.blocks:
            return lambda frame: None, ()
        if len(region.blocks) > 1:
            raise unsupported("a region of several blocks inside a structured operation")
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


def _before_terminator(block: Block) -> Iterator[Operation]:
    for op in block.ops:
        if op.next_op is not None or op.name not in TERMINATORS:
            yield op


def _runner(steps: tuple[Step, ...], origins: dict[int, Operation]) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        step: Step | None = None
        try:
            for step in steps:
                step(frame)
        except RuntimeFault as fault:
            raise ExecutionError(origins[id(step)], fault) from fault

    return run


def _raising(error: ExecutionError) -> Step:
    """An operation that is never reached does no harm."""

    def step(frame: Frame) -> None:
        raise error

    return step


def _check_attributes(op: Operation, known: frozenset[str]) -> None:
    """Raises RuntimeFault for an attribute that would be ignored; one with a dialect's prefix may
    be."""
    if not op.name.startswith("pto."):
        return
    for key in op.attributes:
        if key not in known and "." not in key and key != SEGMENTS:
            near = close_match(key, known)
            hint = f"did you mean {near}?" if near else f"known: {', '.join(sorted(known))}"
            raise unsupported(f"the attribute {key}", *[hint] * bool(known))


_CUBE = ("tmatmul", "tgemv", "mad", "section.cube")
_OTHER_CORE = (
    *("tpush", "tpop", "tfree", "talloc", "comm.", "initialize_l2", "aic_initialize_pipe"),
    *("aiv_initialize_pipe", "reserve_buffer", "import_reserved_buffer", "sync.", "syncall"),
)


def _not_supported(op: Operation) -> RuntimeFault:
    name = op.name.removeprefix("pto.")
    if op.name in (*BUFFER_OPERATIONS, *REGISTER_OPERATIONS):
        return RuntimeFault("it runs on the machine only: pto-opt run --machine")
    if name.startswith(_CUBE):
        return unsupported("the cube side")
    if name.startswith(_OTHER_CORE):
        return unsupported("communication between cores")
    return unsupported("it")
