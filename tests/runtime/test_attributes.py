"""Attributes of executed operations: honoured or refused, never ignored."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_support import apply, operation, same, sample, tile
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

import pto
from pto.dialect.ops import WRITTEN_OUT, operation_class
from pto.runtime import ExecutionError
from pto.runtime.ops import IMPLEMENTATIONS

PTO_OPERATIONS = sorted(name for name in IMPLEMENTATIONS if name.startswith("pto."))
CLASSES = {op.name: op for op in WRITTEN_OUT}


def error_with(name: str, key: str) -> str:
    """What the execution of an operation that has nothing but an attribute says."""
    cls = CLASSES.get(name) or operation_class(name)
    op = cls.create(attributes={key: IntegerAttr(1, i64)})
    body = Region(Block([op, ReturnOp()]))
    with pytest.raises(ExecutionError) as caught:
        pto.run(ModuleOp([FuncOp("f", ([], []), body)]), "f")
    return str(caught.value)


@pytest.mark.parametrize("name", PTO_OPERATIONS)
def test_unknown_attributes_are_refused(name: str) -> None:
    assert "the attribute bogus" in error_with(name, "bogus")


@pytest.mark.parametrize("name", [n for n in PTO_OPERATIONS if IMPLEMENTATIONS[n].attributes])
def test_a_misspelt_attribute_is_told(name: str) -> None:
    for known in IMPLEMENTATIONS[name].attributes:
        assert f"did you mean {known}?" in error_with(name, f"{known}x")


def test_attributes_with_a_dialect_prefix_change_nothing() -> None:
    t = tile("f32", 2, 8)
    result = np.zeros((2, 8), np.float32)
    text = operation("tabs", [t], t, "{pto.fusion.order = 1 : i64, other.x}")
    apply(text, np.full((2, 8), -1, np.float32), result)
    assert (result == 1).all()


F, I32, MASK = tile("f32", 4, 8), tile("i32", 4, 8), tile("i8", 4, 32)
WRONG = {
    "tcmp, a word": ("tcmp", [F, F], MASK, 'cmpMode = "gt"'),
    "tcmp, another enumeration": ("tcmp", [F, F], MASK, "cmpMode = #pto<round_mode RINT>"),
    "tcmps, a number": ("tcmps", [F, "f32"], MASK, "cmpMode = 1 : i32"),
    "tci, a word": ("tci", ["i32"], tile("i32", 1, 8), 'descending = "true"'),
    "ttri, a word": ("ttri", ["i32"], F, 'upperOrLower = "upper"'),
    "tfillpad, mode": ("tfillpad", [F], tile("f32", 4, 8, extra=", pad=1"), 'mode = "shrink"'),
    "tfillpad, padding": ("tfillpad", [F], F, "padValue = #pto<pad_value null>"),
    "tgather, axis": ("tgather", [F], tile("f32", 4, 4), 'axis = "diag"'),
    "tgather, pattern": ("tgather", [F], F, "maskPattern = #pto.mask_pattern<P0110>"),
    "tmov, relu": ("tmov", [F], F, "reluPreMode = #pto<relu_pre_mode normal_relu>"),
    "textract, relu": ("textract", [F], F, "reluPreMode = #pto<relu_pre_mode normal_relu>"),
    "tmov, cube": ("tmov", [F], F, "accToVecMode = #pto.acc_to_vec_mode<single_mode_vec0>"),
    "tquant, kind": ("tquant", [F, F], MASK, "quant_type = #pto<quant_type INT8_ASYM>"),
    "tcvt, key": ("tcvt", [F], I32, "round_mode = #pto<round_mode TRUNC>"),
    "trowexpandmul": ("trowexpandmul", [F, tile("f32", 4, 8)], F, "src1Col = 1 : i64"),
}


@pytest.mark.parametrize(("name", "ins", "out", "attribute"), WRONG.values(), ids=WRONG)
def test_wrong_values_are_refused(name: str, ins: list[str], out: str, attribute: str) -> None:
    key = attribute.partition(" ")[0]
    if name == "tgather":
        attribute += ", maskPattern = #pto.mask_pattern<P0101>" * ("maskP" not in attribute)
    text = operation(name, ins, out, inside=f"{{{attribute}}}")
    arrays = [np.zeros((4, 8), np.float32) if "tile" in t else 1 for t in ins]
    rows, cols = (int(n) for n in out.split(", ")[1].split("x")[:2])
    dtype = {"f32": np.float32, "i32": np.int32, "i8": np.int8}[
        out.split(", ")[1].split("x")[2].strip(">")
    ]
    with pytest.raises(ExecutionError, match=f"{key}|no padding"):
        apply(text, *arrays, np.zeros((rows, cols), dtype))


PATTERNS = {"P0101": (2, 0), "P1010": (2, 1), "P0001": (4, 0), "P0100": (4, 2), "P1111": (1, 0)}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("axis", ["row", "col"])
def test_tgather_by_pattern_along_an_axis(name: str, axis: str) -> None:
    """`row` selects columns of every row, `col` selects rows (TGATHER)."""
    every, first = PATTERNS[name]
    x = sample("f32", (8, 16), 3)
    expected = x[:, first::every] if axis == "row" else x[first::every]
    source, target = tile("f32", 8, 16), tile("f32", *expected.shape)
    text = (
        f"func.func @f(%s: {source}, %d: {target}) {{\n"
        f"  pto.tgather ins(%s, {{maskPattern = #pto.mask_pattern<{name}>}} : {source},"
        f' "{axis}") outs(%d : {target})\n  return\n}}'
    )
    for shown in (text, pto.print_module(pto.parse(text))):
        result = np.zeros(expected.shape, np.float32)
        apply(shown, x, result)
        same(result, expected)


def test_tgather_along_an_axis_keeps_the_other_extent() -> None:
    source, target = tile("f32", 4, 8), tile("f32", 2, 8)
    text = (
        f"func.func @f(%s: {source}, %d: {target}) {{\n"
        f"  pto.tgather ins(%s, {{maskPattern = #pto.mask_pattern<P0101>}} : {source},"
        f' "row") outs(%d : {target})\n  return\n}}'
    )
    with pytest.raises(ExecutionError, match="selects 4x4 elements for 2x8"):
        apply(text, np.zeros((4, 8), np.float32), np.zeros((2, 8), np.float32))


def test_tfillpad_with_a_padding_of_its_own() -> None:
    source, target = tile("f32", 2, 8, (1, 4)), tile("f32", 2, 8)
    text = operation("tfillpad", [source], target, "{padValue = #pto<pad_value max>}")
    result = np.zeros((2, 8), np.float32)
    apply(text, np.ones((2, 8), np.float32), result)
    assert (result[0, :4] == 1).all()
    assert np.isinf(result[0, 4:]).all()
    assert np.isinf(result[1]).all()
