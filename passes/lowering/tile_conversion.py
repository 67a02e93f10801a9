"""A tile conversion as the lowerings see it: formats, rounding, and where its elements lie."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from pto.dialect.ops import TCvtOp
from pto.dialect.types import TileBufType, TileType, element_format, elements_per_column, type_text
from pto.passes.analysis.module_target import named_target
from pto.passes.analysis.placement import bits_per_column, row_stride, stride_is_known
from pto.targets import TCVT_TARGETS, Pair, UnknownTarget, lookup, resolve

BLOCK_BITS = 256
DEFAULT_SATURATIONS = ("target", "on", "off")


def fail(op: Operation, message: str) -> PassFailedException:
    """The error of a pass at an operation, `file:line:col: message`."""
    at = op.location
    place = (
        f"{at.filename.data}:{at.line.data}:{at.column.data}: "
        if isinstance(at, FileLineColLoc)
        else ""
    )
    return PassFailedException(f"{place}{message}")


def target_of(op: Operation, arch: str | None) -> str:
    """The canonical target of a pass: its option, else what a module around `op` names.

    Raises PassFailedException for an unknown or absent one, and for one without TCVT.
    """
    name = arch
    if name is None and (named := named_target(op)) is not None:
        name = named.name
    if name is None:
        raise fail(op, "no target: give arch, or pto.target_arch in the module")
    try:
        target = resolve(name)
    except UnknownTarget as error:
        raise fail(op, str(error)) from None
    if target not in TCVT_TARGETS:
        raise fail(op, f"{target} has no tcvt; the targets are {', '.join(TCVT_TARGETS)}")
    return target


def conversions(module: ModuleOp) -> list[TCvtOp]:
    """All tile conversions of a module, in text order."""
    return [op for op in module.walk() if isinstance(op, TCvtOp)]


def tile_type(op: TCvtOp, value: SSAValue) -> TileBufType | TileType:
    """The type of a tile operand. Raises PassFailedException for another type."""
    if isinstance(value.type, TileBufType | TileType):
        return value.type
    raise fail(op, f"an operand of type {type_text(value.type)} is no tile")


def format_name(op: TCvtOp, dtype: Attribute) -> str:
    """The spec name of an element type. Raises PassFailedException where it has none."""
    name = element_format(dtype)
    if name is None:
        raise fail(op, f"elements of type {type_text(dtype)} are not converted")
    return name


@dataclass(frozen=True)
class Rows:
    """One tile's side of a conversion, as rows of elements in memory.

    A tile in column-major order is taken by columns. Columns count as the tile's type does: pairs
    for packed 4-bit floats (spec F2).
    """

    value: SSAValue
    format: str
    dtype: Attribute
    stride: int
    """Columns from one row to the next."""
    bits: int
    """Bits of one column."""
    per_column: int
    """Elements of one column."""

    @property
    def stride_blocks(self) -> int:
        """Blocks of 32 bytes from one row to the next."""
        return self.stride * self.bits // BLOCK_BITS


@dataclass(frozen=True)
class TileConversion:
    """A tcvt in DPS form with everything that its absence of attributes means."""

    op: TCvtOp
    arch: str
    pair: Pair
    src: Rows
    dst: Rows
    mode: str | None
    """The mode that applies, None where none has an effect."""
    saturation: str | None
    """ON or OFF; None where the pair has no choice."""
    through_i32: bool
    """Whether the PyTorch-compatible path applies (spec S10)."""
    rows: int | None
    """Valid rows, None where known only at run time."""
    cols: int | None
    """Valid elements of a row, None where known only at run time."""
    most_rows: int
    most_cols: int
    """Their upper bounds, the declared extents."""
    by_columns: bool
    """Whether the tiles are in column-major order, rows and columns exchanged here."""

    @property
    def is_dense(self) -> bool:
        """Whether the valid region is one piece of memory in both tiles, whatever its rows."""
        widths = {side.stride * side.per_column for side in (self.src, self.dst)}
        return widths == {self.cols}


def analyse(op: TCvtOp, arch: str | None, default_sat: str) -> TileConversion:
    """What a lowering needs to know of a conversion.

    Raises PassFailedException, with the place, for what no lowering takes: the SSA form, a pair or
    mode that the target lacks, boxed layouts, tiles outside of vec, rows that are no whole blocks.
    """
    target = target_of(op, arch)
    if op.dst is None:
        raise fail(op, "the conversion is in SSA form; run pto-tile-to-buf first")
    src_type, dst_type = tile_type(op, op.src), tile_type(op, op.dst)
    src, dst = format_name(op, src_type.dtype), format_name(op, dst_type.dtype)
    pair = lookup(target, src, dst)
    if pair is None:
        raise fail(op, f"{target} has no conversion {src} to {dst}; run pto-legalize-tcvt first")
    mode = None if op.rmode is None else op.rmode.data
    if not pair.accepts(mode):
        raise fail(op, f"{src} to {dst} has no mode {mode}; it has {' '.join(pair.modes)}")
    by_columns = _by_columns(op, src_type, dst_type)
    sides = [_rows(op, value, by_columns) for value in (op.src, op.dst)]
    saturation = saturation_of(op, pair, default_sat)
    rows, cols, most_rows, most_cols = _extents(src_type, dst_type, by_columns)
    conversion = TileConversion(
        op=op,
        arch=target,
        pair=pair,
        src=sides[0],
        dst=sides[1],
        mode=_effective_mode(pair, mode),
        saturation=saturation if pair.has_saturation else None,
        through_i32=uses_i32_path(pair, saturation, target, has_tmp=op.tmp is not None),
        rows=rows,
        cols=cols,
        most_rows=most_rows,
        most_cols=most_cols,
        by_columns=by_columns,
    )
    if target != "a5" or not conversion.is_dense:
        _check_blocks(conversion)
    return conversion


def _check_blocks(c: TileConversion) -> None:
    """Rows start at multiples of 32 bytes, as every instruction's operands do."""
    for side in (c.src, c.dst):
        if side.stride * side.bits % BLOCK_BITS:
            kind = "column" if c.by_columns else "row"
            size = side.stride * side.bits // 8
            raise fail(c.op, f"a {kind} of {size} bytes is not a multiple of 32 bytes")


def _effective_mode(pair: Pair, mode: str | None) -> str | None:
    """The natural mode for one that is absent or NONE (spec R7, R9)."""
    if not pair.rounds:
        return None
    return pair.natural_mode if mode in (None, "NONE") else mode


def saturation_of(op: TCvtOp, pair: Pair, default_sat: str) -> str:
    """ON or OFF: as written, else the pair's default, or what `default_sat` says (spec S14)."""
    if op.satmode is not None:
        return op.satmode.data
    return pair.default_saturation if default_sat == "target" else default_sat.upper()


def uses_i32_path(pair: Pair, saturation: str, target: str, *, has_tmp: bool) -> bool:
    """Whether a conversion takes the PyTorch-compatible path (spec S10)."""
    return pair.pytorch_pair and saturation == "OFF" and (target == "a5" or has_tmp)


def check_default_sat(default_sat: str) -> None:
    """Raises PassFailedException for an option that is not target, on or off."""
    if default_sat not in DEFAULT_SATURATIONS:
        raise PassFailedException(
            f"default-sat is one of {', '.join(DEFAULT_SATURATIONS)}, not {default_sat}"
        )


def _by_columns(op: TCvtOp, *types: TileBufType | TileType) -> bool:
    for type_ in types:
        if type_.loc != "vec":
            raise fail(op, f"a tile in {type_.loc}; conversions are of tiles in vec")
        if type_.slayout != "none_box":
            raise fail(op, "a tile of boxed layout is not lowered")
    src, dst = (type_.blayout == "col_major" for type_ in types)
    if src != dst:
        raise fail(op, "source and destination differ in blayout")
    if src and any(
        bits_per_column(t.dtype) in (4, None) or elements_per_column(t.dtype) > 1 for t in types
    ):
        raise fail(op, "a col_major tile of a 4-bit type is not lowered")
    return src


def _rows(op: TCvtOp, value: SSAValue, by_columns: bool) -> Rows:
    type_ = tile_type(op, value)
    bits = bits_per_column(type_.dtype)
    assert bits is not None
    if not stride_is_known(value):
        raise fail(op, "a tile that may be a window of another: where its rows lie is not known")
    stride = row_stride(value)
    per_column = elements_per_column(type_.dtype)
    name = format_name(op, type_.dtype)
    return Rows(value, name, type_.dtype, stride, bits, per_column)


def _extents(
    src: TileBufType | TileType, dst: TileBufType | TileType, by_columns: bool
) -> tuple[int | None, int | None, int, int]:
    """Valid rows and columns of the destination and their bounds, in elements.

    Both tiles have the same valid extents, so that neither exceeds what is declared of either.
    """
    packed = elements_per_column(dst.dtype)
    rows, cols = dst.valid_rows, dst.valid_cols
    cols = None if cols is None else cols * packed
    most_rows = min(src.rows, dst.rows)
    most_cols = min(src.cols * elements_per_column(src.dtype), dst.cols * packed)
    if by_columns:
        return cols, rows, most_cols, most_rows
    return rows, cols, most_rows, most_cols
