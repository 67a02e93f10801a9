"""A rotary embedding step on bf16: the kernel beside this file, and what it should give.

python examples/quantisation/rotary_bf16.py
"""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import pto

Array = NDArray[Any]
KERNEL = Path(__file__).with_suffix(".pto")


def tables(position: int) -> tuple[Array, Array]:
    """Cosines and sines of a position, f32 of shape (64,)."""
    angles = position / 10000.0 ** (np.arange(64) / 64)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def reference(x: Array, cos: Array, sin: Array) -> Array:
    """Rotates the halves of each head in f32, and rounds to bf16 once."""
    low, high = np.split(x.astype(np.float32), 2, axis=1)
    rotated = np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=1)
    return rotated.astype(ml_dtypes.bfloat16)


def main() -> None:
    """Runs the kernel and compares, also with rotating in bf16 throughout."""
    module = pto.parse(KERNEL)
    x = np.random.default_rng(0).normal(size=(32, 128)).astype(ml_dtypes.bfloat16)
    cos, sin = tables(position=1000)
    y = np.zeros((32, 128), ml_dtypes.bfloat16)
    pto.run(module, "rotary_bf16", x, cos, sin, y, len(x))
    expected = reference(x, cos, sin)
    print(f"{(y != expected).sum()} of {y.size} elements differ from numpy")

    narrow = reference(x, cos.astype(ml_dtypes.bfloat16), sin.astype(ml_dtypes.bfloat16))
    print(f"with tables in bf16, {(narrow != expected).sum()} would")


if __name__ == "__main__":
    main()
