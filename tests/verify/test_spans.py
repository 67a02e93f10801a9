"""Finding the parts of a statement in the text."""

from __future__ import annotations

import pytest

from pto.frontend.spans import Span, Statement, find_statement, part_of_type


def shown(text: str, span: Span | None) -> str:
    return "" if span is None else text[span.start : span.end]


def parts(text: str, name: str = "pto.tcvt") -> tuple[list[str], ...]:
    """Operands and types of ins, then of outs."""
    statement = statement_of(text, name)
    groups = (statement.ins, statement.outs)
    return tuple(
        [shown(text, span) for span in spans] for g in groups for spans in (g.operands, g.types)
    )


def statement_of(text: str, name: str = "pto.tcvt") -> Statement:
    statement = find_statement(text, len(text) - len(text.lstrip()), name)
    assert statement is not None
    return statement


A, B = "!pto.tile_buf<vec, 16x64xf32, valid=?x?>", "!pto.tile_buf<vec, 16x32x!pto.f4E2M1x2>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"pto.tcvt ins(%s : {A}) outs(%d : {B})", (["%s"], [A], ["%d"], [B])),
        (f"  pto.tcvt ins(%s, %t : {A}, {B}) outs(%d : {B})", (["%s", "%t"], [A, B], ["%d"], [B])),
        (f"%d = pto.tcvt %s : {A} -> {B}", (["%s"], [A], [], [B])),
        (
            f"%d, %e = tcvt %s, %t {{a = 1 : i32}} : {A}, {A} -> {B}",
            (["%s", "%t"], [A, A], [], [B]),
        ),
        (
            f"pto.tcvt ins(%s // ) outs(\n : {A}) // :\n outs( %d : {B} )",
            (["%s"], [A], ["%d"], [B]),
        ),
        (f"pto.tcvt ins(%s # %x {{\n : {A}) #!%y\n outs(%d : {B})", (["%s"], [A], ["%d"], [B])),
        ("pto.tcvt ins(%a#1 : !t) outs(%d : !u)", (["%a#1"], ["!t"], ["%d"], ["!u"])),
        ("pto.tcvt ins(%s) outs(%d)", (["%s"], [], ["%d"], [])),
        ("pto.tcvt ins(%s", (["%s"], [], [], [])),
    ],
)
def test_operands_and_types(text: str, expected: tuple[list[str], ...]) -> None:
    assert parts(text) == expected


def test_alloc_tile() -> None:
    text = f"%t = pto.alloc_tile addr = %a valid_row = %r : {A}"
    assert parts(text, "pto.alloc_tile")[1] == [A]


def test_attributes_in_either_place() -> None:
    text = (
        f'pto.tcvt ins(%s {{rmode = #pto<round_mode ODD>, "x.y" = "a, }}", flag}} : {A})'
        f" outs(%d : {B}) {{satmode = #pto.saturation_mode<OFF>, n = [1, 2]}} loc(unknown)"
    )
    found = {key: shown(text, entry.value) for key, entry in statement_of(text).attributes.items()}
    assert found == {
        "rmode": "#pto<round_mode ODD>",
        "x.y": '"a, }"',
        "flag": "",
        "satmode": "#pto.saturation_mode<OFF>",
        "n": "[1, 2]",
    }


def test_the_statement_ends_where_it_ends() -> None:
    text = f"pto.tcvt ins(%s : {A}) outs(%d : {B})\n  pto.tcvt ins(%x : {A}) outs(%y : {B})"
    assert text[: statement_of(text).end] == text.split("\n")[0]
    text = f"%d = pto.tcvt %s : {A} -> {B}\n  return"
    assert text[: statement_of(text).end] == text.split("\n")[0]


@pytest.mark.parametrize(
    ("text", "name", "shown_text"),
    [
        ('module attributes {a = "b"} {\n  func.func @f(', "module", 'module attributes {a = "b"}'),
        ("pto.barrier {a}\n  %x = pto.foo %y : f32", "pto.barrier", "pto.barrier {a}"),
        ("return\n}", "func.return", "return"),
        ("scf.yield\n^bb1:", "scf.yield", "scf.yield"),
        ("pto.addptr %p, %o : <f32, ub> -> <f32, ub>", "pto.addptr", ""),
        ('pto.x {a = (i32) -> i32, l = loc("a":1:2), d = dense<1> : vector<2xi32>}', "pto.x", ""),
    ],
)
def test_other_statements_end_where_they_end(text: str, name: str, shown_text: str) -> None:
    assert text[: statement_of(text, name).end] == (shown_text or text)


@pytest.mark.parametrize("text", ['"pto.tcvt"(%s, %d) : (!t, !u) -> ()', "return", ""])
def test_no_such_statement(text: str) -> None:
    assert find_statement(text, 0, "pto.tcvt") is None


LONG = (
    "!pto.tile_buf<loc=mat, dtype=!pto.hif8, rows=16, cols=64, v_row=?, v_col=8, blayout=row_major>"
)


@pytest.mark.parametrize(
    ("type_", "dtype", "loc", "shape", "valid"),
    [
        (A, "f32", "vec", "16x64", "valid=?x?"),
        (B, "!pto.f4E2M1x2", "vec", "16x32", B),
        (LONG, "!pto.hif8", "mat", "rows=16, cols=64", "v_row=?, v_col=8"),
        (
            "!pto.tile<16x64xbf16>",
            "bf16",
            "!pto.tile<16x64xbf16>",
            "16x64",
            "!pto.tile<16x64xbf16>",
        ),
        ("!alias", "!alias", "!alias", "!alias", "!alias"),
    ],
)
def test_parts_of_a_type(type_: str, dtype: str, loc: str, shape: str, valid: str) -> None:
    span = Span(2, 2 + len(type_))
    text = f": {type_} // f64"
    found = [shown(text, part_of_type(text, span, p)) for p in ("dtype", "loc", "shape", "valid")]
    assert found == [dtype, loc, shape, valid]
