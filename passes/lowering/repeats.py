"""A tile conversion as repeat-based vector instructions on the unified buffer (spec L2).

Rows are cut into whole repeats, the head, and what is left of them, the tail:

    head: a call for each row and at most 255 repeats, one after the other in memory
    tail: a call for at most 255 rows, one repeat a row, the row stride between them

The saturation is the machine's state: CTRL is set before and restored after. The PyTorch-compatible
conversions (spec S10) go through 32-bit integers in the tmp tile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import i16, i32
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from pto.dialect.buffer_ops import AndOp, CastOp, DuplicateOp
from pto.dialect.types import AnyTile
from pto.numerics.formats import Format
from pto.passes.common import fail
from pto.passes.lowering.emitter import Emitter, Index
from pto.passes.lowering.tile_conversion import TileConversion
from pto.targets.vector_unit import (
    BLOCK_BYTES,
    REPEAT_MAX,
    SATURATION_BIT,
    STRIDE_MAX,
    lanes_per_repeat,
    saturation_bit,
)
from pto.tiles.geometry import tile_bytes
from pto.tiles.placement import place
from pto.tiles.tmp import tmp_bytes

CHUNK = 64
"""Elements of a repeat of 32-bit integers: what the f16 paths take at a time (spec T)."""
_HALF = 2 * CHUNK
"""Bytes of a chunk of 16-bit elements: the lower half of the region of the f16 to i8 path."""


def lower(c: TileConversion) -> None:
    """Replaces a conversion by its instructions. Raises PassFailedException."""
    c.check_blocks()
    _Lowering(c, Emitter(c.op)).run()
    Rewriter.erase_op(c.op)


def call_strides(src: Format, dst: Format) -> tuple[int, int]:
    """Blocks of one repeat at the destination and at the source: 8 for the wider (spec L2)."""
    lanes = lanes_per_repeat(src, dst)
    dst_blocks, src_blocks = (lanes * f.memory_bits // (8 * BLOCK_BYTES) for f in (dst, src))
    return dst_blocks, src_blocks


@dataclass(frozen=True)
class Call:
    """One call of a conversion: `mask` elements in each of `repeat` repeats."""

    dst: SSAValue
    src: SSAValue
    mask: Index
    repeat: Index
    strides: tuple[int, int]
    """Blocks from one repeat to the next, at the destination and at the source."""
    tmp_at: Index = 0
    """Elements from the start of tmp to the first repeat."""


Issue = Callable[[Call], None]
"""Emits what a call does."""


@dataclass
class _Lowering:
    c: TileConversion
    emit: Emitter

    def run(self) -> None:
        c, emit = self.c, self.emit
        if 0 in (c.rows, c.cols):
            return
        if c.resolved.through_i32:
            self._check_tmp()
        axes = ("cols", "rows") if c.by_columns else ("rows", "cols")
        self.rows: Index = emit.valid_extent(c.dst.value, axes[0]) if c.rows is None else c.rows
        self.cols: Index = emit.valid_extent(c.dst.value, axes[1]) if c.cols is None else c.cols
        self.src, self.dst = emit.address(c.src.value), emit.address(c.dst.value)
        if c.resolved.through_i32:
            self._through_i32()
        elif c.resolved.saturation is not None:
            self._with_saturation()
        elif c.resolved.is_dequantisation:
            self._with_deq_scale()
        else:
            self._head_and_tail(self._cast)

    def _with_deq_scale(self) -> None:
        """Multiplies by 1 (spec S13), and leaves the scale as the program has set it, if it has."""
        emit = self.emit
        before = emit.deq_scale() if self.c.program_sets_scale else None
        emit.set_deq_scale(emit.half(1.0))
        self._head_and_tail(self._cast)
        if before is not None:
            emit.set_deq_scale(before)

    def _with_saturation(self) -> None:
        is_off = self.c.resolved.saturation == "OFF"
        bit = saturation_bit(self.c.dst.format)
        before = self.emit.control()
        self.emit.set_control(
            self.emit.with_bit(before, bit, int(is_off), "sat_off" if is_off else "sat_on")
        )
        self._head_and_tail(self._cast)
        self.emit.set_control(before)

    # ---- Which calls

    def _head_and_tail(self, issue: Issue) -> None:
        c, emit = self.c, self.emit
        lanes = lanes_per_repeat(c.src.format, c.dst.format)
        repeats = emit.div(self.cols, lanes, "repeats")
        rest = emit.rem(self.cols, lanes, "rest")
        emit.if_positive(repeats, lambda: self._head(issue, repeats, lanes))
        emit.if_positive(rest, lambda: self._tail(issue, repeats, rest, lanes))

    def _head(self, issue: Issue, repeats: Index, lanes: int) -> None:
        c, emit = self.c, self.emit
        strides = call_strides(c.src.format, c.dst.format)

        def row(index: Index) -> None:
            dst, src = self._row(self.dst, self.src, index)

            def piece(first: Index, count: Index) -> None:
                at = emit.mul(first, lanes)
                issue(Call(emit.advance(dst, at), emit.advance(src, at), lanes, count, strides))

            emit.pieces(repeats, REPEAT_MAX, c.most_cols // lanes, piece, "repeat")

        emit.loop(self.rows, 1, row, "row")

    def _tail(self, issue: Issue, repeats: Index, rest: Index, lanes: int) -> None:
        """A repeat a row; row strides beyond the field of the instruction take a call a row, at the
        same places of tmp."""
        c, emit = self.c, self.emit
        column = emit.mul(repeats, lanes)
        src_start = emit.advance(self.src, column)
        start = emit.advance(self.dst, column), src_start
        strides = c.dst.stride_blocks, c.src.stride_blocks

        def rows(first: Index, count: Index) -> None:
            dst, src = self._row(*start, first)
            if max(strides) <= STRIDE_MAX:
                issue(Call(dst, src, rest, count, strides))
                return
            single = call_strides(c.src.format, c.dst.format)

            def row(index: Index) -> None:
                tmp_at = emit.mul(index, c.src.stride)
                issue(Call(*self._row(dst, src, index), rest, 1, single, tmp_at))

            emit.loop(count, 1, row, "row")

        emit.pieces(self.rows, REPEAT_MAX, c.most_rows, rows, "row")

    def _row(self, dst: SSAValue, src: SSAValue, row: Index) -> tuple[SSAValue, SSAValue]:
        """The pointers that many rows further on."""
        c, emit = self.c, self.emit
        at_src = emit.advance(src, emit.mul(row, c.src.stride))
        return emit.advance(dst, emit.mul(row, c.dst.stride)), at_src

    # ---- What a call does

    def _cast(self, call: Call) -> None:
        self._vconv(call.dst, call.src, call.mask, call.repeat, call.strides, self.c.resolved.mode)

    def _vconv(
        self,
        dst: SSAValue,
        src: SSAValue,
        mask: Index,
        repeat: Index,
        strides: tuple[int, int],
        mode: str | None,
    ) -> None:
        self.emit.vector(
            CastOp,
            dst,
            [src],
            mask=mask,
            repeat=repeat,
            strides=(1, 1, *strides),
            mode=mode,
        )

    # ---- Through 32-bit integers (spec S10)

    def _check_tmp(self) -> None:
        c, tmp = self.c, self.c.op.tmp
        assert tmp is not None
        if not isinstance(tmp.type, AnyTile) or (provided := tile_bytes(tmp.type)) is None:
            raise fail(c.op, "the tmp operand is no tile")
        if c.rows is None or c.cols is None:
            return  # what it needs is known only at run time
        needed = tmp_bytes(c.src.format, c.dst.format, c.rows, c.cols, row_stride=c.src.stride)
        if provided < needed:
            raise fail(c.op, f"the tmp tile has {provided} bytes, but {needed} are needed")
        place_of_tmp = place(tmp)
        for name, value in (("source", c.src.value), ("destination", c.dst.value)):
            other = place(value)
            if place_of_tmp and other and place_of_tmp.first(needed).meets(other):
                raise fail(c.op, f"the tmp tile overlaps the {name}")

    def _through_i32(self) -> None:
        emit, tmp = self.emit, self.c.op.tmp
        assert tmp is not None
        self.tmp = emit.reinterpret(emit.address(tmp), i32)
        before = emit.control()
        self.saturating = emit.with_bit(before, SATURATION_BIT, 0, "sat_on")
        self.wrapping = emit.with_bit(before, SATURATION_BIT, 1, "sat_off")
        if self.c.src.format.bits == 32:
            self._head_and_tail(self._f32_to_i16)
        else:
            if self.c.dst.format.bits == 8:
                self.low = emit.reinterpret(self.tmp, i16)
                self.high = emit.advance(self.low, _HALF // 2)
                self.half = emit.reinterpret(self.high, self.c.src.dtype)
            self._chunks(self._f16_to_i16 if self.c.dst.format.bits == 16 else self._f16_to_i8)
        emit.set_control(before)

    def _f32_to_i16(self, call: Call) -> None:
        """In tmp lie the integers at the strides of the source, from the first row of the call."""
        emit, (dst_blocks, src_blocks) = self.emit, call.strides
        tmp = emit.advance(self.tmp, call.tmp_at)
        mask, repeat = call.mask, call.repeat
        emit.set_control(self.saturating)
        self._vconv(tmp, call.src, mask, repeat, (src_blocks, src_blocks), self.c.resolved.mode)
        emit.barrier()
        emit.set_control(self.wrapping)
        self._vconv(call.dst, tmp, mask, repeat, (dst_blocks, src_blocks), None)
        emit.barrier()

    def _chunks(self, chunk: Callable[[SSAValue, SSAValue, Index], None]) -> None:
        """Rows in chunks of at most 64 elements, each through the same tmp."""
        emit = self.emit

        def row(index: Index) -> None:
            dst, src = self._row(self.dst, self.src, index)
            whole = emit.mul(emit.div(self.cols, CHUNK), CHUNK)
            rest = emit.rem(self.cols, CHUNK)

            def at(column: Index, count: Index) -> None:
                chunk(emit.advance(dst, column), emit.advance(src, column), count)

            emit.loop(whole, CHUNK, lambda column: at(column, CHUNK), "col")
            emit.if_positive(rest, lambda: at(whole, rest))

        emit.loop(self.rows, 1, row, "row")

    def _f16_to_i16(self, dst: SSAValue, src: SSAValue, count: Index) -> None:
        emit = self.emit
        emit.set_control(self.saturating)
        self._vconv(self.tmp, src, count, 1, (8, 4), self.c.resolved.mode)
        emit.barrier()
        emit.set_control(self.wrapping)
        self._vconv(dst, self.tmp, count, 1, (4, 8), None)
        emit.barrier()

    def _f16_to_i8(self, dst: SSAValue, src: SSAValue, count: Index) -> None:
        """The 16-bit integers take the lower half of the region; the upper half holds first the
        mask of the low byte, then the value that f16 holds exactly."""
        emit = self.emit
        self._f16_to_i16(self.low, src, count)
        low_byte = emit.constant(255, i16)
        emit.vector(DuplicateOp, self.high, [low_byte], mask=count, repeat=1, strides=(1, 8))
        emit.barrier()
        strides = (1, 1, 1, 8, 8, 8)
        emit.vector(AndOp, self.low, [self.low, self.high], mask=count, repeat=1, strides=strides)
        emit.barrier()
        self._vconv(self.half, self.low, count, 1, (8, 8), None)
        emit.barrier()
        self._vconv(dst, self.half, count, 1, (4, 8), "TRUNC")
        emit.barrier()
