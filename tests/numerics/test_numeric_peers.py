"""Differential tests against numpy, ml_dtypes, en_dtypes and gfloat, where they overlap."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numeric_reference import Variant
from numeric_support import ENGINES, Array, assert_codes, every_code, run

from pto.numerics import FORMATS

Cast = Callable[[Array], Array]
N = 1 << 18
PATTERNS = np.random.default_rng(11).integers(0, 1 << 32, N, dtype=np.uint32)


def quiet(cast: Cast) -> Cast:
    def wrapped(values: Array) -> Array:
        with np.errstate(all="ignore"):
            return cast(values)

    return wrapped


def canonical(codes: Array, dst: str) -> Array:
    """The peers keep the sign of NaN and some its payload; spec S15 does not."""
    fmt = FORMATS[dst]
    assert fmt.nan_code is not None
    magnitude = codes & fmt.magnitude_mask
    is_nan = magnitude > (fmt.max_code if fmt.inf_code is None else fmt.inf_code)
    kept = codes if dst == "f8e4m3fn" else codes.dtype.type(fmt.nan_code)  # spec S3
    return np.where(is_nan, kept, codes)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dst", ["f16", "bf16", "f8e4m3fn", "f8e5m2"])
def test_f32_to_float(dst: str, engine: str) -> None:
    fmt = FORMATS[dst]
    expected = quiet(lambda v: v.astype(fmt.carrier).view(fmt.code_dtype))(
        PATTERNS.view(np.float32)
    )
    got = run(PATTERNS, "f32", dst, Variant("RINT", saturate=False), engine)
    assert_codes(got, canonical(expected, dst), PATTERNS, dst)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("src", ["f16", "bf16", "f8e4m3fn", "f8e5m2", "f8e8m0", "f4e2m1", "i4"])
def test_widening(src: str, engine: str) -> None:
    codes = every_code(src)
    with np.errstate(all="ignore"):
        expected = codes.view(FORMATS[src].carrier).astype(np.float32).view(np.uint32)
    got = run(codes, src, "f32", Variant("RINT"), engine)
    assert_codes(got, canonical(expected, "f32"), codes, src)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("src", "dst"), [("i32", "f32"), ("i64", "f32"), ("i64", "f64")])
def test_integer_to_float(src: str, dst: str, engine: str) -> None:
    source, target = FORMATS[src], FORMATS[dst]
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 1 << 64, N, dtype=np.uint64, endpoint=False) >> rng.integers(
        0, 63, N
    ).astype(np.uint64)
    codes = codes.astype(source.code_dtype)
    expected = codes.view(source.carrier).astype(target.carrier).view(target.code_dtype)
    assert_codes(run(codes, src, dst, Variant("RINT"), engine), expected, codes, src)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("mode", "rounding"),
    [("RINT", np.rint), ("FLOOR", np.floor), ("CEIL", np.ceil), ("TRUNC", np.trunc)],
)
def test_f32_to_integral(mode: str, rounding: Any, engine: str) -> None:
    values = PATTERNS.view(np.float32)
    expected = quiet(rounding)(values).view(np.uint32)
    got = run(PATTERNS, "f32", "f32", Variant(mode), engine)
    assert_codes(got, canonical(expected, "f32"), PATTERNS, mode)
    clipped = np.clip(values, -2e9, 2e9).view(np.uint32)
    with np.errstate(invalid="ignore"):
        whole = rounding(clipped.view(np.float32)).astype(np.int32).view(np.uint32)
    whole = np.where(np.isnan(values), np.uint32(0), whole)
    assert_codes(run(clipped, "f32", "i32", Variant(mode), engine), whole, clipped, mode)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("dst", "peer"), [("hif8", "hifloat8"), ("f4e1m2", "float4_e1m2")])
def test_en_dtypes(dst: str, peer: str, engine: str) -> None:
    en_dtypes = pytest.importorskip("en_dtypes")
    rng = np.random.default_rng(13)
    values = rng.standard_normal(N).astype(np.float32) * np.exp2(rng.integers(-26, 18, N))
    values = values.astype(np.float32)
    if dst == "f4e1m2":  # what does not fit is not compared
        values = np.clip(values, -1.75, 1.75)
    expected: Array = values.astype(getattr(en_dtypes, peer)).view(np.uint8)
    if dst == "f4e1m2":
        mode = "RINT"
        expected = expected & 0xF
    else:
        mode = "ROUND"
    got = run(values.view(np.uint32), "f32", dst, Variant(mode, saturate=False), engine)
    assert_codes(got, expected, values.view(np.uint32), dst)


GFLOAT_NAMES = {
    "f16": "format_info_binary16",
    "bf16": "format_info_bfloat16",
    "f8e4m3fn": "format_info_ocp_e4m3",
    "f8e5m2": "format_info_ocp_e5m2",
    "f4e2m1": "format_info_ocp_e2m1",
}
GFLOAT_MODES = {
    "RINT": "TiesToEven",
    "ROUND": "TiesToAway",
    "FLOOR": "TowardNegative",
    "CEIL": "TowardPositive",
    "TRUNC": "TowardZero",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", GFLOAT_MODES)
@pytest.mark.parametrize("dst", GFLOAT_NAMES)
def test_gfloat(dst: str, mode: str, engine: str) -> None:
    """Every mode, on finite numbers that saturate."""
    gfloat = pytest.importorskip("gfloat")
    formats = pytest.importorskip("gfloat.formats")
    info = getattr(formats, GFLOAT_NAMES[dst])
    rng = np.random.default_rng(17)
    values = rng.standard_normal(4096) * np.exp2(rng.integers(-30, 20, 4096))
    values = np.concatenate([values, np.arange(-512, 512) / 64]).astype(np.float32)
    rounding = getattr(gfloat.RoundMode, GFLOAT_MODES[mode])
    expected = gfloat.round_ndarray(info, values.astype(np.float64), rounding, sat=True)
    codes = values.view(np.uint32)
    got = run(codes, "f32", dst, Variant(mode), engine)
    back = run(got, dst, "f64", Variant("RINT"), engine).view(np.float64)
    assert np.array_equal(back, expected)


def test_ml_dtypes_carriers_are_the_formats() -> None:
    assert FORMATS["bf16"].carrier == ml_dtypes.bfloat16
    assert FORMATS["i4"].carrier == ml_dtypes.int4
    assert FORMATS["f8e8m0"].carrier == ml_dtypes.float8_e8m0fnu
