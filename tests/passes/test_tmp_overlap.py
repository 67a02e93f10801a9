"""A tmp tile over the source or the destination: reported by all, or harmless (spec T, V)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

import pto
from pto.numerics import FORMATS
from pto.passes.lower_tcvt import LowerTcvtPass
from pto.runtime import ExecutionError
from pto.runtime.machine import run_lowered
from pto.tiles.tmp import tmp_bytes

PAIRS = [("f32", "i16"), ("f16", "i16"), ("f16", "i8")]
ROWS, COLS = 3, 96

KERNEL = """module attributes {{pto.target_arch = "a2a3"}} {{
  func.func @f(%x: {source}, %y: {target}) {{
    %as = arith.constant {src} : i64
    %at = arith.constant {tmp} : i64
    %ad = arith.constant {dst} : i64
    %s = pto.alloc_tile addr = %as : {source}
    %t = pto.alloc_tile addr = %at : {scratch}
    %d = pto.alloc_tile addr = %ad : {target}
    pto.tmov ins(%x : {source}) outs(%s : {source})
    pto.tcvt ins(%s, %t {{rmode = #pto<round_mode RINT>, satmode = #pto<saturation_mode OFF>}}
      : {source}, {scratch}) outs(%d : {target})
    pto.tmov ins(%d : {target}) outs(%y : {target})
    return
  }}
}}"""


def kernel(pair: tuple[str, str], **addresses: int) -> ModuleOp:
    source, target = (f"!pto.tile_buf<vec, {ROWS}x{COLS}x{name}>" for name in pair)
    scratch = f"!pto.tile_buf<vec, 1x{tmp_bytes(*pair, ROWS, COLS)}xi8>"
    return pto.parse(KERNEL.format(source=source, target=target, scratch=scratch, **addresses))


def values(name: str) -> np.ndarray:
    x = np.random.default_rng(1).normal(0, 20_000, (ROWS, COLS)).astype(FORMATS[name].carrier)
    x[0, :3] = np.inf, -np.inf, np.nan
    return x


def executed(module: ModuleOp, pair: tuple[str, str]) -> np.ndarray | None:
    """The result; None where the run reports an overlap."""
    result = np.zeros((ROWS, COLS), FORMATS[pair[1]].carrier)
    try:
        pto.run(module, "f", values(pair[0]), result)
    except ExecutionError as error:
        if "[overlap]" not in str(error):
            raise
        return None
    return result


def lowered(module: ModuleOp, pair: tuple[str, str]) -> np.ndarray | None:
    try:
        LowerTcvtPass().apply(Context(), module)
    except PassFailedException as error:
        if "overlaps" not in str(error):
            raise
        return None
    result = np.zeros((ROWS, COLS), FORMATS[pair[1]].carrier)
    run_lowered(module, "f", values(pair[0]), result)
    return result


BLOCKS = st.integers(0, 60).map(lambda n: 32 * n)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@settings(max_examples=60, deadline=None)
@given(tmp=BLOCKS)
@example(tmp=0)
@example(tmp=4096)
@example(tmp=32 * 36)
def test_verify_run_and_machine_agree(pair: tuple[str, str], tmp: int) -> None:
    """The source at 0, the destination behind it: tmp lies somewhere over or behind the two."""
    needed = tmp_bytes(*pair, ROWS, COLS)
    size = [ROWS * COLS * FORMATS[name].bits // 8 for name in pair]
    used = set(range(tmp, tmp + needed))
    meets = not used.isdisjoint(range(size[0] + size[1]))
    module = kernel(pair, src=0, dst=size[0], tmp=tmp)
    assert any(d.id == "overlap" for d in pto.verify(module)) == meets
    results = [executed(module, pair), lowered(module, pair)]
    if meets:
        assert results == [None, None]
        return
    expected = executed(kernel(pair, src=0, dst=size[0], tmp=65536), pair)
    for result in results:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("over", ["%s", "%d"])
def test_tmp_is_the_very_tile(pair: tuple[str, str], over: str) -> None:
    """Without addresses, too."""
    source, target = (f"!pto.tile_buf<vec, 16x64x{name}>" for name in pair)
    scratch = source if over == "%s" else target
    module = pto.parse(
        f'module attributes {{pto.target_arch = "a2a3"}} {{\n'
        f"func.func @f(%s: {source}, %d: {target}) {{\n"
        f"  pto.tcvt ins(%s, {over} {{satmode = #pto<saturation_mode OFF>}} : {source},"
        f" {scratch}) outs(%d : {target})\n  return\n}} }}"
    )
    source_name, target_name = pair
    allocated = pto.parse(
        f'module attributes {{pto.target_arch = "a2a3"}} {{\n'
        f"func.func @f(%x: {source}) {{\n"
        f"  %s = pto.alloc_tile : {source}\n  %d = pto.alloc_tile : {target}\n"
        f"  pto.tmov ins(%x : {source}) outs(%s : {source})\n"
        f"  pto.tcvt ins(%s, {over} {{satmode = #pto<saturation_mode OFF>}} : {source},"
        f" {scratch}) outs(%d : {target})\n  return\n}} }}"
    )
    assert [d.id for d in pto.verify(allocated) if d.severity == "error"] == ["overlap"]
    x = np.zeros((16, 64), FORMATS[source_name].carrier)
    with pytest.raises(ExecutionError, match="overlap"):
        pto.run(allocated, "f", x)
    with pytest.raises(ExecutionError, match="overlap"):
        pto.run(module, "f", x, np.zeros((16, 64), FORMATS[target_name].carrier))
    with pytest.raises(PassFailedException, match="overlaps"):
        LowerTcvtPass().apply(Context(), allocated)


def test_a_small_tmp_tile_is_reported_when_it_runs() -> None:
    source, target = "!pto.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 16x64xi16>"
    scratch = "!pto.tile_buf<vec, 1x8xi32>"
    module = pto.parse(
        f'module attributes {{pto.target_arch = "a2a3"}} {{\n'
        f"func.func @f(%s: {source}, %d: {target}) {{\n"
        f"  %t = pto.alloc_tile : {scratch}\n"
        f"  pto.tcvt ins(%s, %t {{satmode = #pto<saturation_mode OFF>}} : {source}, {scratch})"
        f" outs(%d : {target})\n  return\n}} }}"
    )
    with pytest.raises(ExecutionError, match=r"has 32 bytes, 256 are needed \[tmp-small\]"):
        pto.run(module, "f", np.zeros((16, 64), np.float32), np.zeros((16, 64), np.int16))
