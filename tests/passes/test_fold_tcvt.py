"""Folding: every round trip that the pass accepts gives each code of the format again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pto.numerics import FORMATS, convert_bits
from pto.numerics.rules import modes
from pto.passes.fold_tcvt import round_trip_is_exact
from pto.targets import ResolvedConversion, resolve_generally

NARROW = [n for n, f in FORMATS.items() if f.bits <= 16 and f.kind != "complex" and n != "f8e8m0"]
REAL = [n for n, f in FORMATS.items() if f.kind != "complex" and n != "f8e8m0"]


def ways(
    name: str, middle: str, mode: str | None, saturation: tuple[str, str]
) -> tuple[ResolvedConversion, ResolvedConversion]:
    """There and back, the mode being that of the way back."""
    source, target = FORMATS[name], FORMATS[middle]
    return (
        resolve_generally(source, target, saturation=saturation[0]),
        resolve_generally(target, source, mode=mode, saturation=saturation[1]),
    )


@pytest.mark.parametrize("finite", [False, True], ids=["all", "finite"])
def test_accepted_round_trips_are_identities(finite: bool) -> None:
    """All codes of sources of up to 16 bits, rounding in each direction; a NaN stays one."""
    accepted = 0
    for name, middle in itertools.product(NARROW, REAL):
        if name == middle:
            continue
        fmt = FORMATS[name]
        codes = np.arange(1 << fmt.bits).astype(fmt.code_dtype)
        both = itertools.product(("ON", "OFF"), repeat=2)
        offered = [m for m in modes(FORMATS[middle], fmt) if m in ("RINT", "ROUND", "FLOOR")]
        for mode, saturation in itertools.product(offered, both):
            if not round_trip_is_exact(*ways(name, middle, mode, saturation), finite=finite):
                continue
            accepted += 1
            there = convert_bits(codes, name, middle, None, saturation[0])
            back = convert_bits(there, middle, name, mode, saturation[1])
            kept = np.ones(codes.size, np.bool_)
            if fmt.is_float and fmt.max_code:
                magnitude = codes & (1 << (fmt.bits - 1)) - 1
                special = (
                    magnitude > fmt.max_code
                    if name != "hif8"
                    else np.isin(codes, (0x6F, 0xEF, 0x80))
                )
                kept = ~special if finite else ~(special & (magnitude != (fmt.inf_code or 0)))
            assert np.array_equal(back[kept], codes[kept]), (name, middle, mode, saturation)
    assert accepted > 100


@pytest.mark.parametrize(
    ("name", "middle", "mode", "saturation", "exact"),
    [
        ("f16", "f32", None, "OFF", True),
        ("f16", "f32", None, "ON", False),
        ("f16", "bf16", None, "OFF", False),
        ("i8", "f16", "CEIL", "ON", True),
        ("i32", "f32", None, "ON", False),
        ("i32", "i64", None, "OFF", True),
        ("f4e2m1", "bf16", None, "ON", True),
        ("hif8", "f32", "HYBRID", "OFF", False),
        ("f32", "f32", None, "OFF", False),
    ],
)
def test_round_trip(name: str, middle: str, mode: str | None, saturation: str, exact: bool) -> None:
    there, back = ways(name, middle, mode, ("ON", saturation))
    assert round_trip_is_exact(there, back) is exact
