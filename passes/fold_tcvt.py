"""Pass `pto-fold-tcvt`: round trips that lose nothing vanish.

A conversion of A to B followed by one of B to A is folded where B holds every value of A and the
way back changes none of them: in any mode but HYBRID; without saturation where A has infinities or
NaN, because it would replace them (spec S2). In SSA form the result is the first operand;
in DPS form the second conversion becomes a `tmov`, and the first one goes if nothing else reads it.

Preserves every value. A NaN keeps its payload and sign instead of becoming the canonical one (spec
S15), which no conversion tells apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from pto.dialect.ops import SEGMENTS, AllocTileOp, TCvtOp, operation_class, segments
from pto.numerics.value_sets import value_set
from pto.passes.common import check_default_sat, conversions
from pto.targets import ResolvedConversion, resolve_generally


@dataclass(frozen=True)
class FoldTcvtPass(ModulePass):
    """Removes exact round trips.

    Options: `finite` (true: no infinities and no NaN occur, so that saturation does not matter) and
    `default-sat` (target, on, off: what an absent satmode means, spec S14).
    """

    name = "pto-fold-tcvt"

    finite: bool = False
    default_sat: str = "target"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites in place."""
        check_default_sat(self.default_sat)
        for back in conversions(op):
            if back.parent is None:
                continue  # already gone
            there = _value_form(back) if back.dst is None else _buffer_form(back)
            if there is None or not self._is_exact(there, back):
                continue
            if back.dst is None:
                _fold_values(there, back)
            else:
                _fold_buffers(there, back)

    def _is_exact(self, there: TCvtOp, back: TCvtOp) -> bool:
        ways = [self._meaning(op) for op in (there, back)]
        if there.src.type != back.dst_type or ways[0] is None or ways[1] is None:
            return False
        return round_trip_is_exact(ways[0], ways[1], finite=self.finite)

    def _meaning(self, op: TCvtOp) -> ResolvedConversion | None:
        """What a conversion means: on any product alike, but for the default of its saturation."""
        formats = op.formats()
        if formats is None:
            return None
        try:
            return resolve_generally(
                *formats,
                mode=op.mode,
                saturation=op.saturation,
                default_saturation=self.default_sat,
            )
        except ValueError:
            return None


def round_trip_is_exact(
    there: ResolvedConversion, back: ResolvedConversion, *, finite: bool = False
) -> bool:
    """Whether a conversion and the one back give every value of its source again, or every finite
    one."""
    original, middle = there.src, there.dst
    if original is middle:
        return False  # f32 to f32 rounds to integral values (spec R11)
    first, between = value_set(original), value_set(middle)
    if back.mode == "HYBRID" or first is None or between is None or not between.holds(first):
        return False
    if finite or not (original.has_inf or original.has_nan):
        return True
    # Infinities and NaN survive in a float that has them, where neither way saturates.
    keeps = middle.is_float and middle.has_nan
    return keeps and "ON" not in (there.saturation, back.saturation)


# ---- The two forms


def _value_form(back: TCvtOp) -> TCvtOp | None:
    there = back.src.owner
    return there if isinstance(there, TCvtOp) and there.dst is None else None


def _fold_values(there: TCvtOp, back: TCvtOp) -> None:
    Rewriter.replace_op(back, [], [there.src])
    if not there.results[0].uses:
        Rewriter.erase_op(there)


def _buffer_form(back: TCvtOp) -> TCvtOp | None:
    """The conversion that wrote the source of `back`, if nothing between may have written the tiles
    of either."""
    middle = back.src
    if not _own_memory(middle):
        return None
    op: Operation | None = back.prev_op
    while op is not None:
        if isinstance(op, TCvtOp) and op.dst is middle:
            return op if _own_memory(op.src) else None
        if not (isinstance(op, AllocTileOp) or is_side_effect_free(op)):
            return None
        op = op.prev_op
    return None


def _own_memory(tile: SSAValue) -> bool:
    """Whether no other tile can lie on the same bytes."""
    owner = tile.owner
    if not isinstance(owner, AllocTileOp) or owner.addr is not None:
        return False
    return not any(use.operation.name in ("pto.subview", "pto.treshape") for use in tile.uses)


def _fold_buffers(there: TCvtOp, back: TCvtOp) -> None:
    assert back.dst is not None
    middle = back.src
    move = operation_class("pto.tmov").create(
        operands=[there.src, back.dst],
        properties={SEGMENTS: segments(1, 1)},
        location=back.location,
    )
    Rewriter.replace_op(back, move)
    alloc = middle.owner
    if isinstance(alloc, AllocTileOp) and all(u.operation is there for u in middle.uses):
        Rewriter.erase_op(there)
        Rewriter.erase_op(alloc)
