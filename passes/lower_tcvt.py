"""Pass `pto-lower-tcvt`: tile conversions become the target's own steps (spec L2, L3).

What the steps are, the product says: repeat-based vector casts on the unified buffer (`repeats`),
or register loops (`registers`). Conversions are in DPS form and legal on the target;
`pto-tile-to-buf`, `pto-materialize-tmp` and `pto-legalize-tcvt` bring them there.

Preserves the bytes of every tile: the valid region of the destination receives what the conversion
gives (spec R, S), everything else stays; only the tmp tile's bytes differ. A module that names
another target than the one lowered to names that one afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from pto.dialect.target import target_of
from pto.passes.common import TargetedPass, check_default_sat, conversions
from pto.passes.lowering import registers, repeats
from pto.passes.lowering.tile_conversion import TileConversion, analyse

LOWERINGS: dict[str, Callable[[TileConversion], None]] = {
    "repeats": repeats.lower,
    "registers": registers.lower,
}
"""By `Product.lowering`."""


@dataclass(frozen=True)
class LowerTcvtPass(TargetedPass):
    """Replaces every tile conversion by machine operations; options as `TargetedPass`."""

    name = "pto-lower-tcvt"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lowers in place. Raises PassFailedException, with the place, for what it cannot lower."""
        check_default_sat(self.default_sat)
        sets_scale = any(inner.name == "pto.set_deqscale" for inner in op.walk())
        for tcvt in conversions(op):
            conversion = analyse(tcvt, self, sets_scale)
            product = conversion.resolved.product
            assert product is not None
            assert product.lowering is not None
            named = target_of(tcvt)
            if named is not None and named.product is not product:
                named.owner.attributes[named.key] = StringAttr(product.name)
            LOWERINGS[product.lowering](conversion)
