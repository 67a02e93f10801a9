"""Makes kernels of any size, shaped like the ones that compilers emit, for the benchmarks."""

from __future__ import annotations

_TILE = (
    "!pto.tile_buf<loc=vec, dtype={dtype}, rows=16, cols={cols}, v_row=?, v_col=?, "
    "blayout=row_major, slayout=none_box, fractal=512, pad=0>"
)

_HEAD = """module attributes {pto.target_arch = "a5"} {
"""

_FUNCTION = """  func.func @scale_{n}(%arg0: !pto.ptr<bf16>, %arg1: !pto.ptr<f32>, %arg2: !pto.ptr<i32>, %arg3: index) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %c0_i64 = arith.constant 0 : i64
    %c4096_i64 = arith.constant 4096 : i64
    %c0_index = arith.constant 0 : index
    %c1_index = arith.constant 1 : index
    %c16_index = arith.constant 16 : index
    %c{cols}_index = arith.constant {cols} : index
    %scale = arith.constant 1.25000000000000000e-01 : f32
    %x_view = pto.make_tensor_view %arg0, shape = [%arg3, %c{cols}_index], strides = [%c{cols}_index, %c1_index] {{layout = #pto.layout<nd>}} : !pto.tensor_view<?x?xbf16>
    %y_view = pto.make_tensor_view %arg1, shape = [%arg3, %c{cols}_index], strides = [%c{cols}_index, %c1_index] {{layout = #pto.layout<nd>}} : !pto.tensor_view<?x?xf32>
    %0 = pto.load_scalar %arg2[%c0_index] : !pto.ptr<i32> -> i32
    %1 = arith.index_cast %0 : i32 to index
    scf.for %row = %c0_index to %1 step %c16_index {{
      %2 = arith.subi %1, %row : index
      %3 = arith.minsi %2, %c16_index : index
      %4 = arith.maxsi %row, %c0_index : index
      %x_tile = pto.alloc_tile addr = %c0_i64 valid_row = %3 valid_col = %c{cols}_index : {bf16}
      %x_part = pto.partition_view %x_view, offsets = [%4, %c0_index], sizes = [%c16_index, %c{cols}_index] : !pto.tensor_view<?x?xbf16> -> !pto.partition_tensor_view<16x{cols}xbf16>
      pto.tload ins(%x_part : !pto.partition_tensor_view<16x{cols}xbf16>) outs(%x_tile : {bf16})
      %y_tile = pto.alloc_tile addr = %c4096_i64 valid_row = %3 valid_col = %c{cols}_index : {f32}
      pto.tcvt ins(%x_tile {{rmode = #pto<round_mode ROUND>}} : {bf16}) outs(%y_tile : {f32})
      pto.tmuls ins(%y_tile, %scale : {f32}, f32) outs(%y_tile : {f32})
      %5 = arith.addi %4, %c1_index : index
      %6 = arith.cmpi slt, %5, %1 : index
      scf.if %6 {{
        pto.tadd ins(%y_tile, %y_tile : {f32}, {f32}) outs(%y_tile : {f32})
      }}
      %y_part = pto.partition_view %y_view, offsets = [%4, %c0_index], sizes = [%c16_index, %c{cols}_index] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x{cols}xf32>
      pto.tstore ins(%y_tile : {f32}) outs(%y_part : !pto.partition_tensor_view<16x{cols}xf32>)
    }}
    return
  }}
"""


def kernel_text(size: int) -> str:
    """A module of about `size` bytes."""
    parts = [_HEAD]
    length = 0
    number = 0
    while length < size:
        cols = 64 << (number % 4)
        part = _FUNCTION.format(
            n=number,
            cols=cols,
            bf16=_TILE.format(dtype="bf16", cols=cols),
            f32=_TILE.format(dtype="f32", cols=cols),
        )
        parts.append(part)
        length += len(part)
        number += 1
    return "".join([*parts, "}\n"])
