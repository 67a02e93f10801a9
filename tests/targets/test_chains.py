"""Value sets and chains, against the values themselves."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from pto.numerics import FORMATS
from pto.numerics.rules import has_saturation, modes
from pto.numerics.value_sets import ValueSet, loses, value_set
from pto.targets import TCVT_TARGETS, pair_of, product_of, resolve_generally
from pto.targets.chains import Chain, difference, find_chain

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


def held(name: str) -> ValueSet:
    found = value_set(FORMATS[name])
    assert found is not None
    return found


def chain_of(
    arch: str, src: str, dst: str, mode: str | None = None, saturation: str | None = None
) -> Chain | None:
    direct = resolve_generally(FORMATS[src], FORMATS[dst], mode=mode, saturation=saturation)
    return find_chain(direct, product_of(arch))


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
def test_a_value_set_holds_another_iff_all_values_are_in_it(a: str) -> None:
    for b in SMALL:
        inside = values(b) <= values(a)
        assert held(a).holds(held(b)) == inside, (a, b)


def test_lossless_within_reach() -> None:
    assert not loses(held("i8"), held("f16"))
    assert loses(held("i16"), held("f16"))
    assert not loses(held("f16").integers(), held("i8"))
    assert not loses(held("i16").within(held("f8e4m3fn")), held("f16"))
    assert not loses(held("f16").integers(), held("ui8"))
    assert loses(held("f16"), held("ui8"))
    assert loses(held("f32"), held("hif8"))
    assert not loses(held("hif8"), held("hif8"))
    assert loses(held("f8e4m3fn"), held("hif8"))


@pytest.mark.parametrize(
    ("arch", "src", "dst", "saturation", "chain", "exact"),
    [
        ("a5", "i32", "f16", None, "i32 -> f32 -> f16", True),
        ("a2a3", "f16", "bf16", None, "f16 -> f32 -> bf16", True),
        ("a2a3", "bf16", "f16", None, "bf16 -> f32 -> f16", True),
        ("a5", "f16", "f8e4m3fn", "ON", "f16 -> f32 -> f8e4m3fn", True),
        ("a5", "f16", "f8e4m3fn", "OFF", "f16 -> f32 -> f8e4m3fn", False),  # the sign of NaN
        ("a2a3", "f32", "i8", None, "f32 -> f16 -> i8", False),
        ("a2a3", "i64", "bf16", None, "i64 -> f32 -> bf16", False),
        ("a2a3", "i16", "i32", None, "i16 -> f32 -> i32", True),
        ("a2a3", "ui8", "i16", None, "ui8 -> f16 -> i16", True),
        ("a2a3", "i16", "i8", "ON", "i16 -> f16 -> i8", True),  # what f16 loses i8 clips
        ("a2a3", "i16", "i8", "OFF", "i16 -> f16 -> i8", False),
    ],
)
def test_chains(
    arch: str, src: str, dst: str, saturation: str | None, chain: str, exact: bool
) -> None:
    found = chain_of(arch, src, dst, saturation=saturation)
    assert found is not None
    assert str(found) == chain
    assert found.is_exact == exact


@pytest.mark.parametrize(
    ("arch", "src", "dst"), [("a5", "f64", "f32"), ("a5", "i4", "f16"), ("a2a3", "ui8", "ui16")]
)
def test_no_chain(arch: str, src: str, dst: str) -> None:
    assert chain_of(arch, src, dst) is None


def lacking(arch: str) -> list[tuple[str, str]]:
    """The pairs of real formats that a target does not convert."""
    real = [name for name, fmt in FORMATS.items() if not fmt.is_complex and name != "f8e8m0"]
    product = product_of(arch)
    return [
        (src, dst)
        for src in real
        for dst in real
        if src != dst and pair_of("TCVT", product, FORMATS[src], FORMATS[dst]) is None
    ]


@pytest.mark.parametrize("arch", TCVT_TARGETS)
def test_a_chain_is_exact_iff_it_is_the_direct_conversion(arch: str) -> None:
    """For every pair that is lacking, every mode and saturation: every input of up to 16 bits, and
    many of wider ones, for which a chain may be equal and not be proved so."""
    wrong = []
    for src, dst in lacking(arch):
        choices = ("ON", "OFF") if has_saturation(FORMATS[src], FORMATS[dst]) else (None,)
        for mode in modes(FORMATS[src], FORMATS[dst]):
            for saturation in choices:
                chain = chain_of(arch, src, dst, mode, saturation)
                if chain is None or chain.steps[-1].illegal is not None:
                    continue
                differs = difference(chain)
                is_wide = FORMATS[src].bits > 16
                if chain.is_exact == (differs is not None) and not (is_wide and differs is None):
                    wrong.append((src, dst, mode, saturation, differs))
    assert not wrong


@pytest.mark.parametrize("arch", TCVT_TARGETS)
def test_every_step_before_the_last_is_legal(arch: str) -> None:
    product = product_of(arch)
    for src, dst in lacking(arch):
        if (chain := chain_of(arch, src, dst)) is not None:
            assert chain.formats[0].name == src
            assert chain.formats[-1].name == dst
            for step in chain.steps:
                assert pair_of("TCVT", product, step.src, step.dst) is not None
            assert all(step.illegal is None for step in chain.steps[:-1])
