"""What `verify` prints to paste is what `pto-legalize-tcvt` writes, character for character."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.utils.exceptions import PassFailedException

import pto
from pto.diagnostics import Diagnostic
from pto.numerics import FORMATS
from pto.numerics.rules import has_saturation, modes
from pto.passes.legalize_tcvt import LegalizeTcvtPass
from pto.targets import pair_of, product_of

REAL = [name for name, fmt in FORMATS.items() if not fmt.is_complex and name != "f8e8m0"]


def tile(name: str, kind: str = "tile_buf<vec, ") -> str:
    cols = 32 if FORMATS[name].mlir[0].endswith("x2") else 64
    return f"!pto.{kind}16x{cols}x{FORMATS[name].mlir[0]}>"


def attributes(mode: str | None, saturation: str | None) -> str:
    written = [f"rmode = #pto<round_mode {mode}>"] * (mode is not None)
    written += [f"satmode = #pto<saturation_mode {saturation}>"] * (saturation is not None)
    return f" {{{', '.join(written)}}}" if written else ""


def route_of(diagnostic: Diagnostic) -> list[str]:
    """The statements that the note of a missing pair shows, none where it shows none."""
    notes = [n for n in diagnostic.notes if n.startswith(("another route", "the nearest route"))]
    assert len(notes) <= 1
    return notes[0].split("\n")[1:] if notes else []


def is_exact(diagnostic: Diagnostic) -> bool:
    return any(note.startswith("another route") for note in diagnostic.notes)


def pasted(text: str, arch: str, default_sat: str = "target") -> str:
    """The text with the statements of the notes in the place of the conversions."""
    lines = text.split("\n")
    found = pto.verify(pto.parse(text), arch=arch, default_sat=default_sat)
    for diagnostic in sorted(found, key=lambda d: -d.line):
        if diagnostic.id == "type-pair":
            assert is_exact(diagnostic)
            lines[diagnostic.line - 1 : diagnostic.line] = route_of(diagnostic)
    return "\n".join(lines)


def legalised(text: str, arch: str, default_sat: str = "target") -> str:
    module = pto.parse(text)
    LegalizeTcvtPass(arch, default_sat).apply(Context(), module)
    return pto.print_module(module)


def lacking(arch: str) -> list[tuple[str, str]]:
    product = product_of(arch)
    return [
        (src, dst)
        for src in REAL
        for dst in REAL
        if src != dst and pair_of("TCVT", product, FORMATS[src], FORMATS[dst]) is None
    ]


@pytest.mark.parametrize(
    ("form", "arch"),
    [
        ("dps", "a5"),
        ("ssa", "a2a3"),
        pytest.param("ssa", "a5", marks=pytest.mark.slow),
        pytest.param("dps", "a2a3", marks=pytest.mark.slow),
    ],
)
def test_every_pair_mode_and_saturation(form: str, arch: str) -> None:
    """Where legalize writes a chain the note shows it, and where it refuses to, the note says that
    the nearest one differs."""
    for src, dst in lacking(arch):
        choices = ("ON", "OFF", None) if has_saturation(FORMATS[src], FORMATS[dst]) else (None,)
        for mode in (None, *modes(FORMATS[src], FORMATS[dst])):
            for saturation in choices:
                a, b = (tile(n) if form == "dps" else tile(n, "tile<") for n in (src, dst))
                written = attributes(mode, saturation)
                if form == "dps":
                    body = f"  pto.tcvt ins(%x{written} : {a}) outs(%y : {b})"
                else:
                    body = f"  %z = pto.tcvt %x{written} : {a} -> {b}"
                text = f"func.func @f(%x: {a}, %y: {b}) {{\n{body}\n  return\n}}"
                try:
                    expected = legalised(text, arch)
                except PassFailedException:
                    found = pto.verify(pto.parse(text), arch=arch)
                    assert not any(map(is_exact, found)), (src, dst, mode, saturation)
                    continue
                shown = pasted(text, arch)
                assert pto.print_module(pto.parse(shown)) == expected, (src, dst, mode, saturation)
                statements = [line for line in shown.split("\n") if "pto." in line]
                assert (
                    statements[1:]
                    == [line.strip() for line in expected.split("\n") if "pto." in line][1:]
                )


KERNELS = {
    "several, placed": f"""
module {{
  func.func @f() {{
    %a = arith.constant 0 : i64
    %b = arith.constant 4096 : i64
    %x = pto.alloc_tile addr = %a : {tile("i32")}
    %y = pto.alloc_tile addr = %b : {tile("f16")}
    pto.tcvt ins(%x {{rmode = #pto<round_mode FLOOR>}} : {tile("i32")}) outs(%y : {tile("f16")})
    pto.tcvt ins(%x : {tile("i32")}) outs(%y : {tile("f16")})
    return
  }}
}}""",
    "in a loop, with attributes of others": f"""
module {{
  func.func @f(%x: {tile("f16")}, %n: index) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %y = pto.alloc_tile : {tile("bf16")}
    scf.for %i = %c0 to %n step %c1 {{
      pto.tcvt ins(%x {{rmode = #pto<round_mode TRUNC>}} : {tile("f16")}) outs(%y : {tile("bf16")}) {{pto.stage = 1 : i64}}
    }}
    return
  }}
}}""",
    "dynamic": """
module {
  func.func @f(%x: !pto.tile_buf<vec, 16x64xi32, valid=?x?>, %r: index, %c: index) {
    %y = pto.alloc_tile valid_row = %r valid_col = %c : !pto.tile_buf<vec, 16x64xf16, valid=?x?>
    pto.tcvt ins(%x : !pto.tile_buf<vec, 16x64xi32, valid=?x?>) outs(%y : !pto.tile_buf<vec, 16x64xf16, valid=?x?>)
    return
  }
}""",
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("default_sat", ["target", "on", "off"])
def test_kernels(name: str, default_sat: str) -> None:
    text = KERNELS[name]
    shown = pasted(text, "a5", default_sat)
    assert shown != text
    printed = pto.print_module(pto.parse(shown))
    assert printed == legalised(text, "a5", default_sat)
