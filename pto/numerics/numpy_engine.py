"""Executes a program with numpy, one cache-sized block after the other.

Each instruction is one ufunc call over a block. Results live in a few reused rows of scratch
memory, so a conversion allocates nothing of the array's size. Where the source has 16 bits or
fewer, the program runs once over every code and the conversion becomes a table lookup.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.numerics.kernel_ir import Instruction, Program

Array = NDArray[Any]
#: (function, operand, operand, result); None is the block being read or written.
Step = tuple[Callable[..., Any], Array | None, Array | None, Array | None]

#: Bytes of one row of scratch memory: a program's live rows stay in a core's L2 cache, and a block
#: is large enough to hide the cost of calling numpy.
ROW_BYTES = 128 * 1024

#: A program with at most this many instructions beats the lookup of a 16-bit code.
SHORT_PROGRAM = 8

#: In blocks smaller than this, looking at the largest magnitude costs more than it saves.
PLAIN_ELEMENTS = 1 << 12

_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "min": np.minimum,
    "max": np.maximum,
}

#: What may overwrite its operands.
_IN_PLACE = {*_UFUNCS, "sar", "less"}


class _Workspace(threading.local):
    """Scratch rows of this thread, and the steps bound to them."""

    def __init__(self) -> None:
        self.rows: list[NDArray[np.uint8]] = []
        self.bound: dict[int, tuple[int, NumpyProgram, list[Step]]] = {}

    def row(self, index: int) -> NDArray[np.uint8]:
        while len(self.rows) <= index:
            self.rows.append(np.empty(ROW_BYTES, np.uint8))
        return self.rows[index]


_WORKSPACE = _Workspace()


@cache
def _filled(value: int, lane: np.dtype[Any]) -> Array:
    """A row of one value: numpy's minimum and maximum are slow on a scalar."""
    row = np.full(ROW_BYTES // lane.itemsize, value, lane)
    row.flags.writeable = False
    return row


class NumpyProgram:
    """A program ready to run on contiguous arrays of codes.

    `plain` is a shorter program that is right for blocks without magnitudes above `plain_limit`.
    """

    def __init__(
        self, program: Program, plain: NumpyProgram | None = None, plain_limit: int = 0
    ) -> None:
        self.program = program
        self._plain = plain
        self._plain_limit = plain_limit
        self.lane = np.dtype(f"u{program.lane_bits // 8}")
        self.signed_lane = np.dtype(f"i{program.lane_bits // 8}")
        self.block = ROW_BYTES // self.lane.itemsize
        self._rows = _allocate_rows(program)

    def run(self, source: Array, target: Array) -> None:
        """Converts `source` into `target`: 1-D, contiguous, of equal length, not overlapping.

        Their dtypes are the unsigned integers of the program's load and store widths.
        """
        if self._uses_table:
            self._look_up(source, target)
            return
        for start in range(0, len(source), self.block):
            end = start + self.block
            self._choose(source[start:end])._run_block(source[start:end], target[start:end])

    def _choose(self, block: Array) -> NumpyProgram:
        if self._plain is None or len(block) < PLAIN_ELEMENTS:
            return self
        magnitude = _WORKSPACE.row(0).view(self.lane)[: len(block)]
        np.bitwise_and(block, self.lane.type(self.program.all_ones >> 1), out=magnitude)
        return self._plain if np.maximum.reduce(magnitude) <= self._plain_limit else self

    @cached_property
    def _uses_table(self) -> bool:
        return self.program.load_bits <= 16 and len(self.program.instructions) > SHORT_PROGRAM

    @cached_property
    def table(self) -> Array:
        """The destination code of every source code."""
        count = 1 << self.program.load_bits
        codes = np.arange(count, dtype=f"u{self.program.load_bits // 8}")
        table = np.empty(count, f"u{self.program.store_bits // 8}")
        for start in range(0, count, self.block):
            end = start + self.block
            self._run_block(codes[start:end], table[start:end])
        table.flags.writeable = False
        return table

    @cached_property
    def _tables(self) -> list[Array]:
        return [table.astype(self.lane) for table in self.program.tables]

    def _look_up(self, source: Array, target: Array) -> None:
        table = self.table
        indices = _WORKSPACE.row(0).view(np.intp)
        for start in range(0, len(source), len(indices)):
            block = source[start : start + len(indices)]
            index = indices[: len(block)]
            np.copyto(index, block)
            _look_up(table, index, None, target[start : start + len(block)])

    def _run_block(self, source: Array, target: Array) -> None:
        count = len(source)
        known = _WORKSPACE.bound.get(id(self))
        if known is None or known[0] != count or known[1] is not self:
            if len(_WORKSPACE.bound) > 256:
                _WORKSPACE.bound.clear()
            known = (count, self, self._bind(count))
            _WORKSPACE.bound[id(self)] = known
        for function, a, b, out in known[2]:
            function(
                source if a is None else a,
                source if b is None else b,
                out=target if out is None else out,
            )

    def _bind(self, count: int) -> list[Step]:
        """The calls that execute the program on a block of `count` elements."""
        steps: list[Step] = []
        for index, instruction in enumerate(self.program.instructions):
            out = self._value(index, count)
            if instruction.op == "load" and out is not None:
                steps.append((_copy, None, None, out))
            elif instruction.op == "less" and out is not None:
                a, b = (self._value(i, count) for i in instruction.operands)
                signed = out.view(self.signed_lane)
                top = np.array(self.program.lane_bits - 1, self.signed_lane)
                steps += [(np.subtract, a, b, out), (np.right_shift, signed, top, signed)]
            elif instruction.op not in ("load", "const"):
                steps.append(self._step(instruction, out, count))
        result = self.program.result
        is_last = self.program.instructions[result].op in _UFUNCS
        if is_last and self.program.store_bits == self.program.lane_bits:
            steps[-1] = (*steps[-1][:3], None)
        else:
            steps.append((_copy, self._value(result, count), None, None))
        return steps

    def _step(self, instruction: Instruction, out: Array | None, count: int) -> Step:
        operands = [self._value(i, count) for i in instruction.operands]
        match instruction.op:
            case "min" | "max":
                operands = [
                    _filled(int(o), self.lane)[:count] if o is not None and o.ndim == 0 else o
                    for o in operands
                ]
            case "sar" if operands[0] is not None and out is not None:
                signed = [a.view(self.signed_lane) for a in (*operands, out) if a is not None]
                return np.right_shift, signed[0], signed[1], signed[2]
            case "sar":
                return _shift_signed, operands[0], operands[1], out
            case "float":
                return _to_float, operands[0], None, out
            case "table":
                return partial(_look_up, self._tables[instruction.value]), operands[0], None, out
        return _UFUNCS[instruction.op], operands[0], operands[1], out

    def _value(self, index: int, count: int) -> Array | None:
        """The constant, or the scratch row; None for the block being read."""
        instruction = self.program.instructions[index]
        if instruction.op == "const":
            return np.array(instruction.value, self.lane)
        if self._rows[index] < 0:
            return None
        return _WORKSPACE.row(self._rows[index]).view(self.lane)[:count]


def _copy(value: Array, _: Any, out: Array) -> None:
    np.copyto(out, value, casting="unsafe")


def _shift_signed(value: Array, amount: Array, out: Array) -> None:
    signed = f"i{out.itemsize}"
    np.right_shift(value.view(signed), amount.view(signed), out=out.view(signed))


def _to_float(value: Array, _: Any, out: Array) -> None:
    np.copyto(out.view(f"f{out.itemsize}"), value, casting="unsafe")


def _look_up(table: Array, index: Array, _: Any, out: Array) -> None:
    # Every index is valid; "wrap" is the fastest way to say so. uint64 is no index type.
    table.take(index.view(f"i{index.itemsize}"), out=out, mode="wrap")


def _allocate_rows(program: Program) -> list[int]:
    """The scratch row of each instruction's result; -1 for constants, and for a source code that
    fills its lane and needs no copy."""
    last_use = {program.result: len(program.instructions)}
    for index, instruction in enumerate(program.instructions):
        for operand in instruction.operands:
            last_use[operand] = max(last_use.get(operand, 0), index)
    rows: list[int] = []
    free: list[int] = []
    used = 0
    for index, instruction in enumerate(program.instructions):
        fills_lane = program.load_bits == program.lane_bits
        if instruction.op == "const" or (instruction.op == "load" and fills_lane):
            rows.append(-1)
            continue
        # A ufunc may overwrite its operand; a cast or a lookup may not.
        dying = {rows[o] for o in instruction.operands if last_use[o] == index and rows[o] >= 0}
        if instruction.op in _IN_PLACE:
            free.extend(sorted(dying))
        row = free.pop() if free else used
        used = max(used, row + 1)
        rows.append(row)
        if instruction.op not in _IN_PLACE:
            free.extend(sorted(dying))
    return rows
