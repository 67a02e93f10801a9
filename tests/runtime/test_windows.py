"""Windows of tiles, of windows, and what happens to them on their way through a program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime_support import Array, tile

import pto
from pto.passes.lower_tcvt import LowerTcvtPass
from pto.runtime import ExecutionError
from pto.runtime.machine import run_lowered

Window = tuple[int, int, int, int]
"""First row, first column, rows, columns."""


def random_windows(rng: np.random.Generator, rows: int, cols: int, depth: int) -> list[Window]:
    """Each one inside the one before it."""
    found = []
    for _ in range(depth):
        height, width = int(rng.integers(1, rows + 1)), 8 * int(rng.integers(1, cols // 8 + 1))
        top, left = int(rng.integers(0, rows - height + 1)), int(rng.integers(0, cols - width + 1))
        found.append((top, left // 8 * 8, height, width))
        rows, cols = height, width
    return found


def numbers(module: str) -> str:
    """The module with a constant for each `%cN` that it uses."""
    names = sorted({word.strip("[],") for word in module.split() if "%c" in word})
    found = {n[n.index("%c") :].strip("[],") for n in names}
    lines = "".join(f"  {n} = arith.constant {n[2:]} : index\n" for n in sorted(found))
    head, brace, rest = module.partition("{\n")
    return f"{head}{brace}{lines}{rest}"


def cut(name: str, parent: str, of: str, window: Window, extra: str = "") -> tuple[str, str]:
    """A subview, and the type of what it makes."""
    top, left, rows, cols = window
    type_ = tile("f32", rows, cols, extra=extra)
    line = f"  {name} = pto.subview {parent}[%c{top}, %c{left}] sizes [{rows}, {cols}] : {of} -> {type_}\n"
    return line, type_


@pytest.mark.parametrize("order", ["row_major", "col_major"])
@pytest.mark.parametrize("seed", range(12))
def test_windows_of_windows(order: str, seed: int) -> None:
    """A window keeps the distance of its root's rows, however often it is cut again."""
    rng = np.random.default_rng(seed)
    windows = random_windows(rng, 16, 64, int(rng.integers(1, 5)))
    extra = f", blayout={order}" if order == "col_major" else ""
    lines, parent, type_ = "", "%t", tile("f32", 16, 64, extra=extra)
    expected = x = rng.normal(size=(16, 64)).astype(np.float32)
    for number, window in enumerate(windows):
        line, made = cut(f"%w{number}", parent, type_, window, extra)
        lines, parent, type_ = lines + line, f"%w{number}", made
        top, left, rows, cols = window
        expected = expected[top : top + rows, left : left + cols]
    out = type_
    text = (
        f"func.func @f(%t: {tile('f32', 16, 64, extra=extra)}, %d: {out}) {{\n{lines}"
        f"  pto.tmov ins({parent} : {type_}) outs(%d : {out})\n  return\n}}"
    )
    result = np.zeros(expected.shape, np.float32)
    pto.run(pto.parse(numbers(text)), "f", x, result)
    np.testing.assert_array_equal(result, expected)


def test_writing_through_a_window_of_a_window() -> None:
    first, type_ = cut("%w", "%t", tile("f32", 4, 16), (0, 8, 4, 8))
    second, inner = cut("%v", "%w", type_, (2, 0, 1, 8))
    text = (
        f"func.func @f(%t: {tile('f32', 4, 16)}, %s: {inner}) {{\n{first}{second}"
        f"  pto.tmov ins(%s : {inner}) outs(%v : {inner})\n  return\n}}"
    )
    held = np.zeros((4, 16), np.float32)
    pto.run(pto.parse(numbers(text)), "f", held, np.ones((1, 8), np.float32))
    assert held[2, 8:].all()
    assert held.sum() == 8


THROUGH_A_CALL = """module attributes {{pto.target_arch = "{arch}"}} {{
func.func @narrow(%s: {source}, %d: {target}) {{
  pto.tcvt ins(%s {{rmode = #pto<round_mode RINT>}} : {source}) outs(%d : {target})
  return
}}
func.func @f(%t: {root}, %d: {target}) {{
{cut}  func.call @narrow(%w, %d) : ({source}, {target}) -> ()
  return
}}
}}"""


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_a_window_through_a_call(arch: str) -> None:
    """It is a window there too; a lowering, which cannot see that, says so."""
    root = tile("f32", 4, 32)
    line, source = cut("%w", "%t", root, (1, 16, 2, 16))
    text = THROUGH_A_CALL.format(
        arch=arch, source=source, target=tile("bf16", 2, 16), root=root, cut=line
    )
    head, at, rest = text.partition("func.func @f")
    module = pto.parse(head + numbers(at + rest))
    x = np.arange(128, dtype=np.float32).reshape(4, 32)
    result = np.zeros((2, 16), np.uint16)
    pto.run(module, "f", x, result)
    np.testing.assert_array_equal(result.view(np.uint16), x[1:3, 16:].view(np.uint32) >> 16)
    with pytest.raises(Exception, match="may be a window"):
        lowered(module, arch)


def lowered(module: Any, arch: str) -> Any:
    from xdsl.context import Context

    LowerTcvtPass(arch=arch).apply(Context(), module)
    return module


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("order", ["row_major", "col_major"])
@pytest.mark.parametrize("seed", range(4))
def test_lowered_conversions_of_windows(arch: str, order: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    extra = f", blayout={order}" if order == "col_major" else ""
    size = (64, 64)
    first = (16, 16, 32, 32)
    second = (8, 16, 16, 16) if order == "row_major" else (16, 8, 16, 16)
    root = tile("f32", *size, extra=extra)
    one, outer = cut("%w", "%t", root, first, extra)
    two, inner = cut("%v", "%w", outer, second, extra)
    target = tile("bf16", 16, 16, extra=extra)
    text = numbers(
        f"func.func @f(%t: {root}, %d: {target}) {{\n{one}{two}"
        f"  pto.tcvt ins(%v {{rmode = #pto<round_mode TRUNC>}} : {inner}) outs(%d : {target})\n"
        "  return\n}"
    )
    x = rng.normal(size=size).astype(np.float32)
    expected = x[16:48, 16:48][second[0] :, second[1] :][:16, :16].view(np.uint32) >> 16
    results: list[Array] = [np.zeros((16, 16), np.uint16) for _ in range(2)]
    pto.run(pto.parse(text), "f", x, results[0], arch=arch)
    run_lowered(lowered(pto.parse(text), arch), "f", x, results[1], arch=arch)
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_a_window_is_not_reshaped() -> None:
    line, source = cut("%w", "%t", tile("f32", 4, 16), (0, 8, 4, 8))
    flat = tile("f32", 1, 32)
    text = numbers(
        f"func.func @f(%t: {tile('f32', 4, 16)}, %d: {flat}) {{\n{line}"
        f"  %r = pto.treshape %w : {source} -> {flat}\n"
        f"  pto.tmov ins(%r : {flat}) outs(%d : {flat})\n  return\n}}"
    )
    with pytest.raises(ExecutionError, match="cannot be reshaped"):
        pto.run(pto.parse(text), "f", np.zeros((4, 16), np.float32), np.zeros((1, 32), np.float32))
