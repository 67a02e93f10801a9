"""Small programs on the unified buffer, written as text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import pto
from pto.runtime.machine import MachineKernel
from pto.runtime.machine.report import Report

Array = NDArray[Any]


def run_program(
    body: str, memory: Array, *, written: Array | None = None, arch: str = "a2a3"
) -> Report:
    """Runs statements on the bytes of the unified buffer's beginning, in place.

    `%ub_T` stands for a pointer to elements of T at byte 0. `written` says which bytes hold data, by
    default all of `memory`.
    """
    kernel = MachineKernel(pto.parse(module_text(body, arch)), "f")
    core = kernel.core()
    buffer = core.unified_buffer
    buffer.data[: memory.size] = memory
    buffer.written[: memory.size] = True if written is None else written
    kernel.launch_on(core)
    memory[:] = buffer.data[: memory.size]
    return kernel.report


TYPES = ("f32", "f16", "bf16", "i32", "i16", "i8", "ui8", "i64", "i4", "f64", "f8E4M3FN")


def module_text(body: str, arch: str) -> str:
    """The module around the statements."""
    pointers = "\n".join(
        f"    %ub_{t} = pto.castptr %zero : i64 -> !pto.ptr<{t}, ub>" for t in TYPES
    )
    return f"""module attributes {{pto.target_arch = "{arch}"}} {{
  func.func @f() {{
    %zero = arith.constant 0 : i64
{pointers}
{body}
    return
  }}
}}"""


def at(pointer: str, elements: int, name: str) -> str:
    """A statement that makes `%name` point that many elements behind `%pointer`."""
    type_ = f"!pto.ptr<{pointer.removeprefix('ub_')}, ub>"
    return (
        f"    %{name}_at = arith.constant {elements} : index\n"
        f"    %{name} = pto.addptr %{pointer}, %{name}_at : {type_} -> {type_}\n"
    )


def cast(src: str, dst: str, types: tuple[str, str], attributes: str) -> str:
    """A Cast from `%src` to `%dst`."""
    return (
        f"    pto.cast ins(%{src} {{{attributes}}} : !pto.ptr<{types[0]}, ub>)"
        f" outs(%{dst} : !pto.ptr<{types[1]}, ub>)\n"
    )


def place(values: Array, size: int, byte: int = 0) -> Array:
    """`size` bytes of 0xA5 with the array's bytes at an address."""
    memory = np.full(size, 0xA5, np.uint8)
    raw = np.ascontiguousarray(values).view(np.uint8).ravel()
    memory[byte : byte + raw.size] = raw
    return memory
