"""Operations that make pointers, views and tiles, and the scalars around them."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from pto.dialect.ops import (
    AllocTileOp,
    LoadScalarOp,
    MakeTensorViewOp,
    PartitionViewOp,
    SetValidShapeOp,
    StoreScalarOp,
    SubviewOp,
)
from pto.dialect.types import MultiTileBufType, PtrType, TileBufType, TileType, type_text
from pto.runtime.compiler import Compiler, Frame, Step, emits
from pto.runtime.core import CUBE_SPACES, Core, fresh_tile
from pto.runtime.elements import Element, element_of
from pto.runtime.errors import Fault
from pto.runtime.memory import Pointer, View
from pto.runtime.scalars import is_integer, wrapper
from pto.runtime.tile import Layout, Tile, layout_of


def tile_layout(value: SSAValue) -> Layout:
    """The layout of a tile operand. Raises Fault where it is no tile of the vector side."""
    type_ = value.type
    if not isinstance(type_, TileBufType | TileType):
        raise Fault(f"an operand of type {type_text(type_)} is not executed here")
    if type_.loc in CUBE_SPACES:
        raise Fault(f"tiles in {type_.loc} are on the cube side, which is not executed here")
    return layout_of(type_)


# Tiles -------------------------------------------------------------------------------------------


@emits("pto.alloc_tile", "pto.declare_tile")
def _alloc_tile(op: Operation, compiler: Compiler) -> Step:
    result = op.results[0]
    layout, slot = tile_layout(result), compiler.slot(result)
    addr = row = col = None
    if isinstance(op, AllocTileOp):
        addr, row, col = (
            None if value is None else compiler.slot(value)
            for value in (op.addr, op.valid_row, op.valid_col)
        )
    rows = _static(layout.description.valid_rows, layout.rows)
    cols = _static(layout.description.valid_cols, layout.cols)

    def step(frame: Frame) -> None:
        valid_rows = rows if row is None else frame[row]
        valid_cols = cols if col is None else frame[col]
        if addr is None:
            frame[slot] = fresh_tile(layout, valid_rows, valid_cols)
        else:
            core: Core = frame[0]
            frame[slot] = core.tile_at(layout, frame[addr], valid_rows, valid_cols)

    return step


def _static(extent: int | None, declared: int) -> int:
    return declared if extent is None else extent


@emits("pto.set_validshape")
def _set_valid_shape(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, SetValidShapeOp)
    tile, row, col = compiler.slots((op.source, op.valid_row, op.valid_col))

    def step(frame: Frame) -> None:
        frame[tile] = frame[tile].resized(frame[row], frame[col])

    return step


@emits("pto.get_validshape")
def _get_valid_shape(op: Operation, compiler: Compiler) -> Step:
    tile, results = compiler.slot(op.operands[0]), compiler.slots(op.results)

    def step(frame: Frame) -> None:
        for slot, extent in zip(results, frame[tile].valid, strict=True):
            frame[slot] = extent

    return step


@emits("pto.tile_valid_rows", "pto.tile_valid_cols")
def _valid_extent(op: Operation, compiler: Compiler) -> Step:
    tile, result = compiler.slot(op.operands[0]), compiler.slot(op.results[0])
    axis = 0 if op.name == "pto.tile_valid_rows" else 1

    def step(frame: Frame) -> None:
        frame[result] = frame[tile].valid[axis]

    return step


@emits("pto.subview")
def _subview(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, SubviewOp)
    parent, result = tile_layout(op.source), tile_layout(op.result)
    source, slot = compiler.slot(op.source), compiler.slot(op.result)
    row, col = compiler.slots(op.offsets)
    rows, cols = (size.value.data for size in op.sizes.data)
    window = replace(result, rows=rows, cols=cols)
    if parent.element != result.element:
        raise Fault(f"a window of {result.element.text} on a tile of {parent.element.text}")
    valid = (
        compiler.slots((op.valid_row, op.valid_col))
        if op.valid_row is not None and op.valid_col is not None
        else None
    )
    static = (
        _static(result.description.valid_rows, rows),
        _static(result.description.valid_cols, cols),
    )

    def step(frame: Frame) -> None:
        tile: Tile = frame[source]
        first_row, first_col = frame[row], frame[col]
        if not (0 <= first_row <= parent.rows - rows and 0 <= first_col <= parent.cols - cols):
            raise Fault(
                f"a window of {rows}x{cols} at [{first_row}, {first_col}]"
                f" of a tile of {parent.rows}x{parent.cols}"
            )
        valid_rows, valid_cols = static if valid is None else (frame[valid[0]], frame[valid[1]])
        frame[slot] = tile.window(window, first_row, first_col, valid_rows, valid_cols)

    return step


@emits("pto.treshape")
def _reshape(op: Operation, compiler: Compiler) -> Step:
    """The same bytes as another type; dynamic extents stay where the shape does."""
    layout = tile_layout(op.results[0])
    source, slot = compiler.slot(op.operands[0]), compiler.slot(op.results[0])
    shape = (layout.rows, layout.cols)
    static = (layout.description.valid_rows, layout.description.valid_cols)

    def step(frame: Frame) -> None:
        tile: Tile = frame[source]
        if tile.layout.size != layout.size:
            raise Fault(f"{tile.layout.size} bytes reshaped to {layout.size}")
        if not tile.layout.is_dense:
            raise Fault("the rows of a window do not follow each other: it cannot be reshaped")
        default = tile.valid if (tile.layout.rows, tile.layout.cols) == shape else shape
        rows, cols = (_static(*pair) for pair in zip(static, default, strict=True))
        frame[slot] = tile.part(layout, tile.offset, rows, cols)

    return step


@emits("pto.tassign")
def _assign_address(op: Operation, compiler: Compiler) -> Step:
    """The tile at another byte address."""
    layout = tile_layout(op.results[0])
    tile, address = compiler.slots(op.operands)
    slot = compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        core: Core = frame[0]
        frame[slot] = core.tile_at(layout, frame[address], *frame[tile].valid)

    return step


@emits("pto.alloc_multi_tile")
def _alloc_multi_tile(op: Operation, compiler: Compiler) -> Step:
    """Tiles of one type, one after the other where an address is given."""
    type_ = op.results[0].type
    if not isinstance(type_, MultiTileBufType) or len(op.operands) > 1:
        raise Fault("this form of it is not executed here")
    layout, count = layout_of(type_.data.tile), type_.data.count
    slot = compiler.slot(op.results[0])
    addr = compiler.slot(op.operands[0]) if op.operands else None
    rows = _static(layout.description.valid_rows, layout.rows)
    cols = _static(layout.description.valid_cols, layout.cols)

    def step(frame: Frame) -> None:
        if addr is None:
            frame[slot] = [fresh_tile(layout, rows, cols) for _ in range(count)]
            return
        core: Core = frame[0]
        frame[slot] = [
            core.tile_at(layout, frame[addr] + number * layout.size, rows, cols)
            for number in range(count)
        ]

    return step


@emits("pto.multi_tile_get")
def _multi_tile_get(op: Operation, compiler: Compiler) -> Step:
    tiles, number = compiler.slots(op.operands)
    slot = compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        if not 0 <= frame[number] < len(frame[tiles]):
            raise Fault(f"tile {frame[number]} of {len(frame[tiles])}")
        frame[slot] = frame[tiles][frame[number]]

    return step


# Global memory -----------------------------------------------------------------------------------


@emits("pto.addptr")
def _add_pointer(op: Operation, compiler: Compiler) -> Step:
    pointer, count = compiler.slots(op.operands)
    result = compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        frame[result] = frame[pointer].advance(frame[count])

    return step


@emits("pto.castptr")
def _cast_pointer(op: Operation, compiler: Compiler) -> Step:
    type_ = op.results[0].type
    source, result = compiler.slot(op.operands[0]), compiler.slot(op.results[0])
    if not isinstance(type_, PtrType) or not isinstance(op.operands[0].type, PtrType):
        raise Fault("only a pointer cast to a pointer is executed here")
    element = element_of(type_.dtype)

    def step(frame: Frame) -> None:
        pointer: Pointer = frame[source]
        frame[result] = Pointer(pointer.buffer, pointer.offset, element)

    return step


@emits("pto.make_tensor_view")
def _make_tensor_view(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, MakeTensorViewOp)
    pointer, result = compiler.slot(op.ptr), compiler.slot(op.result)
    shape, strides = compiler.slots(op.shape), compiler.slots(op.strides)

    def step(frame: Frame) -> None:
        view = View(
            frame[pointer], tuple(frame[s] for s in shape), tuple(frame[s] for s in strides)
        )
        if len(view.shape) != len(view.strides) or min(view.shape, default=0) < 0:
            raise Fault(f"shape {view.shape} with strides {view.strides}")
        view.reserve()
        frame[result] = view

    return step


@emits("pto.partition_view")
def _partition_view(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, PartitionViewOp)
    source, result = compiler.slot(op.source), compiler.slot(op.result)
    offsets, sizes = compiler.slots(op.offsets), compiler.slots(op.sizes)

    def step(frame: Frame) -> None:
        view: View = frame[source]
        frame[result] = view.window(
            tuple(frame[s] for s in offsets), tuple(frame[s] for s in sizes)
        )

    return step


@emits("pto.get_tensor_view_dim", "pto.get_tensor_view_stride")
def _view_extent(op: Operation, compiler: Compiler) -> Step:
    view, axis = compiler.slots(op.operands)
    result = compiler.slot(op.results[0])
    wants_stride = op.name == "pto.get_tensor_view_stride"

    def step(frame: Frame) -> None:
        extents = frame[view].strides if wants_stride else frame[view].shape
        if not 0 <= frame[axis] < len(extents):
            raise Fault(f"axis {frame[axis]} of a view of rank {len(extents)}")
        frame[result] = extents[frame[axis]]

    return step


# Scalars in memory -------------------------------------------------------------------------------


@emits("pto.load_scalar")
def _load_scalar(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, LoadScalarOp)
    pointer, offset, result = compiler.slots((op.ptr, op.offset, op.result))
    wrap = wrapper(op.result.type) if is_integer(op.result.type) else None

    def step(frame: Frame) -> None:
        value = frame[pointer].item(frame[offset], store=False)[0]
        frame[result] = value if wrap is None else wrap(int(value))

    return step


@emits("pto.store_scalar")
def _store_scalar(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, StoreScalarOp)
    value, pointer, offset = compiler.slots((op.value, op.ptr, op.offset))

    def step(frame: Frame) -> None:
        number = frame[value]
        target = frame[pointer].item(frame[offset], store=True)
        target[0] = wrap_for(frame[pointer].element, number)

    return step


def wrap_for(element: Element, number: object) -> object:
    """An integer brought into the range of the stored type, modulo its width."""
    if isinstance(number, int) and element.format.is_integer:
        low, high = element.format.min_int, element.format.max_int
        return (number - low) % (high - low + 1) + low
    return number


@emits("pto.tgetval")
def _get_value(op: Operation, compiler: Compiler) -> Step:
    source, offset = compiler.slots(op.operands)
    result = compiler.slot(op.results[0])
    wrap = wrapper(op.results[0].type) if is_integer(op.results[0].type) else None

    def step(frame: Frame) -> None:
        value = frame[source].item(frame[offset], store=False)[0]
        frame[result] = value if wrap is None else wrap(int(value))

    return step


@emits("pto.tsetval")
def _set_value(op: Operation, compiler: Compiler) -> Step:
    offset, value, target = compiler.slots(op.operands)

    def step(frame: Frame) -> None:
        tile: Tile = frame[target]
        tile.item(frame[offset], store=True)[0] = wrap_for(tile.element, frame[value])

    return step


# The grid, and synchronisation within a core -----------------------------------------------------

_GRID = {
    "pto.get_block_idx": "block_idx",
    "pto.get_block_num": "block_num",
    "pto.get_subblock_idx": "subblock_idx",
    "pto.get_subblock_num": "subblock_num",
}


@emits(*_GRID)
def _grid(op: Operation, compiler: Compiler) -> Step:
    name, result = _GRID[op.name], compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        frame[result] = getattr(frame[0].place, name)

    return step


@emits(
    *("pto.barrier", "pto.barrier_sync", "pto.mem_bar", "pto.fence.barrier_all", "pto.dsb"),
    *("pto.record_event", "pto.wait_event", "pto.tsync", "pto.tprefetch", "pto.dcci"),
    *("pto.cmo.cacheinvalid", "pto.set_ffts", "pto.get_buf", "pto.rls_buf", "pto.keep"),
)
def _ordered_anyway(op: Operation, compiler: Compiler) -> None:
    """Operations run one after the other here, so that what orders them has nothing to do."""


@emits("pto.set_flag", "pto.wait_flag")
def _flag(op: Operation, compiler: Compiler) -> Step:
    """A flag is a counter by pipes and event; waiting for one that was never set hangs."""
    syntax = op.properties.get("syntax")
    event = syntax.data.replace(" ", "") if isinstance(syntax, StringAttr) else ""
    change = 1 if op.name == "pto.set_flag" else -1

    def step(frame: Frame) -> None:
        core: Core = frame[0]
        count = core.flags.get(event, 0) + change
        if count < 0:
            raise Fault(f"waits for {event}, which was not set: the device would hang here")
        core.flags[event] = count

    return step
