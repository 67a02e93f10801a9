"""The tmp tiles of a module's conversions: how many bytes each needs and has (spec T)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from pto.dialect.ops import TCvtOp
from pto.dialect.types import TileBufType, TileType
from pto.passes.analysis.locate import position
from pto.passes.analysis.module_target import named_target
from pto.passes.analysis.placement import row_stride, tile_bytes
from pto.passes.rules.tcvt_findings import Conversion
from pto.targets import TMP_TARGET, resolve
from pto.tmp import TmpTerms


@dataclass(frozen=True, slots=True)
class TmpUse:
    """One conversion that needs a tmp tile or is given one."""

    op: TCvtOp
    func: str
    line: int
    column: int
    src: str
    dst: str
    rows: int
    """Valid rows of the destination, the declared ones where they are dynamic."""
    cols: int
    row_stride: int
    """Of the source, in elements."""
    terms: TmpTerms
    """At these extents."""
    needed: int
    """Bytes that certainly serve: more than the terms where the valid columns are dynamic."""
    provided: int | None
    """Bytes of the tmp tile, None without one."""
    is_bound: bool
    """The valid region is dynamic, so that less may be needed."""


def tmp_uses(
    module: ModuleOp, *, arch: str | None = None, default_sat: str = "target"
) -> Iterator[TmpUse]:
    """The conversions of a module that need a tmp tile or are given one, in text order.

    `arch` None takes the target that the module names, and the one that uses tmp tiles where it
    names none.
    """
    for op in module.walk():
        if isinstance(op, TCvtOp) and (use := _use(op, arch, default_sat)) is not None:
            yield use


def _use(op: TCvtOp, arch: str | None, default_sat: str) -> TmpUse | None:
    src, dst = op.src.type, op.dst_type
    tmp = op.tmp.type if op.tmp is not None else None
    if not isinstance(src, TileBufType | TileType) or not isinstance(dst, TileBufType | TileType):
        return None
    if tmp is not None and not isinstance(tmp, TileBufType | TileType):
        return None
    named = named_target(op)
    target = resolve(arch) if arch else (named and named.resolved) or TMP_TARGET
    conversion = Conversion(op, src, dst, tmp, target, default_sat, require_tmp=False)
    terms = conversion.tmp_terms
    if terms is None and tmp is None:
        return None
    line, column = position(op)
    return TmpUse(
        op=op,
        func=_function(op),
        line=line,
        column=column,
        src=conversion.src_name,
        dst=conversion.dst_name,
        rows=dst.rows if dst.valid_rows is None else dst.valid_rows,
        cols=dst.cols if dst.valid_cols is None else dst.valid_cols,
        row_stride=row_stride(op.src),
        terms=terms or TmpTerms(0),
        needed=conversion.tmp_needed or 0,
        provided=tile_bytes(tmp) if tmp is not None else None,
        is_bound=terms is not None and conversion.tmp_is_bound,
    )


def _function(op: Operation) -> str:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    return parent.sym_name.data if parent is not None else ""
