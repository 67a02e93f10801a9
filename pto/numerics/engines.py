"""Chooses the engine, and cuts arrays of any layout into the contiguous blocks it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from pto.numerics.formats import FORMATS, Format
from pto.numerics.kernel import ConversionRule, build, build_with_table, plain_limit
from pto.numerics.kernel_ir import Program
from pto.numerics.numpy_engine import NumpyProgram

if TYPE_CHECKING:
    from pto.numerics.jit_engine import JitProgram

Array = NDArray[Any]
Run = Callable[[Array, Array], None]

ENGINES = ("auto", "numpy", "jit")

#: "auto" compiles a conversion once it has been asked for this many elements in total: about when
#: numpy has spent the 20 to 40 ms that compiling takes.
COMPILE_AFTER = 1 << 22

#: What a call counts beside its elements: numpy spends as long on the calls of a program as on this
#: many elements, so that many small conversions are worth compiling for, too.
CALL_ELEMENTS = 1 << 13

#: Elements of the blocks that a strided or byte-swapped array is copied through.
BLOCK = 1 << 13

#: Elements that a conversion in place copies at a time.
IN_PLACE_BLOCK = 1 << 20


class Conversion:
    """One conversion of codes, with its engines."""

    def __init__(self, src: Format, dst: Format, rule: ConversionRule) -> None:
        self.program = build(src, dst, rule)
        self.numpy = _numpy_program(self.program, src, dst, rule)
        self.dtypes = [src.code_dtype, dst.code_dtype]
        self._best: Run = self.numpy.run  # what "auto" runs
        self._elements = 0  # that "auto" has been asked for, its calls counted in

    def run(self, source: Array, target: Array, engine: str = "auto") -> None:
        """Writes the codes of `source` into `target`, both of one shape and of any layout.

        They may share memory. Raises ValueError for an engine that does not exist here.
        """
        run = self._engine(source.size, engine)
        if _is_flat(source, self.dtypes[0]) and _is_flat(target, self.dtypes[1]):
            _run_flat(run, source.reshape(-1), target.reshape(-1))
            return
        for block, result in blocks(source, target, self.dtypes):
            run(block, result)

    @cached_property
    def jit(self) -> JitProgram:
        """The compiled program; compiling takes tens of milliseconds."""
        from pto.numerics.jit_engine import JitProgram

        return JitProgram(self.program)

    def _engine(self, size: int, engine: str) -> Run:
        if engine == "auto":
            self._elements += size + CALL_ELEMENTS
            if self._elements >= COMPILE_AFTER and self._best == self.numpy.run:
                self._best = self.jit.run if _jit_is_available() else self._best
            return self._best
        if engine == "numpy":
            return self.numpy.run
        if engine != "jit":
            raise ValueError(f"unknown engine {engine!r}; the engines are {', '.join(ENGINES)}")
        if not _jit_is_available():
            raise ValueError(
                "engine 'jit' needs llvmlite 0.45 or newer: pip install 'pto-opt[jit]'"
            )
        return self.jit.run


def _numpy_program(
    program: Program, src: Format, dst: Format, rule: ConversionRule
) -> NumpyProgram:
    """The fastest form of the program for numpy."""
    few_bits = dst.kind in ("float", "tapered") and dst.mantissa_bits <= 5
    if src.name == "f32" and few_bits and rule.mode != "HYBRID":
        table = NumpyProgram(build(FORMATS["bf16"], dst, rule)).table
        return NumpyProgram(build_with_table(table))
    limit = plain_limit(src, dst)
    if limit is None:
        return NumpyProgram(program)
    plain = NumpyProgram(build(src, dst, replace(rule, plain=True)))
    return NumpyProgram(program, plain, limit)


def _jit_is_available() -> bool:
    from pto.numerics import jit_engine

    return jit_engine.is_available()


def _run_flat(run: Run, source: Array, target: Array) -> None:
    if not np.may_share_memory(source, target):
        run(source, target)
    elif source.ctypes.data == target.ctypes.data and source.itemsize >= target.itemsize:
        # In place: no block writes over what a later one reads.
        for start in range(0, len(source), IN_PLACE_BLOCK):
            end = start + IN_PLACE_BLOCK
            run(source[start:end].copy(), target[start:end])
    else:
        run(source.copy(), target)


def _is_flat(array: Array, native: np.dtype[Any]) -> bool:
    return array.flags.c_contiguous and array.dtype == native


def blocks(
    source: Array, target: Array, native: list[np.dtype[Any]]
) -> Iterator[tuple[Array, Array]]:
    """Matching 1-D blocks of both arrays in native byte order; what is written goes back."""
    iterator = np.nditer(
        (source, target),
        flags=("external_loop", "buffered", "zerosize_ok", "copy_if_overlap"),
        op_flags=cast(Any, (("readonly", "contig"), ("writeonly", "contig"))),
        op_dtypes=native,
        casting="equiv",
        buffersize=BLOCK,
    )
    with iterator:
        yield from cast(Iterator[tuple[Array, Array]], iterator)
