"""Sources of 32 and 64 bits, against exact arithmetic, on both engines, where rounding decides."""

import numpy as np
import pytest
from numeric_reference import INTEGERS, WIDTHS
from numeric_support import (
    WIDE,
    assert_codes,
    check,
    float_samples,
    integer_samples,
    pairs,
    run,
    variants,
)

from pto.numerics.formats import FORMATS
from pto.numerics.kernel import plain_limit
from pto.numerics.numpy_engine import PLAIN_ELEMENTS


@pytest.mark.parametrize(("src", "dst"), pairs(WIDE))
def test_boundaries(src: str, dst: str) -> None:
    if src in INTEGERS:
        codes = np.unique(integer_samples(src, dst, random=500))
        few = np.random.default_rng(1).permutation(codes)[:6000]
        check(few, src, dst)
        return
    codes = float_samples(src, dst, mantissas=1, random=1000)
    check(codes if src == "f32" else codes[:: 3 + WIDTHS[dst] % 2], src, dst)


@pytest.mark.slow
@pytest.mark.parametrize(("src", "dst"), pairs(WIDE))
def test_more_boundaries(src: str, dst: str) -> None:
    if src in INTEGERS:
        check(integer_samples(src, dst, random=20_000), src, dst)
    else:
        check(float_samples(src, dst, mantissas=6, random=20_000), src, dst)


@pytest.mark.parametrize("dst", [d for d in WIDTHS if plain_limit(FORMATS["f32"], FORMATS[d])])
def test_blocks_in_range_use_the_same_arithmetic(dst: str) -> None:
    """numpy's shorter program for blocks without overflow equals the full one at its limit."""
    limit = plain_limit(FORMATS["f32"], FORMATS[dst])
    assert limit is not None
    rng = np.random.default_rng(3)
    below = rng.integers(0, limit + 1, PLAIN_ELEMENTS, dtype=np.uint32)
    below[:64] = np.arange(limit - 63, limit + 1, dtype=np.uint32)
    codes = below | rng.integers(0, 2, len(below), dtype=np.uint32) << np.uint32(31)
    with_nan = np.append(codes, np.uint32(0x7FC00000))  # takes the full program
    for way in variants("f32", dst):
        plain = run(codes, "f32", dst, way, "numpy")
        assert_codes(plain, run(with_nan, "f32", dst, way, "numpy")[:-1], codes, str(way))
