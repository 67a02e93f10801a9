"""Pass `pto-legalize-tcvt`: what the target lacks becomes a chain of what it has (spec L4).

A chain is used only where it is the direct conversion, bit for bit, under the written mode and
saturation. The proof is a property of the formats, `chain_is_exact`:

1. Only the last step rounds, clips or wraps: every format between holds every value of the source
   (i8 to f16 to i16). Infinities and NaN pass steps that have no saturation.
2. Where the destination clips (saturation ON, or a float), a format between may lose values that
   the last step clips anyway: it holds every value of the source up to twice the destination's
   range, and rounding is monotonic, so that what lies beyond stays beyond (i32 to f32 to f16);
   the steps between saturate.
3. The last step follows the rules that the direct conversion has: not the PyTorch-compatible path
   (spec S10), not HYBRID, whose threshold is made of the source's own bits (spec R8), nor the sign
   of a NaN, which no step but the last one keeps (spec S3, S15).

Preserves the bytes of every destination. What has no such chain is an error that names the nearest
chain and an input where it differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from pto.dialect.attributes import RoundModeAttr, SaturationModeAttr
from pto.dialect.ops import TCvtOp, segments
from pto.dialect.types import Tile, TileBufType, TileType, elements_per_column
from pto.numerics import FORMATS
from pto.numerics.rules import MODES, has_saturation, modes, natural_mode
from pto.passes.analysis.placement import tile_bytes
from pto.passes.lowering.allocation import allocate, free_address
from pto.passes.lowering.chain_check import counterexample
from pto.passes.lowering.tile_conversion import (
    check_default_sat,
    conversions,
    fail,
    format_name,
    target_of,
    tile_type,
)
from pto.targets import TCVT_TARGETS, Pair, lookup, tcvt_table
from pto.targets.grids import grid, is_integer

MAX_STEPS = 3
_STEP_KINDS = ("round", "exact", "int")
"""Kinds of pairs that may be steps: those whose result depends on the value alone."""


@dataclass(frozen=True)
class LegalizeTcvtPass(ModulePass):
    """Replaces conversions that the target lacks by exact chains.

    Options: `arch` (a2a3, a5 or an alias; default: what the module names) and `default-sat`
    (target, on, off: what an absent satmode means, spec S14).
    """

    name = "pto-legalize-tcvt"

    arch: str | None = None
    default_sat: str = "target"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites in place. Raises PassFailedException where no exact chain exists."""
        check_default_sat(self.default_sat)
        for tcvt in conversions(op):
            direct = direct_conversion(tcvt, target_of(tcvt, self.arch), self.default_sat)
            if lookup(direct.arch, direct.src, direct.dst) is None:
                _replace(tcvt, direct, legal_chain(tcvt, direct))


@dataclass(frozen=True)
class Direct:
    """The conversion that a chain has to equal, everything resolved."""

    arch: str
    src: str
    dst: str
    mode: str
    saturation: str | None
    """ON or OFF, None where the pair has no choice."""


def direct_conversion(op: TCvtOp, arch: str, default_sat: str) -> Direct:
    """What a conversion means under the general rules (spec R, S). Raises PassFailedException for a
    pair or a mode that exists nowhere."""
    dst_type = op.dst_type
    assert isinstance(dst_type, TileBufType | TileType)
    src = format_name(op, tile_type(op, op.src).dtype)
    dst = format_name(op, dst_type.dtype)
    try:
        offered = modes(FORMATS[src], FORMATS[dst])
    except ValueError as error:
        raise fail(op, str(error)) from None
    mode = "NONE" if op.rmode is None else op.rmode.data
    if op.rmode is not None and mode not in offered:
        raise fail(op, f"{src} to {dst} has no mode {mode}; it has {' '.join(offered)}")
    if offered == MODES:  # it has no effect (spec R10, S13)
        mode = "RINT"
    elif mode == "NONE":
        mode = natural_mode(FORMATS[src], FORMATS[dst])
    saturation = None
    if has_saturation(FORMATS[src], FORMATS[dst]):
        saturation = _saturation(op, src, dst, default_sat)
    return Direct(arch, src, dst, mode, saturation)


def _saturation(op: TCvtOp, src: str, dst: str, default_sat: str) -> str:
    """As written, else the default of the pair on a target that has it, else ON (spec S14)."""
    if op.satmode is not None:
        return op.satmode.data
    if default_sat != "target":
        return default_sat.upper()
    rows = [row for arch in TCVT_TARGETS if (row := lookup(arch, src, dst)) is not None]
    return rows[0].default_saturation if rows else "ON"


# ---- Chains


def chains(arch: str, src: str, dst: str) -> Iterator[tuple[str, ...]]:
    """Legal chains from `src` to `dst` of two or three steps, the shortest first."""
    table = tcvt_table(arch)
    assert table is not None
    rows = [row for row in table.rows if row.kind in _STEP_KINDS and row.src != row.dst]
    open_: list[tuple[str, ...]] = [(src,)]
    for _ in range(MAX_STEPS):
        longer = [(*c, row.dst) for c in open_ for row in rows if row.src == c[-1] not in c[:-1]]
        yield from (c for c in longer if c[-1] == dst)
        open_ = [c for c in longer if c[-1] != dst]


def chain_is_exact(chain: tuple[str, ...], direct: Direct) -> bool:
    """Whether a chain of legal steps is the direct conversion for every input (see above)."""
    last = lookup(direct.arch, chain[-2], chain[-1])
    assert last is not None
    if not _same_rules(last, direct) or not _passes_specials(chain, direct.arch):
        return False
    first, target = grid(chain[0]), grid(chain[-1])
    if first is None or target is None:
        return False
    reach = first
    clips = direct.saturation != "OFF" if is_integer(direct.dst) else is_integer(direct.src)
    if clips:
        low, high = max(first.low, 2 * target.low), min(first.high, 2 * target.high)
        reach = replace(first, low=low, high=high)
    middles = [grid(name) for name in chain[1:-1]]
    return all(middle is not None and middle.holds(reach) for middle in middles)


def _same_rules(last: Pair, direct: Direct) -> bool:
    """Whether the last step treats every value as the direct conversion does."""
    if direct.mode == "HYBRID" or (last.rounds and not last.accepts(direct.mode)):
        return False
    goes_through_i32 = last.pytorch_pair and direct.arch == "a5" and direct.saturation == "OFF"
    keeps_sign_of_nan = direct.dst == "f8e4m3fn" and direct.saturation == "OFF"
    return not (goes_through_i32 or (keeps_sign_of_nan and FORMATS[direct.src].has_nan))


def _passes_specials(chain: tuple[str, ...], arch: str) -> bool:
    """Whether infinities and NaN reach the last step: no step before it can saturate them."""
    source = FORMATS[chain[0]]
    if not (source.has_inf or source.has_nan):
        return True
    pairs = (lookup(arch, *step) for step in pairwise(chain[:-1]))
    return not any(pair is None or pair.has_saturation for pair in pairs)


def legal_chain(op: TCvtOp, direct: Direct) -> tuple[str, ...]:
    """The shortest exact chain. Raises PassFailedException, with the nearest one, if none is."""
    found = list(chains(direct.arch, direct.src, direct.dst))
    for chain in found:
        if chain_is_exact(chain, direct):
            return chain
    pair = f"{direct.arch} has no conversion {direct.src} to {direct.dst}"
    if not found:
        raise fail(op, f"{pair}, and no chain of others leads there")
    raise _no_exact_chain(op, pair, found[0], direct)


def _no_exact_chain(
    op: TCvtOp, pair: str, nearest: tuple[str, ...], direct: Direct
) -> PassFailedException:
    text = " -> ".join(nearest)
    found = counterexample(nearest, direct.arch, direct.mode, direct.saturation)
    if found is None:
        return fail(op, f"{pair}; the nearest chain, {text}, is not proved to be the same")
    return fail(op, f"{pair}; the nearest chain, {text}, differs: {found}")


# ---- Rewriting


def _replace(op: TCvtOp, direct: Direct, chain: tuple[str, ...]) -> None:
    value = op.src
    for from_, to in pairwise(chain[:-1]):
        pair = lookup(direct.arch, from_, to)
        assert pair is not None
        value = _step(op, value, _like(op, to), pair, direct.arch)
    last = lookup(direct.arch, chain[-2], chain[-1])
    assert last is not None
    properties: dict[str, Attribute] = {}
    if last.rounds:
        properties["rmode"] = RoundModeAttr(direct.mode)
    if last.has_saturation:
        properties["satmode"] = SaturationModeAttr(direct.saturation or "ON")
    dst = [] if op.dst is None else [op.dst]
    replacement = TCvtOp.create(
        operands=[value, *dst],
        result_types=[result.type for result in op.results],
        properties={**properties, "operandSegmentSizes": segments(1, 0, len(dst))},
        attributes=op.attributes,
        location=op.location,
    )
    Rewriter.replace_op(op, replacement)


def _like(op: TCvtOp, name: str) -> TileBufType | TileType:
    """The type of a tile between: the source's elements in another format, rows in whole blocks."""
    from pto.frontend.types import parse_type

    source = tile_type(op, op.src)
    packed = elements_per_column(source.dtype)
    per_block = 256 // FORMATS[name].bits
    rows, cols = source.rows, source.cols * packed
    if source.blayout == "row_major":
        cols = -(-cols // per_block) * per_block
    else:
        rows = -(-rows // per_block) * per_block
    valid_cols = None if source.valid_cols is None else source.valid_cols * packed
    tile = Tile(
        source.loc, parse_type(name), rows, cols, source.valid_rows, valid_cols, source.blayout
    )
    return type(source)(tile)


def _step(
    op: TCvtOp, value: SSAValue, type_: TileBufType | TileType, pair: Pair, arch: str
) -> SSAValue:
    """One conversion in front of `op`, in its form; it saturates where it can."""
    hint = f"{op.src.name_hint}_{format_name(op, type_.dtype)}" if op.src.name_hint else None
    results: list[Attribute] = []
    dst: list[SSAValue] = []
    if op.dst is None:
        results = [type_]
    else:
        assert isinstance(type_, TileBufType)
        size = tile_bytes(type_)
        assert size is not None
        address = free_address(op, size, [op.src, op.dst], arch)
        dst = [allocate(op, type_, hint, like=op.src, address=address)]
    properties: dict[str, Attribute] = {"operandSegmentSizes": segments(1, 0, len(dst))}
    if pair.has_saturation:
        properties["satmode"] = SaturationModeAttr("ON")
    step = TCvtOp.create(
        operands=[value, *dst],
        result_types=results,
        properties=properties,
        location=op.location,
    )
    Rewriter.insert_op(step, InsertPoint.before(op))
    if dst:
        return dst[0]
    step.results[0].name_hint = hint
    return step.results[0]
