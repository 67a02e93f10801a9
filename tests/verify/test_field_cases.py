"""Inputs that went wrong for kernel writers, one test a kind."""

from __future__ import annotations

import math
import struct

import pytest
from checking import check

import pto
from pto.diagnostics import Diagnostic
from pto.tiles.tmp import tmp_bytes


def tcvt(src: str, dst: str, attributes: str = "", arch: str | None = None) -> str:
    """A module with one conversion; the types are those of tile_buf's body."""
    target = f' attributes {{pto.target_arch = "{arch}"}}' if arch else ""
    s, d = f"!pto.tile_buf<vec, {src}>", f"!pto.tile_buf<vec, {dst}>"
    return (
        f"module{target} {{\nfunc.func @f(%s: {s}, %d: {d}) {{\n"
        f"  pto.tcvt ins(%s{attributes} : {s}) outs(%d : {d})\n  return\n}}\n}}\n"
    )


def mode(name: str) -> str:
    return f" {{rmode = #pto<round_mode {name}>}}"


def found(text: str, *options: str) -> dict[str, Diagnostic]:
    """The findings by id, `no-target` left out."""
    return {d.id: d for d in check(text, *options).diagnostics if d.id != "no-target"}


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_mode_that_the_pair_lacks(arch: str) -> None:
    wrong = found(tcvt("16x64xf32", "16x64xbf16", mode("ODD"), arch))
    assert wrong.keys() == {"round-mode"}
    assert "RINT ROUND FLOOR CEIL TRUNC" in wrong["round-mode"].notes[0]
    assert "ODD" not in wrong["round-mode"].notes[0]
    assert not found(tcvt("16x64xf32", "16x64xf16", mode("ODD"), arch))


@pytest.mark.parametrize(
    ("dst", "written", "listed"),
    [("f8E4M3FN", "TRUNC", "a5: RINT (NONE"), ("!pto.hif8", "RINT", "a5: ROUND HYBRID")],
)
def test_mode_that_a_narrow_float_lacks(dst: str, written: str, listed: str) -> None:
    wrong = found(tcvt("16x64xf32", f"16x64x{dst}", mode(written), "a5"))
    assert wrong.keys() == {"round-mode"}
    assert listed in wrong["round-mode"].notes[0]


def test_unknown_mode() -> None:
    text = tcvt("16x64xf32", "16x64xf16", mode("RINTT"))
    with pytest.raises(pto.ParseError, match="RINT") as error:
        pto.parse(text)
    line = text.splitlines()[error.value.line - 1]
    assert "RINTT" in line[error.value.column - 1 :]


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_same_type(arch: str) -> None:
    wrong = found(tcvt("16x64xf16", "16x64xf16", "", arch))
    assert wrong.keys() == {"type-pair"}
    assert any("f32 to f32" in note and "only" in note for note in wrong["type-pair"].notes)


def test_pair_by_target() -> None:
    text = tcvt("16x64xi32", "16x64xf16", mode("FLOOR"))
    on_a3 = found(text, "--arch", "a3")
    assert on_a3.keys() == {"rmode-ignored"}
    assert on_a3["rmode-ignored"].severity == "remark"
    on_a5 = found(text, "--arch", "a5")
    assert on_a5.keys() == {"type-pair"}
    assert any("i32 -> f32 -> f16, exact" in note for note in on_a5["type-pair"].notes)


def test_target_from_the_command_line() -> None:
    assert not found(tcvt("16x64xbf16", "16x64xf16"), "--arch", "a5")
    on_a3 = tcvt("16x64xbf16", "16x64xf16", "", "a3")
    assert found(on_a3).keys() == {"type-pair"}
    assert found(on_a3, "--arch", "a5").keys() == {"target-override"}


def test_packed_extents() -> None:
    assert not found(tcvt("16x64xbf16", "16x32x!pto.f4E2M1x2", "", "a5"))
    wrong = found(tcvt("16x32xbf16", "16x32x!pto.f4E2M1x2", "", "a5"))
    assert wrong.keys() == {"shape"}
    assert "16x32 elements" in wrong["shape"].message
    assert "16x64" in wrong["shape"].message


@pytest.mark.parametrize(
    ("src", "dst", "size"),
    [
        ("4x4xf32", "4x4xi32", "16 bytes"),
        ("8x1xf32", "8x1xi32", "4 bytes"),
        ("1x8xf32", "1x8xi32", None),
        ("1x32xi8", "1x32xf16", None),
        ("1x31xi8", "1x31xf16", "31 bytes"),
    ],
)
def test_row_alignment(src: str, dst: str, size: str | None) -> None:
    report = check(tcvt(src, dst, "", "a2a3"))
    errors = [d for d in report.diagnostics if d.severity == "error"]
    if size is None:
        assert errors == []
        return
    assert {d.id for d in errors} == {"row-align"}
    assert size in errors[0].message
    assert "next column count that fits is" in errors[0].notes[0]


def test_both_spellings_of_satmode() -> None:
    on = "#pto<saturation_mode ON>"
    text = tcvt("16x64xf32", "16x64xf16", f" {{satmode = {on}, sat_mode = {on}}}")
    with pytest.raises(pto.ParseError) as error:
        pto.parse(text)
    assert error.value.line == 3
    assert error.value.column >= text.splitlines()[2].index("{") + 1


@pytest.mark.parametrize(("rows", "size"), [(254, 81024), (255, 81344), (400, 81344)])
def test_tmp_cap(rows: int, size: int) -> None:
    assert tmp_bytes("f32", "i16", rows, 80) == size


def with_tmp(size: int, arch: str) -> str:
    s, d, t = "vec, 16x64xf32", "vec, 16x64xi16", f"vec, 1x{size}xi8"
    return (
        f'module attributes {{pto.target_arch = "{arch}"}} {{\n'
        f"func.func @f(%s: !pto.tile_buf<{s}>, %d: !pto.tile_buf<{d}>) {{\n"
        f"  %t = pto.alloc_tile : !pto.tile_buf<{t}>\n"
        "  pto.tcvt ins(%s, %t {satmode = #pto<saturation_mode OFF>}"
        f" : !pto.tile_buf<{s}>, !pto.tile_buf<{t}>) outs(%d : !pto.tile_buf<{d}>)\n"
        "  return\n}\n}\n"
    )


def test_tmp_tail() -> None:
    assert tmp_bytes("f32", "i16", 16, 65, row_stride=72) == 4352
    assert tmp_bytes("f32", "i16", 16, 64) == 256
    for size in (32, 224):
        wrong = found(with_tmp(size, "a3"))
        assert wrong.keys() == {"tmp-small"}
        assert wrong["tmp-small"].severity == "error"
        assert "256" in wrong["tmp-small"].message
        assert not [d for d in found(with_tmp(size, "a5")).values() if d.severity == "error"]
    assert not found(with_tmp(256, "a3"))
    assert tmp_bytes("f32", "i16", 16, 64, arch="a5") == 0


def test_one_type_in_two_spellings() -> None:
    long = (
        "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16, v_row=16, v_col=16,"
        " blayout=row_major, slayout=none_box, fractal=512, pad=0>"
    )
    short = "!pto.tile_buf<vec, 16x16xf32>"
    texts = [
        f"func.func @f(%a: {t}, %b: {t}) {{\n  pto.tcvt ins(%a : {t}) outs(%b : {t})\n  return\n}}"
        for t in (long, short)
    ]
    printed = [pto.print_module(pto.parse(text)) for text in texts]
    assert printed[0] == printed[1]
    assert pto.print_module(pto.parse(printed[0])) == printed[0]


def test_dynamic_extents() -> None:
    tile = "!pto.tile_buf<vec, 16x64x{}, valid=?x?>"
    f32, f16 = tile.format("f32"), tile.format("f16")
    text = (
        "func.func @f(%r: index, %c: index) {\n"
        f"  %s = pto.alloc_tile valid_row = %r valid_col = %c : {f32}\n"
        f"  %d = pto.alloc_tile valid_row = %r valid_col = %c : {f16}\n"
        f"  pto.tcvt ins(%s : {f32}) outs(%d : {f16})\n  return\n}}"
    )
    printed = pto.print_module(pto.parse(text))
    assert "valid_row = %r valid_col = %c" in printed
    assert not found(text, "--arch", "a3")
    assert not found(printed, "--arch", "a3")


def constant(literal: str) -> float:
    from xdsl.dialects.arith import ConstantOp
    from xdsl.dialects.builtin import FloatAttr

    module = pto.parse(f"func.func @f() {{\n  %c = arith.constant {literal}\n  return\n}}")
    (op,) = [op for op in module.walk() if isinstance(op, ConstantOp)]
    assert isinstance(op.value, FloatAttr)
    return op.value.value.data


def test_float_constants_in_hexadecimal() -> None:
    assert constant("0x3F800000 : f32") == struct.unpack("f", struct.pack("I", 0x3F800000))[0]
    assert math.isnan(constant("0x7FC0 : bf16"))
    for literal in ("1065353216 : f32", "0101 : f16"):
        wrong = found(f"func.func @f() {{\n  %c = arith.constant {literal}\n  return\n}}")
        assert wrong.keys() == {"syntax"}
        assert (wrong["syntax"].line, wrong["syntax"].column) == (2, 23)


def test_attributes_with_and_without_a_dictionary() -> None:
    for attributes in (mode("RINT"), ""):
        assert not found(tcvt("16x64xf32", "16x64xf16", attributes, "a5"))


def test_block_arguments_without_a_body() -> None:
    report = check("func.func @f() {\n^bb0(%a : i32\n}\n")
    assert [(d.id, d.line) for d in report.diagnostics] == [("syntax", 3)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["", "  // and no more", "\n\n// the rest is missing\n"])
def test_a_file_that_is_cut_off(end: str, tail: str) -> None:
    text = (
        "module {\n// one\n// two\nfunc.func @f(%src: !pto.tile_buf<vec, 16x64xf32>,\n"
        "             %dst: !pto.tile_buf<vec, 16x64xf16>) {\n"
        "  pto.tcvt ins(%src : !pto.tile_buf<vec, 16x64xf32>)\n    outs(%dst :"
    )
    report = check((text + tail).replace("\n", end))
    (error,) = report.diagnostics
    assert (error.id, error.line) == ("syntax", 7)
    assert "    outs(%dst :"[error.column - 1] == ":"


@pytest.mark.parametrize(("src", "dst"), [("i64", "f16"), ("f64", "f32"), ("index", "f32")])
def test_unsupported_types(src: str, dst: str) -> None:
    wrong = found(tcvt(f"16x64x{src}", f"16x64x{dst}"), "--arch", "a5")
    assert wrong.keys() == {"type-pair"}
    assert f"a5 does not convert {src} to {dst}" == wrong["type-pair"].message


@pytest.mark.parametrize(
    "entry", ['rmode = "TRUNC"', "rmode = 1 : i32", "satmode = true", 'satmode = "ON"']
)
def test_attribute_of_the_wrong_kind(entry: str) -> None:
    text = tcvt("16x64xf32", "16x64xf16", f" {{{entry}}}")
    wrong = found(text)
    assert wrong.keys() == {"attribute"}
    line = text.splitlines()[wrong["attribute"].line - 1]
    value = entry.split(" = ")[1].split(" ")[0]
    assert line[wrong["attribute"].column - 1 :].startswith(value)


@pytest.mark.parametrize(
    ("entry", "meant"),
    [
        ("round_mode = #pto<round_mode TRUNC>", "rmode"),
        ("saturate = #pto<saturation_mode ON>", "satmode"),
        ("rmod = #pto<round_mode TRUNC>", "rmode"),
        ("satmod = #pto<saturation_mode ON>", "satmode"),
    ],
)
def test_misspelt_key(entry: str, meant: str) -> None:
    wrong = found(tcvt("16x64xf32", "16x64xf16", f" {{{entry}}}", "a5"))
    assert wrong.keys() == {"unknown-attribute"}
    assert wrong["unknown-attribute"].severity == "warning"
    assert f"did you mean {meant!r}?" in wrong["unknown-attribute"].notes[0]
