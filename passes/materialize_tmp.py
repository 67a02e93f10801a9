"""Pass `pto-materialize-tmp`: gives PyTorch-compatible conversions their tmp tile.

Where a target takes that path only with a tmp operand (a2a3: f32 to i16, f16 to i16 and f16 to i8
without saturation; spec S10, T), those conversions receive a tmp tile of exactly the bytes that the
formula gives; where the valid columns are dynamic, of the most that any of them needs, which can be
more than the declared shape does. A conversion that has a tmp tile keeps it.

Changes what those conversions give for infinities and overflow: without tmp the device takes its
native path (spec S9), with it the PyTorch-compatible one. Everything else is preserved.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i8
from xdsl.rewriter import Rewriter

from pto.dialect.ops import SEGMENTS, TCvtOp, segments
from pto.dialect.type_records import Tile
from pto.dialect.types import AnyTile, TileBufType
from pto.passes.common import TargetedPass, check_default_sat, conversions, tile_type
from pto.passes.lowering.allocation import allocate, free_address
from pto.targets import Product
from pto.tiles.tmp_need import tmp_need


@dataclass(frozen=True)
class MaterializeTmpPass(TargetedPass):
    """Adds the tmp tiles that are missing; the options are those of `TargetedPass`."""

    name = "pto-materialize-tmp"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Adds in place. Raises PassFailedException where no room is left for a tile."""
        check_default_sat(self.default_sat)
        for tcvt in conversions(op):
            product = self.product(tcvt)
            tile_type(tcvt, tcvt.src)
            if tcvt.tmp is None and (size := self._needed(tcvt, product)):
                _add(tcvt, size, product)

    def _needed(self, op: TCvtOp, product: Product) -> int:
        """Bytes of tmp that a conversion wants, 0 if none (spec T)."""
        resolved = op.resolve(product, self.default_sat)
        dst = op.dst_type
        if resolved is None or not isinstance(dst, AnyTile):
            return 0
        need = tmp_need(resolved, op.src, dst)
        return 0 if need is None else need.bytes


def _add(op: TCvtOp, size: int, product: Product) -> None:
    type_ = TileBufType(Tile("vec", i8, 1, size, 1, size))
    dst = [] if op.dst is None else [op.dst]
    address = free_address(op, size, [op.src, *dst], product)
    tmp = allocate(op, type_, "tmp", address=address)
    replacement = TCvtOp.create(
        operands=[op.src, tmp, *dst],
        result_types=[result.type for result in op.results],
        properties={**op.properties, SEGMENTS: segments(1, 1, len(dst))},
        attributes=op.attributes,
        location=op.location,
    )
    Rewriter.replace_op(op, replacement)
