"""The examples, run on the command line, give the arrays that numpy and ml_dtypes compute."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from pto.cli import main

EXAMPLES = Path(__file__).parent.parent / "examples"
RNG = np.random.default_rng(7)


def run(folder: Path, example: str, x: NDArray[np.generic], *arguments: str) -> NDArray[np.generic]:
    """What an example writes to `y` for the input `x`."""
    np.save(folder / "x.npy", x)
    output = folder / "y.npy"
    words = ["run", str(EXAMPLES / example), "--arg", f"x={folder / 'x.npy'}"]
    assert main([*words, *arguments, "--out", f"y={output}"]) == 0
    return np.load(output)


@pytest.mark.parametrize("rows", [1, 16, 17, 40])
def test_cast_f32_f16(rows: int, tmp_path: Path) -> None:
    x = (RNG.standard_normal((rows, 64)) * 10.0 ** RNG.integers(-8, 5, (rows, 64))).astype("f4")
    y = run(tmp_path, "cast_f32_f16.pto", x, "--arg", f"rows={rows}")
    saturated = np.clip(x, np.float32(-65504), np.float32(65504)).astype(np.float16)
    assert y.dtype == np.float16
    assert np.array_equal(y.view(np.uint16), saturated.view(np.uint16))


def test_quantise_i8(tmp_path: Path) -> None:
    x = (RNG.standard_normal((16, 64)) * 100).astype(np.float32)
    y = run(tmp_path, "quantise_i8.pto", x, "--arg", "scale=0.75")
    expected = np.clip(np.rint(x * np.float32(0.75)), -128, 127).astype(np.int8)
    assert np.array_equal(y, expected)


def test_ssa(tmp_path: Path) -> None:
    x = (RNG.standard_normal((8, 32)) * 1000).astype(ml_dtypes.bfloat16)
    y = run(tmp_path, "ssa.pto", x.view(np.uint16))
    assert np.array_equal(y, np.floor(x.astype(np.float32)).astype(np.int32))


def test_partial_tile(tmp_path: Path) -> None:
    x = (RNG.standard_normal((16, 65)) * 1e5).astype(np.float32)
    y = run(tmp_path, "partial_tile.pto", x)
    assert np.array_equal(y, np.rint(x).astype(np.int64).astype(np.int16))


def test_pto_as(tmp_path: Path) -> None:
    x = (RNG.standard_normal((16, 64)) * 100).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    output = tmp_path / "y.npy"
    words = ["run", str(EXAMPLES / "pto_as.pto"), "--arg", f"src={tmp_path / 'x.npy'}"]
    assert main([*words, "--out", f"result={output}"]) == 0
    expected = np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    assert np.array_equal(np.load(output), expected.view(np.uint8))
