"""Operations that move, place, pad, gather and sort elements."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from pto.dialect.attributes import PADS
from pto.runtime.compiler import Compiler, Frame, Step, emits
from pto.runtime.elements import Element
from pto.runtime.elementwise import copy, domain_check, mark, scalar_of, undefined_in
from pto.runtime.errors import Fault, place_of
from pto.runtime.operands import (
    enum_attribute,
    flag_attribute,
    is_tile,
    operands_of,
    string_attribute,
)
from pto.runtime.structure import tile_layout
from pto.runtime.tile import Tile
from pto.runtime.transfer import fill_outside

Array = NDArray[Any]


@emits("pto.tmov", attributes=("reluPreMode",))
def _move(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    if len(operands.ins) > 1:
        raise Fault("a move that quantises is on the cube side, which is not executed here")
    enum_attribute(op, "reluPreMode", choices=("no_relu",))
    src, dst = compiler.slot(operands.ins[0]), operands.target(compiler)
    _same_storage(operands.ins[0], operands.outs[0])

    def step(frame: Frame) -> None:
        source, result = frame[src], dst(frame)
        copy(op, result, source.over(*result.valid))

    return step


def _same_storage(source: Any, target: Any) -> None:
    a, b = tile_layout(source).element, tile_layout(target).element
    if a.size != b.size or a.per_byte != b.per_byte:
        raise Fault(f"a source of {a.text}, a destination of {b.text}")


@emits("pto.tprint", attributes=("printFormat",))
def _print(op: Operation, compiler: Compiler) -> Step:
    """Prints the valid region on standard error."""
    value = operands_of(op).ins[0]
    tile_layout(value)  # only tiles are printed
    src = compiler.slot(value)
    _, line, _ = place_of(op)

    def step(frame: Frame) -> None:
        tile: Tile = frame[src]
        print(f"line {line}: {tile.text()}\n{tile.read()}", file=sys.stderr)

    return step


@emits("pto.tfillpad", attributes=("mode", "padValue"))
def _fill_pad(op: Operation, compiler: Compiler) -> Step:
    """The source's valid region, the rest of the destination's declared extents padded."""
    operands = operands_of(op)
    src, dst = compiler.slot(operands.ins[0]), operands.target(compiler)
    layout = tile_layout(operands.outs[0])
    _same_storage(operands.ins[0], operands.outs[0])
    string_attribute(op.attributes, "mode", ("expand", "inplace"))  # how a device does it
    written = enum_attribute(op, "padValue", choices=PADS)
    pad = layout.description.pad if written is None else PADS.index(written)
    if not pad:
        raise Fault("the destination's type has no padding value (pad=0)")

    def step(frame: Frame) -> None:
        source, result = frame[src], dst(frame)
        if source.valid_rows > layout.rows or source.valid_cols > layout.cols:
            raise Fault(f"{source.valid} valid elements into {layout.rows}x{layout.cols}")
        held = source.read()
        if source.memory is result.memory and source.offset != result.offset:
            held = held.copy()
        part = result.resized(*source.valid)
        np.copyto(part.write(), held.view(layout.element.storage))
        fill_outside(part, pad)

    return step


@emits("pto.ttrans")
def _transpose(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    src, dst = compiler.slot(operands.ins[0]), operands.target(compiler)
    domain_check(operands.ins[0], tile_layout(operands.outs[0]).element)

    def step(frame: Frame) -> None:
        source, result = frame[src], dst(frame)
        rows, cols = result.valid
        part = source.over(cols, rows)
        undefined = undefined_in((part,))
        np.copyto(result.write(), part.data.T)
        if undefined is not None:
            mark(op, result, undefined.T, part)

    return step


@emits("pto.textract", "pto.tinsert", attributes=("reluPreMode",))
def _window(op: Operation, compiler: Compiler) -> Step:
    """A window of the larger tile at [row, col], read (textract) or written (tinsert)."""
    operands = operands_of(op)
    src, *place = compiler.slots(operands.ins)
    if len(place) > 2:
        raise Fault("extracting or inserting with quantisation is not executed here")
    enum_attribute(op, "reluPreMode", choices=("no_relu",))
    dst, extracts = operands.target(compiler), op.name == "pto.textract"
    _same_storage(operands.ins[0], operands.outs[0])

    def step(frame: Frame) -> None:
        source, result = frame[src], dst(frame)
        row, col = (frame[place[0]], frame[place[1]]) if place else (0, 0)
        small, large = (result, source) if extracts else (source, result)
        window = window_of(large, row, col, *small.valid)
        if extracts:
            copy(op, result, window)
        else:
            copy(op, window, source)

    return step


def window_of(tile: Tile, row: int, col: int, rows: int, cols: int) -> Tile:
    """`rows` x `cols` elements at [row, col] of a tile's declared extents."""
    layout = tile.layout
    if not (0 <= row <= layout.rows - rows and 0 <= col <= layout.cols - cols):
        raise Fault(
            f"{rows}x{cols} elements at [{row}, {col}] of a tile of {layout.rows}x{layout.cols}"
        )
    offset = tile.offset + row * layout.row_stride + layout.element.stored(col) * layout.col_stride
    return tile.part(layout, offset, rows, cols)


@emits("pto.tconcat")
def _concatenate(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    a, b = compiler.slots(operands.ins[:2])
    dst = operands.target(compiler)
    for value in operands.ins[:2]:
        domain_check(value, tile_layout(operands.outs[0]).element)

    def step(frame: Frame) -> None:
        first, second, result = frame[a], frame[b], dst(frame)
        rows, cols = result.valid
        if (
            first.valid_rows != rows
            or second.valid_rows != rows
            or (first.valid_cols + second.valid_cols != cols)
        ):
            raise Fault(f"{first.valid} and {second.valid} into {result.valid} [valid-region]")
        result.assign(np.concatenate([first.read(), second.read()], axis=1))

    return step


@emits("pto.tci", attributes=("descending",))
def _count(op: Operation, compiler: Compiler) -> Step:
    """start, start + 1, ... along the row; start - 1, ... with `descending`."""
    operands = operands_of(op)
    start, dst = compiler.slot(operands.ins[0]), operands.target(compiler)
    element = tile_layout(operands.outs[0]).element
    direction, convert = -1 if flag_attribute(op, "descending") else 1, scalar_of(element)

    def step(frame: Frame) -> None:
        result = dst(frame)
        if result.valid_rows != 1:
            raise Fault(f"{result.valid_rows} valid rows; a sequence fills one [valid-region]")
        first, count = convert(frame[start]), np.arange(result.valid_cols)
        result.write()[0] = first + (direction * count).astype(element.work)

    return step


@emits("pto.ttri", attributes=("upperOrLower",))
def _triangle(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    diagonal, dst = compiler.slot(operands.ins[0]), operands.target(compiler)
    upper = flag_attribute(op, "upperOrLower")

    def step(frame: Frame) -> None:
        result = dst(frame)
        rows, cols = np.ogrid[: result.valid_rows, : result.valid_cols]
        last = rows + frame[diagonal]
        result.assign(cols >= last if upper else cols <= last)

    return step


# Gathering ---------------------------------------------------------------------------------------


def _linear(tile: Tile) -> Tile:
    """The declared extents of a row_major tile, whose rows follow each other."""
    whole = tile.resized(tile.layout.rows, tile.layout.cols)
    if not whole.data.flags.c_contiguous:
        raise Fault("indices into a window of a tile are not executed here")
    return whole


def _check_index(index: Array, count: int) -> None:
    if index.size and (int(index.min()) < 0 or int(index.max()) >= count):
        bad = index[(index < 0) | (index >= count)].flat[0]
        raise Fault(f"index {bad} into a tile of {count} elements")


def gather(source: Tile, index: Array) -> Array:
    """Elements of a tile by position in its memory. Raises Fault where one was not written."""
    whole = _linear(source)
    _check_index(index, whole.data.size)
    if not whole.ready:
        size = source.element.size
        first = source.offset + index.astype(np.int64) * size
        written = source.memory.written
        if not all(written[first + byte].all() for byte in range(size)):
            raise Fault("gathers elements that were never written", f"the tile is {source.text()}")
    if (undefined := source.memory.undefined) is not None:
        first = source.offset + index.astype(np.int64) * source.element.size
        if undefined[first].any():
            raise Fault("gathers elements that are undefined", source.memory.cause)
    result: Array = whole.data.reshape(-1)[index]
    return result


_PATTERNS = {
    "p0101": (2, 0),
    "p1010": (2, 1),
    "p0001": (4, 0),
    "p0010": (4, 1),
    "p0100": (4, 2),
    "p1000": (4, 3),
    "p1111": (1, 0),
}
"""Step and first column (or row) that a mask pattern selects: its lowest digit is column 0."""


def _pattern(op: Operation) -> tuple[int, int] | None:
    """Step and first place of the mask pattern, None without one."""
    name = enum_attribute(op, "maskPattern", "mask_pattern", choices=_PATTERNS)
    return None if name is None else _PATTERNS[name]


def _axis(op: Operation) -> str | None:
    """`row` where columns of each row are selected, `col` where rows are; None where not written.

    It stands behind the source's type, or in the dictionary.
    """
    written = re.search(r'"([^"]*)"', _template(op))
    attributes = {"axis": StringAttr(written[1])} if written else dict(op.attributes)
    return string_attribute(attributes, "axis", ("row", "col"))


@emits("pto.tgather", attributes=("maskPattern", "mask_pattern", "axis"))
def _gather(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    src, dst = compiler.slot(operands.ins[0]), operands.target(compiler)
    _same_storage(operands.ins[0], operands.outs[0])
    if (pattern := _pattern(op)) is not None:
        return _gather_pattern(src, dst, *pattern, _axis(op))
    if len(operands.ins) < 2 or len(operands.outs) > 1:
        raise Fault("gathering by comparison is not executed here")
    index = compiler.slot(operands.ins[1])

    def step(frame: Frame) -> None:
        source, result = frame[src], dst(frame)
        positions = frame[index].over(*result.valid).values()
        gathered = gather(source, positions)
        np.copyto(result.write(), gathered.view(result.element.storage))

    return step


def _gather_pattern(
    src: int, dst: Callable[[Frame], Tile], every: int, first: int, axis: str | None
) -> Step:
    """The selected columns of all rows, or the selected rows. Without an axis those columns fill
    the destination one after the other, whatever its shape."""

    def step(frame: Frame) -> None:
        source, result = frame[src], dst(frame)
        held = source.read()
        chosen = held[first::every] if axis == "col" else held[:, first::every]
        if chosen.size != result.data.size or (axis and chosen.shape != result.data.shape):
            selected, shape = ("x".join(map(str, a.shape)) for a in (chosen, result.data))
            raise Fault(f"selects {selected} elements for {shape} [valid-region]")
        data = chosen.reshape(-1).view(result.element.storage).reshape(result.data.shape)
        np.copyto(result.write(), data)

    return step


@emits("pto.tgatherb")
def _gather_blocks(op: Operation, compiler: Compiler) -> Step:
    """Blocks of 32 bytes at byte offsets from the source's start."""
    operands = operands_of(op)
    src, offsets = compiler.slots(operands.ins[:2])
    dst = operands.target(compiler)
    _same_storage(operands.ins[0], operands.outs[0])
    per_block = 32 // tile_layout(operands.outs[0]).element.size

    def step(frame: Frame) -> None:
        source, result = frame[src], dst(frame)
        rows, cols = result.valid
        if cols % per_block:
            raise Fault(f"{cols} valid columns are not whole blocks of 32 bytes")
        starts = frame[offsets].over(rows, cols // per_block).values().astype(np.int64)
        size = source.element.size
        if np.any(starts % size):
            raise Fault("an offset in the middle of an element")
        index = starts[..., None] // size + np.arange(per_block)
        gathered = gather(source, index).reshape(rows, cols)
        np.copyto(result.write(), gathered.view(result.element.storage))

    return step


@emits("pto.tscatter", attributes=("maskPattern", "mask_pattern", "axis"))
def _scatter(op: Operation, compiler: Compiler) -> Step:
    """The source's elements to positions of the destination, the last of equal ones staying."""
    operands = operands_of(op)
    if _pattern(op) is not None or len(operands.ins) < 2:
        raise Fault("scattering by a mask pattern is not executed here")
    src, index = compiler.slots(operands.ins[:2])
    dst = operands.target(compiler)
    _same_storage(operands.ins[0], operands.outs[0])

    def step(frame: Frame) -> None:
        source, positions, result = frame[src], frame[index].values(), dst(frame)
        whole = _linear(result)
        _check_index(positions, whole.data.size)
        data = source.over(*positions.shape).read().view(result.element.storage)
        whole.data.reshape(-1)[positions] = data
        starts = result.offset + positions.astype(np.int64) * result.element.size
        for byte in range(result.element.size):
            result.memory.written[starts + byte] = True
            if result.memory.undefined is not None:
                result.memory.undefined[starts + byte] = False

    return step


# Sorting -----------------------------------------------------------------------------------------

_SORT_BLOCK = 32
PAIR_BYTES = 8


def pairs_of(tile: Tile) -> Array:
    """The pairs of a row, 8 bytes each: a value in the low bytes, an index in the high four."""
    data = tile.read()
    if tile.valid_rows != 1 or data.shape[1] * tile.element.size % PAIR_BYTES:
        raise Fault(f"{tile.valid_rows}x{tile.valid_cols} elements are no row of 8-byte pairs")
    return np.ascontiguousarray(data).reshape(-1).view("<u8")


def pair_values(pairs: Array, element: Element) -> Array:
    """The values of pairs."""
    values: Array = pairs.astype(element.bits).view(element.storage)
    return values


def joined(values: Array, index: Array, element: Element) -> Array:
    """Pairs of values and indices."""
    bits = np.ascontiguousarray(values).view(element.bits).astype("<u8")
    pairs: Array = bits | index.astype(np.uint32).astype("<u8") << np.uint64(32)
    return pairs


def descending(values: Array) -> Array:
    """The order of the values, largest first, equal ones in the order they are in."""
    return np.argsort(-values.astype(np.float64), axis=-1, kind="stable")


@emits("pto.tsort32")
def _sort_blocks(op: Operation, compiler: Compiler) -> Step:
    """Each block of 32 columns, descending, as pairs of value and index."""
    operands = operands_of(op)
    src, index = compiler.slots(operands.ins[:2])
    dst = operands.target(compiler)
    element = tile_layout(operands.ins[0]).element
    domain_check(operands.ins[0], tile_layout(operands.outs[0]).element)

    def step(frame: Frame) -> None:
        source, result = frame[src], dst(frame)
        rows, cols = source.valid
        values, numbers = source.read(), np.broadcast_to(frame[index].values(), (rows, cols))
        width = cols * PAIR_BYTES // element.size
        if result.valid_rows < rows or result.valid_cols < width:
            raise Fault(
                f"valid region of the result is {result.valid_rows}x{result.valid_cols},"
                f" {rows}x{width} are written [valid-region]"
            )
        pairs = joined(values, numbers, element)
        for first in range(0, cols, _SORT_BLOCK):
            block = slice(first, first + _SORT_BLOCK)
            order = descending(values[:, block])
            pairs[:, block] = np.take_along_axis(pairs[:, block], order, 1)
        result.resized(rows, width).assign(pairs.view(element.storage))

    return step


@emits("pto.tmrgsort", attributes=("exhausted",))
def _merge(op: Operation, compiler: Compiler) -> Step:
    """Sorted lists of pairs merged, descending; of equal values the earlier list's comes first."""
    operands = operands_of(op)
    if flag_attribute(op, "exhausted"):
        raise Fault("a merge that stops when a list is exhausted is not executed here")
    tiles = [value for value in operands.ins if is_tile(value)]
    dst, lists = operands.target(compiler), compiler.slots(tiles)
    length = [value for value in operands.ins if not is_tile(value)]
    if length:
        return _merge_blocks(lists[0], compiler.slot(length[0]), dst)
    if len(lists) < 2:
        raise Fault("a merge of one list")
    has_tmp = "no_tmp" not in _template(op)
    sources = lists[:-1] if has_tmp else lists
    element = tile_layout(tiles[0]).element
    counts = None if len(operands.outs) < 2 else compiler.slot(operands.outs[1])

    def step(frame: Frame) -> None:
        result, parts = dst(frame), [pairs_of(frame[slot]) for slot in sources]
        _write_pairs(result, _merged(parts, element))
        if counts is not None:
            taken = [len(part) for part in parts]
            frame[counts] = np.array(taken + [0] * (4 - len(taken)), np.int16)

    return step


def _template(op: Operation) -> str:
    syntax = op.properties.get("syntax")
    return syntax.data if isinstance(syntax, StringAttr) else ""


def _merged(parts: list[Array], element: Element) -> Array:
    pairs = np.concatenate(parts)
    return pairs[descending(pair_values(pairs, element))]


def _merge_blocks(src: int, length: int, dst: Callable[[Frame], Tile]) -> Step:
    """Four consecutive blocks of `length` elements at a time; what is left over is not written."""

    def step(frame: Frame) -> None:
        source, result = frame[src], dst(frame)
        per_block = frame[length] * source.element.size // PAIR_BYTES
        pairs = pairs_of(source)
        if per_block <= 0 or len(pairs) < 4 * per_block:
            raise Fault(f"{source.valid_cols} columns are not four blocks of {frame[length]}")
        groups = pairs[: len(pairs) // (4 * per_block) * 4 * per_block].reshape(-1, 4 * per_block)
        merged = [_merged([group], source.element) for group in groups]
        _write_pairs(result, np.concatenate(merged))

    return step


def _write_pairs(result: Tile, pairs: Array) -> None:
    """Writes as many of the pairs as the result holds."""
    held = min(result.data.shape[1] * result.element.size // PAIR_BYTES, len(pairs))
    if result.valid_rows != 1:
        raise Fault(f"{result.valid_rows} valid rows; pairs fill one [valid-region]")
    data = pairs[:held].view(result.element.storage)
    result.resized(1, len(data)).write()[0] = data
