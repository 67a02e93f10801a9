"""`double-rounding` is reported iff some value comes out differently, over all chains of two steps.

Both ways are computed with `pto.convert`, on samples that crowd around the values where one of the
formats rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from samples import samples

import pto
from pto.dialect.ops import TCvtOp
from pto.passes.rules.tcvt_chains import Step, follow
from pto.targets import Pair, tcvt_table

Array = np.ndarray[Any, Any]

SOURCES = ("f32", "f16", "bf16", "i16", "i32", "i64")
LARGEST = {
    "f16": 65504.0,
    "bf16": 3.38e38,
    "f8e4m3fn": 448.0,
    "f8e5m2": 57344.0,
    "hif8": 32768.0,
    "f4e2m1": 6.0,
    "f4e1m2": 1.75,
    "i8": 127,
    "ui8": 255,
    "i16": 32767,
    "ui16": 65535,
    "i32": 2**31 - 1,
    "i64": 2**53,
    "f32": 3.4e38,
}


def convert(x: Array, src: str, dst: str, mode: str | None) -> Array:
    """Saturating, where the pair has the choice."""
    try:
        return pto.convert(x, dst, src=src, mode=mode, saturation="ON", arch=None)
    except ValueError as error:
        if "no choice of saturation" not in str(error):
            raise
        return pto.convert(x, dst, src=src, mode=mode, arch=None)


def bits(x: Array) -> Array:
    return x.view(f"u{x.dtype.itemsize}")


@dataclass(frozen=True)
class Chain:
    first: Pair
    second: Pair

    def __str__(self) -> str:
        return f"{self.first.src}-{self.first.dst}-{self.second.dst}"


def chains() -> list[Chain]:
    """All chains through a float format, on either target, each once."""
    rows = [row for arch in ("a2a3", "a5") for row in getattr(tcvt_table(arch), "rows", ())]
    found = {
        (a.src, a.dst, b.dst): Chain(a, b)
        for a in rows
        for b in rows
        if a.src in SOURCES and a.dst == b.src and a.src != a.dst and b.src != b.dst
        if a.dst[0] not in "iu" and b.dst != "i4"
    }
    return list(found.values())


def reported(chain: Chain, modes: tuple[str, str], op: TCvtOp) -> bool:
    value, _ = follow(Step(op, chain.first.src, chain.first.dst, modes[0]), None)
    _, found = follow(Step(op, chain.second.src, chain.second.dst, modes[1]), value)
    return found is not None


@pytest.fixture(scope="module")
def any_op() -> TCvtOp:
    tile = "!pto.tile_buf<vec, 16x64xf32>"
    module = pto.parse(
        f"func.func @f(%s: {tile}) {{\n pto.tcvt ins(%s : {tile}) outs(%s : {tile})\n}}"
    )
    return next(op for op in module.walk() if isinstance(op, TCvtOp))


def modes_of(pair: Pair) -> tuple[str, ...]:
    return tuple(m for m in pair.modes if m != "HYBRID") or ("RINT",)


@pytest.mark.parametrize("chain", chains(), ids=str)
def test_reported_iff_some_value_differs(chain: Chain, any_op: TCvtOp) -> None:
    src, mid, dst = chain.first.src, chain.first.dst, chain.second.dst
    x = samples(src)
    exact = x.astype(np.float64)
    for mode2 in modes_of(chain.second):
        if (src, mode2) != ("f32", "ODD") and mode2 == "ODD":
            continue  # only f32 rounds to odd, so there is no direct conversion to compare with
        direct = (
            convert(x, src, dst, mode2) if mode2 == "ODD" else convert(exact, "f64", dst, mode2)
        )
        for mode1 in modes_of(chain.first):
            middle = convert(x, src, mid, mode1)
            twice = convert(middle, mid, dst, mode2)
            back = convert(twice, dst, "f64", None)
            at = convert(middle, mid, "f64", None)
            rounds = bool(np.any((back != at) & (np.abs(at) <= LARGEST[dst])))
            differs = bool(np.any(bits(twice) != bits(direct)))
            assert reported(chain, (mode1, mode2), any_op) == (rounds and differs), (mode1, mode2)
