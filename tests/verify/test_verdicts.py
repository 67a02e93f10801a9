"""Every (source, destination, mode, saturation, target): the verdict is the table's (spec V).

The expectation is computed from the spec's own table, transcribed in `spec_table`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import pto
from pto.numerics.formats import format_of
from pto.passes.verify_tcvt import verify

sys.path.insert(0, str(Path(__file__).parent.parent / "targets"))
from spec_table import ALL_MODES, FORMATS, OFF_BY_DEFAULT, PYTORCH, ROWS, Row

MODES = (None, *ALL_MODES)
SATURATIONS = (None, "ON", "OFF")


def tile(name: str) -> str:
    """16x64 elements of a format; packed pairs count twice (spec F2)."""
    cols = 32 if name.startswith("f4") else 64
    return f"!pto.tile_buf<vec, 16x{cols}x{format_of(name).mlir[0]}>"


def module(src: str, dst: str, mode: str | None, saturation: str | None) -> str:
    entries = [f"rmode = #pto<round_mode {mode}>"] if mode else []
    entries += [f"satmode = #pto<saturation_mode {saturation}>"] if saturation else []
    attributes = f" {{{', '.join(entries)}}}" if entries else ""
    s, d = tile(src), tile(dst)
    return (
        f"func.func @f(%s: {s}, %d: {d}) {{\n"
        f"  pto.tcvt ins(%s{attributes} : {s}) outs(%d : {d})\n  return\n}}"
    )


def is_float(name: str) -> bool:
    return name[0] not in "iu"


def has_choice(row: Row) -> bool:
    """Whether saturation can matter: the result can leave the range of a destination that may
    or may not clip (spec S)."""
    if row.rule in ("=", "S12", "S13") or (row.src, row.dst) == ("f16", "i32"):
        return False
    to_float = is_float(row.dst)
    return not (to_float and (not is_float(row.src) or row.dst == "f32" or row.dst[:2] == "f4"))


def expected_ids(
    arch: str, src: str, dst: str, mode: str | None, saturation: str | None
) -> set[str]:
    row = ROWS.get((arch, src, dst))
    if row is None:
        return {"type-pair"}
    ids = set()
    if not row.accepts(mode):
        ids.add("round-mode")
    if mode is not None and not row.modes:
        ids.add("rmode-ignored")
    lossy_to_int = is_float(src) and not is_float(dst)
    if arch == "a2a3" and mode == "NONE" and lossy_to_int:
        ids.add("ambiguous-none")
    if saturation is not None and not has_choice(row):
        ids.add("satmode-ignored")
    if arch == "a2a3" and saturation and has_choice(row) and is_float(src) and is_float(dst):
        ids.add("float-saturation")
    off = saturation == "OFF" or (saturation is None and (src, dst) in OFF_BY_DEFAULT)
    if arch == "a2a3" and (src, dst) in PYTORCH and off:
        ids.add("native-overflow")
    return ids


def found_ids(arch: str, text: str) -> set[str]:
    return {d.id for d in verify(pto.parse(text), arch=arch)}


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("src", FORMATS)
def test_all_verdicts(arch: str, src: str) -> None:
    """All 13,824 combinations."""
    for dst in FORMATS:
        for mode in MODES:
            for saturation in SATURATIONS:
                found = found_ids(arch, module(src, dst, mode, saturation))
                assert found == expected_ids(arch, src, dst, mode, saturation), (dst, mode)


def test_without_a_target_only_what_no_target_has_is_an_error() -> None:
    for src in FORMATS:
        for dst in FORMATS:
            rows = [ROWS[a, src, dst] for a in ("a2a3", "a5") if (a, src, dst) in ROWS]
            for mode in (None, "ODD"):
                found = verify(pto.parse(module(src, dst, mode, None)))
                errors = {d.id for d in found if d.severity == "error"}
                if not rows:
                    assert errors == {"type-pair"}
                else:
                    accepted = any(row.accepts(mode) for row in rows)
                    assert errors == (set() if accepted else {"round-mode"})
