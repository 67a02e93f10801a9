"""The intermediate representation of conversion kernels: straight-line arithmetic on words.

A kernel is an ordinary Python function on `Value`s. Running it once records a `Program`: a list of
operations on unsigned words of 32 or 64 bits, without branches, loops or comparisons. Both engines
execute the same program, so they cannot disagree about what a conversion means.

Arithmetic wraps modulo 2**width. A shift left or right by the width or more gives 0. The outcome of
a test is a mask: all ones for true, 0 for false.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

Op = Literal[
    "load", "const", "add", "sub", "and", "or", "xor", "shl", "shr", "sar", "min", "max", "less"
]
# "sar": the right shift that repeats the top bit; only ever by a constant.
# "less": all ones where a < b, else 0, for words below 2**(width - 1).
# "float": bits of the float of the lane's width nearest to an unsigned integer (ties to even).
# "table": the entry of a constant table, the index being the word.
AnyOp: TypeAlias = Op | Literal["float", "table"]


@dataclass(frozen=True)
class Instruction:
    """One operation. Operands are indices of earlier instructions."""

    op: AnyOp
    operands: tuple[int, ...] = ()
    value: int = 0  #: the constant of "const", the number of the table of "table"
    bound: int = 0  #: no result is larger than this


@dataclass
class Program:
    """A recorded kernel: one source code in, one destination code out.

    The source code is zero-extended into a lane; the lowest `store_bits` of the result are stored.
    """

    lane_bits: int
    load_bits: int
    store_bits: int
    instructions: list[Instruction] = field(default_factory=list)
    tables: list[NDArray[Any]] = field(default_factory=list)
    result: int = 0
    _known: dict[tuple[Any, ...], int] = field(default_factory=dict)

    @property
    def all_ones(self) -> int:
        """The largest word."""
        return (1 << self.lane_bits) - 1

    def load(self, bits: int) -> Value:
        """The source code, of which the lowest `bits` are used."""
        word = self.emit("load", bound=(1 << self.load_bits) - 1)
        return word & ((1 << bits) - 1)

    def constant(self, value: int) -> Value:
        """A constant, modulo 2**lane_bits."""
        value &= self.all_ones
        return self.emit("const", value=value, bound=value)

    def table(self, table: NDArray[Any], index: Value) -> Value:
        """table[index]; `table` is indexable by every value that `index` can take."""
        assert index.bound < len(table)
        self.tables.append(table)
        return self.emit(
            "table", (index.index,), value=len(self.tables) - 1, bound=int(table.max())
        )

    def emit(
        self, op: AnyOp, operands: tuple[int, ...] = (), *, value: int = 0, bound: int | None = None
    ) -> Value:
        """Appends an instruction, or finds the one that computes the same."""
        key = (op, operands, value)
        if key not in self._known:
            limit = self.all_ones if bound is None else min(bound, self.all_ones)
            self.instructions.append(Instruction(op, operands, value, limit))
            self._known[key] = len(self.instructions) - 1
        return Value(self, self._known[key])

    def finish(self, result: Value) -> Program:
        """Declares the result and drops the instructions that it does not need."""
        needed = {result.index}
        for index in range(result.index, -1, -1):
            if index in needed:
                needed.update(self.instructions[index].operands)
        order = sorted(needed)
        renumbered = {old: new for new, old in enumerate(order)}
        self.instructions = [
            Instruction(i.op, tuple(renumbered[o] for o in i.operands), i.value, i.bound)
            for i in (self.instructions[old] for old in order)
        ]
        self.result = renumbered[result.index]
        return self


@dataclass(frozen=True)
class Value:
    """A value of a program under construction; operators record instructions."""

    program: Program
    index: int

    @property
    def bound(self) -> int:
        """An upper bound of the value."""
        return self.program.instructions[self.index].bound

    @property
    def constant(self) -> int | None:
        """The value, where it is known."""
        instruction = self.program.instructions[self.index]
        return instruction.value if instruction.op == "const" else None

    def _binary(self, op: Op, other: Value | int, swapped: bool = False) -> Value:
        right = self.program.constant(other) if isinstance(other, int) else other
        a, b = (right, self) if swapped else (self, right)
        if a.constant is not None and b.constant is not None:
            return self.program.constant(_evaluate(op, a.constant, b.constant, self.program))
        simpler = _simplify(op, a, b)
        if simpler is not None:
            return simpler
        return self.program.emit(op, (a.index, b.index), bound=_bound(op, a, b))

    def __add__(self, other: Value | int) -> Value:
        return self._binary("add", other)

    def __radd__(self, other: int) -> Value:
        return self._binary("add", other)

    def __sub__(self, other: Value | int) -> Value:
        return self._binary("sub", other)

    def __rsub__(self, other: int) -> Value:
        return self._binary("sub", other, swapped=True)

    def __and__(self, other: Value | int) -> Value:
        return self._binary("and", other)

    def __or__(self, other: Value | int) -> Value:
        return self._binary("or", other)

    def __xor__(self, other: Value | int) -> Value:
        return self._binary("xor", other)

    def __lshift__(self, other: Value | int) -> Value:
        return self._binary("shl", other)

    def __rlshift__(self, other: int) -> Value:
        return self._binary("shl", other, swapped=True)

    def __rshift__(self, other: Value | int) -> Value:
        return self._binary("shr", other)

    def __invert__(self) -> Value:
        return self ^ self.program.all_ones

    def __neg__(self) -> Value:
        return 0 - self


def smaller(a: Value, b: Value | int) -> Value:
    """The unsigned minimum."""
    limit = b if isinstance(b, int) else b.constant
    if limit is not None and a.bound <= limit:
        return a
    return a._binary("min", b)


def larger(a: Value, b: Value | int) -> Value:
    """The unsigned maximum."""
    return a._binary("max", b)


def top_bit(a: Value) -> Value:
    """The mask that is all ones where the top bit of a is 1."""
    return a._binary("sar", a.program.lane_bits - 1)


def less(a: Value | int, b: Value | int) -> Value:
    """The mask for a < b. Both must be below 2**(lane_bits - 1)."""
    if isinstance(a, Value):
        return a._binary("less", b)
    assert isinstance(b, Value)
    return b._binary("less", a, swapped=True)


def nonzero(a: Value) -> Value:
    """The number 1 where a is not 0, else 0."""
    return smaller(a, 1)


def select(when: Value, a: Value | int, b: Value | int) -> Value:
    """a where the mask is set, b elsewhere."""
    if isinstance(b, int) and b == 0:
        return when & a
    if isinstance(a, int) and a == 0:
        return ~when & b
    difference = b ^ a if isinstance(b, Value) else a ^ b
    return (when & difference) ^ b


def to_float(a: Value) -> Value:
    """Bits of the f32 (in 32-bit lanes) or f64 nearest to the unsigned integer a, ties to even."""
    return a.program.emit("float", (a.index,))


def floor_log2_field(a: Value) -> Value:
    """The biased exponent of the lane's float format for 2**floor(log2(a)); 0 for a = 0.

    Clearing each bit whose upper neighbour is set keeps the leading one and makes the conversion
    unable to round up to the next power of two.
    """
    mantissa_bits = 23 if a.program.lane_bits == 32 else 52
    return to_float(a & ~(a >> 1)) >> mantissa_bits


def _evaluate(op: Op, a: int, b: int, program: Program) -> int:
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "and":
            return a & b
        case "or":
            return a | b
        case "xor":
            return a ^ b
        case "shl":
            return a << b if b < program.lane_bits else 0
        case "shr":
            return a >> b
        case "sar":
            return (a >> b) - ((a >> (program.lane_bits - 1)) << (program.lane_bits - b))
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "less":
            return program.all_ones if a < b else 0
        case _:
            raise AssertionError(op)


def _simplify(op: Op, a: Value, b: Value) -> Value | None:
    """x + 0, x & 0, x & (a mask that covers x), and the like."""
    program = a.program
    if b.constant == 0 and op in ("add", "sub", "or", "xor", "shl", "shr", "max"):
        return a
    if a.constant == 0 and op in ("add", "or", "xor", "max"):
        return b
    if a.constant == 0 and op in ("and", "shl", "shr"):
        return a
    if b.constant == 0 and op == "and":
        return b
    if op == "and" and program.all_ones in (a.constant, b.constant):
        return a if b.constant == program.all_ones else b
    if op == "and" and b.constant is not None and b.constant == (1 << a.bound.bit_length()) - 1:
        return a
    if op in ("shl", "shr") and b.constant is not None and b.constant >= program.lane_bits:
        return program.constant(0)
    if op == "shr" and b.constant is not None and a.bound >> b.constant == 0:
        return program.constant(0)
    return None


def _bound(op: Op, a: Value, b: Value) -> int | None:
    """An upper bound of the result, None where wrapping makes it any word."""
    ones = a.program.all_ones
    match op:
        case "add":
            total = a.bound + b.bound
            return total if total <= ones else None
        case "and" | "min":
            return min(a.bound, b.bound)
        case "or" | "xor":
            return (1 << max(a.bound, b.bound).bit_length()) - 1
        case "max":
            return max(a.bound, b.bound)
        case "shr":
            return a.bound >> b.constant if b.constant is not None else a.bound
        case "shl" if b.constant is not None:
            return a.bound << b.constant if a.bound << b.constant <= ones else None
        case "sub" if a.constant is not None and b.bound <= a.constant:
            return a.constant
        case _:
            return None
