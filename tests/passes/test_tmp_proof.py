"""The proof of the tmp formula: lowered programs touch exactly the bytes that it gives (spec T)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from equality import Case, Shape, fits, lowered, places, run_lowered_case, sample
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

import pto
from pto.runtime.errors import ExecutionError
from pto.runtime.machine.report import Report
from pto.tiles.tmp import tmp_bytes

PAIRS = [("f32", "i16"), ("f16", "i16"), ("f16", "i8")]

extents = st.one_of(
    st.integers(1, 8),
    st.integers(1, 600),
    st.sampled_from([63, 64, 65, 127, 128, 129, 254, 255, 256, 257, 510, 511]),
)


def _case(pair: tuple[str, str], rows: int, cols: int, extra: int) -> Case:
    return Case("a2a3", *pair, "RINT", "OFF", tmp=True, shape=Shape(rows, cols, extra, 0))


def _run(case: Case, module: ModuleOp) -> Report:
    return run_lowered_case(case, sample(case, np.random.default_rng(0)), module)


def _with_tmp_of(module: ModuleOp, size: int, instead: int) -> ModuleOp:
    """The program with a tmp tile of another size, which the lowering would refuse."""
    text = pto.print_module(module)
    assert f"1x{size}xi8" in text
    return pto.parse(text.replace(f"1x{size}xi8", f"1x{instead}xi8"))


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@settings(max_examples=40, deadline=None)
@given(rows=extents, cols=extents, extra=st.sampled_from([0, 8, 64, 136, 2200]))
@example(rows=254, cols=80, extra=0)
@example(rows=255, cols=80, extra=0)
@example(rows=256, cols=65, extra=0)
@example(rows=1, cols=16320, extra=0)
@example(rows=2, cols=65, extra=1984)
def test_touched_extent_is_the_formula(
    pair: tuple[str, str], rows: int, cols: int, extra: int
) -> None:
    case = _case(pair, rows, cols, extra)
    assume(fits(case))
    *_, size = places(case)
    module = lowered(case)
    assert _run(case, module).touched("%tmp") == size
    with pytest.raises(ExecutionError, match="out of range"):
        _run(case, _with_tmp_of(module, size, size - 1))


@pytest.mark.parametrize(("rows", "size"), [(254, 81024), (255, 81344), (400, 81344)])
def test_cap_of_255_rows(rows: int, size: int) -> None:
    """The sizes that the formula's cap gives, the tile itself being of fewer rows than memory has
    room for beside tmp."""
    case = _case(("f32", "i16"), rows, 80, 0)
    assert tmp_bytes("f32", "i16", rows, 80, row_stride=80) == size
    if fits(case):
        assert _run(case, lowered(case)).touched("%tmp") == size


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_lowering_refuses_a_small_tmp(pair: tuple[str, str]) -> None:
    case = _case(pair, 4, 70, 0)
    *_, size = places(case)
    with pytest.raises(PassFailedException, match=f"{size} are needed"):
        lowered(case, size - 32)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_saturating_conversion_leaves_tmp_alone(pair: tuple[str, str]) -> None:
    case = replace(_case(pair, 4, 70, 0), saturation="ON")
    assert _run(case, lowered(case)).touched("%tmp") == 0
