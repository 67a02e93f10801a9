"""Rules about the tmp tile of a conversion (spec S10, T, V)."""

from __future__ import annotations

from collections.abc import Iterator

from pto.dialect.type_records import type_text
from pto.dialect.types import AnyTile, TileBufType
from pto.passes.rules.checked_conversion import CheckedConversion
from pto.passes.rules.finding import NAME, Anchor, Finding
from pto.targets.vector_unit import BLOCK_BYTES
from pto.tiles.geometry import grown, tile_bytes, up_to_blocks
from pto.tiles.tmp_need import TmpNeed


def tmp_tile(c: CheckedConversion) -> Iterator[Finding]:
    """A tmp tile is there where it is needed, is large enough, and lives in vec (spec T)."""
    need = c.tmp_need
    if c.tmp is None:
        if need is not None:
            yield _without_tmp(c, need)
        return
    if c.tmp.loc != "vec":
        message = f"the tmp tile must be in vec; it is in {c.tmp.loc}"
        yield Finding("tmp-location", message, Anchor("tmp", "loc"))
    if need is not None:
        yield from _small_tmp(c, c.tmp, need)
    elif c.pairs and not _may_use_tmp(c):
        yield Finding("tmp-unused", f"{c.names} does not use a tmp tile {c.on}", Anchor("tmp"))


def _may_use_tmp(c: CheckedConversion) -> bool:
    """Whether tmp may matter: unknown target, or a size that another error hides."""
    return any(resolved.takes_tmp for resolved in c.resolved)


def alloc_line(name: str, size: int) -> str:
    """The statement that allocates a tmp tile of at least `size` bytes, in whole blocks."""
    size = max(BLOCK_BYTES, up_to_blocks(size))
    return f"{name} = pto.alloc_tile : !pto.tile_buf<vec, 1x{size}xi8>"


def _bound_note(need: TmpNeed) -> list[str]:
    if not need.is_bound:
        return []
    return ["the valid region is dynamic: an upper bound for all within the declared shape"]


def _without_tmp(c: CheckedConversion, need: TmpNeed) -> Finding:
    id_, message = (
        ("tmp-missing", f"{c.names} without saturation needs a tmp tile of {need.bytes} bytes")
        if c.require_tmp
        else (
            "native-overflow",
            f"{c.names} without saturation and without tmp does not give PyTorch's results for"
            " infinities and overflow",
        )
    )
    resolved = c.on_target
    notes = (
        *(c.saturation_notes(resolved) if resolved is not None else ()),
        f"for PyTorch's results, add a tmp operand:\n{alloc_line('%tmp', need.bytes)}",
        *_bound_note(need),
        "to clamp instead: satmode = #pto<saturation_mode ON>",
    )
    return Finding(id_, message, NAME, notes)


def _small_tmp(c: CheckedConversion, tmp: AnyTile, need: TmpNeed) -> Iterator[Finding]:
    provided = tile_bytes(tmp)
    if provided is None or provided >= need.bytes:
        return
    may = "may need up to" if need.is_bound else "needs"
    yield Finding(
        "tmp-small",
        f"the tmp tile has {provided} bytes, {c.names} of {need.rows}x{need.cols} {may}"
        f" {need.bytes}",
        Anchor("tmp", "shape"),
        (*_term_notes(need), *_larger_tile_notes(c, tmp, need.bytes), *_bound_note(need)),
        severity="warning" if need.is_bound else None,
    )


def _term_notes(need: TmpNeed) -> list[str]:
    terms = need.terms
    if need.is_bound or not (terms.head or terms.tail):
        return []
    listed = f"head {terms.head} and tail {terms.tail} bytes"
    return [f"the larger of {listed} counts; `pto-opt tmp` shows the terms"]


def _larger_tile_notes(c: CheckedConversion, tmp: AnyTile, size: int) -> list[str]:
    larger = grown(tmp, size) if isinstance(tmp, TileBufType) else None
    if larger is None:
        return []
    return [f"large enough: {c.value_name('tmp')} = pto.alloc_tile : {type_text(larger)}"]
