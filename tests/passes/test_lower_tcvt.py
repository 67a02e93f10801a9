"""Lowering: tiles of other layouts, windows, shared memory; what it refuses; that its output reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

import pto
from pto.numerics import convert_bits
from pto.passes.lower_tcvt import LowerTcvtPass
from pto.passes.materialize_tmp import MaterializeTmpPass
from pto.runtime.machine import MachineKernel
from pto.tiles.tmp import tmp_bytes

Array = NDArray[Any]
ARCHS = ["a2a3", "a5"]


def _lower(body: str, arch: str | None, **options: Any) -> ModuleOp:
    module = pto.parse(f"func.func @f() {{\n{body}\nreturn\n}}")
    LowerTcvtPass(arch, **options).apply(Context(), module)
    module.verify()
    return module


def _run(body: str, arch: str, memory: Array) -> Array:
    """The unified buffer's beginning after the function; the arrays given are left alone."""
    kernel = MachineKernel(_lower(body, arch), arch=arch)
    core = kernel.core()
    buffer = core.unified_buffer
    raw = memory.view(np.uint8).ravel()
    buffer.data[: raw.size] = raw
    buffer.written[: raw.size] = True
    kernel.launch_on(core)
    return buffer.data


def _tiles(src: str, dst: str, at: int) -> str:
    return f"""
    %a = arith.constant 0 : i64
    %b = arith.constant {at} : i64
    %s = pto.alloc_tile addr = %a : {src}
    %d = pto.alloc_tile addr = %b : {dst}
    """


@pytest.mark.parametrize("arch", ARCHS)
def test_column_major(arch: str) -> None:
    """A column-major tile is walked by columns: 24 rows are 96 bytes of f32."""
    src = "!pto.tile_buf<vec, 24x5xf32, valid=20x3, blayout=col_major>"
    dst = "!pto.tile_buf<vec, 32x5xf16, valid=20x3, blayout=col_major>"
    values = np.arange(120, dtype=np.float32).reshape(5, 24)
    body = _tiles(src, dst, 512) + f"pto.tcvt ins(%s : {src}) outs(%d : {dst})"
    memory = np.zeros(512 + 320, np.uint8)
    memory[:480] = values.view(np.uint8).ravel()
    result = _run(body, arch, memory)[512:832].view(np.float16).reshape(5, 32)
    expected = np.zeros((5, 32), np.float16)
    expected[:3, :20] = values[:3, :20]
    assert np.array_equal(result, expected)


def test_column_major_through_tmp() -> None:
    """tmp is sized for the walk by columns: 3 columns of 20, each in a column of 24."""
    src = "!pto.tile_buf<vec, 24x5xf32, valid=20x3, blayout=col_major>"
    dst = "!pto.tile_buf<vec, 32x5xi16, valid=20x3, blayout=col_major>"
    module = pto.parse(
        f"func.func @f() {{\n{_tiles(src, dst, 512)}pto.tcvt ins(%s : {src}) outs(%d : {dst})\n"
        "return\n}"
    )
    for pass_ in (MaterializeTmpPass("a2a3"), LowerTcvtPass("a2a3")):
        pass_.apply(Context(), module)
    kernel = MachineKernel(module, arch="a2a3")
    core = kernel.core()
    core.unified_buffer.data[:480].view(np.float32)[:] = np.arange(120)
    core.unified_buffer.written[:480] = True
    kernel.launch_on(core)
    result = core.unified_buffer.data[512:832].view(np.int16).reshape(5, 32)
    assert np.array_equal(result[:3, :20], np.arange(120).reshape(5, 24)[:3, :20])
    assert kernel.report.touched("%tmp") == tmp_bytes("f32", "i16", 3, 20, row_stride=24)


@pytest.mark.parametrize("arch", ARCHS)
def test_windows(arch: str) -> None:
    """A window keeps its parent's row stride."""
    src, dst = "!pto.tile_buf<vec, 8x64xf32>", "!pto.tile_buf<vec, 8x64xi32>"
    small, out = "!pto.tile_buf<vec, 4x16xf32>", "!pto.tile_buf<vec, 4x16xi32>"
    values = np.arange(512, dtype=np.float32).reshape(8, 64) + np.float32(0.75)
    body = (
        _tiles(src, dst, 2048)
        + f"""
    %r = arith.constant 2 : index
    %c = arith.constant 32 : index
    %sw = pto.subview %s[%r, %c] sizes [4, 16] : {src} -> {small}
    %dw = pto.subview %d[%r, %c] sizes [4, 16] : {dst} -> {out}
    pto.tcvt ins(%sw {{rmode = #pto<round_mode FLOOR>}} : {small}) outs(%dw : {out})
    """
    )
    memory = np.zeros(4096, np.uint8)
    memory[:2048] = values.view(np.uint8).ravel()
    result = _run(body, arch, memory)[2048:4096].view(np.int32).reshape(8, 64)
    expected = np.zeros((8, 64), np.int32)
    expected[2:6, 32:48] = np.floor(values[2:6, 32:48])
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("arch", ARCHS)
def test_in_place(arch: str) -> None:
    """A narrower destination over its source: each repeat is read before it is written."""
    src, dst = "!pto.tile_buf<vec, 1x256xf32>", "!pto.tile_buf<vec, 1x256xf16>"
    values = np.linspace(-70_000, 70_000, 256).astype(np.float32)
    body = _tiles(src, dst, 0) + f"pto.tcvt ins(%s : {src}) outs(%d : {dst})"
    result = _run(body, arch, values.copy())[:512].view(np.uint16)
    assert np.array_equal(result, convert_bits(values.view(np.uint32), "f32", "f16", "RINT", "ON"))


@pytest.mark.parametrize("arch", ARCHS)
def test_empty_valid_region(arch: str) -> None:
    src, dst = (
        "!pto.tile_buf<vec, 8x64xf32, valid=0x64>",
        "!pto.tile_buf<vec, 8x64xi32, valid=0x64>",
    )
    module = _lower(_tiles(src, dst, 2048) + f"pto.tcvt ins(%s : {src}) outs(%d : {dst})", arch)
    assert not any(op.name in ("pto.cast", "pto.vcvt", "pto.tcvt") for op in module.walk())


@pytest.mark.parametrize("arch", ARCHS)
def test_output_reads_with_xdsls_parser(arch: str, xdsl_context: Context) -> None:
    body = "\n".join(
        f"""%s{n} = pto.alloc_tile : !pto.tile_buf<vec, 4x{cols}x{s}, valid={valid}>
        %d{n} = pto.alloc_tile : !pto.tile_buf<vec, 4x{cols}x{d}, valid={valid}>
        pto.tcvt ins(%s{n} : !pto.tile_buf<vec, 4x{cols}x{s}, valid={valid}>) outs(%d{n} : !pto.tile_buf<vec, 4x{cols}x{d}, valid={valid}>)"""
        for n, (s, d, cols, valid) in enumerate(
            [("f32", "f16", 80, "4x70"), ("f16", "i32", 192, "?x?"), ("f32", "f32", 64, "4x64")]
        )
    )
    text = pto.print_module(_lower(body, arch))
    read = Parser(xdsl_context, text).parse_module()
    read.verify()
    assert pto.print_module(read) == text


# ---- What it refuses, with the place

PLAIN = "!pto.tile_buf<vec, 8x64x{}>"
REFUSED = [
    (PLAIN.format("f16"), PLAIN.format("f8E4M3FN"), "", "a5", "a5 does not convert f16 to f8e4m3fn"),
    (PLAIN.format("f32"), PLAIN.format("bf16"), "{rmode = #pto<round_mode ODD>}", "a5",
     "f32 to bf16 does not round by ODD on a5; the pair's modes: RINT, ROUND, FLOOR, CEIL, TRUNC"),
    ("!pto.tile_buf<mat, 8x64xf32>", "!pto.tile_buf<mat, 8x64xf16>", "", "a5", "a tile in mat"),
    ("!pto.tile_buf<vec, 16x64xf32, slayout=row_major>", "!pto.tile_buf<vec, 16x64xf16>", "", "a5",
     "boxed layout"),
    ("!pto.tile_buf<vec, 8x8xf32, blayout=col_major>", "!pto.tile_buf<vec, 8x8xi32>", "", "a5",
     "source and destination differ in blayout"),
    ("!pto.tile_buf<vec, 8x8xf32>", "!pto.tile_buf<vec, 8x8xf16>", "", "a2a3",
     "a row of 16 bytes is not a multiple of 32 bytes"),
    (PLAIN.format("f32"), PLAIN.format("f16"), "", "kirin-x90", "kirin-x90 has no tcvt"),
    (PLAIN.format("f32"), PLAIN.format("f16"), "", "a6", "unknown target 'a6'"),
    (PLAIN.format("f32"), PLAIN.format("f16"), "", None, "no target: give arch"),
]  # fmt: skip


@pytest.mark.parametrize(("src", "dst", "attributes", "arch", "message"), REFUSED)
def test_refused(src: str, dst: str, attributes: str, arch: str | None, message: str) -> None:
    body = _tiles(src, dst, 8192) + f"pto.tcvt ins(%s {attributes} : {src}) outs(%d : {dst})"
    with pytest.raises(PassFailedException) as error:
        _lower(body.replace(" {} ", " "), arch)
    assert message in str(error.value)
    assert str(error.value).startswith("<string>:7:")


def test_default_saturation_option() -> None:
    """It decides what an absent satmode means, and is one of three words."""
    src, dst = PLAIN.format("f32"), PLAIN.format("bf16")
    body = _tiles(src, dst, 8192) + f"pto.tcvt ins(%s : {src}) outs(%d : {dst})"
    for option, sat in (("target", "SAT"), ("on", "SAT"), ("off", "NOSAT")):
        assert f'sat = "{sat}"' in pto.print_module(_lower(body, "a5", default_sat=option))
    with pytest.raises(PassFailedException, match="target, on, off, not maybe"):
        _lower(body, "a5", default_sat="maybe")


def test_the_module_names_the_target_lowered_to() -> None:
    """i64 has no masked form on a5, so that what is lowered to a2a3 must not say a5."""
    src, dst = "!pto.tile_buf<vec, 8x40xi64>", "!pto.tile_buf<vec, 8x40xf32>"
    module = pto.parse(
        f'module attributes {{pto.target_arch = "a5"}} {{ func.func @f() {{\n{_tiles(src, dst, 8192)}'
        f"pto.tcvt ins(%s : {src}) outs(%d : {dst})\nreturn\n}} }}"
    )
    LowerTcvtPass("a3").apply(Context(), module)
    module.verify()
    assert 'pto.target_arch = "a2a3"' in pto.print_module(module)
    assert "pto.cast" in pto.print_module(module)


def test_no_room_for_tmp() -> None:
    """The tiles fill the unified buffer of 192 KiB."""
    src, dst = "!pto.tile_buf<vec, 128x256xf32>", "!pto.tile_buf<vec, 128x256xi16>"
    module = pto.parse(
        f"func.func @f() {{\n{_tiles(src, dst, 131072)}pto.tcvt ins(%s : {src}) outs(%d : {dst})\n"
        "return\n}"
    )
    with pytest.raises(PassFailedException, match="no room for a tile of 1024 bytes"):
        MaterializeTmpPass("a2a3").apply(Context(), module)
