"""Pass `pto-lower-tcvt`: tile conversions become the target's own steps (spec L2, L3).

a2a3: repeat-based vector casts on the unified buffer (`lower_tcvt_a2a3`). a5: register loops
(`lower_tcvt_a5`). Conversions are in DPS form and legal on the target; `pto-tile-to-buf`,
`pto-materialize-tmp` and `pto-legalize-tcvt` bring them there.

Preserves the bytes of every tile: the valid region of the destination receives what the conversion
gives (spec R, S), everything else stays; only the tmp tile's bytes differ. A module that names
another target than the one lowered to names that one afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from pto.passes.analysis.module_target import named_target
from pto.passes.lowering import lower_tcvt_a2a3, lower_tcvt_a5
from pto.passes.lowering.tile_conversion import analyse, check_default_sat, conversions


@dataclass(frozen=True)
class LowerTcvtPass(ModulePass):
    """Replaces every tile conversion by machine operations.

    Options: `arch` (a2a3, a5 or an alias; default: what the module names) and `default-sat`
    (target, on, off: what an absent satmode means, spec S14).
    """

    name = "pto-lower-tcvt"

    arch: str | None = None
    default_sat: str = "target"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lowers in place. Raises PassFailedException, with the place, for what it cannot lower."""
        check_default_sat(self.default_sat)
        for tcvt in conversions(op):
            conversion = analyse(tcvt, self.arch, self.default_sat)
            named = named_target(tcvt)
            if named is not None and named.resolved != conversion.arch:
                named.owner.attributes[named.key] = StringAttr(conversion.arch)
            lowering = lower_tcvt_a5 if conversion.arch == "a5" else lower_tcvt_a2a3
            lowering.lower(conversion)
