"""Memory: what shares it, what is outside it, what was never written."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from runtime_support import Array, tile

import pto
from pto.runtime import ExecutionError

HEAD = """
func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %address = arith.constant 64 : i64
  %one = arith.constant 1.0 : f32
  %xv = pto.make_tensor_view %x, shape = [%c4, %c8], strides = [%c8, %c1]
    : !pto.tensor_view<?x?xf32>
  %yv = pto.make_tensor_view %y, shape = [%c4, %c8], strides = [%c8, %c1]
    : !pto.tensor_view<?x?xf32>
  %xp = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c4, %c8]
    : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<4x8xf32>
  %yp = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%c4, %c8]
    : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<4x8xf32>
"""
T = tile("f32", 4, 8)
DYNAMIC = tile("f32", 4, 8, ("?", "?"))
WHOLE = "!pto.partition_tensor_view<4x8xf32>"
FIRST_LINE = HEAD.count("\n") + 1


def run(body: str, x: Array, y: Array, **options: Any) -> None:
    pto.run(pto.parse(f"{HEAD}{body}\n  return\n}}"), "f", x, y, **options)


def error_of(body: str, **options: Any) -> str:
    with pytest.raises(ExecutionError) as caught:
        run(body, matrix(), np.zeros((4, 8), np.float32), **options)
    return str(caught.value)


def load(name: str, type_: str = T) -> str:
    return f"pto.tload ins(%xp : {WHOLE}) outs({name} : {type_})\n"


def store(name: str, type_: str = T) -> str:
    return f"pto.tstore ins({name} : {type_}) outs(%yp : {WHOLE})\n"


def matrix() -> Array:
    return np.arange(32, dtype=np.float32).reshape(4, 8)


def test_tiles_at_one_address_share_memory() -> None:
    y, other = np.zeros((4, 8), np.float32), tile("f32", 8, 4, extra=", blayout=col_major")
    run(
        f"%a = pto.alloc_tile addr = %address : {T}\n"
        f"%b = pto.alloc_tile addr = %address : {other}\n{load('%a')}"
        f"pto.tadds ins(%b, %one : {other}, f32) outs(%b : {other})\n{store('%a')}",
        matrix(),
        y,
    )
    assert (y == matrix() + 1).all()


def test_tiles_without_an_address_do_not_share_memory() -> None:
    y = np.zeros((4, 8), np.float32)
    run(
        f"%a = pto.alloc_tile : {T}\n%b = pto.alloc_tile : {T}\n{load('%a')}"
        f"pto.texpands ins(%one : f32) outs(%b : {T})\n{store('%a')}",
        matrix(),
        y,
    )
    assert (y == matrix()).all()


def test_subview_is_a_window_of_its_parent() -> None:
    y = np.zeros((4, 8), np.float32)
    small = tile("f32", 2, 4)
    run(
        f"%a = pto.alloc_tile : {T}\n{load('%a')}"
        f"%w = pto.subview %a[%c1, %c4] sizes [2, 4] : {T} -> {small}\n"
        f"pto.texpands ins(%one : f32) outs(%w : {small})\n{store('%a')}",
        matrix(),
        y,
    )
    expected = matrix()
    expected[1:3, 4:8] = 1
    assert (y == expected).all()


def test_reshape_and_reassignment_share_memory() -> None:
    y, other = np.zeros((4, 8), np.float32), tile("f32", 2, 16)
    run(
        f"%zero = arith.constant 0 : i64\n%a = pto.alloc_tile addr = %address : {T}\n{load('%a')}"
        f"%b = pto.treshape %a : {T} -> {other}\n"
        f"pto.tadds ins(%b, %one : {other}, f32) outs(%b : {other})\n"
        f"%c = pto.alloc_tile addr = %zero : {T}\n"
        f"%d = pto.tassign %c, %address : {T} -> {T}\n{store('%d')}",
        matrix(),
        y,
    )
    assert (y == matrix() + 1).all()


@pytest.mark.parametrize("place", ["", "addr = %address "])
def test_one_of_several_tiles(place: str) -> None:
    y, multi = np.zeros((4, 8), np.float32), "!pto.multi_tile_buf<vec, 4x8xf32, count=2>"
    run(
        f"%m = pto.alloc_multi_tile {place}: {multi}\n"
        f"%a = pto.multi_tile_get %m[%c0] : {multi} -> {T}\n"
        f"%b = pto.multi_tile_get %m[%c1] : {multi} -> {T}\n{load('%a')}"
        f"pto.tadds ins(%a, %one : {T}, f32) outs(%b : {T})\n"
        f"pto.tadd ins(%a, %b : {T}, {T}) outs(%b : {T})\n{store('%b')}",
        matrix(),
        y,
    )
    assert (y == 2 * matrix() + 1).all()


def test_set_validshape_limits_what_follows() -> None:
    y = np.zeros((4, 8), np.float32)
    run(
        f"%a = pto.alloc_tile valid_row = %c4 valid_col = %c8 : {DYNAMIC}\n{load('%a', DYNAMIC)}"
        f"pto.set_validshape %a, %c2, %c4 : {DYNAMIC}\n"
        f"pto.texpands ins(%one : f32) outs(%a : {DYNAMIC})\n"
        f"pto.set_validshape %a, %c4, %c8 : {DYNAMIC}\n{store('%a', DYNAMIC)}",
        matrix(),
        y,
    )
    expected = matrix()
    expected[:2, :4] = 1
    assert (y == expected).all()


def test_strides_of_views_and_arrays() -> None:
    """A transposed view of the source, and an array that is no contiguous block."""
    text = f"""
    %t = pto.make_tensor_view %x, shape = [%c8, %c4], strides = [%c1, %c8]
      : !pto.tensor_view<?x?xf32>
    %tp = pto.partition_view %t, offsets = [%c0, %c0], sizes = [%c8, %c4]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x4xf32>
    %u = pto.make_tensor_view %y, shape = [%c8, %c4], strides = [%c4, %c1]
      : !pto.tensor_view<?x?xf32>
    %up = pto.partition_view %u, offsets = [%c0, %c0], sizes = [%c8, %c4]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x4xf32>
    %a = pto.alloc_tile : {tile("f32", 8, 4)}
    pto.tload ins(%tp : !pto.partition_tensor_view<8x4xf32>) outs(%a : {tile("f32", 8, 4)})
    pto.tstore ins(%a : {tile("f32", 8, 4)}) outs(%up : !pto.partition_tensor_view<8x4xf32>)
    """
    large = np.zeros((8, 8), np.float32)
    y = large[:, ::2]
    run(text, matrix(), y)
    assert (y == matrix().T).all()
    assert (large[:, 1::2] == 0).all()


def test_view_of_rank_five() -> None:
    text = f"""
    %v = pto.make_tensor_view %x, shape = [%c1, %c2, %c1, %c2, %c8],
      strides = [%c1, %c8, %c1, %c16, %c1] : !pto.tensor_view<?x?x?x?x?xf32>
    %p = pto.partition_view %v, offsets = [%c0, %c0, %c0, %c0, %c0],
      sizes = [%c1, %c2, %c1, %c2, %c8]
      : !pto.tensor_view<?x?x?x?x?xf32> -> !pto.partition_tensor_view<1x2x1x2x8xf32>
    %a = pto.alloc_tile : {T}
    pto.tload ins(%p : !pto.partition_tensor_view<1x2x1x2x8xf32>) outs(%a : {T})
    """
    y = np.zeros((4, 8), np.float32)
    run("%c16 = arith.constant 16 : index\n" + text + store("%a"), matrix(), y)
    assert (y == matrix()[[0, 2, 1, 3]]).all()


def test_the_valid_region_is_what_moves() -> None:
    """A view may be larger than the tile's valid region, which sets the size of the transfer."""
    x, y = matrix(), np.zeros((4, 8), np.float32)
    run(
        f"%a = pto.alloc_tile valid_row = %c2 valid_col = %c4 : {DYNAMIC}\n"
        f"{load('%a', DYNAMIC)}{store('%a', DYNAMIC)}",
        x,
        y,
    )
    expected = np.zeros((4, 8))
    expected[:2, :4] = x[:2, :4]
    assert (y == expected).all()


def indexed(name: str, table: str, index: str, data: str, attributes: str) -> str:
    """A module that gathers from, or scatters into, its first argument."""
    view = f"!pto.tensor_view<{table}>"
    if name == "mgather":
        groups = f"ins(%t, %i : {view}, {index}) outs(%d : {data})"
    else:
        groups = f"ins(%d, %i : {data}, {index}) outs(%t : {view})"
    return (
        f"func.func @f(%t: {view}, %i: {index}, %d: {data}) {{\n"
        f"  pto.{name} {groups} {attributes}\n  return\n}}"
    )


def test_rows_and_elements_of_global_memory() -> None:
    table = np.random.default_rng(0).normal(size=(6, 16)).astype(np.float32)
    rows, data = tile("i32", 1, 8, (1, 4)), tile("f32", 4, 16)
    index, result = np.array([[5, 0, 3, 5, 0, 0, 0, 0]], np.int32), np.zeros((4, 16), np.float32)
    module = pto.parse(indexed("mgather", "6x16xf32", rows, data, ""))
    pto.run(module, "f", table, index, result)
    assert (result == table[[5, 0, 3, 5]]).all()

    each = np.random.default_rng(1).integers(0, 96, (4, 16)).astype(np.int32)
    elements = "{coalesce = #pto<coalesce elem>}"
    module = pto.parse(indexed("mgather", "6x16xf32", tile("i32", 4, 16), data, elements))
    pto.run(module, "f", table, each, result)
    assert (result == table.reshape(-1)[each]).all()

    target, source = np.zeros((6, 16), np.float32), matrix().repeat(2, axis=1)
    module = pto.parse(indexed("mscatter", "6x16xf32", rows, data, ""))
    pto.run(module, "f", target, index, source)
    assert (target[[5, 0, 3]] == source[[3, 1, 2]]).all()
    assert not target[[1, 2, 4]].any()

    add = "{scatterAtomicOp = #pto<scatter_atomic_op add>}"
    pto.run(pto.parse(indexed("mscatter", "6x16xf32", rows, data, add)), "f", target, index, source)
    assert (target[5] == source[0] + 2 * source[3]).all()


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("clamp", [5, 0]),
        ("wrap", [1, 4]),
        ("zero", None),
        ("undefined", "index 7 into a table of 6"),
    ],
)
def test_indices_outside_the_table(policy: str, expected: Any) -> None:
    table = np.arange(1, 97, dtype=np.float32).reshape(6, 16)
    index, result = np.array([[7, -2] + [0] * 6], np.int32), np.ones((2, 16), np.float32)
    attributes = f"{{coalesce = #pto<coalesce row>, gatherOob = #pto<gather_oob {policy}>}}"
    types = tile("i32", 1, 8, (1, 2)), tile("f32", 2, 16)
    module = pto.parse(indexed("mgather", "6x16xf32", *types, attributes))
    if isinstance(expected, str):
        with pytest.raises(ExecutionError, match=expected):
            pto.run(module, "f", table, index, result)
        return
    pto.run(module, "f", table, index, result)
    assert (result == (0 if expected is None else table[expected])).all()


def test_padding_of_loads() -> None:
    y = np.zeros((4, 8), np.float32)
    padded = tile("f32", 4, 8, ("?", "?"), ", pad=2")
    run(
        "%w = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c2, %c4]"
        " : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<2x4xf32>\n"
        f"%a = pto.alloc_tile valid_row = %c2 valid_col = %c4 : {padded}\n"
        f"pto.tload ins(%w : !pto.partition_tensor_view<2x4xf32>) outs(%a : {padded})\n"
        f"pto.set_validshape %a, %c4, %c8 : {padded}\n{store('%a', padded)}",
        matrix(),
        y,
    )
    expected = np.full((4, 8), np.inf)
    expected[:2, :4] = matrix()[:2, :4]
    assert (y == expected).all()


def test_scalars_in_memory() -> None:
    module = pto.parse("""
    func.func @f(%p: !pto.ptr<bf16>, %q: !pto.ptr<i32>, %n: index) -> i32 {
      %r = pto.addptr %q, %n : !pto.ptr<i32> -> !pto.ptr<i32>
      %a = pto.load_scalar %p[%n] : !pto.ptr<bf16> -> bf16
      %v = arith.extf %a : bf16 to f32
      %i = arith.fptosi %v : f32 to i32
      pto.store_scalar %i, %r[%n] : !pto.ptr<i32>, i32
      return %i : i32
    }""")
    p, q = np.array([0, 1, 2.5, 3], ml_dtypes.bfloat16), np.zeros(8, np.int32)
    assert pto.run(module, "f", p, q, 2) == 2
    assert q.tolist() == [0, 0, 0, 0, 2, 0, 0, 0]


# Errors ------------------------------------------------------------------------------------------


def test_uninitialised_read() -> None:
    message = error_of(
        f"%a = pto.alloc_tile : {T}\n%w = pto.subview %a[%c0, %c0] sizes [4, 4]"
        f" : {T} -> {tile('f32', 4, 4)}\n"
        f"pto.texpands ins(%one : f32) outs(%w : {tile('f32', 4, 4)})\n{store('%a')}"
    )
    assert message.startswith(f"<string>:{FIRST_LINE + 3}:1: error: pto.tstore: reads elements")
    assert "16 of 32, the first at row 0, column 4" in message


NARROW = (
    f"%a = pto.alloc_tile valid_row = %c4 valid_col = %c8 : {DYNAMIC}\n{load('%a', DYNAMIC)}"
    f"pto.set_validshape %a, %c2, %c8 : {DYNAMIC}\n%b = pto.alloc_tile addr = %address : {T}\n"
    f"%n = pto.alloc_tile addr = %address valid_row = %c2 valid_col = %c8 : {DYNAMIC}\n"
    "%two = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%c2, %c8]"
    " : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<2x8xf32>\n"
    f"pto.tadds ins(%a, %one : {DYNAMIC}, f32) outs(%b : {T})\n"
    f"pto.tmul ins(%b, %b : {T}, {T}) outs(%b : {T})\n"
)
"""Computes four rows where the source has two: the last two rows of %b are poison."""


def test_poison_may_be_held() -> None:
    y = np.zeros((4, 8), np.float32)
    part = "!pto.partition_tensor_view<2x8xf32>"
    run(f"{NARROW}pto.tstore ins(%n : {DYNAMIC}) outs(%two : {part})", matrix(), y)
    assert (y[:2] == (matrix()[:2] + 1) ** 2).all()


def test_nothing_may_depend_on_poison() -> None:
    message = error_of(NARROW + store("%b"))
    assert "pto.tstore: reads elements that are poison: 16 of 32, the first at row 2" in message
    assert f"poison since <string>:{FIRST_LINE + 6}:1, beyond the valid region" in message
    row, part = tile("f32", 1, 8), "!pto.partition_tensor_view<1x8xf32>"
    message = error_of(
        f"{NARROW}%s = pto.alloc_tile : {row}\npto.tcolsum ins(%b : {T}) outs(%s : {row})\n"
        "%p = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%c1, %c8]"
        f" : !pto.tensor_view<?x?xf32> -> {part}\npto.tstore ins(%s : {row}) outs(%p : {part})"
    )
    assert "pto.tstore: reads elements that are poison: 8 of 8" in message


@pytest.mark.parametrize("way", ["argument", "result", "store"])
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_poison_do_not_leave(way: str, rows: int) -> None:
    """Through no door: a tile argument, a result, or a store; and nothing is written to it."""
    dynamic, whole = tile("f32", 2, 8, ("?", "?")), tile("f32", 2, 8)
    view = "!pto.partition_tensor_view<2x8xf32>"
    out = view if way == "store" else whole
    ending = {
        "argument": "  return\n",
        "result": f"  return %y : {whole}\n",
        "store": f"  pto.tstore ins(%y : {whole}) outs(%d : {view})\n  return\n",
    }[way]
    if way != "argument":
        ending = f"  %y = pto.alloc_tile : {whole}\n  STEP{ending}"
    step = f"pto.tadd ins(%a, %a : {dynamic}, {dynamic}) outs(%y : {whole})\n"
    name = "%y" if way == "argument" else "%d"
    ending = ending.replace("STEP", step) if way != "argument" else f"  {step}{ending}"
    result = f" -> {whole}" if way == "result" else ""
    module = pto.parse(
        f"func.func @f(%x: {whole}, {name}: {out}, %n: index){result} {{\n"
        "  %c8 = arith.constant 8 : index\n"
        f"  %a = pto.alloc_tile valid_row = %n valid_col = %c8 : {dynamic}\n"
        f"  pto.tmov ins(%x : {whole}) outs(%a : {dynamic})\n{ending}}}"
    )
    held = np.full((2, 8), 7, np.float32)
    x = np.ones((2, 8), np.float32)
    if rows < 2:
        with pytest.raises(ExecutionError, match="poison") as caught:
            pto.run(module, "f", x, held, rows)
        assert "beyond the valid region of a source" in str(caught.value)
        assert (held == 7).all()
        return
    returned = pto.run(module, "f", x, held, rows)
    assert ((returned if way == "result" else held) == 2).all()


def test_writing_defines_again() -> None:
    y = np.zeros((4, 8), np.float32)
    run(f"{NARROW}pto.texpands ins(%one : f32) outs(%b : {T})\n{store('%b')}", matrix(), y)
    assert (y == 1).all()


def test_a_new_core_starts_with_an_empty_buffer() -> None:
    body = f"%a = pto.alloc_tile addr = %address : {T}\n"
    module = pto.parse(
        f"{HEAD}{body}%b = arith.cmpi eq, %c0, %c0 : index\n{load('%a')}{store('%a')} return\n}}"
    )
    y = np.zeros((4, 8), np.float32)
    pto.run(module, "f", matrix(), y)
    assert "never written" in error_of(body + store("%a"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%p = pto.partition_view %xv, offsets = [%c1, %c0], sizes = [%c4, %c8]"
            " : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<4x8xf32>",
            "elements 1 to 5 of axis 0 of %x, which has 4",
        ),
        (
            f"%far = arith.constant 262144 : i64\n%a = pto.alloc_tile addr = %far : {T}",
            "a tile at bytes 262144 to 262272 of the unified buffer, which has 262144",
        ),
        (
            f"%a = pto.alloc_tile valid_row = %c8 valid_col = %c8 : {DYNAMIC}",
            "valid region 8x8 of a tile of 4x8",
        ),
        (
            "%w = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c2, %c8]"
            " : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<2x8xf32>\n"
            f"%a = pto.alloc_tile : {T}\n"
            f"pto.tload ins(%w : !pto.partition_tensor_view<2x8xf32>) outs(%a : {T})",
            "valid region of the tile is 4x8, the view has 2x8 [valid-region]",
        ),
        (
            f"%a = pto.alloc_tile : {T}\n%w = pto.subview %a[%c2, %c4] sizes [4, 4]"
            f" : {T} -> {tile('f32', 4, 4)}",
            "a window of 4x4 at [2, 4] of a tile of 4x8",
        ),
        (
            "%big = arith.constant 32 : index\n%s = pto.load_scalar %x[%big] : !pto.ptr<f32> -> f32",
            "reads bytes 128 to 132 of %x, which has 128",
        ),
        (
            "%z = arith.divsi %c1, %c0 : index",
            "arith.divsi: division by zero",
        ),
        (
            f"%a = pto.alloc_tile : {T}\n%d = pto.alloc_tile : {tile('ui8', 4, 8)}\n{load('%a')}"
            f"pto.tcvt ins(%a : {T}) outs(%d : {tile('ui8', 4, 8)})",
            "a5 does not convert f32 to ui8 [type-pair]",
        ),
        (
            f"%a = pto.alloc_tile : {T}\n%d = pto.alloc_tile : {tile('bf16', 4, 8)}\n{load('%a')}"
            f"pto.tcvt ins(%a {{rmode = #pto<round_mode ODD>}} : {T})"
            f" outs(%d : {tile('bf16', 4, 8)})",
            "f32 to bf16 does not round by ODD on a5 [round-mode]",
        ),
        (
            "pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
            "which was not set: the device would hang here",
        ),
        (
            "%a = pto.alloc_tile : !pto.tile_buf<acc, 16x16xf32>",
            "the cube side, where tiles in acc are, is not supported",
        ),
    ],
)
def test_what_must_not_happen_is_a_located_error(body: str, message: str) -> None:
    text = error_of(body)
    assert message in text
    last = FIRST_LINE + body.rstrip("\n").count("\n")
    assert text.startswith(f"<string>:{last}:")


def test_capacity_follows_the_target() -> None:
    body = f"%far = arith.constant 200000 : i64\n%a = pto.alloc_tile addr = %far : {T}"
    run(body, matrix(), matrix(), arch="a5")
    assert "which has 196608" in error_of(body, arch="a3")


def test_operations_that_are_never_reached_do_no_harm() -> None:
    run(
        "%no = arith.cmpi ne, %c0, %c0 : index\nscf.if %no {\n"
        "%a = pto.alloc_tile : !pto.tile_buf<acc, 16x16xf32>\n}",
        matrix(),
        matrix(),
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(32, np.float32),), "@f takes 2 arguments, not 1: x, y"),
        ((np.zeros(32), np.zeros(32, np.float32)), "%x takes an array of float32 or codes"),
        ((3.0, np.zeros(32, np.float32)), "%x takes an array of float32"),
    ],
)
def test_arguments_that_do_not_fit(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=r"%x|@f") as caught:
        pto.run(pto.parse(f"{HEAD} return\n}}"), "f", *arguments)
    assert message in str(caught.value)


def test_an_argument_is_in_global_memory() -> None:
    module = pto.parse("func.func @f(%p: !pto.ptr<f32, ub>) {\n  return\n}")
    with pytest.raises(ValueError, match="%p points into the memory ub of a core"):
        pto.run(module, "f", np.zeros(4, np.float32))


def test_addresses_are_multiples_of_32_bytes() -> None:
    body = f"%a = arith.constant 48 : i64\n%t = pto.alloc_tile addr = %a : {T}\n"
    assert "address 48 is not a multiple of 32 bytes" in error_of(body)


def test_poison_do_not_divide() -> None:
    """They may be 0, which is an error only where a quotient is meant."""
    half, whole = tile("i32", 4, 8, (2, 8)), tile("i32", 4, 8)
    module = pto.parse(f"""func.func @f(%x: {half}) -> {half} {{
      %q = pto.alloc_tile : {whole}
      %d = pto.alloc_tile : {half}
      pto.tdiv ins(%x, %x : {half}, {half}) outs(%q : {whole})
      pto.tmov ins(%q : {whole}) outs(%d : {half})
      return %d : {half}
    }}""")
    assert (pto.run(module, "f", np.full((2, 8), 7, np.int32)) == 1).all()


@pytest.mark.parametrize(
    ("type_", "argument", "message"),
    [
        ("index", 1.5, "%x: 1.5 is no index"),
        ("i8", 256, "256 does not fit i8"),
        ("f32", 1j, "%x is of type f32, not a complex"),
        ("f32", np.complex64(1), "%x is of type f32, not a complex64"),
        ("f32", 10**400, "does not fit f32"),
        (tile("f32", 4, 8, ("?", "?")), np.zeros((5, 8), np.float32), "5x8 of a tile of 4x8"),
    ],
)
def test_values_that_do_not_fit(type_: str, argument: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pto.run(pto.parse(f"func.func @f(%x: {type_}) {{ return }}"), "f", argument)


def test_unknown_function_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match="no function 'g' with a body; functions: f"):
        pto.run(pto.parse(f"{HEAD} return\n}}"), "g")


def test_four_bit_arguments_one_by_one_or_packed() -> None:
    types = tile("bf16", 1, 64), tile("!pto.f4E2M1x2", 1, 32)
    module = pto.parse(
        f"func.func @f(%s: {types[0]}, %d: {types[1]}) {{"
        f" pto.tcvt ins(%s : {types[0]}) outs(%d : {types[1]}) return }}"
    )
    x = (np.arange(64) % 13 / 2 - 3).reshape(1, 64).astype(ml_dtypes.bfloat16)
    single, bytes_ = np.zeros((1, 64), ml_dtypes.float4_e2m1fn), np.zeros((1, 32), np.uint8)
    pto.run(module, "f", x, single)
    pto.run(module, "f", x, bytes_)
    assert (single == x.astype(ml_dtypes.float4_e2m1fn)).all()
    codes = single.view(np.uint8)
    assert (bytes_ == codes[:, 0::2] | codes[:, 1::2] << 4).all()


def test_scalars_in_tiles_and_extents_of_views() -> None:
    t = tile("i8", 4, 8)
    module = pto.parse(f"""
      func.func @f(%x: {t}, %p: !pto.ptr<i32>, %n: index) -> (i8, index, index, index, index) {{
        %c1 = arith.constant 1 : index
        %c0 = arith.constant 0 : index
        %v = arith.constant 300 : i32
        %last = arith.constant 31 : index
        pto.tsetval ins(%last, %v : index, i32) outs(%x : {t})
        %e = pto.tgetval ins(%x, %last : {t}, index) outs : i8
        %view = pto.make_tensor_view %p, shape = [%n, %n], strides = [%n, %c1] : !pto.tensor_view<?x?xi32>
        %d = pto.get_tensor_view_dim %view, %c0 : !pto.tensor_view<?x?xi32> -> index
        %s = pto.get_tensor_view_stride %view, %c1 : !pto.tensor_view<?x?xi32> -> index
        %b = pto.declare_tile -> {tile("i8", 4, 8, (2, 3))}
        %r, %c = pto.get_validshape %b : {tile("i8", 4, 8, (2, 3))}
        return %e, %d, %s, %r, %c : i8, index, index, index, index
      }}""")  # fmt: skip
    x = np.zeros((4, 8), np.int8)
    found = pto.run(module, "f", x, np.zeros((5, 5), np.int32), 5)
    assert found == (300 - 256, 5, 1, 2, 3)
    assert x[3, 7] == 44


def test_tprint(capsys: pytest.CaptureFixture[str]) -> None:
    t = tile("i32", 2, 8)
    module = pto.parse(f"func.func @f(%x: {t}) {{\n  pto.tprint ins(%x : {t})\n  return\n}}")
    pto.run(module, "f", np.full((2, 8), 7, np.int32))
    assert "line 2: 2x8xi32" in capsys.readouterr().err
