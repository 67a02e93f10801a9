"""Control flow and scalar arithmetic, against Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pto
from pto.runtime import ExecutionError


def result_of(body: str, results: str, *arguments: Any, parameters: str = "") -> Any:
    module = pto.parse(f"func.func @f({parameters}) -> ({results}) {{\n{body}\n}}")
    return pto.run(module, "f", *arguments)


INT = "%a: i32, %b: i32"


@pytest.mark.parametrize(
    ("operation", "a", "b", "expected"),
    [
        ("addi", 2**31 - 1, 1, -(2**31)),
        ("subi", -(2**31), 1, 2**31 - 1),
        ("muli", 65536, 65537, 65536),
        ("divsi", -7, 2, -3),
        ("floordivsi", -7, 2, -4),
        ("ceildivsi", -7, 2, -3),
        ("remsi", -7, 2, -1),
        ("divui", -1, 2, 2**31 - 1),
        ("remui", -1, 10, 5),
        ("shli", 1, 31, -(2**31)),
        ("shrsi", -8, 1, -4),
        ("shrui", -8, 1, 2**31 - 4),
        ("andi", 12, 10, 8),
        ("ori", 12, 10, 14),
        ("xori", 12, 10, 6),
        ("maxsi", -1, 1, 1),
        ("minsi", -1, 1, -1),
        ("maxui", -1, 1, -1),
        ("minui", -1, 1, 1),
        ("ceildivui", -1, 2, -(2**31)),
    ],
)
def test_integers(operation: str, a: int, b: int, expected: int) -> None:
    body = f"%r = arith.{operation} %a, %b : i32\nreturn %r : i32"
    assert result_of(body, "i32", a, b, parameters=INT) == expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        *(("eq", 0), ("ne", 1), ("slt", 1), ("sle", 1), ("sgt", 0), ("sge", 0)),
        *(("ult", 0), ("ule", 0), ("ugt", 1), ("uge", 1)),
    ],
)
def test_integer_comparison(predicate: str, expected: int) -> None:
    body = f"%r = arith.cmpi {predicate}, %a, %b : i32\nreturn %r : i1"
    assert result_of(body, "i1", -1, 1, parameters=INT) == expected


@pytest.mark.parametrize("predicate", ["oeq", "ogt", "oge", "olt", "ole", "one", "ord"])
@pytest.mark.parametrize(("a", "b"), [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (math.nan, 1.0)])
def test_float_comparison(predicate: str, a: float, b: float) -> None:
    ordered = {"oeq": a == b, "ogt": a > b, "oge": a >= b, "olt": a < b, "ole": a <= b}
    ordered |= {"one": a < b or a > b, "ord": a == a}
    opposite = {"oeq": "une", "ogt": "ule", "oge": "ult", "olt": "uge", "ole": "ugt"}
    opposite |= {"one": "ueq", "ord": "uno"}
    for name, expected in (
        (predicate, ordered[predicate]),
        (opposite[predicate], not ordered[predicate]),
    ):
        body = f"%r = arith.cmpf {name}, %a, %b : f32\nreturn %r : i1"
        assert result_of(body, "i1", a, b, parameters="%a: f32, %b: f32") == expected


def test_floats_round_to_their_type() -> None:
    for dtype, scalar in (("f32", np.float32), ("f16", np.float16)):
        body = f"%r = arith.addf %a, %b : {dtype}\n%s = arith.divf %r, %b : {dtype}\nreturn %s : {dtype}"
        parameters = f"%a: {dtype}, %b: {dtype}"
        expected = scalar(scalar(scalar(0.1) + scalar(3)) / scalar(3))
        assert result_of(body, dtype, 0.1, 3.0, parameters=parameters) == expected


NAN = math.nan


@pytest.mark.parametrize(
    ("operation", "a", "b", "expected"),
    [
        ("subf", 0.25, 2.0, -1.75),
        ("mulf", 0.25, 2.0, 0.5),
        ("remf", -7.5, 2.0, -1.5),
        *(("maximumf", 1.0, 2.0, 2.0), ("maximumf", NAN, 2.0, NAN), ("maximumf", 1.0, NAN, NAN)),
        *(("minimumf", 1.0, 2.0, 1.0), ("minimumf", NAN, 2.0, NAN)),
        *(("maxnumf", 1.0, 2.0, 2.0), ("maxnumf", NAN, 2.0, 2.0), ("maxnumf", 1.0, NAN, 1.0)),
        *(("minnumf", 1.0, 2.0, 1.0), ("minnumf", NAN, 2.0, 2.0)),
    ],
)
def test_floats(operation: str, a: float, b: float, expected: float) -> None:
    body = f"%r = arith.{operation} %a, %b : f32\nreturn %r : f32"
    result = float(result_of(body, "f32", a, b, parameters="%a: f32, %b: f32"))
    assert result == expected or (math.isnan(result) and math.isnan(expected))


@pytest.mark.parametrize("condition", [0, 1])
def test_select_and_negf(condition: int) -> None:
    body = """
      %m = arith.negf %b : f32
      %r = arith.select %c, %a, %m : f32
      return %r : f32
    """
    parameters = "%c: i1, %a: f32, %b: f32"
    expected = 1.5 if condition else -2.5
    assert result_of(body, "f32", condition, 1.5, 2.5, parameters=parameters) == expected


def test_casts() -> None:
    body = """
      %w = arith.extsi %a : i32 to i64
      %u = arith.extui %a : i32 to i64
      %t = arith.trunci %b : i32 to i8
      %x = arith.index_cast %a : i32 to index
      %f = arith.sitofp %a : i32 to f32
      %c = arith.bitcast %f : f32 to i32
      %g = arith.uitofp %a : i32 to f32
      %y = arith.index_castui %a : i32 to index
      %v = arith.fptoui %g : f32 to i64
      return %w, %u, %t, %x, %c, %g, %y, %v : i64, i64, i8, index, i32, f32, index, i64
    """
    types = "i64, i64, i8, index, i32, f32, index, i64"
    results = result_of(body, types, -1, 384, parameters=INT)
    whole = (-1, 2**32 - 1, -128, -1, 0xBF800000 - 2**32, np.float32(2**32))
    assert results == (*whole, 2**32 - 1, 2**32)


@pytest.mark.parametrize(
    ("operation", "source", "value", "target", "expected"),
    [
        ("sitofp", "i64", -(2**60) - 2**8, "f64", -(2.0**60) - 2**8),
        ("uitofp", "i64", 2**63 + 2**39 + 1, "f32", 2.0**63 + 2.0**40),
        ("sitofp", "i32", 2**30 + 2**22 + 1, "bf16", 2.0**30 + 2**23),
        ("sitofp", "i64", -(2**60) - 2**52 - 1, "bf16", -(2.0**60) - 2.0**53),
        ("truncf", "f64", 1 + 2**-8 + 2**-40, "bf16", 1 + 2**-7),
        ("truncf", "f64", math.inf, "bf16", math.inf),
        ("truncf", "f64", -1e300, "bf16", -math.inf),
    ],
)
def test_casts_round_once(
    operation: str, source: str, value: float, target: str, expected: float
) -> None:
    """The values lie beside the middle between two results, nearer than an f32 or f64 can tell."""
    body = f"%r = arith.{operation} %a : {source} to {target}\nreturn %r : {target}"
    assert float(result_of(body, target, value, parameters=f"%a: {source}")) == expected


def test_a_float_that_fits_no_integer_is_an_error() -> None:
    with pytest.raises(ExecutionError, match="nan does not fit i32"):
        result_of("%r = arith.fptosi %a : f32 to i32\nreturn %r : i32", "i32", math.nan,
                  parameters="%a: f32")  # fmt: skip


def test_loop_with_carried_values() -> None:
    body = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c0, %y = %c1) -> (index, index) {
        %z = arith.addi %x, %y : index
        scf.yield %y, %z : index, index
      }
      return %a : index
    """
    assert result_of(body, "index", 30, parameters="%n: index") == 832040
    assert result_of(body, "index", 0, parameters="%n: index") == 0


def test_if_and_while() -> None:
    body = """
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %c2 = arith.constant 2 : i64
      %c3 = arith.constant 3 : i64
      %steps, %end = scf.while (%k = %c0, %x = %n) : (i64, i64) -> (i64, i64) {
        %more = arith.cmpi sgt, %x, %c1 : i64
        scf.condition(%more) %k, %x : i64, i64
      } do {
      ^bb0(%k: i64, %x: i64):
        %odd = arith.remsi %x, %c2 : i64
        %is_odd = arith.cmpi eq, %odd, %c1 : i64
        %next = scf.if %is_odd -> (i64) {
          %t = arith.muli %x, %c3 : i64
          %u = arith.addi %t, %c1 : i64
          scf.yield %u : i64
        } else {
          %h = arith.divsi %x, %c2 : i64
          scf.yield %h : i64
        }
        %k1 = arith.addi %k, %c1 : i64
        scf.yield %k1, %next : i64, i64
      }
      return %steps : i64
    """
    assert result_of(body, "i64", 27, parameters="%n: i64") == 111


def test_branches() -> None:
    body = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      cf.br ^head(%c0, %c0 : index, index)
    ^head(%i: index, %sum: index):
      %more = arith.cmpi slt, %i, %n : index
      cf.cond_br %more, ^body, ^done(%sum : index)
    ^body:
      %next = arith.addi %i, %c1 : index
      %total = arith.addi %sum, %i : index
      cf.br ^head(%next, %total : index, index)
    ^done(%r: index):
      return %r : index
    """
    assert result_of(body, "index", 10, parameters="%n: index") == 45


def test_regions_that_run_once() -> None:
    body = """
      %one = arith.constant 1 : i64
      %a = scf.execute_region -> i64 {
        %x = arith.addi %n, %one : i64
        scf.yield %x : i64
      }
      pto.section.vector {
        %unused = arith.addi %a, %a : i64
      }
      return %a : i64
    """
    assert result_of(body, "i64", 4, parameters="%n: i64") == 5


def test_calls() -> None:
    module = pto.parse("""
      func.func @square(%x: i64) -> i64 {
        %r = arith.muli %x, %x : i64
        return %r : i64
      }
      func.func @f(%x: i64) -> i64 {
        %a = func.call @square(%x) : (i64) -> i64
        %b = func.call @square(%a) : (i64) -> i64
        return %b : i64
      }""")
    assert pto.run(module, "f", 3) == 81


def test_a_call_means_the_function_of_its_own_module() -> None:
    one = "func.func @one() -> i64 { %r = arith.constant NUMBER : i64 return %r : i64 }"
    call = "func.func @NAME() -> i64 { %r = func.call @one() : () -> i64 return %r : i64 }"
    module = pto.parse(
        "module { module {" + one.replace("NUMBER", "1") + call.replace("NAME", "f") + "} module {"
        + one.replace("NUMBER", "2") + call.replace("NAME", "g") + "} }"
    )  # fmt: skip
    assert (pto.run(module, "f"), pto.run(module, "g")) == (1, 2)


def test_errors_name_the_calls_that_led_to_them() -> None:
    module = pto.parse("""func.func @inner(%x: i64) {
  %z = arith.constant 0 : i64
  %r = arith.divsi %x, %z : i64
  return
}
func.func @f(%x: i64) {
  func.call @inner(%x) : (i64) -> ()
  return
}""")
    with pytest.raises(ExecutionError) as caught:
        pto.run(module, "f", 1)
    assert str(caught.value).splitlines() == [
        "<string>:3:8: error: arith.divsi: division by zero",
        "  note: called from <string>:7:3",
    ]


def test_recursion_ends() -> None:
    module = pto.parse("""
      func.func @f() {
        func.call @f() : () -> ()
        return
      }""")
    with pytest.raises(ExecutionError, match="more than 100 nested calls"):
        pto.run(module, "f")


def test_the_grid() -> None:
    body = """
      %i = pto.get_block_idx -> i64
      %n = pto.get_block_num -> i64
      return %i, %n : i64, i64
    """
    module = pto.parse(f"func.func @f() -> (i64, i64) {{{body}}}")
    assert pto.run(module, "f", block_idx=3, block_num=8) == (3, 8)
    inner = pto.parse(f"func.func @f() -> (i64, i64) {{{body.replace('block', 'subblock')}}}")
    assert pto.run(inner, "f", block_idx=3, subblock_idx=1, subblock_num=2) == (1, 2)


@pytest.mark.parametrize("way", ["set_flag", "barrier"])
def test_what_orders_pipes_changes_no_result(way: str) -> None:
    set_, wait = (f'pto.{k}_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]' for k in ("set", "wait"))
    both = f"{set_}\n{wait}" if way == "set_flag" else "pto.barrier #pto.pipe<PIPE_ALL>"
    assert result_of(f"{both}\nreturn %n : i64", "i64", 4, parameters="%n: i64") == 4


def test_a_flag_is_one_however_it_is_spelt() -> None:
    """As strings or as enumerations; waiting for another one hangs."""
    body = """
      pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
      pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
      EXTRA
      return %n : i64
    """
    plain = body.replace("EXTRA", "")
    assert result_of(plain, "i64", 4, parameters="%n: i64") == 4
    other = body.replace("EXTRA", "pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]")
    with pytest.raises(ExecutionError, match="PIPE_MTE2, PIPE_V, EVENT_ID0, which was not set"):
        result_of(other, "i64", 4, parameters="%n: i64")
