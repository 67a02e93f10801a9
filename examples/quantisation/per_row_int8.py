"""Per-row int8 quantisation: the kernel beside this file, and what it should give.

python examples/quantisation/per_row_int8.py
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pto

Array = NDArray[Any]
KERNEL = Path(__file__).with_suffix(".pto")


def reference(x: Array) -> tuple[Array, Array]:
    """int8 codes and the scale of each row, in the kernel's precision (f32)."""
    largest = np.maximum(np.abs(x).max(axis=1), np.float32(1e-6))
    codes = np.rint(x * (np.float32(127) / largest)[:, None])
    return codes.astype(np.int8), largest * np.float32(1 / 127)


def main() -> None:
    """Runs the kernel for both targets and compares."""
    module = pto.parse(KERNEL)
    x = np.random.default_rng(0).normal(size=(40, 256)).astype(np.float32)
    x[7] = 0  # a row without a scale of its own
    codes, scale = reference(x)
    for arch in ("a2a3", "a5"):
        q, s = np.zeros((40, 256), np.int8), np.zeros(40, np.float32)
        pto.run(module, "per_row_int8", x, q, s, len(x), arch=arch)
        error = np.abs(q * s[:, None] - x).max() / np.abs(x).max()
        print(
            f"{arch}: {(q != codes).sum()} codes and {(s != scale).sum()} scales differ"
            f" from numpy; largest error {error:.2%} of the largest value"
        )


if __name__ == "__main__":
    main()
