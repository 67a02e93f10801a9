"""Reductions of rows and columns, and their expansion over a tile.

Sums and products are computed in f64 and rounded once: the order in which the device adds is not
documented, and so no order is preferred here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from pto.runtime.compiler import Compiler, Frame, Step, emits
from pto.runtime.elements import Element
from pto.runtime.elementwise import (
    PRECISION,
    Compute,
    apply,
    computation,
    copy,
    domain_check,
    exp_of_difference,
    mark,
    undefined_in,
)
from pto.runtime.errors import Fault
from pto.runtime.operands import operands_of
from pto.runtime.structure import tile_layout
from pto.runtime.tile import Tile

Array = NDArray[Any]
Reduce = Callable[[Array, int], Array]

BLOCK_BYTES = 32


def _accumulated(ufunc: np.ufunc, element: Element) -> Reduce:
    wide = np.dtype(np.float64) if element.is_float else element.storage
    return lambda values, axis: ufunc.reduce(values, axis=axis, dtype=wide)


def _extreme(ufunc: np.ufunc, element: Element) -> Reduce:
    return lambda values, axis: ufunc.reduce(values, axis=axis)


_REDUCTIONS: dict[str, tuple[Callable[[np.ufunc, Element], Reduce], np.ufunc]] = {
    "sum": (_accumulated, np.add),
    "prod": (_accumulated, np.multiply),
    "max": (_extreme, np.maximum),
    "min": (_extreme, np.minimum),
}
_ARGUMENTS: dict[str, Callable[..., Array]] = {"argmax": np.argmax, "argmin": np.argmin}


def _axis_and_kind(name: str) -> tuple[int, str]:
    """`pto.trowsum` reduces along axis 1, `pto.tcolsum` along axis 0."""
    if name.startswith("pto.trow"):
        return 1, name.removeprefix("pto.trow")
    return 0, name.removeprefix("pto.tcol")


def _check_result(source: Tile, result: Tile, axis: int) -> None:
    expected = (source.valid_rows, 1) if axis == 1 else (1, source.valid_cols)
    if result.valid != expected:
        raise Fault(
            f"valid region of the result is {result.valid_rows}x{result.valid_cols},"
            f" not {expected[0]}x{expected[1]} [valid-region]"
        )


@emits(
    *(f"pto.t{axis}{kind}" for axis in ("row", "col") for kind in _REDUCTIONS),
    attributes=("isBinary",),  # the order of the additions, which does not matter here
)
def _reduction(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    src, dst = compiler.slot(operands.ins[0]), operands.target(compiler)
    element = tile_layout(operands.outs[0]).element
    domain_check(operands.ins[0], element)
    axis, kind = _axis_and_kind(op.name)
    make, ufunc = _REDUCTIONS[kind]
    reduce = make(ufunc, element)

    def step(frame: Frame) -> None:
        source, result = frame[src], dst(frame)
        _check_result(source, result, axis)
        if 0 in source.valid:  # the device does nothing either
            return
        undefined = undefined_in((source,))
        result.assign(np.expand_dims(reduce(source.lanes(), axis), axis))
        if undefined is not None:
            mark(op, result, np.asarray(undefined.any(axis=axis, keepdims=True)), source)

    return step


@emits(*(f"pto.t{axis}{kind}" for axis in ("row", "col") for kind in _ARGUMENTS))
def _argument(op: Operation, compiler: Compiler) -> Step:
    """The position of the first extreme; with two destinations, value and position."""
    operands = operands_of(op)
    src = compiler.slot(operands.ins[0])
    targets = [operands.target(compiler, index) for index in range(len(operands.outs))]
    axis, kind = _axis_and_kind(op.name)
    find = _ARGUMENTS[kind]

    def step(frame: Frame) -> None:
        source = frame[src]
        *value, position = (target(frame) for target in targets)
        for result in (*value, position):
            _check_result(source, result, axis)
        if 0 in source.valid:
            return
        values = source.values()
        found = np.expand_dims(find(values, axis=axis), axis)
        if value:
            value[0].assign(np.take_along_axis(source.read(), found, axis))
        position.assign(found)

    return step


# Expansion ---------------------------------------------------------------------------------------


def _is_row_operand(tile: Tile, rows: int) -> bool:
    """Whether the tile gives one value, or one block of 32 bytes, to each row."""
    return tile.valid_rows >= rows and (
        tile.valid_cols == 1 or tile.valid_cols * tile.element.size == BLOCK_BYTES
    )


def _row_operand(tile: Tile, rows: int, cols: int) -> Tile | Array:
    if not _is_row_operand(tile, rows):
        raise Fault(
            f"the expanded operand has {tile.valid_rows}x{tile.valid_cols} valid elements;"
            f" {rows} rows of one element or of {BLOCK_BYTES} bytes are expanded [valid-region]"
        )
    part = tile.over(rows, tile.valid_cols)
    if tile.valid_cols == 1:
        return part
    return np.tile(part.values(), (1, -(-cols // tile.valid_cols)))[:, :cols]


def _col_operand(tile: Tile, rows: int, cols: int) -> Tile | Array:
    return tile.over(1, cols)


_EXPANSIONS: tuple[str, ...] = ("add", "sub", "mul", "div", "max", "min", "expdif")


@emits(
    *(f"pto.t{axis}expand{kind}" for axis in ("row", "col") for kind in _EXPANSIONS),
    attributes=PRECISION,
)
def _expanded(op: Operation, compiler: Compiler) -> Step:
    """`compute` of a full operand and one that is expanded over it, in the order written."""
    operands = operands_of(op)
    a, b = compiler.slots(operands.ins[:2])
    dst = operands.target(compiler)
    element = tile_layout(operands.outs[0]).element
    for value in operands.ins[:2]:
        domain_check(value, element)
    axis, kind = _axis_and_kind(op.name)
    kind = kind.removeprefix("expand")
    compute: Compute = exp_of_difference if kind == "expdif" else computation(f"t{kind}", element)
    expand = _row_operand if axis == 1 else _col_operand

    def step(frame: Frame) -> None:
        first, second, result = frame[a], frame[b], dst(frame)
        rows, cols = result.valid
        if first.valid == result.valid or second.valid != result.valid:
            x, y = first.over(rows, cols), expand(second, rows, cols)
        else:
            x, y = expand(first, rows, cols), second
        apply(op, result, compute, x, y)

    return step


@emits("pto.trowexpand", "pto.tcolexpand")
def _expand(op: Operation, compiler: Compiler) -> Step:
    """The first element of each row, or the first row, over the whole destination."""
    operands = operands_of(op)
    src, dst = compiler.slot(operands.ins[0]), operands.target(compiler)
    domain_check(operands.ins[0], tile_layout(operands.outs[0]).element)
    by_row = op.name == "pto.trowexpand"

    def step(frame: Frame) -> None:
        source, result = frame[src], dst(frame)
        rows, cols = result.valid
        part = source.over(rows, 1) if by_row else source.over(1, cols)
        copy(op, result, part)

    return step
