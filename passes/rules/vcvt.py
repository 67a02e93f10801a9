"""The rules for a register conversion: the check of the operation itself (spec A1, V)."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from pto.diagnostics import registry
from pto.dialect.register_ops import VcvtOp
from pto.passes.rules.finding import NAME, Finding, value_of


def register_conversion(op: Operation) -> Iterator[Finding]:
    """What is wrong with a conversion, as far as there are diagnostics for it."""
    if not isinstance(op, VcvtOp):  # a statement in a form that is not known
        return
    for problem in op.problems():
        if problem.id in registry():
            anchor = value_of(problem.attribute) if problem.attribute else NAME
            yield Finding(problem.id, problem.message, anchor, problem.notes)
