"""`pto.tload` and `pto.tstore`: between global memory and tiles."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.runtime.compiler import Implementations
from pto.runtime.elements import Element
from pto.runtime.errors import RuntimeFault, region_fault
from pto.runtime.memory import View
from pto.runtime.ops.tile_operation import Compute, TileOperation, tile_operation
from pto.runtime.tile import Layout, Tile

Array = NDArray[Any]

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements

_LAYOUTS = ("nd", "dn")
"""Layouts of views that their strides describe."""

_COMBINE: dict[str, Callable[[Array, Array], Array] | None] = {
    prefix + kind: combine
    for prefix in ("", "atomic_")
    for kind, combine in (
        ("none", None),
        ("add", np.add),
        ("max", np.maximum),
        ("min", np.minimum),
    )
}


def matrix_shape(shape: tuple[int, ...], col_major: bool) -> tuple[int, int]:
    """Rows and columns of a view as a tile sees it: a row_major tile takes the outer axes as rows,
    a col_major one takes all but the second innermost as columns (TLOAD)."""
    if len(shape) < 2:
        return (1, *shape) if shape else (1, 1)  # type: ignore[return-value]
    *outer, rows, cols = shape
    return (rows, prod(outer) * cols) if col_major else (prod(outer) * rows, cols)


def as_matrix(items: Array, col_major: bool) -> Array:
    """The stored items of a view as a matrix, a copy only where no strides describe it."""
    if items.ndim == 2:
        return items
    if items.ndim > 2 and col_major:
        items = np.moveaxis(items, -2, 0)
        return items.reshape(items.shape[0], -1)
    return items.reshape(-1, items.shape[-1]) if items.ndim else items.reshape(1, 1)


def moved(view: View, tile: Tile, layout: Layout) -> View:
    """The part of the view that moves: as large as the tile's valid region (TLOAD, TSTORE).

    Raises RuntimeFault where the view does not cover it.
    """
    rows, cols = shape = matrix_shape(view.shape, layout.is_col_major)
    if shape == tile.valid:
        return view
    is_matrix = all(extent == 1 for extent in view.shape[:-2])
    if not is_matrix or rows < tile.valid_rows or cols < tile.valid_cols:
        raise region_fault(
            f"valid region of the tile is {tile.valid_rows}x{tile.valid_cols},"
            f" the view has {rows}x{cols}"
        )
    extents = (*view.shape[:-2], *tile.valid)[-len(view.shape) :]
    return View(view.pointer, extents, view.strides)


def _check_elements(view: View, tile: Tile) -> None:
    if view.element.size != tile.element.size or view.element.per_byte != tile.element.per_byte:
        raise RuntimeFault(f"a view of {view.element.text}, a tile of {tile.element.text}")


@implements("pto.tload", attributes=("layout",))
@tile_operation
def load(op: TileOperation) -> Compute:
    """A view into a tile, which is padded around it where its type says so."""
    op.refuse_quantisation()
    layout = op.layout("dst")
    op.choice("layout", choices=_LAYOUTS)
    bits, col_major, pad = layout.element.bits, layout.is_col_major, layout.description.pad

    def compute(src: View, dst: Tile) -> None:
        _check_elements(src, dst)
        items = as_matrix(moved(src, dst, layout).read().view(bits), col_major)
        if pad:
            fill_outside(dst, pad)
        np.copyto(dst.write().view(bits), items)

    return compute


@implements(
    "pto.tstore", attributes=("layout", "atomicType", "atomic_type", "stPhase", "reluPreMode")
)
@tile_operation
def store(op: TileOperation) -> Compute:
    """A tile into a view, in place of what is there or combined with it."""
    op.refuse_quantisation()
    layout = op.layout("src")
    op.choice("layout", choices=_LAYOUTS)
    bits, col_major = layout.element.bits, layout.is_col_major
    atomic = op.choice("atomicType", "atomic_type", choices=_COMBINE)
    combine = None if atomic is None else _COMBINE[atomic]

    def compute(src: Tile, dst: View) -> None:
        _check_elements(dst, src)
        view = moved(dst, src, layout)
        if combine is None:
            data, items = src.read().view(bits), view.write().view(bits)
        else:
            items = view.read()
            data = combine(as_matrix(items, col_major), src.read())
        _store(items, data, col_major)

    return compute


def _store(items: Array, data: Array, col_major: bool) -> None:
    if items.ndim == 2:
        np.copyto(items, data)
    elif items.ndim > 2 and col_major:
        items = np.moveaxis(items, -2, 0)
        items[...] = data.reshape(items.shape)
    else:
        items[...] = data.reshape(items.shape)


# Padding -----------------------------------------------------------------------------------------

_ZERO, _LARGEST, _SMALLEST = 1, 2, 3


def padding(element: Element, pad: int) -> Any:
    """The padding of a tile type: zero, or the largest or smallest value of the element type,
    which is an infinity where there is one (TFILLPAD)."""
    fmt = element.format
    if pad not in (_LARGEST, _SMALLEST) or element.per_byte == 2:
        return 0
    if fmt.is_integer:
        return fmt.max_int if pad == _LARGEST else fmt.min_int
    code = fmt.max_code if fmt.inf_code is None else fmt.inf_code
    if pad == _SMALLEST:
        code |= 1 << (fmt.bits - 1)
    return np.array([code], element.bits).view(element.storage)[0]


def fill_outside(tile: Tile, pad: int) -> None:
    """Fills the tile outside its valid region with the padding."""
    whole = tile.resized(tile.layout.rows, tile.layout.cols)
    value = padding(tile.element, pad)
    data = whole.write()
    data[tile.valid_rows :] = value
    data[: tile.valid_rows, tile.data.shape[1] :] = value
