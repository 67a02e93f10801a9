"""Executes a program with numpy, one cache-sized block after the other.

Each instruction is one ufunc call over a block. Results live in a few reused rows of scratch
memory, so a conversion allocates nothing of the array's size. Where the source has 16 bits or
fewer, the program may run once over every code and the conversion becomes a table lookup.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.numerics.words import Instruction, Program

Array = NDArray[Any]
Step = tuple[Callable[..., Any], tuple[Any, ...]]

#: Bytes of one row of scratch memory: a program's live rows stay in a core's L2 cache.
ROW_BYTES = 32 * 1024

#: A program with at most this many instructions beats the lookup of a 16-bit code.
SHORT_PROGRAM = 8

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


class NumpyProgram:
    """A program ready to run on contiguous arrays of codes."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.lane = np.dtype(f"u{program.lane_bits // 8}")
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
            self._run_block(source[start:end], target[start:end])

    @cached_property
    def _uses_table(self) -> bool:
        return self.program.load_bits <= 16 and len(self.program.instructions) > SHORT_PROGRAM

    @cached_property
    def _table(self) -> Array:
        """The destination code of every source code."""
        count = 1 << self.program.load_bits
        codes = np.arange(count, dtype=f"u{self.program.load_bits // 8}")
        table = np.empty(count, f"u{self.program.store_bits // 8}")
        for start in range(0, count, self.block):
            end = start + self.block
            self._run_block(codes[start:end], table[start:end])
        table.flags.writeable = False
        return table

    def _look_up(self, source: Array, target: Array) -> None:
        table = self._table
        indices = _WORKSPACE.row(0).view(np.intp)
        for start in range(0, len(source), len(indices)):
            block = source[start : start + len(indices)]
            index = indices[: len(block)]
            np.copyto(index, block)
            # Every index is valid; "wrap" is the fastest way to say that no check is needed.
            np.take(table, index, out=target[start : start + len(block)], mode="wrap")

    def _run_block(self, source: Array, target: Array) -> None:
        count = len(source)
        known = _WORKSPACE.bound.get(id(self))
        if known is None or known[0] != count or known[1] is not self:
            if len(_WORKSPACE.bound) > 256:
                _WORKSPACE.bound.clear()
            known = (count, self, self._bind(count))
            _WORKSPACE.bound[id(self)] = known
        np.copyto(self._row(self._rows[0], count), source)
        for function, arguments in known[2]:
            function(*arguments)
        np.copyto(target, self._row(self._rows[self.program.result], count), casting="unsafe")

    def _row(self, index: int, count: int) -> Array:
        return _WORKSPACE.row(index).view(self.lane)[:count]

    def _bind(self, count: int) -> list[Step]:
        """The calls that execute the program on blocks of `count` elements."""
        steps: list[Step] = []
        for index, instruction in enumerate(self.program.instructions):
            if instruction.op == "load":
                continue
            row = self._rows[index]
            if instruction.op == "const":
                if row >= 0:
                    steps.append((self._row(row, count).fill, (self.lane.type(instruction.value),)))
                continue
            steps.append(self._step(instruction, self._row(row, count), count))
        return steps

    def _step(self, instruction: Instruction, out: Array, count: int) -> Step:
        operands = [self._operand(i, count) for i in instruction.operands]
        match instruction.op:
            case "float":
                as_float = out.view(f"f{self.lane.itemsize}")
                return np.copyto, (as_float, operands[0], "unsafe")
            case "table":
                table = self.program.tables[instruction.value].astype(self.lane)
                signed = operands[0].view(f"i{self.lane.itemsize}")  # uint64 is no index type
                return np.take, (table, signed, None, out, "wrap")
            case op:
                return _UFUNCS[op], (*operands, out)

    def _operand(self, index: int, count: int) -> Array:
        if self._rows[index] < 0:
            return np.array(self.program.instructions[index].value, self.lane)
        return self._row(self._rows[index], count)


def _needs_row(program: Program, index: int) -> bool:
    """Whether a constant must be spread over a row: numpy's min and max are slow on scalars."""
    if program.instructions[index].op != "const" or index == program.result:
        return True
    return any(i.op in ("min", "max") and index in i.operands for i in program.instructions)


def _allocate_rows(program: Program) -> list[int]:
    """The scratch row of each instruction's result; -1 for a constant that stays a scalar."""
    last_use = {program.result: len(program.instructions)}
    for index, instruction in enumerate(program.instructions):
        for operand in instruction.operands:
            last_use[operand] = max(last_use.get(operand, 0), index)
    rows: list[int] = []
    free: list[int] = []
    used = 0
    for index, instruction in enumerate(program.instructions):
        if not _needs_row(program, index):
            rows.append(-1)
            continue
        # A ufunc may overwrite its operand; a cast or a lookup may not.
        dying = {o for o in instruction.operands if last_use[o] == index and rows[o] >= 0}
        early = sorted(rows[o] for o in dying) if instruction.op in _UFUNCS else []
        free.extend(early)
        if free:
            rows.append(free.pop())
        else:
            rows.append(used)
            used += 1
        free.extend(sorted({rows[o] for o in dying} - set(early)))
    return rows
