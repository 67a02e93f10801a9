"""Kernels whose conversions are lowered give the same arrays as the kernels as written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import pto
from pto.passes.legalize_tcvt import LegalizeTcvtPass
from pto.passes.lower_tcvt import LowerTcvtPass
from pto.passes.materialize_tmp import MaterializeTmpPass
from pto.passes.tile_to_buf import TileToBufPass
from pto.runtime.errors import ExecutionError
from pto.runtime.machine import MachineKernel, run_lowered

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

RNG = np.random.default_rng(5)
VALUES = RNG.standard_normal((48, 64)) * 100
KERNELS = {
    "cast_f32_f16": (VALUES.astype(np.float32), np.zeros((48, 64), np.float16), 45),
    "partial_tile": (
        (RNG.standard_normal((16, 65)) * 60_000).astype(np.float32),
        np.zeros((16, 65), np.int16),
    ),
    "quantise_i8": (VALUES[:16].astype(np.float32), 0.7, np.zeros((16, 64), np.int8)),
}


def _module(name: str) -> ModuleOp:
    return pto.parse(EXAMPLES / f"{name}.pto")


def _lower(module: ModuleOp, arch: str) -> ModuleOp:
    for pass_ in (TileToBufPass(), LegalizeTcvtPass(arch), LowerTcvtPass(arch)):
        pass_.apply(Context(), module)
    module.verify()
    return module


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("name", KERNELS)
def test_examples(name: str, arch: str) -> None:
    """On both targets; what a target lacks is legalised, in both runs."""
    given = [np.copy(value) if isinstance(value, np.ndarray) else value for value in KERNELS[name]]
    as_written = _module(name)
    LegalizeTcvtPass(arch).apply(Context(), as_written)
    pto.run(as_written, None, *given, arch=arch)
    again = [np.copy(value) if isinstance(value, np.ndarray) else value for value in KERNELS[name]]
    _, report = run_lowered(_lower(_module(name), arch), None, *again, arch=arch)
    for left, right in zip(given, again, strict=True):
        assert np.array_equal(left, right)
    assert report.instructions.total() > 0


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_ssa_with_tiles_as_arguments(arch: str) -> None:
    """Tiles that have no address lie in memories of their own."""
    text = """func.func @f(%x: !pto.tile<3x48xf32>) -> !pto.tile<3x48xi16> {
      %y = tcvt %x {rmode = #pto<round_mode FLOOR>} : !pto.tile<3x48xf32> -> !pto.tile<3x48xi16>
      return %y : !pto.tile<3x48xi16>
    }"""
    values = (RNG.standard_normal((3, 48)) * 1000).astype(np.float32)
    module = pto.parse(text)
    TileToBufPass().apply(Context(), module)
    MaterializeTmpPass(arch).apply(Context(), module)
    result, report = run_lowered(_lower(module, arch), "f", values, arch=arch)
    assert np.array_equal(result, np.floor(values).astype(np.int16))
    tmp = 32 * (2 * 6 + 6)  # two rows of 6 blocks before the last one, and its 6 (spec T)
    assert report.touched("%tmp") == (tmp if arch == "a2a3" else 0)


def test_report() -> None:
    given = [np.copy(value) if isinstance(value, np.ndarray) else value for value in KERNELS["partial_tile"]]  # fmt: skip
    _, report = run_lowered(_lower(_module("partial_tile"), "a2a3"), None, *given)
    # 16 rows of head and one call of tail, two casts each: f32 to i32 and i32 to i16.
    assert report.instructions == {"cast": 34}
    assert report.repeats == 2 * (16 + 16)
    assert report.elements == 2 * 16 * 65
    assert (report.bytes_read, report.bytes_written) == (2 * 16 * 65 * 4, 16 * 65 * (4 + 2))
    assert report.touched("%tmp") == 4832
    assert "%tmp: 4832 of 4832 bytes touched" in report.text()


def test_conversions_that_are_not_lowered_are_refused() -> None:
    with pytest.raises(ValueError, match="run pto-lower-tcvt first"):
        MachineKernel(_module("cast_f32_f16"))


def test_lowered_programs_need_the_machine() -> None:
    given = [np.copy(v) if isinstance(v, np.ndarray) else v for v in KERNELS["partial_tile"]]
    with pytest.raises(ExecutionError, match="pto-opt run --machine"):
        pto.run(_lower(_module("partial_tile"), "a2a3"), None, *given)


@pytest.mark.parametrize("nested", [False, True])
def test_a_lowered_conversion_keeps_the_scale_of_the_program(nested: bool) -> None:
    """tcvt multiplies by 1 (spec S13), a cast after it by what the program has set."""
    tcvt = "pto.tcvt ins(%s : !pto.tile_buf<vec, 1x64xi32>) outs(%e : !pto.tile_buf<vec, 1x64xf16>)"
    if nested:
        tcvt = f"scf.for %i = %c0 to %c2 step %c1 {{\n{tcvt}\n}}"
    text = f"""module attributes {{pto.target_arch = "a2a3"}} {{
      func.func @f(%s: !pto.tile_buf<vec, 1x64xi32>, %e: !pto.tile_buf<vec, 1x64xf16>,
                   %d: !pto.tile_buf<vec, 1x64xf16>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %k = arith.constant 0.5 : f16
        pto.set_deqscale %k : f16
        {tcvt}
        %p = pto.tile_buf_addr %s : !pto.tile_buf<vec, 1x64xi32> -> !pto.ptr<i32, ub>
        %q = pto.tile_buf_addr %d : !pto.tile_buf<vec, 1x64xf16> -> !pto.ptr<f16, ub>
        pto.cast ins(%p {{count = 64}} : !pto.ptr<i32, ub>) outs(%q : !pto.ptr<f16, ub>)
        return
      }}
    }}"""
    x = np.arange(64, dtype=np.int32).reshape(1, 64) * 2
    converted, cast = (np.zeros((1, 64), np.float16) for _ in range(2))
    run_lowered(_lower(pto.parse(text), "a2a3"), "f", x, converted, cast)
    assert (converted == x).all()
    assert (cast == x / 2).all()


def test_a_scale_that_no_program_sets_is_not_kept() -> None:
    tile = "!pto.tile_buf<vec, 1x64x{}>"
    tcvt = f"pto.tcvt ins(%s : {tile.format('i32')}) outs(%e : {tile.format('f16')})\n"
    text = f"func.func @f(%s: {tile.format('i32')}, %e: {tile.format('f16')}) {{\n{tcvt}{tcvt}return\n}}"
    assert "get_deqscale" not in pto.print_module(_lower(pto.parse(text), "a2a3"))


HALF_DEFINED = """func.func @f(%x: !pto.tile_buf<vec, 4x32xf32, valid=2x32>,
    %w: !pto.tile_buf<vec, 4x32xf32>) -> !pto.tile_buf<vec, 4x32xDST VALID> {
  %at = arith.constant 64 : i64
  %b = pto.alloc_tile : !pto.tile_buf<vec, 4x32xf32>
  pto.tadd ins(%x, %x : !pto.tile_buf<vec, 4x32xf32, valid=2x32>, !pto.tile_buf<vec, 4x32xf32, valid=2x32>) outs(%b : !pto.tile_buf<vec, 4x32xf32>)
  %d = pto.alloc_tile addr = %at : !pto.tile_buf<vec, 4x32xDST>
  %y = pto.alloc_tile addr = %at : !pto.tile_buf<vec, 4x32xDST VALID>
  pto.tcvt ins(%b : !pto.tile_buf<vec, 4x32xf32>) outs(%d : !pto.tile_buf<vec, 4x32xDST>)
  OVERWRITE
  return %y : !pto.tile_buf<vec, 4x32xDST VALID>
}"""
"""Only the first two rows of %b, and so of what it is converted to, are defined."""
OVERWRITE = (
    "pto.tcvt ins(%w : !pto.tile_buf<vec, 4x32xf32>) outs(%d : !pto.tile_buf<vec, 4x32xDST>)"
)


def _half_defined(dst: str, arch: str, valid: str = "", overwrite: str = "") -> NDArray[Any]:
    text = HALF_DEFINED.replace("OVERWRITE", overwrite)
    text = text.replace(" VALID", valid).replace("DST", dst)
    module = _lower(pto.parse(text), arch)
    result: NDArray[Any] = run_lowered(module, "f", VALUES_4X32, VALUES_4X32, arch=arch)[0]
    return result


VALUES_4X32 = VALUES[:4, :32].astype(np.float32)


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("dst", ["f32", "f16", "i32", "i64"])
def test_poison(dst: str, arch: str) -> None:
    """They stay poison through a conversion, and are defined once another one wrote them."""
    with pytest.raises(ExecutionError, match="poison: 64 of 128, the first at row 2") as caught:
        _half_defined(dst, arch)
    assert "beyond the valid region of a source" in str(caught.value)
    held = _half_defined(dst, arch, valid=", valid=2x32")
    assert np.array_equal(held, _expected(dst, VALUES_4X32[:2] * 2))
    written = _half_defined(dst, arch, overwrite=OVERWRITE)
    assert np.array_equal(written, _expected(dst, VALUES_4X32))


def _expected(dst: str, values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.float16) if dst == "f16" else np.rint(values)


def test_command_line(tmp_path: Path) -> None:
    """`--machine` writes the same file, and prints the report."""
    values, _ = KERNELS["partial_tile"]
    assert isinstance(values, np.ndarray)
    np.save(tmp_path / "x.npy", values)
    printed = []
    for option in ([], ["--machine"]):
        command = [
            sys.executable,
            "-m",
            "pto.cli",
            "run",
            str(EXAMPLES / "partial_tile.pto"),
            *option,
        ]
        command += ["--arg", f"x={tmp_path / 'x.npy'}", "--out", f"y={tmp_path / 'y.npy'}"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        printed.append((done.stdout, (tmp_path / "y.npy").read_bytes()))
    assert printed[0][1] == printed[1][1]
    assert "34 cast" in printed[1][0]
