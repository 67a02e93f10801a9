"""What `explain` says about a value agrees with what the conversion does."""

from decimal import Decimal
from fractions import Fraction
from math import isfinite

import numpy as np
import pytest

from pto.numerics import FORMATS
from pto.numerics.formats import Format, value_of
from pto.numerics.rounding_analysis import analyse, hybrid_threshold, parse_code, result
from pto.numerics.rules import modes

PAIRS = [
    ("f32", "f16"),
    ("f32", "bf16"),
    ("f32", "f8e4m3fn"),
    ("f32", "hif8"),
    ("f16", "hif8"),
    ("bf16", "f4e2m1"),
    ("bf16", "f4e1m2"),
    ("f64", "f32"),
    ("f32", "i32"),
    ("f16", "i8"),
    ("f32", "f32"),
    ("i32", "f32"),
    ("i16", "f16"),
]


def codes(src: str) -> list[int]:
    fmt = FORMATS[src]
    rng = np.random.default_rng(4)
    if fmt.is_integer:
        return [int(c) for c in rng.integers(0, 1 << fmt.bits, 300)]
    exponents = rng.integers(fmt.bias - 30, fmt.bias + 16, 300).clip(0, 2 * fmt.bias)
    mantissas = rng.integers(0, 1 << fmt.mantissa_bits, 300) & -(1 << rng.integers(0, 6))
    signs = rng.integers(0, 2, 300) << (fmt.bits - 1) if fmt.bits < 64 else np.zeros(300, int)
    return [int(c) for c in (exponents << fmt.mantissa_bits) + mantissas + signs]


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_results_are_the_neighbours(src: str, dst: str) -> None:
    source, target = FORMATS[src], FORMATS[dst]
    for code in codes(src):
        exact = analyse(source, target, code)
        assert exact is not None
        below, above = exact.below, exact.above
        assert abs(below) <= abs(exact.value) < abs(above)
        whole = Fraction(int(exact.kept or "0", 2)) * exact.ulp
        if exact.step >= exact.lowest_bit:
            assert whole == abs(below)
            rest = Fraction(int(exact.dropped or "0", 2)) * Fraction(2) ** exact.lowest_bit
            assert whole + rest == abs(exact.value)
        if abs(above) > target.max_value or abs(below) < Fraction(target.min_value):
            continue
        for mode in modes(source, target):
            value = Fraction(value_of(result(source, target, code, mode, "ON"), target))
            assert value in (below, above), (mode, hex(code))
            if mode == "HYBRID" and exact.part and (found := hybrid_threshold(exact)):
                assert (value == above) == (found[0] >= found[1])


@pytest.mark.parametrize("fmt", [f for f in FORMATS.values() if f.kind != "complex"])
def test_parsing_inverts_printing(fmt: Format) -> None:
    rng = np.random.default_rng(9)
    for code in {int(c) for c in rng.integers(0, 1 << min(fmt.bits, 63), 100)}:
        value = value_of(code, fmt)
        if isfinite(value):
            assert parse_code(str(Decimal(value)), fmt) == (code, True)
            assert parse_code(repr(value), fmt)[0] == code
        assert parse_code(hex(code), fmt) == (code, True)


def test_a_decimal_stands_for_the_nearest_value() -> None:
    assert parse_code("0.1", FORMATS["f32"]) == (0x3DCCCCCD, False)
    # Just above a tie of f32, and so near that f64 lies on it.
    assert parse_code("1.00000005960464477540", FORMATS["f32"]) == (0x3F800001, False)
    assert parse_code("1.000000059604644775390625", FORMATS["f32"]) == (0x3F800000, False)
