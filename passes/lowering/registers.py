"""A tile conversion as register loops: load, convert under a predicate, store (spec L3).

A register has 256 bytes, and an instruction converts as many elements as it holds of the wider
type. The narrower type takes the first lane of each group: `UNPK` loads spread it out, `PK` stores
pack it. The predicate of the last register of a row keeps the columns beyond the valid ones. Tiles
whose rows follow each other without a gap are converted as one row.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType, Signedness, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from pto.dialect.register_ops import LETTER_OF_MODE, PARTS, mask_bits
from pto.numerics.formats import FORMATS, Format
from pto.passes.lowering.emitter import Emitter, Index
from pto.passes.lowering.tile_conversion import TileConversion
from pto.targets.vector_unit import REGISTER_BYTES

I32, UI8 = FORMATS["i32"], FORMATS["ui8"]
UI8_TYPE = IntegerType(8, Signedness.UNSIGNED)


@dataclass(frozen=True)
class RegisterStep:
    """One `vcvt` of a chain."""

    src: Format
    dst: Format
    dtype: Attribute
    """Element type of the result's register."""
    mode: str | None
    saturation: str | None


def steps_of(c: TileConversion) -> list[RegisterStep]:
    """The register conversions of a tile conversion.

    The PyTorch-compatible path (spec S10) saturates into i32, then keeps the lowest bits; there is
    no i32 to i8, but i32 to ui8 has the same bits.
    """
    src, dst, resolved = c.src.format, c.dst.format, c.resolved
    if not resolved.through_i32:
        return [RegisterStep(src, dst, c.dst.dtype, resolved.mode, resolved.saturation)]
    saturating = "ON" if src.bits == 32 else None
    narrow = (UI8, UI8_TYPE) if dst.bits == 8 else (dst, c.dst.dtype)
    return [
        RegisterStep(src, I32, i32, resolved.mode, saturating),
        RegisterStep(I32, *narrow, None, "OFF"),
    ]


def lower(c: TileConversion) -> None:
    """Replaces a conversion by its register loop. Raises PassFailedException."""
    if not c.is_dense:
        c.check_blocks()
    if 0 not in (c.rows, c.cols):
        _Lowering(c, Emitter(c.op), steps_of(c)).run()
    Rewriter.erase_op(c.op)


def _unit(fmt: Format, pairs: int) -> int:
    """Bits of an element, or of a pair of them where a 4-bit format is involved (spec A1)."""
    return fmt.memory_bits * pairs


@dataclass
class _Lowering:
    c: TileConversion
    emit: Emitter
    steps: list[RegisterStep]

    def __post_init__(self) -> None:
        c = self.c
        formats = [c.src.format, *(step.dst for step in self.steps)]
        self.pairs = max(fmt.per_byte for fmt in formats)
        self.wide = max(_unit(fmt, self.pairs) for fmt in formats)
        self.lanes = REGISTER_BYTES * 8 // self.wide * self.pairs
        """Elements of one register of the widest format."""
        # A store counts lanes of its own width; 64-bit lanes are two of 32.
        out = _unit(self.steps[-1].dst, self.pairs)
        self.mask_bits = min(32, c.dst.format.memory_bits if out == self.wide else self.wide)
        self.lanes_per_group = self.wide // self.mask_bits

    def run(self) -> None:
        c, emit = self.c, self.emit
        axes = ("cols", "rows") if c.by_columns else ("rows", "cols")
        self.rows: Index = emit.valid_extent(c.dst.value, axes[0]) if c.rows is None else c.rows
        self.cols = self._valid_columns(axes[1])
        if c.is_dense:  # one row of all elements
            self.rows, self.cols = 1, emit.mul(self.rows, self.cols)
        self.src = emit.address(c.src.value)
        self.dst = emit.reinterpret(emit.address(c.dst.value), self.steps[-1].dtype)
        emit.vecscope(self._body)

    def _valid_columns(self, axis: str) -> Index:
        if self.c.cols is not None:
            return self.c.cols
        extent = self.emit.valid_extent(self.c.dst.value, axis)
        return self.emit.mul(extent, self.c.dst.per_column)

    def _body(self) -> None:
        emit = self.emit
        self.all = {bits: emit.all_lanes(bits) for bits in self._whole_masks()}
        emit.loop(self.rows, 1, self._row, "row")

    def _row(self, row: Index) -> None:
        c, emit = self.c, self.emit
        src, dst = emit.mul(row, c.src.stride), emit.mul(row, c.dst.stride)

        def chunk(column: Index) -> None:
            self._chunk(
                emit.add(src, emit.div(column, c.src.per_column)),
                emit.add(dst, emit.div(column, c.dst.per_column)),
                emit.sub(self.cols, column, "left"),
            )

        emit.loop(self.cols, self.lanes, chunk, "col")

    def _chunk(self, src: Index, dst: Index, left: Index) -> None:
        emit = self.emit
        count = emit.mul(emit.div(left, self.pairs), self.lanes_per_group)
        mask = emit.first_lanes(count, self.mask_bits)
        value = emit.load(self.src, src, self._load_dist())
        for step in self.steps:
            predicate = self.all.get(mask_bits(step.src), mask)
            value = self._convert(step, value, predicate)
        emit.store(value, self.dst, dst, mask, self._store_dist())

    def _convert(self, step: RegisterStep, value: SSAValue, predicate: SSAValue) -> SSAValue:
        if step.src is step.dst:  # f32 to f32, which rounds to integral values (spec R11)
            assert step.mode is not None
            return self.emit.round_register(value, predicate, LETTER_OF_MODE[step.mode])
        return self.emit.register_cast(value, predicate, step.dtype, self._attributes(step))

    # ---- Predicates, distributions, parts

    def _whole_masks(self) -> list[int]:
        """Granularities that the store's predicate does not have: those steps convert all lanes."""
        return sorted({mask_bits(step.src) for step in self.steps} - {self.mask_bits})

    def _load_dist(self) -> str:
        unit = max(8, _unit(self.c.src.format, self.pairs))
        ratio = self.wide // unit
        return {1: "NORM", 2: f"UNPK_B{unit}", 4: "UNPK4"}[ratio]

    def _store_dist(self) -> str:
        unit = _unit(self.steps[-1].dst, self.pairs)
        ratio = self.wide // unit
        return {1: f"NORM_B{self.mask_bits}", 2: f"PK_B{self.wide}", 4: f"PK4_B{self.wide}"}[ratio]

    def _attributes(self, step: RegisterStep) -> dict[str, str]:
        found: dict[str, str] = {}
        if step.mode is not None:
            found["rnd"] = LETTER_OF_MODE[step.mode]
        if step.saturation is not None:
            found["sat"] = "SAT" if step.saturation == "ON" else "NOSAT"
        units = sorted((_unit(step.src, self.pairs), _unit(step.dst, self.pairs)))
        if (ratio := units[1] // units[0]) > 1:
            found["part"] = PARTS[ratio][0]
        return found
