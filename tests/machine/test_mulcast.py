"""MulCast: the product in the source's type, then Cast with NONE, saturating (spec M1)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from programs import at, module_text, place, run_program
from xdsl.utils.exceptions import VerifyException

import pto

Array = NDArray[Any]

FORMS = {
    "count": "count = 512",
    "contiguous": "mask = 128, repeat = 4, strides = array<i64: 1, 1, 1, 4, 8, 8>",
    "bitwise": "mask = array<i64: -1, -1>, repeat = 4, strides = array<i64: 1, 1, 1, 4, 8, 8>",
}


def _mulcast(types: tuple[str, str], attributes: str, at_second: int, at_dst: int) -> str:
    src, dst = types
    size = {"f16": 2, "i64": 8}[src]
    out = {"i8": 1, "ui8": 1, "f32": 4, "i32": 4}[dst]
    return (
        at(f"ub_{src}", at_second // size, "b")
        + at(f"ub_{dst}", at_dst // out, "d")
        + f"    pto.mulcast ins(%ub_{src}, %b {{{attributes}}} : !pto.ptr<{src}, ub>, "
        f"!pto.ptr<{src}, ub>) outs(%d : !pto.ptr<{dst}, ub>)\n"
    )


def _run(left: Array, right: Array, types: tuple[str, str], form: str, arch: str = "a2a3") -> Array:
    block = -(-left.nbytes // 32) * 32
    memory = place(left, 2 * block + 4096)
    memory[block : block + right.nbytes] = right.view(np.uint8)
    run_program(_mulcast(types, form, block, 2 * block), memory, arch=arch)
    dtype = {"i8": np.int8, "ui8": np.uint8, "f32": np.float32, "i32": np.int32}[types[1]]
    return memory[2 * block :].view(dtype)[: left.size]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_document_example(form: str) -> None:
    left = np.resize(np.array([1, -2, 3, -6], np.float16), 512)
    right = np.resize(np.array([1, 3, -4, 5], np.float16), 512)
    result = _run(left, right, ("f16", "i8"), form)
    assert np.array_equal(result, np.resize([1, -6, -12, -30], 512))


@pytest.mark.parametrize("dst", ["i8", "ui8"])
def test_rounds_twice_and_saturates(dst: str) -> None:
    """The product is rounded to f16 first: 2.5 and -2.5 tie to even, 1000 saturates."""
    left = np.array([0.5, -0.5, 1000, -1000, 3, np.inf, np.nan, 1.0009765625], np.float16)
    right = np.array([5, 5, 1, 1, 0.5, 1, 1, 0.5], np.float16)
    low, high = (-128, 127) if dst == "i8" else (0, 255)
    expected = [min(max(n, low), high) for n in (2, -2, 1000, -1000, 2, 1000)]
    expected += [0, _rounded_twice(left[7], right[7])]
    assert _run(left, right, ("f16", dst), "count = 8").tolist() == expected


def _rounded_twice(left: np.float16, right: np.float16) -> int:
    exact = Fraction(float(left)) * Fraction(float(right))
    return round(float(np.float16(float(exact))))


def test_integers_wrap_to_64_bits() -> None:
    left = np.array([3, -(2**40), 2**62, 2**33], np.int64)
    right = np.array([-7, 2**30, 4, 2**33], np.int64)
    low = [(int(a) * int(b) + 2**63) % 2**64 - 2**63 for a, b in zip(left, right, strict=True)]
    clamped = [min(max(n, -(2**31)), 2**31 - 1) for n in low]
    assert _run(left, right, ("i64", "i32"), "count = 4", "a5").tolist() == clamped
    assert np.array_equal(
        _run(left, right, ("i64", "f32"), "count = 4", "a5"), np.array(low).astype(np.float32)
    )


@pytest.mark.parametrize(
    ("types", "arch", "attributes", "message"),
    [
        (("i64", "i32"), "a2a3", "count = 4", "MulCast i64 to i32 is not offered on a2a3"),
        (("i64", "i32"), "a5", "mask = 32, repeat = 1, strides = array<i64: 1, 1, 1, 8, 8, 8>",
         "count only on a5"),
        (("f16", "i8"), "a5", "mask = 129, repeat = 1, strides = array<i64: 1, 1, 1, 4, 8, 8>",
         "must be in [1, 128]"),
    ],
)  # fmt: skip
def test_verifier(types: tuple[str, str], arch: str, attributes: str, message: str) -> None:
    with pytest.raises((VerifyException, pto.ParseError)) as error:
        pto.parse(module_text(_mulcast(types, attributes, 0, 64), arch)).verify()
    assert message in str(error.value)
