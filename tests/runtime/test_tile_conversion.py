"""`tload`, `tcvt`, `tstore`: every pair of both targets, against exact rationals."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numeric_reference import Variant, convert
from runtime_support import Array

import pto
from pto.numerics import FORMATS
from pto.runtime import ExecutionError
from pto.targets import Pair, product_of, table_of

ROWS, COLS = 3, 64

KERNEL = """
func.func @f(%x: !pto.ptr<{src}>, %y: !pto.ptr<{dst}>, %rows: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sc = arith.constant {src_cols} : index
  %dc = arith.constant {dst_cols} : index
  %xv = pto.make_tensor_view %x, shape = [%rows, %sc], strides = [%sc, %c1]
    : !pto.tensor_view<?x?x{src}>
  %yv = pto.make_tensor_view %y, shape = [%rows, %dc], strides = [%dc, %c1]
    : !pto.tensor_view<?x?x{dst}>
  %s = pto.alloc_tile valid_row = %rows valid_col = %sc
    : !pto.tile_buf<vec, 4x{src_cols}x{src}, valid=?x?>
  %d = pto.alloc_tile valid_row = %rows valid_col = %dc
    : !pto.tile_buf<vec, 4x{dst_cols}x{dst}, valid=?x?>
  %t = pto.alloc_tile : !pto.tile_buf<vec, 1x4096xui8>
  %xp = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%rows, %sc]
    : !pto.tensor_view<?x?x{src}> -> !pto.partition_tensor_view<?x{src_cols}x{src}>
  %yp = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%rows, %dc]
    : !pto.tensor_view<?x?x{dst}> -> !pto.partition_tensor_view<?x{dst_cols}x{dst}>
  pto.tload ins(%xp : !pto.partition_tensor_view<?x{src_cols}x{src}>)
    outs(%s : !pto.tile_buf<vec, 4x{src_cols}x{src}, valid=?x?>)
  pto.tcvt ins(%s{tmp} {{{attributes}}}
      : !pto.tile_buf<vec, 4x{src_cols}x{src}, valid=?x?>{tmp_type})
    outs(%d : !pto.tile_buf<vec, 4x{dst_cols}x{dst}, valid=?x?>)
  pto.tstore ins(%d : !pto.tile_buf<vec, 4x{dst_cols}x{dst}, valid=?x?>)
    outs(%yp : !pto.partition_tensor_view<?x{dst_cols}x{dst}>)
  return
}}
"""


def kernel(src: str, dst: str, attributes: str, tmp: bool) -> str:
    return KERNEL.format(
        src=FORMATS[src].mlir[0],
        dst=FORMATS[dst].mlir[0],
        src_cols=COLS // 2 if src.startswith("f4") else COLS,
        dst_cols=COLS // 2 if dst.startswith("f4") else COLS,
        attributes=attributes,
        tmp=", %t" if tmp else "",
        tmp_type=", !pto.tile_buf<vec, 1x4096xui8>" if tmp else "",
    )


def packed(codes: Array, name: str) -> Array:
    """Codes as they lie in memory: two 4-bit ones to a byte, the even column low (spec F2)."""
    return codes if FORMATS[name].bits != 4 else codes[:, 0::2] | codes[:, 1::2] << 4


def unpacked(stored: Array, name: str) -> Array:
    if FORMATS[name].bits != 4:
        return stored
    return np.stack([stored & 15, stored >> 4], axis=-1).reshape(len(stored), -1)


def run_kernel(text: str, codes: Array, src: str, dst: str, arch: str, **options: Any) -> Array:
    columns = COLS if FORMATS[dst].bits != 4 else COLS // 2
    result = np.full((ROWS, columns), 0xA5, FORMATS[dst].code_dtype)
    pto.run(pto.parse(text), "f", packed(codes, src), result, ROWS, arch=arch, **options)
    return unpacked(result, dst)


def codes_of(name: str) -> Array:
    """Random codes, with every sign of the extreme ones among them."""
    fmt = FORMATS[name]
    codes = np.random.default_rng(7).integers(0, 1 << fmt.bits, (ROWS, COLS), dtype=np.uint64)
    top = 1 << (fmt.bits - 1)
    edges = [0, top, top - 1, 2 * top - 1]
    if fmt.inf_code is not None:
        edges += [fmt.inf_code, fmt.inf_code | top, fmt.inf_code + 1]
    if name == "f32":  # numbers that integers and 16-bit floats hold or just do not
        values = np.float32([0.5, -1.5, 2.5, 127.5, -128.5, 255.5, 32767.5, 65519, 2**31, -3e9])
        edges += [int(bits) for bits in values.view(np.uint32)]
    codes[1, : len(edges)] = edges
    return codes.astype(fmt.code_dtype)


def rows_of(arch: str) -> list[Any]:
    table = table_of("TCVT", product_of(arch))
    assert table is not None
    return [pytest.param(arch, row, id=f"{arch}-{row.src}-{row.dst}") for row in table.rows]


@pytest.mark.parametrize(("arch", "row"), rows_of("a2a3") + rows_of("a5"))
def test_pair_against_exact_reference(arch: str, row: Pair) -> None:
    src, dst = row.src.name, row.dst.name
    codes = codes_of(src)
    for mode in row.modes if row.rounds else ("RINT",):
        for saturation in (None, "ON", "OFF"):
            for tmp in (False, True):
                attributes = f"rmode = #pto<round_mode {mode}>"
                if saturation is not None:
                    attributes += f", satmode = #pto<saturation_mode {saturation}>"
                text = kernel(src, dst, attributes, tmp)
                actual = run_kernel(text, codes, src, dst, arch)
                on = (saturation or row.default_saturation) == "ON"
                pytorch = not on and row.through_i32 and (arch == "a5" or tmp)
                natural = "ROUND" if dst == "hif8" else "RINT"
                rounding = mode if row.rounds and mode != "NONE" else natural
                variant = Variant(rounding, saturate=on, pytorch=pytorch)
                expected = [
                    next(iter(convert(src, dst, int(code), [variant])))
                    for code in codes.reshape(-1)
                ]
                assert actual.reshape(-1).tolist() == expected, (mode, saturation, tmp)


def test_default_saturation_is_chosen_by_the_caller() -> None:
    text = kernel("f32", "i16", "rmode = #pto<round_mode RINT>", tmp=False)
    codes = np.full((ROWS, COLS), np.float32(40000), np.float32).view(np.uint32)
    results = {
        choice: int(run_kernel(text, codes, "f32", "i16", "a5", default_sat=choice)[0, 0])
        for choice in ("target", "on", "off")
    }
    assert results == {"target": 40000, "on": 32767, "off": 40000}  # codes: 40000 is -25536


def test_partial_tile_keeps_what_the_rest_held() -> None:
    module = pto.parse("""
        func.func @f(%s: !pto.tile_buf<vec, 1x16xf32, valid=1x8>,
                     %d: !pto.tile_buf<vec, 1x16xf16, valid=1x8>) {
          pto.tcvt ins(%s {rmode = #pto<round_mode RINT>} : !pto.tile_buf<vec, 1x16xf32, valid=1x8>)
            outs(%d : !pto.tile_buf<vec, 1x16xf16, valid=1x8>)
          return
        }""")
    result = np.full((1, 16), 7, np.float16)
    pto.run(module, "f", np.arange(16, dtype=np.float32).reshape(1, 16), result)
    assert result.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7] + [7] * 8]


def test_ssa_form_makes_its_result() -> None:
    module = pto.parse("""
        func.func @f(%s: !pto.tile<2x32xf32>) -> !pto.tile<2x32xbf16> {
          %d = pto.tcvt %s {rmode = #pto<round_mode TRUNC>}
            : !pto.tile<2x32xf32> -> !pto.tile<2x32xbf16>
          return %d : !pto.tile<2x32xbf16>
        }""")
    x = np.random.default_rng(0).normal(size=(2, 32)).astype(np.float32)
    result = pto.run(module, "f", x)
    assert (result.view(np.uint16) == (x.view(np.uint32) >> 16)).all()


def test_in_place_narrowing() -> None:
    module = pto.parse("""
        func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f16>) {
          %a = arith.constant 64 : i64
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %n = arith.constant 64 : index
          %xv = pto.make_tensor_view %x, shape = [%c1, %n], strides = [%n, %c1]
            : !pto.tensor_view<?x?xf32>
          %yv = pto.make_tensor_view %y, shape = [%c1, %n], strides = [%n, %c1]
            : !pto.tensor_view<?x?xf16>
          %xp = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c1, %n]
            : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<1x64xf32>
          %yp = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%c1, %n]
            : !pto.tensor_view<?x?xf16> -> !pto.partition_tensor_view<1x64xf16>
          %s = pto.alloc_tile addr = %a : !pto.tile_buf<vec, 1x64xf32>
          %d = pto.alloc_tile addr = %a : !pto.tile_buf<vec, 1x64xf16>
          pto.tload ins(%xp : !pto.partition_tensor_view<1x64xf32>)
            outs(%s : !pto.tile_buf<vec, 1x64xf32>)
          pto.tcvt ins(%s : !pto.tile_buf<vec, 1x64xf32>) outs(%d : !pto.tile_buf<vec, 1x64xf16>)
          pto.tstore ins(%d : !pto.tile_buf<vec, 1x64xf16>)
            outs(%yp : !pto.partition_tensor_view<1x64xf16>)
          return
        }""")
    x = np.random.default_rng(1).normal(size=64).astype(np.float32)
    y = np.zeros(64, np.float16)
    pto.run(module, "f", x, y)
    assert (y == x.astype(np.float16)).all()


@pytest.mark.parametrize(("distance", "fits"), [(0, False), (96, False), (128, True)])
def test_a_destination_that_overwrites_its_source(distance: int, fits: bool) -> None:
    """Widening; the addresses are arguments, which only the run knows."""
    narrow, wide = "!pto.tile_buf<vec, 1x64xf16>", "!pto.tile_buf<vec, 1x64xf32>"
    module = pto.parse(f"""
        func.func @f(%x: {narrow}, %from: i64, %to: i64) -> {wide} {{
          %s = pto.alloc_tile addr = %from : {narrow}
          %d = pto.alloc_tile addr = %to : {wide}
          pto.tmov ins(%x : {narrow}) outs(%s : {narrow})
          pto.tcvt ins(%s : {narrow}) outs(%d : {wide})
          return %d : {wide}
        }}""")
    x = np.arange(64, dtype=np.float16).reshape(1, 64)
    if fits:
        assert (pto.run(module, "f", x, 0, distance) == x).all()
        return
    text = rf"bytes {distance}..{distance + 255}, overwrites its source, bytes 0..127"
    with pytest.raises(ExecutionError, match=text):
        pto.run(module, "f", x, 0, distance)


@pytest.mark.parametrize(
    ("arch", "cols", "fits"), [("a2a3", 128, True), ("a2a3", 65, False), ("a5", 65, True)]
)
def test_narrowing_in_place(arch: str, cols: int, fits: bool) -> None:
    """Not on a2a3 where columns are left over: they are read after the repeats of all rows."""
    wide = f"!pto.tile_buf<vec, 4x128xf32, valid=4x{cols}>"
    narrow = f"!pto.tile_buf<vec, 4x128xf16, valid=4x{cols}>"
    module = pto.parse(f"""
        func.func @f(%x: {wide}) -> {narrow} {{
          %at = arith.constant 0 : i64
          %s = pto.alloc_tile addr = %at : {wide}
          %d = pto.alloc_tile addr = %at : {narrow}
          pto.tmov ins(%x : {wide}) outs(%s : {wide})
          pto.tcvt ins(%s : {wide}) outs(%d : {narrow})
          return %d : {narrow}
        }}""")
    x = np.random.default_rng(2).normal(size=(4, cols)).astype(np.float32)
    found = [d.id for d in pto.verify(module, arch=arch)]
    if fits:
        assert (pto.run(module, "f", x, arch=arch) == x.astype(np.float16)).all()
        assert "overlap" not in found
        return
    with pytest.raises(ExecutionError, match="overwrites its source"):
        pto.run(module, "f", x, arch=arch)
    assert "overlap" in found


def test_dynamic_extents_of_a_packed_result() -> None:
    module = pto.parse("""
        func.func @f(%s: !pto.tile_buf<vec, 4x64xbf16, valid=?x?>) -> !pto.tile_buf<vec, 4x32x!pto.f4E2M1x2, valid=?x?> {
          %d = pto.tcvt %s : !pto.tile_buf<vec, 4x64xbf16, valid=?x?>
            -> !pto.tile_buf<vec, 4x32x!pto.f4E2M1x2, valid=?x?>
          return %d : !pto.tile_buf<vec, 4x32x!pto.f4E2M1x2, valid=?x?>
        }""")
    x = np.full((4, 64), 1.4, ml_dtypes.bfloat16)
    result = pto.run(module, "f", x)
    assert result.shape == (4, 64)
    assert (result.astype(float) == 1.5).all()


TILE = "!pto.tile_buf<vec, 1x16x{}>"
NARROWING = f"""
  func.func @NAME(%x: {TILE.format("f32")}, %d: {TILE.format("i16")}) {{
    pto.tcvt ins(%x {{satmode = #pto<saturation_mode OFF>}} : {TILE.format("f32")}) outs(%d : {TILE.format("i16")})
    return
  }}"""  # fmt: skip


@pytest.mark.parametrize("arch", [None, "a2a3", "a5"])
def test_sibling_modules_keep_their_own_target(arch: str | None) -> None:
    """Infinities tell: a5 goes through i32, a2a3 does not without a tmp tile (spec S10)."""
    module = pto.parse(
        "module {"
        f' module attributes {{pto.target_arch = "a2a3"}} {{{NARROWING.replace("NAME", "first")}}}'
        f' module attributes {{pto.target_arch = "a5"}} {{{NARROWING.replace("NAME", "second")}'
        f" func.func @calls(%x: {TILE.format('f32')}, %d: {TILE.format('i16')}) {{"
        f" func.call @first(%x, %d) : ({TILE.format('f32')}, {TILE.format('i16')}) -> ()\n"
        " return } } }"
    )
    x = np.full((1, 16), np.inf, np.float32)
    expected = {
        name: int(pto.convert(x, "i16", saturation="OFF", arch=name)[0, 0])
        for name in ("a2a3", "a5")
    }
    assert expected["a2a3"] != expected["a5"]
    for function, own in (("first", "a2a3"), ("second", "a5"), ("calls", "a2a3")):
        result = np.zeros((1, 16), np.int16)
        pto.run(module, function, x, result, arch=arch)
        assert (result == expected[arch or own]).all(), function
