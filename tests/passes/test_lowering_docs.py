"""`docs/lowering.md` shows what the program prints, and its picture is the one that is drawn now."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16
from xdsl.context import Context

import pto
from pto.passes.lower_tcvt import LowerTcvtPass
from pto.passes.tile_to_buf import TileToBufPass
from pto.runtime.machine import run_lowered

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "lowering.md").read_text(encoding="utf-8")


def _block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found.group(1)


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_lowered_form(arch: str) -> None:
    module = pto.parse(_block("mlir"))
    TileToBufPass().apply(Context(), module)
    LowerTcvtPass(arch=arch).apply(Context(), module)
    assert _block(f"mlir {arch}") in pto.print_module(module)


def test_forms_of_cast_parse() -> None:
    forms = PAGE.split("destination first:\n\n```mlir\n")[1].split("```")[0]
    pto.parse(
        f"func.func @f(%s: !pto.ptr<f16, ub>, %d: !pto.ptr<i32, ub>) {{\n{forms}\nreturn\n}}"
    ).verify()


def test_register_example_runs() -> None:
    """f32 to bf16 and back, as the page shows it."""
    example = PAGE.split("in the even lanes:\n\n```mlir\n")[1].split("```")[0]
    tile = "!pto.tile_buf<vec, 1x64xf32>"
    text = f"""func.func @f(%x: {tile}, %y: {tile}) attributes {{pto.target_arch = "a5"}} {{
      %c0 = arith.constant 0 : index
      %src = pto.tile_buf_addr %x : {tile} -> !pto.ptr<f32, ub>
      %dst = pto.tile_buf_addr %y : {tile} -> !pto.ptr<f32, ub>
      pto.vecscope {{
{example}      }}
      return
    }}"""
    values = np.random.default_rng(6).standard_normal((1, 64)).astype(np.float32)
    result = np.zeros_like(values)
    module = pto.parse(text)
    module.verify()
    run_lowered(module, None, values, result)
    assert np.array_equal(result, values.astype(bfloat16).astype(np.float32))


def test_report() -> None:
    module = pto.parse(ROOT / "examples" / "partial_tile.pto")
    LowerTcvtPass().apply(Context(), module)
    arrays = np.zeros((16, 65), np.float32), np.zeros((16, 65), np.int16)
    _, report = run_lowered(module, None, *arrays)
    assert report.text() in PAGE


def test_picture() -> None:
    command = [sys.executable, str(ROOT / "docs" / "lowering_picture.py")]
    drawn = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert drawn == (ROOT / "docs" / "lowering.svg").read_text(encoding="utf-8")
