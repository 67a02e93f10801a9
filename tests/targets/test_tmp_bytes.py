"""`tmp_bytes` against worked figures and a model of the vector calls that write the tmp tile."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pto.tiles.tmp import tmp_bytes, tmp_bytes_for_any, tmp_bytes_up_to, tmp_terms


@pytest.mark.parametrize(
    ("rows", "cols", "stride", "expected"),
    [
        (254, 80, None, 81024),
        (255, 80, None, 81344),
        (400, 80, None, 81344),
        (16, 65, 72, 4352),
        (16, 64, 64, 256),
        (16, 64, 4096, 256),
        (1, 8, 8, 32),
        (1, 16320, 16320, 65280),
        (1, 20000, 20000, 65280),
        (2, 65, 20000, 80032),
    ],
)
def test_f32_to_i16(rows: int, cols: int, stride: int | None, expected: int) -> None:
    assert tmp_bytes("f32", "i16", rows, cols, row_stride=stride) == expected


@pytest.mark.parametrize(
    ("cols", "i16", "i8"),
    [
        (1, 32, 160),
        (8, 32, 160),
        (9, 64, 160),
        (16, 64, 160),
        (17, 96, 192),
        (33, 160, 224),
        (64, 256, 256),
        (65, 256, 256),
        (4096, 256, 256),
    ],
)
def test_from_f16(cols: int, i16: int, i8: int) -> None:
    assert tmp_bytes("f16", "i16", 7, cols) == i16
    assert tmp_bytes("f16", "i8", 7, cols) == i8


def blocks_touched_by_f32_to_i16(rows: int, cols: int, stride: int) -> int:
    """The furthest byte that the calls of the first step write, each starting the tmp tile anew.

    Head: row by row, the whole repeats of 64 elements, at most 255 in a call. Tail: the remaining
    columns of at most 255 rows in a call, rows a row stride apart, whole 32-byte blocks.
    """
    furthest = 0
    whole, rest = divmod(cols, 64)
    for first in range(0, whole, 255):
        furthest = max(furthest, min(255, whole - first) * 256)
    for first in range(0, rows if rest else 0, 255):
        last_row = min(255, rows - first) - 1
        furthest = max(furthest, last_row * stride * 4 + (rest + 7) // 8 * 32)
    return furthest


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 600), st.integers(1, 20000), st.integers(0, 40))
def test_f32_to_i16_is_what_the_calls_write(rows: int, cols: int, extra: int) -> None:
    stride = (cols + 7) // 8 * 8 + 8 * extra
    expected = blocks_touched_by_f32_to_i16(rows, cols, stride)
    assert tmp_bytes("f32", "i16", rows, cols, row_stride=stride) == expected


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 600), st.integers(0, 5000))
def test_covering_size_covers_all(rows: int, cols: int) -> None:
    one = tmp_bytes_for_any(rows, cols)
    pairs = (("f32", "i16"), ("f16", "i16"), ("f16", "i8"))
    sizes = [tmp_bytes(src, dst, rows, cols) for src, dst in pairs]
    assert one == max(sizes)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([("f32", "i16"), ("f16", "i16"), ("f16", "i8")]),
    st.integers(0, 300),
    st.integers(0, 300),
    st.integers(0, 5),
)
def test_size_up_to_is_the_largest_of_all_regions(
    pair: tuple[str, str], rows: int, cols: int, extra: int
) -> None:
    stride = (cols + 7) // 8 * 8 + 8 * extra
    sizes = [tmp_bytes(*pair, rows, c, row_stride=stride) for c in range(cols + 1)]
    assert tmp_bytes_up_to(*pair, rows, cols, row_stride=stride) == max(sizes)


@pytest.mark.parametrize(("rows", "cols"), [(0, 64), (16, 0), (0, 0)])
def test_an_empty_tile_needs_nothing(rows: int, cols: int) -> None:
    assert tmp_bytes("f32", "i16", rows, cols) == 0
    assert tmp_bytes("f16", "i8", rows, cols) == 0


@pytest.mark.parametrize("pair", [("f32", "i32"), ("f16", "ui8"), ("i32", "i16"), ("f32", "f16")])
def test_other_pairs_need_nothing(pair: tuple[str, str]) -> None:
    assert tmp_bytes(*pair, 16, 64) == 0


def test_only_a2a3_without_saturation() -> None:
    assert tmp_bytes("f32", "i16", 16, 64, arch="a5") == 0
    assert tmp_bytes("f32", "i16", 16, 64, arch="a3") == 256
    assert tmp_bytes("f32", "i16", 16, 64, saturation="ON") == 0
    assert tmp_bytes("f32", "i16", 16, 64, saturation=None) == 256


def test_terms() -> None:
    terms = tmp_terms("f32", "i16", 16, 130, row_stride=136)
    assert (terms.head, terms.tail, terms.required) == (512, 32 * (15 * 17 + 1), 8192)
    terms = tmp_terms("f16", "i8", 16, 40)
    assert (terms.h, terms.narrow, terms.scratch, terms.required) == (40, 160, 224, 224)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"src": "float32"}, "unknown format 'float32'"),
        ({"rows": -1}, "negative"),
        ({"row_stride": 8}, "shorter than a row"),
        ({"row_stride": 65}, "multiple of 8"),
        ({"saturation": "maybe"}, "'ON', 'OFF' or None"),
        ({"arch": "a7"}, "unknown target"),
    ],
)
def test_wrong_use(kwargs: dict[str, object], message: str) -> None:
    arguments = {"src": "f32", "dst": "i16", "rows": 2, "cols": 64, **kwargs}
    with pytest.raises(ValueError, match=message):
        tmp_bytes(**arguments)  # type: ignore[arg-type]
