"""Spellings of types and attributes."""

from __future__ import annotations

import pytest
from xdsl.ir import Attribute

from pto.dialect.type_syntax import parse_attribute, parse_type
from pto.dialect.types import TileBufType, element_format

TILE = "!pto.tile_buf<vec, 16x64xf32>"


@pytest.mark.parametrize(
    "text",
    [
        "!pto.tile_buf<vec, 16x64xf32>",
        "!pto.tile_buf< vec ,16 x 64 x f32 >",
        "!pto.tile_buf<vec, 16x64xf32, valid=16x64, blayout=row_major, slayout=none_box>",
        "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=64>",
        "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=64, v_row=16, v_col=64, "
        "blayout=row_major, slayout=none_box, fractal=512, pad=0>",
        "!pto.tile_buf<f32, 16, 64>",
        "!pto.tile_buf<loc=vec, f32, 16, 64, RowMajor, NoneBox, None, Null>",
        "<loc=vec, dtype=f32, rows=16, cols=64>",
    ],
)
def test_one_tile_type_in_many_spellings(text: str) -> None:
    assert parse_type(text) == parse_type(TILE)
    assert str(parse_type(text)) == TILE


@pytest.mark.parametrize("text", ["!pto.tile<16x64xf32>", "!pto.tile<f32, 16, 64>",
                                  "!pto.tile<loc=vec, f32, 16, 64>",
                                  "!pto.tile<loc=vec, dtype=f32, rows=16, cols=64>"])  # fmt: skip
def test_one_tile_value_type_in_many_spellings(text: str) -> None:
    assert str(parse_type(text)) == "!pto.tile<16x64xf32>"


def format_name(dtype: Attribute) -> str | None:
    fmt = element_format(dtype)
    return None if fmt is None else fmt.name


def test_fields_of_a_tile() -> None:
    text = (
        "!pto.tile_buf<loc=acc, dtype=bf16, rows=16, cols=32, v_row=?, v_col=8, "
        "blayout=col_major, slayout=row_major, fractal=1024, pad=2, compact=1>"
    )
    tile = parse_type(text)
    assert isinstance(tile, TileBufType)
    assert (tile.loc, tile.rows, tile.cols) == ("acc", 16, 32)
    assert (tile.valid_rows, tile.valid_cols) == (None, 8)
    assert (tile.blayout, tile.slayout, tile.data.fractal, tile.data.pad) == (
        "col_major",
        "row_major",
        1024,
        2,
    )
    assert format_name(tile.dtype) == "bf16"
    assert "!pto.tile_buf" + tile.long_body() == text
    assert parse_type(str(tile)) == tile


@pytest.mark.parametrize(
    "text",
    [
        "!pto.ptr<f32>",
        "!pto.ptr<f32, gm>",
        "!pto.ptr<vector<4xf32>, gm>",
        "!pto.tensor_view<?x?xbf16>",
        "!pto.tensor_view<1x2x3x4x5xui8>",
        "!pto.partition_tensor_view<16x?x!pto.hif8>",
        "!pto.multi_tile_buf<!pto.tile_buf<vec, 16x64xf32>, count=2>",
        "!pto.vreg<64xf32>",
        "!pto.vmi.vreg<128xf32, #pto.vmi.layout<deinterleaved = 2>>",
        "!pto.local_array<4x!pto.ptr<f32>>",
        "!pto.pipe",
        "!llvm.ptr",
        "memref<16x4xf32>",
        "vector<4xf32>",
        "complex<f16>",
    ],
)
def test_types_print_as_they_are_written(text: str) -> None:
    assert str(parse_type(text)) == text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("f64", "f64"), ("f32", "f32"), ("f16", "f16"), ("half", "f16"), ("bf16", "bf16"),
        ("f8E4M3FN", "f8e4m3fn"), ("f8E4M3", "f8e4m3fn"), ("f8E5M2", "f8e5m2"),
        ("!pto.f8E8M0", "f8e8m0"), ("f8E8M0FNU", "f8e8m0"), ("!pto.hif8", "hif8"),
        ("!pto.f4E2M1x2", "f4e2m1"), ("f4E2M1FN", "f4e2m1"), ("!pto.f4E1M2x2", "f4e1m2"),
        ("i4", "i4"), ("si4", "i4"), ("i8", "i8"), ("si16", "i16"), ("i32", "i32"), ("si64", "i64"),
        ("ui8", "ui8"), ("u8", "ui8"), ("ui16", "ui16"), ("u32", "ui32"), ("ui64", "ui64"),
        ("complex<f16>", "c32"), ("complex<f32>", "c64"),
        ("index", None), ("i1", None), ("i128", None), ("!pto.ptr<f32>", None),
    ],
)  # fmt: skip
def test_element_formats(text: str, name: str | None) -> None:
    assert format_name(parse_type(text)) == name


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("#pto<round_mode CAST_RINT>", "#pto<round_mode RINT>"),
        ("#pto.round_mode<RINT>", "#pto<round_mode RINT>"),
        ("#pto.pipe<PIPE_ALL>", "#pto.pipe<PIPE_ALL>"),
        ("#pto<pipe PIPE_ALL>", "#pto.pipe<PIPE_ALL>"),
        ("#pto<cmp lt>", "#pto<cmp lt>"),
        ("#pto.layout<nd>", "#pto.layout<nd>"),
        ("#pto<never_seen before>", "#pto<never_seen before>"),
        ("#pto.vmi.layout<contiguous>", "#pto.vmi.layout<contiguous>"),
        (
            "#pto.vmi.layout<num_groups = 8,  slots = 8>",
            "#pto.vmi.layout<num_groups = 8, slots = 8>",
        ),
    ],
)
def test_attributes(text: str, printed: str) -> None:
    assert str(parse_attribute(text)) == printed
    assert parse_attribute(printed) == parse_attribute(text)
