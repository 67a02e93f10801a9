"""The quantisation kernels of the examples, against the numpy references beside them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto

FOLDER = Path(__file__).parents[2] / "examples" / "quantisation"
SEEDS = [1, 2]


def example(name: str) -> tuple[Any, dict[str, Any]]:
    """The parsed kernels and the names that the reference defines."""
    return pto.parse(FOLDER / f"{name}.pto"), runpy.run_path(str(FOLDER / f"{name}.py"))


def numbers(seed: int, rows: int, cols: int) -> Any:
    """Rows of very different size."""
    generator = np.random.default_rng(seed)
    size = np.exp(generator.uniform(-8, 8, (rows, 1)))
    return (generator.normal(size=(rows, cols)) * size).astype(np.float32)


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("rows", [1, 16, 37])
def test_per_row_int8(rows: int, arch: str) -> None:
    module, names = example("per_row_int8")
    x = numbers(rows, rows, 256)
    x[0] = 0
    q, scale = np.zeros((rows, 256), np.int8), np.zeros(rows, np.float32)
    pto.run(module, "per_row_int8", x, q, scale, rows, arch=arch)
    codes, scales = names["reference"](x)
    assert (q == codes).all()
    assert (scale == scales).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_rotary_bf16(seed: int) -> None:
    module, names = example("rotary_bf16")
    x = numbers(seed, 16, 128).astype(ml_dtypes.bfloat16)
    cos, sin = names["tables"](seed * 777)
    y = np.zeros((16, 128), ml_dtypes.bfloat16)
    pto.run(module, "rotary_bf16", x, cos, sin, y, 16)
    assert (y == names["reference"](x, cos, sin)).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_fp8(seed: int) -> None:
    module, names = example("low_precision")
    x = numbers(seed, 8, 128)
    y, scale = np.zeros((8, 128), ml_dtypes.float8_e4m3fn), np.zeros(8, np.float32)
    pto.run(module, "to_fp8", x, y, scale, 8)
    codes, factors = names["fp8"](x)
    assert (y.view(np.uint8) == codes.view(np.uint8)).all()
    assert (scale == factors).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_hif8(seed: int) -> None:
    module, names = example("low_precision")
    x = numbers(seed, 64, 128)
    y = np.zeros((64, 128), np.uint8)
    pto.run(module, "to_hif8", x, y, 8.0, 64)
    assert (y == names["hif8"](x, 8.0)).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_fp4(seed: int) -> None:
    module, names = example("low_precision")
    x = numbers(seed, 8, 128)
    codes, factor = names["fp4"](x)
    y = np.zeros((8, 128), ml_dtypes.float4_e2m1fn)
    pto.run(module, "to_fp4", x, factor, y, 8)
    assert (y.view(np.uint8) == codes.view(np.uint8)).all()


@pytest.mark.parametrize("name", ["per_row_int8", "rotary_bf16", "low_precision"])
def test_the_scripts_find_no_difference(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    out = capsys.readouterr().out
    counts = re.findall(r"(\d+) (?:of \d+ )?(?:codes|scales|elements)", out)
    assert counts
    assert set(counts) == {"0"}
