"""Overlap of placed tiles, against a conversion that is carried out byte by byte."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pto.tiles.placement import Placement


def placement(start: int, rows: int, cols: int, bits: int, gap: int) -> Placement:
    row_bytes = (cols * bits + 7) // 8
    return Placement(start, rows, row_bytes, row_bytes + gap, bits, cols)


def bytes_of(tile: Placement, row: int, first: int, last: int) -> range:
    """The bytes of the elements from `first` to `last` (exclusive) of a row."""
    base = tile.start + row * tile.stride
    return range(base + first * tile.element_bits // 8, base + (last * tile.element_bits + 7) // 8)


def loses_data(src: Placement, dst: Placement, through_bits: int = 0) -> bool:
    """Whether a step of the conversion reads a byte that an earlier one has written."""
    wider = dst.element_bits > src.element_bits
    step = 1 if wider else 2048 // max(dst.element_bits, src.element_bits, through_bits)
    written: set[int] = set()
    for row in range(src.rows):
        for first in range(0, src.cols, step):
            last = min(first + step, src.cols)
            if not written.isdisjoint(bytes_of(src, row, first, last)):
                return True
            written.update(bytes_of(dst, row, first, last))
    return False


BITS = st.sampled_from([8, 16, 32, 64])
GAPS = st.sampled_from([0, 32, 64, 320])


@settings(max_examples=500, deadline=None)
@given(
    st.integers(0, 20).map(lambda n: 32 * n),
    st.integers(0, 20).map(lambda n: 32 * n),
    st.integers(1, 5),
    st.integers(1, 140),
    BITS,
    BITS,
    GAPS,
    GAPS,
)
@example(0, 0, 16, 64, 16, 32, 0, 0)  # widening in place
@example(128, 0, 1, 64, 16, 32, 0, 0)  # the source in the upper half of the destination
@example(0, 0, 4, 128, 32, 16, 0, 0)  # narrowing in place
@example(0, 64, 4, 16, 32, 32, 64, 64)  # the two halves of one tile's columns
def test_overwrites_iff_data_is_lost(
    src_start: int,
    dst_start: int,
    rows: int,
    cols: int,
    src_bits: int,
    dst_bits: int,
    src_gap: int,
    dst_gap: int,
) -> None:
    src = placement(src_start, rows, cols, src_bits, src_gap)
    dst = placement(dst_start, rows, cols, dst_bits, dst_gap)
    assert dst.overwrites(src) == loses_data(src, dst)
    assert dst.overwrites(src, 32) == loses_data(src, dst, 32)


@settings(max_examples=300, deadline=None)
@given(
    *(st.integers(0, 12).map(lambda n: 32 * n) for _ in range(2)),
    *(st.integers(1, 4) for _ in range(2)),
    *(st.integers(1, 40) for _ in range(2)),
    *(GAPS for _ in range(2)),
)
def test_meets_iff_a_byte_is_shared(
    start_a: int, start_b: int, rows_a: int, rows_b: int, a: int, b: int, gap_a: int, gap_b: int
) -> None:
    tiles = (placement(start_a, rows_a, a, 8, gap_a), placement(start_b, rows_b, b, 8, gap_b))
    used = [{x for r in range(t.rows) for x in bytes_of(t, r, 0, t.cols)} for t in tiles]
    assert tiles[0].meets(tiles[1]) == (not used[0].isdisjoint(used[1]))
    assert tiles[1].meets(tiles[0]) == tiles[0].meets(tiles[1])


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 20).map(lambda n: 32 * n),
    st.integers(0, 20).map(lambda n: 32 * n),
    st.integers(1, 5),
    st.integers(1, 200),
    st.sampled_from([(32, 16), (32, 32), (16, 16), (16, 8), (64, 32)]),
    GAPS,
    GAPS,
)
@example(0, 0, 4, 65, (32, 16), 60, 30)  # narrowing in place, with a column left over
@example(0, 0, 4, 128, (32, 16), 0, 0)  # whole repeats
@example(0, 0, 4, 40, (32, 16), 0, 0)  # less than one
def test_whole_repeats_overwrite_what_is_left_of_the_rows(
    src_start: int,
    dst_start: int,
    rows: int,
    cols: int,
    bits: tuple[int, int],
    src_gap: int,
    dst_gap: int,
) -> None:
    src = placement(src_start, rows, cols, bits[0], src_gap)
    dst = placement(dst_start, rows, cols, bits[1], dst_gap)
    whole = cols - cols % (2048 // bits[0])
    heads = {byte for row in range(rows) for byte in bytes_of(dst, row, 0, whole)}
    tails = {byte for row in range(rows) for byte in bytes_of(src, row, whole, cols)}
    assert dst.overwrites_tails(src) == (not heads.isdisjoint(tails))
