"""Lowered programs give the bytes of the direct conversion, and touch no others (spec L)."""

from __future__ import annotations

import random

import numpy as np
import pytest
from equality import Case, Form, Shape, cases, differences, fits, modes_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pto.targets import product_of, table_of

# Head only, tail only, both; one and several rows; strides wider than the columns; partial valid
# regions (every shape whose columns do not fill whole blocks); known only at run time.
WALKS = [
    Form(rows, repeats, tail, src_extra, dst_extra)
    for rows in (1, 3)
    for repeats, tail in ((1, 0), (3, 0), (0, 1), (0, 17), (0, 63), (1, 1), (1, 40), (2, 62))
    for src_extra, dst_extra in ((0, 0), (0, 32), (64, 0))
]
LARGE = [
    Form(255, 0, 8),
    Form(256, 0, 8),
    Form(300, 0, 24),
    Form(257, 1, 2),
    Form(1, 255, 0),
    Form(1, 256, 2),
    Form(2, 0, 40, src_extra=4096),  # row strides beyond the 8 bits of a repeat stride
    Form(3, 1, 10, src_extra=2048, dst_extra=4096),
]
DYNAMIC = [
    Form(4, 2, 18, dynamic=True),
    Form(3, 0, 10, 64, dynamic=True),
    Form(2, 2, 0, dynamic=True),
    Form(300, 0, 8, dynamic=True),
]
FORMS = WALKS + LARGE + DYNAMIC
SAMPLE = {"walks": (WALKS + DYNAMIC[:3], 500), "large": (LARGE + DYNAMIC[3:], 60)}


def _check(chosen: list[Case]) -> None:
    rng = np.random.default_rng(1)
    wrong = [found for case in chosen if (found := differences(case, rng)) is not None]
    assert not wrong, f"{len(wrong)} of {len(chosen)} differ, such as\n" + "\n".join(wrong[:5])


@pytest.mark.parametrize("kind", SAMPLE)
@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_sample(arch: str, kind: str) -> None:
    """Some of everything; `test_all` is everything."""
    forms, size = SAMPLE[kind]
    _check(random.Random(0).sample(list(cases(arch, forms)), size))


def test_suite_is_large_enough() -> None:
    assert sum(1 for arch in ("a2a3", "a5") for _ in cases(arch, FORMS)) >= 50_000


@settings(max_examples=60, deadline=None)
@given(
    arch=st.sampled_from(["a2a3", "a5"]),
    number=st.integers(0, 10_000),
    shape=st.builds(
        Shape,
        rows=st.integers(1, 20),
        cols=st.integers(1, 400),
        src_extra=st.integers(0, 300),
        dst_extra=st.integers(0, 300),
        dynamic=st.booleans(),
    ),
)
def test_any_shape(arch: str, number: int, shape: Shape) -> None:
    """Random shapes of random pairs, in modes that follow from the number too."""
    table = table_of("TCVT", product_of(arch))
    assert table is not None
    pair = table.rows[number % len(table.rows)]
    modes = modes_of(pair)
    saturation = (None, "ON", "OFF")[number % 3]
    tmp = arch == "a2a3" and pair.through_i32 and number % 2 == 0 and not shape.dynamic
    case = Case(
        arch, pair.src.name, pair.dst.name, modes[number % len(modes)], saturation, tmp, shape
    )
    assume(fits(case))
    _check([case])


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_all(arch: str, form: Form) -> None:
    """Every pair, mode, saturation and tmp for one walk."""
    _check(list(cases(arch, [form])))


def test_a_difference_is_found() -> None:
    """The comparison sees a byte outside of the valid region."""
    case = Case("a5", "f32", "f16", "RINT", "ON", False, Form(2, 0, 17).shape("f32", "f16"))
    wrong = Case("a5", "f32", "f16", "CEIL", "ON", False, case.shape)
    rng = np.random.default_rng(2)
    assert differences(case, rng) is None
    assert differences(wrong, rng, expected=case) is not None
