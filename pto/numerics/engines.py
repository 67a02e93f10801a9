"""Chooses the engine, and cuts arrays of any layout into the contiguous blocks it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.numerics.numpy_engine import NumpyProgram
from pto.numerics.words import Program

Array = NDArray[Any]

ENGINES = ("auto", "numpy", "jit")

#: Elements of the blocks that a strided or byte-swapped array is copied through.
BLOCK = 1 << 14


class Conversion:
    """One program with its engines."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.numpy = NumpyProgram(program)
        self.dtypes = [
            np.dtype(f"u{program.load_bits // 8}"),
            np.dtype(f"u{program.store_bits // 8}"),
        ]

    def run(self, source: Array, target: Array, engine: str = "auto") -> None:
        """Writes the codes of `source` into `target`, both of one shape and of any layout."""
        run = self._runner(source.size, engine)
        if _is_flat(source, self.dtypes[0]) and _is_flat(target, self.dtypes[1]):
            if np.may_share_memory(source, target):
                source = source.copy()
            run(source.reshape(-1), target.reshape(-1))
            return
        for block, result in blocks(source, target, self.dtypes):
            run(block, result)

    def _runner(self, size: int, engine: str) -> Any:
        if engine not in ENGINES:
            raise ValueError(f"unknown engine {engine!r}; the engines are {', '.join(ENGINES)}")
        return self.numpy.run


def _is_flat(array: Array, native: np.dtype[Any]) -> bool:
    return array.flags.c_contiguous and array.dtype == native


def blocks(
    source: Array, target: Array, native: list[np.dtype[Any]]
) -> Iterator[tuple[Array, Array]]:
    """Matching 1-D blocks of both arrays in native byte order, which are written back."""
    iterator = np.nditer(
        [source, target],
        flags=["external_loop", "buffered", "zerosize_ok", "copy_if_overlap"],
        op_flags=[["readonly", "contig"], ["writeonly", "contig"]],
        op_dtypes=native,
        casting="equiv",
        buffersize=BLOCK,
    )
    with iterator:
        yield from iterator
