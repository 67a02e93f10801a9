"""The tmp tiles of a module's conversions: how many bytes each needs and has (spec T)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from pto.dialect.location import location_of
from pto.dialect.ops import TCvtOp
from pto.dialect.target import target_of
from pto.dialect.types import AnyTile
from pto.passes.common import conversions, function_of
from pto.targets import TMP_TARGET, product_of
from pto.tiles.geometry import row_stride, tile_bytes
from pto.tiles.tmp import TmpTerms
from pto.tiles.tmp_need import TmpNeed, tmp_need


@dataclass(frozen=True, slots=True)
class TmpUse:
    """One conversion that needs a tmp tile or is given one."""

    op: TCvtOp
    func: str
    line: int
    column: int
    src: str
    dst: str
    need: TmpNeed
    provided: int | None
    """Bytes of the tmp tile, None without one."""


def tmp_uses(
    module: ModuleOp, *, arch: str | None = None, default_sat: str = "target"
) -> Iterator[TmpUse]:
    """The conversions of a module that need a tmp tile or are given one, in text order.

    `arch` None takes the target that the module names, and the one that uses tmp tiles where it
    names none.
    """
    for op in conversions(module):
        if (use := _use(op, arch, default_sat)) is not None:
            yield use


def _use(op: TCvtOp, arch: str | None, default_sat: str) -> TmpUse | None:
    dst, tmp = op.dst_type, None if op.tmp is None else op.tmp.type
    formats = op.formats()
    if formats is None or not isinstance(dst, AnyTile):
        return None
    if tmp is not None and not isinstance(tmp, AnyTile):
        return None
    named = target_of(op)
    product = (named and named.product) or product_of(TMP_TARGET)
    resolved = op.resolve(product if arch is None else product_of(arch), default_sat)
    assert resolved is not None
    need = tmp_need(resolved, op.src, dst)
    if need is None and tmp is None:
        return None
    rows, cols = (
        declared if valid is None else valid
        for valid, declared in ((dst.valid_rows, dst.rows), (dst.valid_cols, dst.cols))
    )
    place = location_of(op, in_text=True)
    function = function_of(op)
    return TmpUse(
        op=op,
        func=function.sym_name.data if function is not None else "",
        line=place.line,
        column=place.column,
        src=formats[0].name,
        dst=formats[1].name,
        need=need or TmpNeed(rows, cols, row_stride(op.src), TmpTerms(0), 0, is_bound=False),
        provided=None if tmp is None else tile_bytes(tmp),
    )
