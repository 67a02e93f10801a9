"""Every one of the 2**32 codes of f32, against the formats' own libraries (`-m sweep`)."""

from collections.abc import Iterator

import numpy as np
import pytest
from numeric_reference import Variant, decode
from numeric_support import Array, assert_codes, run
from test_numeric_peers import canonical

from pto.numerics import FORMATS

BLOCK = 1 << 24


def peer(values: Array, dst: str) -> Array:
    """The codes that numpy, ml_dtypes or en_dtypes give: overflow to inf or NaN, NaN kept."""
    with np.errstate(all="ignore"):
        if dst == "hif8":
            en_dtypes = pytest.importorskip("en_dtypes")
            return values.astype(en_dtypes.hifloat8).view(np.uint8)
        fmt = FORMATS[dst]
        return canonical(values.astype(fmt.carrier).view(fmt.code_dtype), dst)


def saturated(codes: Array, values: Array, dst: str) -> Array:
    """Spec S2 and S7, from the codes without saturation."""
    fmt = FORMATS[dst]
    sign = codes & ~codes.dtype.type(fmt.magnitude_mask)
    magnitude = codes & fmt.magnitude_mask
    top = fmt.max_code + 1
    largest = sign | codes.dtype.type(fmt.max_code)
    codes = np.where(magnitude == top, largest, codes)
    return np.where(np.isnan(values), codes.dtype.type(0), codes)


def directed(codes: Array, values: Array, dst: str) -> Iterator[tuple[str, Array]]:
    """What the other modes give for finite, in-range values, by comparing the nearest to x."""
    table = np.array([_magnitude(dst, code) for code in range(FORMATS[dst].max_code + 2)])
    sign = codes & ~codes.dtype.type(FORMATS[dst].magnitude_mask)
    nearest = np.minimum(codes & FORMATS[dst].magnitude_mask, len(table) - 1)
    size = np.abs(values.astype(np.float64))
    down = nearest - (table[nearest] > size)
    up = down + (table[down] < size)
    negative = np.signbit(values)
    half = size - table[down] >= table[up] - size
    yield "TRUNC", sign | down
    yield "FLOOR", sign | np.where(negative, up, down)
    yield "CEIL", sign | np.where(negative, down, up)
    yield "ROUND", sign | np.where(half & (up > down), up, down)
    if dst == "f16":
        yield "ODD", sign | (down | (up > down))


def _magnitude(dst: str, code: int) -> float:
    value = decode(dst, code)[1]
    return np.inf if isinstance(value, str) else value[0] * 2.0 ** value[1]


@pytest.mark.sweep
@pytest.mark.parametrize("dst", ["f16", "bf16", "f8e4m3fn", "f8e5m2", "hif8"])
def test_every_f32(dst: str) -> None:
    mode = "ROUND" if dst == "hif8" else "RINT"
    limit = float(FORMATS[dst].max_value)
    for start in range(0, 1 << 32, BLOCK):
        codes = np.arange(start, start + BLOCK, dtype=np.uint32)
        values = codes.view(np.float32)
        off = peer(values, dst)
        on = saturated(off, values, dst)
        for engine in ("jit", "numpy"):
            got = run(codes, "f32", dst, Variant(mode, saturate=False), engine)
            assert_codes(got, off, codes, f"{mode} OFF {engine}")
            assert_codes(run(codes, "f32", dst, Variant(mode), engine), on, codes, f"{mode} ON")
        if dst not in ("f16", "bf16"):
            continue
        fits = np.abs(values) <= limit
        for other, expected in directed(off, values, dst):
            got = run(codes, "f32", dst, Variant(other), "jit")
            assert_codes(got[fits], expected[fits], codes[fits], other)
