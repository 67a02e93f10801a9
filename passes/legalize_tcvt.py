"""Pass `pto-legalize-tcvt`: what the target lacks becomes a chain of what it has (spec L4).

A chain is used only where it is the direct conversion, bit for bit, under the written mode and
saturation; `pto.targets.chains` has the proof. Preserves the bytes of every destination. What has
no such chain is an error that names the nearest chain and an input where it differs.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from pto.dialect.ops import TCvtOp
from pto.passes.common import TargetedPass, check_default_sat, conversions, fail
from pto.passes.lowering.chain import replace_by_chain, replacement_chain
from pto.targets import ResolvedConversion
from pto.targets.chains import difference


@dataclass(frozen=True)
class LegalizeTcvtPass(TargetedPass):
    """Replaces conversions that the target lacks by exact chains; options as `TargetedPass`."""

    name = "pto-legalize-tcvt"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites in place. Raises PassFailedException where no exact chain exists."""
        check_default_sat(self.default_sat)
        for tcvt in conversions(op):
            resolved = self.resolve(tcvt)
            if resolved.illegal is None:
                continue
            if resolved.pair is not None:
                raise fail(tcvt, f"{resolved.illegal.message}; {resolved.illegal.advice}")
            self._replace(tcvt, resolved)

    def _replace(self, op: TCvtOp, resolved: ResolvedConversion) -> None:
        product, illegal = resolved.product, resolved.illegal
        assert product is not None
        assert illegal is not None
        lacking = illegal.message
        try:
            chain = replacement_chain(op, product, self.default_sat)
        except ValueError as error:
            raise fail(op, str(error)) from None
        if chain is None:
            raise fail(op, f"{lacking}, and no chain of others leads there")
        if not chain.is_exact:
            raise _not_exact(op, f"{lacking}; the nearest chain, {chain},", difference(chain))
        replace_by_chain(op, chain)


def _not_exact(op: TCvtOp, nearest: str, found: str | None) -> PassFailedException:
    if found is None:
        return fail(op, f"{nearest} is not proved to be the same")
    return fail(op, f"{nearest} differs: {found}")
