"""A conversion rewritten as a chain of others (spec L4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from pto.dialect.attributes import RoundModeAttr, SaturationModeAttr
from pto.dialect.ops import SEGMENTS, TCvtOp, segments
from pto.dialect.type_records import Tile
from pto.dialect.type_syntax import parse_type
from pto.dialect.types import AnyTile, TileBufType, elements_per_column
from pto.numerics.formats import Format
from pto.passes.common import tile_type
from pto.passes.lowering.allocation import allocate, free_address
from pto.targets import Product, ResolvedConversion, resolve_generally
from pto.targets.chains import Chain, find_chain
from pto.targets.vector_unit import BLOCK_BYTES
from pto.tiles.geometry import tile_bytes


def replacement_chain(op: TCvtOp, product: Product, default_sat: str) -> Chain | None:
    """The best chain for a conversion that a product lacks, None where none leads there.

    Raises ValueError for a pair or a mode that exists nowhere.
    """
    formats = op.formats()
    assert formats is not None
    direct = resolve_generally(
        *formats, mode=op.mode, saturation=op.saturation, default_saturation=default_sat
    )
    return find_chain(direct, product)


def replace_by_chain(op: TCvtOp, chain: Chain) -> None:
    """Puts the steps of a chain in the place of a conversion.

    Raises PassFailedException where no room is left for a tile between.
    """
    value = op.src
    *before, last = chain.steps
    for step in before:
        value = _insert_step(op, value, step)
    properties: dict[str, Attribute] = {}
    if last.mode is not None:
        properties["rmode"] = RoundModeAttr(last.mode)
    dst = [] if op.dst is None else [op.dst]
    results = [result.type for result in op.results]
    Rewriter.replace_op(op, _tcvt(op, last, value, dst, results, properties, op.attributes))


def _tcvt(
    op: TCvtOp,
    step: ResolvedConversion,
    src: SSAValue,
    dst: Sequence[SSAValue],
    results: Sequence[Attribute],
    properties: Mapping[str, Attribute] = MappingProxyType({}),
    attributes: Mapping[str, Attribute] = MappingProxyType({}),
) -> TCvtOp:
    """A step as an operation."""
    saturation: dict[str, Attribute] = {}
    if step.saturation is not None:
        saturation["satmode"] = SaturationModeAttr(step.saturation)
    return TCvtOp.create(
        operands=[src, *dst],
        result_types=results,
        properties={**properties, **saturation, SEGMENTS: segments(1, 0, len(dst))},
        attributes=attributes,
        location=op.location,
    )


def _insert_step(op: TCvtOp, value: SSAValue, step: ResolvedConversion) -> SSAValue:
    """One conversion in front of `op`, in its form; its result."""
    type_ = _like(op, step.dst)
    hint = f"{op.src.name_hint}_{step.dst}" if op.src.name_hint else None
    if op.dst is None:
        made = _tcvt(op, step, value, [], [type_])
        Rewriter.insert_op(made, InsertPoint.before(op))
        made.results[0].name_hint = hint
        return made.results[0]
    size = tile_bytes(type_)
    assert isinstance(type_, TileBufType)
    assert size is not None
    assert step.product is not None
    address = free_address(op, size, [op.src, op.dst], step.product)
    tile = allocate(op, type_, hint, like=op.src, address=address)
    Rewriter.insert_op(_tcvt(op, step, value, [tile], []), InsertPoint.before(op))
    return tile


def _like(op: TCvtOp, fmt: Format) -> AnyTile:
    """The type of a tile between: the source's elements in another format, rows in whole blocks."""
    source = tile_type(op, op.src)
    dtype = parse_type(fmt.mlir[0])
    packed = elements_per_column(source.dtype)
    per_block = BLOCK_BYTES * 8 // fmt.memory_bits
    rows, elements = source.rows, source.cols * packed
    if source.blayout == "row_major":
        elements = -(-elements // per_block) * per_block
    else:
        rows = -(-rows // per_block) * per_block
    per_column = elements_per_column(dtype)
    valid = None if source.valid_cols is None else source.valid_cols * packed // per_column
    tile = Tile(
        source.loc,
        dtype,
        rows,
        elements // per_column,
        source.valid_rows,
        valid,
        source.blayout,
    )
    return type(source)(tile)
