"""Text that cannot be read: where the error points, what it says, and that nothing worse happens."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pto

F32 = "!pto.tile_buf<vec, 16x64xf32>"
F16 = "!pto.tile_buf<vec, 16x64xf16>"
KERNEL = f"func.func @f(%a: {F32}, %b: {F16}, %i: index) {{{{\n  {{}}\n  return\n}}}}\n"


def tcvt(attributes: str) -> str:
    return KERNEL.format(f"pto.tcvt ins(%a {{{attributes}}} : {F32}) outs(%b : {F16})")


def error(text: str) -> pto.ParseError:
    with pytest.raises(pto.ParseError) as caught:
        pto.parse(text, filename="k.pto")
    return caught.value


CASES = [
    # text, line, column, words of the message
    ("", 1, 1, ["the file is empty"]),
    ("// only a comment\n", 1, 1, ["the file is empty"]),
    ("module {\n  func.func @f(\n", 2, 15, ["a type", "a value", "the text ends here"]),
    ("\x01", 1, 1, ["a statement"]),
    ("module attributes {a = \"open} {\n}", 1, 24, ["closing quote"]),
    (KERNEL.format("%x = arith.addi %i, %y : index"), 2, 23, ["'%y' is not defined"]),
    (KERNEL.format("%x = arith.addi %i, %ii : index"), 2, 23, ["'%ii' is not defined"]),
    (KERNEL.format("%i = arith.constant 1 : index"), 2, 3, ["'%i' is defined twice", "1:84"]),
    (KERNEL.format("%x, %y = arith.addi %i, %i : index"), 2, 3, ["one result", "2 are named"]),
    (KERNEL.format("%x = arith.addi %a, %i : index"), 2, 19, ["has type", "not index"]),
    (KERNEL.format(f"pto.tabs ins(%b : {F32}) outs(%a : {F32})"), 2, 16, ["xf16", "not", "xf32"]),
    (KERNEL.format(f"pto.tadd ins(%a : {F32}) outs(%a : {F32})"), 2, 3, ["ins(src0, src1)", "1 in"]),
    (KERNEL.format(f"pto.tadd ins(%a, %a : {F32}) outs(%a : {F32})"), 2, 20, ["2 values", "one type"]),
    (KERNEL.format(f"pto.taddd ins(%a, %a : {F32}, {F32}) outs(%a : {F32})"), 2, 3, ["'pto.tadd'"]),
    (KERNEL.format("%x = arith.adi %i, %i : index"), 2, 8, ["unknown operation", "did you mean"]),
    (KERNEL.format("%x = arith.cmpi lst, %i, %i : index"), 2, 19, ["'lst'", "did you mean"]),
    (KERNEL.format("%x = arith.constant 0101 : f16"), 2, 23, ["'0101' is an integer", "f16"]),
    (KERNEL.format("%x = arith.constant 1065353216 : f32"), 2, 23, ["is an integer"]),
    (KERNEL.format("%x = arith.constant 0x1FFFFFFFF : f32"), 2, 23, ["32 bits"]),
    (KERNEL.format("%x = arith.constant 300 : i8"), 2, 23, ["does not fit in i8"]),
    (KERNEL.format("%x = arith.constant " + "9" * 5000 + " : i64"), 2, 23, ["too large"]),
    (KERNEL.format("%x = arith.constant array<i32: 1>"), 2, 23, ["a number", "array<i32: 1>"]),
    ('module attributes {a = "\\FF"} {}', 1, 24, ["not UTF-8"]),
    (KERNEL.format("%x = pto.castptr %i : i64 -> !pto.ptr<f32>"), 2, 20, ["index, not i64"]),
    (KERNEL.format("pto.cast %i"), 2, 3, ["pto.cast takes ins(src, [mask], [repeat]) outs(dst)"]),
    (KERNEL.format("pto.cast ins(%i : index) outs(%i : index)"), 2, 3, ["dst is a pointer"]),
    (KERNEL.format("pto.cast ins(%i : index) outs : index"), 2, 3, ["nothing else"]),
    (KERNEL.format("pto.something ins(%i {a} : index fp %i {b}) outs(%i : index)"), 2, 3, ["two attr"]),
    (KERNEL.format("pto.something {a} x {b}"), 2, 3, ["two attribute dictionaries"]),
    (KERNEL.format("cf.br ^bb9"), 2, 9, ["'^bb9' is not defined"]),
    (KERNEL.format("scf.if %d {\n    %d = arith.cmpi eq, %i, %i : index\n  }"), 2, 10, ["'%d' is not defined; the one at 3:5"]),
    (KERNEL.format("cf.br ^bb2\n^bb1:\n  %z = arith.addi %y, %i : index\n  return\n^bb2:\n  %y = arith.constant 1 : i32"), 4, 19, ["'%y' has type i32, not index"]),
    ("func.func @f() {\n^bb0(%x: index)\n  return\n}", 3, 3, ["expected ':'"]),
    (tcvt("rmode = #pto<round_mode RINTT>"), 2, 44, ["'RINTT'", "'RINT'"]),
    (tcvt("rmode = #pto<roundmode RINT>"), 2, 33, ["did you mean 'round_mode'"]),
    (tcvt('rmode = "TRUNC"'), 2, 28, ["[attribute]", "#pto<round_mode TRUNC>"]),
    (tcvt("rmode = CAST_TRUNC"), 2, 28, ["[attribute]", "#pto<round_mode TRUNC>, not CAST_T"]),
    (tcvt("sat_mode = ONN"), 2, 31, ["[attribute]", "#pto<saturation_mode ON>, not ONN"]),
    (tcvt("rmode"), 2, 20, ["[attribute]", "not a key alone"]),
    (tcvt('rmode = #pto<round_mode "RINT">'), 2, 44, ["expected a word", "'\"RINT\"'"]),
    (tcvt("rmode = #pto<round_mode rint>"), 2, 44, ["did you mean 'RINT'"]),
    (tcvt("rmode = #nope"), 2, 28, ["undefined attribute alias '#nope'"]),
    (KERNEL.format(f"pto.TABS ins(%a : {F32}) outs(%a : {F32})"), 2, 3, ["'pto.tabs'"]),
    ("func.func @f() {\n  retrun\n}", 2, 3, ["a statement, found 'retrun'"]),
    ("module attributes {a = 1} {\n  foo\n}", 2, 3, ["a statement, found 'foo'"]),
    ("func.func @f() {\n  return;\n}", 2, 9, ["'{', '}', a block"]),
    (tcvt("rmode = 1 : i32"), 2, 28, ["[attribute]"]),
    (tcvt("satmode = true"), 2, 30, ["[attribute]", "#pto<saturation_mode ON>"]),
    (tcvt('satmode = "ON"'), 2, 30, ["[attribute]"]),
    (tcvt("rmode = #pto<saturation_mode ON>"), 2, 28, ["[attribute]"]),
    (
        tcvt("satmode = #pto<saturation_mode ON>, sat_mode = #pto<saturation_mode ON>"),
        2,
        19,
        ["two spellings"],
    ),
    (tcvt("rmode = #pto<round_mode RINT>, rmode = #pto<round_mode RINT>"), 2, 51, ["given twice"]),
    ("func.func @f(%a: !pto.tile_bufff<vec, 1x8xf32>) { return }", 1, 18, ["'!pto.tile_buf'"]),
    ("func.func @f(%a: !pto.tile_buf<vec, 1x8xf33>) { return }", 1, 41, ["'f33'", "'f32'"]),
    ("func.func @f(%a: !pto.tile<1x8xhif8>) { return }", 1, 32, ["did you mean '!pto.hif8'"]),
    ("func.func @f(%a: !pto.tile<1x8xf4E2M1x2>) { return }", 1, 32, ["mean '!pto.f4E2M1x2'"]),
    ("func.func @f(%a: !pto.tile_buf<vek, 1x8xf32>) { return }", 1, 32, ["'vek'"]),
    ("func.func @f(%a: !pto.tile_buf<vec, 8xf32>) { return }", 1, 37, ["two static extents"]),
    ("func.func @f(%a: !pto.tile_buf<vec, 0x8xf32>) { return }", 1, 18, ["positive"]),
    ("func.func @f(%a: !t) { return }", 1, 18, ["undefined type alias '!t'"]),
    ("func.func @f(%a: memref<axf32>) { return }", 1, 18, ["shape"]),
    (KERNEL.format('"pto.tcvt"(%a) : (' + F32 + ") -> ()"), 2, 3, ["operandSegmentSizes"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "words"), CASES)
def test_errors_point_at_the_fault(text: str, line: int, column: int, words: list[str]) -> None:
    found = error(text)
    whole = str(found)
    assert whole.startswith(f"k.pto:{found.line}:{found.column}: error: ")
    for word in words:
        assert word in whole
    assert found.line == line
    if "memref" not in text:
        assert found.column == column


@pytest.mark.parametrize("end", ["", "\n", "\n  // a comment\n// another\n", "\n\n# a comment\n"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_file_that_is_cut_off(end: str, newline: str) -> None:
    lines = [f"func.func @f(%src: {F32}, %dst: {F16}) {{", "", "", "", "", ""]
    lines.append(f"  pto.tcvt ins(%src : {F32}) outs(%dst :")
    text = newline.join(lines) + end.replace("\n", newline)
    found = error(text)
    assert found.line == 7
    assert found.column == len(lines[-1])
    assert "the text ends here" in found.message


def test_the_source_line_and_a_caret_are_shown() -> None:
    assert str(error(tcvt("rmode = #pto<round_mode RINTT>"))).splitlines()[1:] == [
        f"    pto.tcvt ins(%a {{rmode = #pto<round_mode RINTT>}} : {F32}) outs(%b : {F16})",
        "                                             ^~~~~",
    ]


LARGE = {
    "one long word": "module { %" + "x" * 1_000_000 + " }",
    "one long string": 'module attributes {a = "' + "x" * 1_000_000,
    "many operands": "func.func @f() { pto.foo " + "%a, " * 250_000 + "%b }",
    "parentheses": "func.func @f() { pto.barrier " + "(" * 10_000 + " }",
    "matched parentheses": "func.func @f() { pto.barrier " + "(" * 10_000 + ")" * 10_000 + " }",
    "square brackets": "module attributes {a = " + "[" * 10_000 + "]" * 10_000 + "} {}",
    "angle brackets": "func.func @f(%a: !pto.ptr" + "<" * 10_000 + ">) {}",
    "types": "func.func @f(%a: " + "!a<" * 100_000,
    "braces": "module " + "{" * 10_000,
    "modules": "module { " * 10_000 + "}" * 10_000,
    "dictionaries": "module attributes " + "{a = " * 10_000 + " {}",
    "white space": " " * 1_000_000 + "$",
    "results": "func.func @f() { %x:" + "9" * 5_000 + " = pto.something }",
    "comments": "//\n" * 300_000 + "$",
    "quotes": '"' * 100_000,
}


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE.keys())
def test_large_and_deep_input_is_refused_quickly(text: str) -> None:
    start = time.perf_counter()
    message = str(error(text))
    assert len(message) < 2_000
    assert time.perf_counter() - start < 10


def test_a_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(pto.ParseError, match="not a text file"):
        pto.parse(path)
    path.write_bytes(b"module {\0}")
    with pytest.raises(pto.ParseError, match="zero byte"):
        pto.parse(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pto.parse(tmp_path / "k.pto")


SEED = (Path(__file__).parents[2] / "examples" / "cast_f32_f16.pto").read_text()
PIECES = ["%", "}", "{", "(", ")", "<", ">", '"', "#pto<", "!pto.", "=", ":", ",", "->", "\n", "//",
          "0", "pto.tcvt", "scf.for", "ins(", "x", "?", "^bb0:", "loc(", "dense<", "\\"]  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    start=st.integers(0, len(SEED)),
    length=st.integers(0, 40),
    pieces=st.lists(st.sampled_from(PIECES), max_size=4),
)
def test_a_damaged_kernel_parses_or_says_why(start: int, length: int, pieces: list[str]) -> None:
    text = SEED[:start] + "".join(pieces) + SEED[start + length :]
    try:
        module = pto.parse(text)
    except pto.ParseError as found:
        line, message = found.line, found.message
    else:
        printed = pto.print_module(module)
        assert pto.print_module(pto.parse(printed)) == printed
        return
    assert 1 <= line <= text.count("\n") + 1
    assert message
