"""Grids and routes, against the values themselves."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from pto.targets import lookup
from pto.targets.grids import Grid, loses
from pto.targets.grids import grid as grid_or_none
from pto.targets.routes import find_route

SMALL = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f4e2m1": ml_dtypes.float4_e2m1fn,
    "i4": ml_dtypes.int4,
    "i8": np.int8,
    "ui8": np.uint8,
    "i16": np.int16,
    "ui16": np.uint16,
}


def grid(name: str) -> Grid:
    found = grid_or_none(name)
    assert found is not None
    return found


@cache
def values(name: str) -> frozenset[Fraction]:
    """Every finite value of a format of at most 16 bits."""
    dtype = np.dtype(SMALL[name])
    if name in ("i4", "f4e2m1"):
        numbers = np.arange(16, dtype=np.uint8).view(dtype).astype(np.float64)
    else:
        codes = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}")
        with np.errstate(invalid="ignore"):
            numbers = codes.view(dtype).astype(np.float64)
    return frozenset(Fraction(float(x)) for x in numbers[np.isfinite(numbers)])


@pytest.mark.parametrize("a", SMALL)
def test_a_grid_holds_another_iff_all_values_are_in_it(a: str) -> None:
    for b in SMALL:
        inside = values(b) <= values(a)
        assert grid(a).holds(grid(b)) == inside, (a, b)


def test_lossless_within_reach() -> None:
    assert not loses(grid("i8"), grid("f16"))
    assert loses(grid("i16"), grid("f16"))
    assert not loses(grid("f16").integers(), grid("i8"))
    assert not loses(grid("i16").within(grid("f8e4m3fn")), grid("f16"))
    assert not loses(grid("f16").integers(), grid("ui8"))
    assert loses(grid("f16"), grid("ui8"))
    assert loses(grid("f32"), grid("hif8"))
    assert not loses(grid("hif8"), grid("hif8"))
    assert loses(grid("f8e4m3fn"), grid("hif8"))


@pytest.mark.parametrize(
    ("arch", "src", "dst", "chain", "exact"),
    [
        ("a5", "i32", "f16", "i32 f32 f16", True),
        ("a2a3", "f16", "bf16", "f16 f32 bf16", True),
        ("a2a3", "bf16", "f16", "bf16 f32 f16", True),
        ("a5", "f16", "f8e4m3fn", "f16 f32 f8e4m3fn", True),
        ("a2a3", "f32", "i8", "f32 f16 i8", False),
        ("a2a3", "i64", "bf16", "i64 f32 bf16", False),
        ("a2a3", "i16", "i32", "i16 f32 i32", True),
        ("a2a3", "ui8", "i16", "ui8 f16 i16", True),
    ],
)
def test_routes(arch: str, src: str, dst: str, chain: str, exact: bool) -> None:
    route = find_route(arch, src, dst)
    assert route is not None
    assert route.formats == tuple(chain.split())
    assert route.exact == exact


@pytest.mark.parametrize(
    ("arch", "src", "dst"), [("a5", "f64", "f32"), ("a5", "i4", "f16"), ("a2a3", "f16", "f16")]
)
def test_no_route(arch: str, src: str, dst: str) -> None:
    assert find_route(arch, src, dst) is None


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_every_step_of_a_route_is_legal(arch: str) -> None:
    for src in SMALL:
        for dst in SMALL:
            if src != dst and (route := find_route(arch, src, dst)):
                for step in zip(route.formats, route.formats[1:], strict=False):
                    assert lookup(arch, *step) is not None


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_exact_routes_between_integers_keep_the_value(arch: str) -> None:
    """Where the source fits the middle formats, the last step alone decides."""
    for src in ("i4", "i8", "ui8", "i16"):
        for dst in ("i8", "ui8", "i16", "i32"):
            route = find_route(arch, src, dst) if src != dst else None
            if route is not None and route.exact:
                for middle in route.formats[1:-1]:
                    if middle in SMALL:
                        assert values(src) <= values(middle)
