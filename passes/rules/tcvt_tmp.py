"""Rules about the tmp tile of a conversion (spec S10, T, V)."""

from __future__ import annotations

from collections.abc import Iterator

from pto.dialect.types import TileBufType, type_text
from pto.passes.analysis.placement import BLOCK_BYTES, AnyTile, grown, tile_bytes
from pto.passes.rules.tcvt_findings import Conversion, Finding, Where, static


def tmp_tile(c: Conversion) -> Iterator[Finding]:
    """A tmp tile is there where it is needed, is large enough, and lives in vec (spec T)."""
    if c.tmp is None:
        if c.tmp_needed is not None:
            yield _without_tmp(c, c.tmp_needed)
        return
    if c.tmp.loc != "vec":
        yield Finding(
            "tmp-location",
            f"the tmp tile must be in vec; it is in {c.tmp.loc}",
            Where("tmp", "loc"),
        )
    if c.tmp_needed is not None:
        yield from _small_tmp(c, c.tmp, c.tmp_needed)
    elif c.pairs and not _may_use_tmp(c):
        yield Finding("tmp-unused", f"{c.names} does not use a tmp tile {c.on}", Where("tmp"))


def _may_use_tmp(c: Conversion) -> bool:
    """Whether tmp may matter: unknown target, or a size that another error hides."""
    if c.arch is not None and not c.needs_tmp:
        return False
    return any(pair.pytorch_pair and c.saturation(pair) == "OFF" for pair in c.pairs)


def alloc_line(name: str, size: int) -> str:
    """The statement that allocates a tmp tile of at least `size` bytes, in whole blocks."""
    size = max(BLOCK_BYTES, -(-size // BLOCK_BYTES) * BLOCK_BYTES)
    return f"{name} = pto.alloc_tile : !pto.tile_buf<vec, 1x{size}xi8>"


def _bound_note(c: Conversion) -> list[str]:
    if not c.tmp_is_bound:
        return []
    return ["the valid region is dynamic: an upper bound for all within the declared shape"]


def _without_tmp(c: Conversion, needed: int) -> Finding:
    id_, message = (
        ("tmp-missing", f"{c.names} without saturation needs a tmp tile of {needed} bytes")
        if c.require_tmp
        else (
            "native-overflow",
            f"{c.names} without saturation and without tmp does not give PyTorch's results for"
            " infinities and overflow",
        )
    )
    return Finding(
        id_,
        message,
        Where(),
        (
            *(c.saturation_notes(c.pair) if c.pair is not None else ()),
            f"for PyTorch's results, add a tmp operand:\n{alloc_line('%tmp', needed)}",
            *_bound_note(c),
            "to clamp instead: satmode = #pto<saturation_mode ON>",
        ),
    )


def _small_tmp(c: Conversion, tmp: AnyTile, needed: int) -> Iterator[Finding]:
    provided = tile_bytes(tmp)
    if provided is None or provided >= needed:
        return
    rows = static(c.dst.valid_rows, c.dst.rows)
    cols = static(c.dst.valid_cols, c.dst.cols)
    may = "may need up to" if c.tmp_is_bound else "needs"
    yield Finding(
        "tmp-small",
        f"the tmp tile has {provided} bytes, {c.names} of {rows}x{cols} {may} {needed}",
        Where("tmp", "shape"),
        (*_term_notes(c), *_larger_tile_notes(c, tmp, needed), *_bound_note(c)),
        severity="warning" if c.tmp_is_bound else None,
    )


def _term_notes(c: Conversion) -> list[str]:
    terms = c.tmp_terms
    if terms is None or c.tmp_is_bound or not (terms.head or terms.tail):
        return []
    listed = f"head {terms.head} and tail {terms.tail} bytes"
    return [f"the larger of {listed} counts; `pto-opt tmp` shows the terms"]


def _larger_tile_notes(c: Conversion, tmp: AnyTile, size: int) -> list[str]:
    larger = grown(tmp, size) if isinstance(tmp, TileBufType) else None
    if larger is None:
        return []
    return [f"large enough: {c.value_name('tmp')} = pto.alloc_tile : {type_text(larger)}"]
