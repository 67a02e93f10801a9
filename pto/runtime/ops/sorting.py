"""Sorting: blocks of 32 elements into pairs of value and index, and lists of such pairs merged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from pto.runtime.compiler import Compiler, Implementations
from pto.runtime.elements import Element
from pto.runtime.errors import RuntimeFault, region_fault, unsupported
from pto.runtime.frame import Frame, Step
from pto.runtime.ops.tile_operation import Compute, TileOperation, tile_operation
from pto.runtime.tile import Tile

Array = NDArray[Any]

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements

SORT_BLOCK = 32
"""Columns that `tsort32` sorts at a time."""
PAIR_BYTES = 8
LISTS = 4
"""Lists that one merge takes."""


def pairs_of(tile: Tile) -> Array:
    """The pairs of a row, 8 bytes each: a value in the low bytes, an index in the high four."""
    data = tile.read()
    if tile.valid_rows != 1 or data.shape[1] * tile.element.size % PAIR_BYTES:
        raise RuntimeFault(
            f"{tile.valid_rows}x{tile.valid_cols} elements are no row of 8-byte pairs"
        )
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


@implements("pto.tsort32")
@tile_operation
def sort_blocks(op: TileOperation) -> Compute:
    """Each block of 32 columns, descending, as pairs of value and index."""
    element = op.same_format("src")

    def compute(src: Tile, index: Tile, dst: Tile) -> None:
        rows, cols = src.valid
        values, numbers = src.read(), np.broadcast_to(index.values(), (rows, cols))
        width = cols * PAIR_BYTES // element.size
        if dst.valid_rows < rows or dst.valid_cols < width:
            raise region_fault(
                f"valid region of the result is {dst.valid_rows}x{dst.valid_cols},"
                f" {rows}x{width} are written"
            )
        pairs = joined(values, numbers, element)
        for first in range(0, cols, SORT_BLOCK):
            block = slice(first, first + SORT_BLOCK)
            order = descending(values[:, block])
            pairs[:, block] = np.take_along_axis(pairs[:, block], order, 1)
        dst.resized(rows, width).assign(pairs.view(element.storage))

    return compute


@implements("pto.tmrgsort", attributes=("exhausted",))
def merge(operation: Operation, compiler: Compiler) -> Step:
    """Sorted lists of pairs merged, descending; of equal values the earlier list's comes first.

    The operands after the first are lists and then a tmp tile, unless the operation says that it
    has none; or, after one list, the length of its blocks. `executed` becomes the lengths of the
    lists.
    """
    op = TileOperation(operation, compiler)
    if op.flag("exhausted"):
        raise unsupported("a merge that stops when a list is exhausted")
    if "src1" not in op:
        raise RuntimeFault("a merge of one list")
    if not op.is_tile("src1"):
        return op.step(merge_blocks)
    lists = [name for name in ("src0", "src1", "src2", "src3", "tmp") if name in op]
    if op.attribute("no_tmp") is None:
        lists.pop()
    slots = [compiler.slot(op.operand(name)) for name in lists]
    element, dst = op.element("src0"), compiler.slot(op.operand("dst"))
    executed = compiler.slot(op.operand("executed")) if "executed" in op else None

    def step(frame: Frame) -> None:
        parts = [pairs_of(frame[slot]) for slot in slots]
        _write_pairs(frame[dst], _merged(parts, element))
        if executed is not None:
            lengths = [len(part) for part in parts]
            frame[executed] = np.array(lengths + [0] * (LISTS - len(lengths)), np.int16)

    return step


def merge_blocks(src0: Tile, src1: int, dst: Tile) -> None:
    """Four consecutive blocks of `src1` elements at a time; what is left over is not written."""
    per_block = src1 * src0.element.size // PAIR_BYTES
    pairs = pairs_of(src0)
    if per_block <= 0 or len(pairs) < LISTS * per_block:
        raise RuntimeFault(f"{src0.valid_cols} columns are not four blocks of {src1}")
    width = LISTS * per_block
    groups = pairs[: len(pairs) // width * width].reshape(-1, width)
    merged = [_merged([group], src0.element) for group in groups]
    _write_pairs(dst, np.concatenate(merged))


def _merged(parts: list[Array], element: Element) -> Array:
    pairs = np.concatenate(parts)
    return pairs[descending(pair_values(pairs, element))]


def _write_pairs(result: Tile, pairs: Array) -> None:
    """Writes as many of the pairs as the result holds."""
    held = min(result.data.shape[1] * result.element.size // PAIR_BYTES, len(pairs))
    if result.valid_rows != 1:
        raise region_fault(f"{result.valid_rows} valid rows; pairs fill one")
    data = pairs[:held].view(result.element.storage)
    result.resized(1, len(data)).write()[0] = data
