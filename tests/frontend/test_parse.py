"""Parsing and printing: every form parses, prints, and parses again to the same IR."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation
from xdsl.parser import Parser

import pto
from pto.dialect.location import location_of
from pto.dialect.ops import OpaqueOp, PartitionViewOp, TCvtOp
from pto.frontend.builder_state import BuilderState
from pto.frontend.builders import builders_of
from pto.frontend.source import Source
from pto.grammar.lalr import tokenize
from pto.grammar.tables import load

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.pto"))

TILES = """
func.func @f(%a: !pto.tile_buf<vec, 16x64xf32>, %b: !pto.tile_buf<vec, 16x64xf16>,
             %t: !pto.tile_buf<vec, 1x256xi8>, %i: index, %p: !pto.ptr<f32>, %c: i1, %s: f32,
             %w: !pto.tile_buf<vec, 16x64xf32, valid=?x?>, %ub32: !pto.ptr<f32, ub>,
             %ub16: !pto.ptr<f16, ub>) {{
  {statement}
  return
}}
"""


def statement(text: str) -> Operation:
    """The first operation of a function whose body is `text`."""
    module = pto.parse(TILES.format(statement=text))
    function = module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    first = function.body.block.first_op
    assert first is not None
    return first


def assert_round_trip(module: ModuleOp, context: Context) -> None:
    for generic in (False, True):
        text = pto.print_module(module, generic=generic)
        again = pto.parse(text)
        assert again.is_structurally_equivalent(module)
        assert pto.print_module(again, generic=generic) == text
        theirs = Parser(context.clone(), text).parse_module()
        assert theirs.is_structurally_equivalent(module)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_print_to_what_both_parsers_read_back(path: Path, xdsl_context: Context) -> None:
    assert_round_trip(pto.parse(path), xdsl_context)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_long_types_are_the_same_module(path: Path) -> None:
    module = pto.parse(path)
    text = pto.print_module(module, long_types=True)
    assert pto.parse(text).is_structurally_equivalent(module)


def statements() -> list[tuple[str, str]]:
    """Class and text of each line of `statements.txt`."""
    lines = (Path(__file__).parent / "statements.txt").read_text().splitlines()
    split = (line.split(maxsplit=1) for line in lines if not line.startswith("#"))
    return [(cls, text.replace("\\n", "\n")) for cls, text in split]


@pytest.mark.parametrize(("cls", "text"), statements())
def test_statements(cls: str, text: str, xdsl_context: Context) -> None:
    op = statement(text)
    assert cls in [base.__name__ for base in type(op).__mro__]
    module = pto.parse(TILES.format(statement=text))
    printed = pto.print_module(module)
    again = pto.parse(printed)
    assert again.is_structurally_equivalent(module)
    assert pto.print_module(again) == printed
    generic = pto.print_module(module, generic=True)
    assert pto.parse(generic).is_structurally_equivalent(module)
    novel = {"pto.something_new", "pto.entirely_novel", "arith.index_castui"}
    if op.name not in novel:
        for text_of_module in (printed, generic):
            theirs = Parser(xdsl_context.clone(), text_of_module).parse_module()
            assert theirs.is_structurally_equivalent(module)


def test_a_long_statement_is_read_by_both_parsers(xdsl_context: Context) -> None:
    values = ", ".join(["%i"] * 200)
    types = ", ".join(["index"] * 200)
    module = pto.parse(TILES.format(statement=f"%d = pto.something {values} : {types} -> index"))
    printed = pto.print_module(module)
    assert pto.print_module(pto.parse(printed)) == printed
    used = printed.replace("pto.something", "pto.mte_gm_ub")
    theirs = Parser(xdsl_context.clone(), used).parse_module()
    assert theirs.is_structurally_equivalent(pto.parse(used))
    for value in theirs.body.block.first_op.body.block.args:  # type: ignore[union-attr]
        assert len(list(value.uses)) in (0, 200)


def test_properties_in_the_generic_form_of_a_declared_operation() -> None:
    load = '"pto.vlds"(%p, %i) {dist = "NORM", note} : (!pto.ptr<f32>, index) -> '
    op = statement(f"%d = {load} !pto.vreg<64xf32>")
    assert type(op).__name__ == "VldsOp"
    assert op.properties == {"dist": StringAttr("NORM")}
    assert list(op.attributes) == ["note"]
    updating = statement(f"%d, %e = {load} (!pto.vreg<64xf32>, !pto.ptr<f32>)")
    assert isinstance(updating, OpaqueOp)
    assert list(updating.attributes) == ["dist", "note"]
    assert len(list(updating.operands[0].uses)) == 1


def test_attributes_in_both_groups_are_kept() -> None:
    op = statement(
        "pto.tcvt ins(%a {satmode = #pto<saturation_mode ON>} : !pto.tile_buf<vec, 16x64xf32>)"
        " outs(%b {rmode = #pto<round_mode ODD>} : !pto.tile_buf<vec, 16x64xf16>) {x}"
    )
    assert sorted(op.properties) == ["operandSegmentSizes", "rmode", "satmode"]
    assert list(op.attributes) == ["x"]


def test_each_production_is_the_method_of_one_builder() -> None:
    state = BuilderState(Source("", ""), tokenize("pto", ""))
    builders = builders_of(state)
    for production in load("pto").productions:
        owners = [builder for builder in builders if hasattr(builder, production.action)]
        assert len(owners) <= 1, production.action


def test_partition_without_a_result_type_takes_constant_sizes() -> None:
    module = pto.parse(
        "func.func @f(%v: !pto.tensor_view<?x?xf32>, %n: index) {\n"
        "  %c16 = arith.constant 16 : index\n"
        "  %p = pto.partition_view %v, offsets = [%n, %n], sizes = [%c16, %n]"
        " : !pto.tensor_view<?x?xf32>\n  return\n}"
    )
    view = next(op for op in module.walk() if isinstance(op, PartitionViewOp))
    assert str(view.result.type) == "!pto.partition_tensor_view<16x?xf32>"


def test_the_three_levels_of_tcvt_are_one_operation() -> None:
    short = statement(
        "%d = tcvt %a : !pto.tile_buf<vec, 16x64xf32> -> !pto.tile_buf<vec, 16x64xf16>"
    )
    full = statement(
        "%d = pto.tcvt %a : !pto.tile_buf<vec, 16x64xf32> -> !pto.tile_buf<vec, 16x64xf16>"
    )
    assert short.name == full.name == "pto.tcvt"
    assert short.results[0].type == full.results[0].type


def test_both_spellings_of_a_mode_are_one_attribute() -> None:
    modes = [
        statement(
            f"pto.tcvt ins(%a {{{key} = {mode}}} : !pto.tile_buf<vec, 16x64xf32>)"
            " outs(%b : !pto.tile_buf<vec, 16x64xf16>)"
        ).properties
        for key, mode in (
            ("rmode", "#pto<round_mode TRUNC>"),
            ("rmode", "#pto.round_mode<CAST_TRUNC>"),
            ("rmode", "#pto<round_mode CAST_TRUNC>"),
        )
    ]
    assert modes[0] == modes[1] == modes[2]
    for key in ("satmode", "sat_mode"):
        op = statement(
            f"pto.tcvt ins(%a {{{key} = #pto<saturation_mode OFF>}} : "
            "!pto.tile_buf<vec, 16x64xf32>) outs(%b : !pto.tile_buf<vec, 16x64xf16>)"
        )
        assert isinstance(op, TCvtOp)
        assert op.satmode is not None
        assert op.satmode.data == "OFF"


@pytest.mark.parametrize(
    ("literal", "value"),
    [("0x3F800000 : f32", 1.0), ("1.5 : f32", 1.5), ("0x3F80 : bf16", 1.0), ("0x3C00 : f16", 1.0)],
)
def test_float_literals(literal: str, value: float) -> None:
    op = statement(f"%d = arith.constant {literal}")
    assert isinstance(op, arith.ConstantOp)
    assert op.value.value.data == value  # type: ignore[union-attr]


def test_hexadecimal_nan() -> None:
    op = statement("%d = arith.constant 0x7FC0 : bf16")
    assert isinstance(op, arith.ConstantOp)
    value = op.value.value.data  # type: ignore[union-attr]
    assert value != value


def test_every_operation_has_its_location() -> None:
    text = "module {\n  func.func @f(%i: index) {\n    %x = arith.addi %i, %i : index\n    return\n  }\n}\n"
    module = pto.parse(text, filename="k.pto")
    places = {}
    for op in module.walk():
        assert isinstance(op.location, FileLineColLoc)
        assert op.location.filename.data == "k.pto"
        places[op.name] = (op.location.line.data, op.location.column.data)
    assert places == {
        "builtin.module": (1, 1),
        "func.func": (2, 3),
        "arith.addi": (3, 10),
        "func.return": (4, 5),
    }


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("é", "é"),
        ("\\C3\\A9", "é"),
        (r"a\n\t\22\"\\ \41", 'a\n\t""\\ A'),
    ],
)
def test_strings_and_quoted_names(text: str, content: str) -> None:
    module = pto.parse(f'module @"{text}" attributes {{a = "{text}", b = @"{text}"}} {{}}')
    assert module.sym_name == StringAttr(content)
    assert module.attributes == {"a": StringAttr(content), "b": SymbolRefAttr(content)}
    printed = pto.print_module(module)
    assert pto.parse(printed).is_structurally_equivalent(module)
    assert pto.print_module(pto.parse(printed)) == printed


def test_the_short_form_of_an_attribute_with_a_dialect() -> None:
    short = pto.parse("module attributes {pto.kernel_kind = <vector>} {}")
    assert "pto.kernel_kind = #pto.kernel_kind<vector>" in pto.print_module(short)
    assert pto.parse(pto.print_module(short)).is_structurally_equivalent(short)


def test_a_written_location_wins() -> None:
    op = statement('%d = arith.addi %i, %i : index loc("there.py":12:3)')
    assert str(op.location) == 'loc("there.py":12:3)'
    assert str(location_of(op)) == "there.py:12:3"
    assert str(location_of(op, in_text=True)) == "<string>:6:8"


def test_comments_splits_and_aliases() -> None:
    module = pto.parse(
        "// a comment\n"
        "# a comment as the ISA manual writes it\n"
        "!tile = !pto.tile_buf<vec, 16x64xf32>\n"
        "#mode = #pto<round_mode FLOOR>\n"
        "module {\n"
        "  func.func @f(%a: !tile, %b: !pto.tile_buf<vec, 16x64xf16>) { // a comment\n"
        "    pto.tcvt ins(%a {rmode = #mode} : !tile) outs(%b : !pto.tile_buf<vec, 16x64xf16>)\n"
        "    return\n  }\n}\n"
        "// -----\n"
        "module {\n}\n"
    )
    assert len(list(module.body.block.ops)) == 2
    convert = next(op for op in module.walk() if isinstance(op, TCvtOp))
    assert convert.rmode is not None
    assert convert.rmode.data == "FLOOR"


def test_blocks_and_branches(xdsl_context: Context) -> None:
    module = pto.parse(
        "func.func @f(%c: i1, %x: index) -> index {\n"
        "  cf.cond_br %c, ^bb1(%x : index), ^bb2\n"
        "^bb1(%y: index):\n  return %y : index\n"
        "^bb2:\n  %z = arith.addi %x, %x : index\n  cf.br ^bb1(%z : index)\n}\n"
    )
    assert_round_trip(module, xdsl_context)


def test_a_value_may_be_used_above_its_definition_in_another_block() -> None:
    module = pto.parse(
        "func.func @f(%x: index) {\n  cf.br ^bb2\n"
        "^bb1:\n  %z = arith.addi %y, %y : index\n  return\n"
        "^bb2:\n  %y = arith.addi %x, %x : index\n  cf.br ^bb1\n}\n"
    )
    first, second = (op for op in module.walk() if op.name == "arith.addi")
    assert first.operands[0] is second.results[0]


def test_names_of_values_are_kept() -> None:
    text = pto.print_module(
        pto.parse(
            "func.func @f(%rows: index) {\n %half_1 = arith.addi %rows, %rows : index\n return\n}"
        )
    )
    assert "%half_1 = arith.addi %rows, %rows : index" in text


def test_function_attributes(xdsl_context: Context) -> None:
    module = pto.parse(
        'module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {\n'
        "  func.func private @g(index, !pto.ptr<f32>) -> (index, f32)\n"
        '  func.func public @f(%a: index {pto.name = "n"}) -> (index {x}) attributes {pto.entry} {\n'
        "    return %a : index\n  }\n}\n"
    )
    assert_round_trip(module, xdsl_context)
    assert module.attributes["pto.target_arch"].data == "a5"  # type: ignore[attr-defined]
