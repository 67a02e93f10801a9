"""f32 to f8E4M3FN, hif8 and f4E2M1: the kernels beside this file, and what they should give.

python examples/quantisation/low_precision.py
"""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import pto

Array = NDArray[Any]
KERNELS = Path(__file__).with_suffix(".pto")


def fp8(x: Array) -> tuple[Array, Array]:
    """f8E4M3FN and the factor of each row, 448 / max."""
    largest = np.maximum(np.abs(x).max(axis=1), np.float32(1e-6))
    factor = np.float32(448) / largest
    scaled = np.clip(x * factor[:, None], -448, 448)
    return scaled.astype(ml_dtypes.float8_e4m3fn), factor


def hif8_values() -> Array:
    """The value of each code without a sign, read off the definition of the format."""
    values = [0.0, *(2.0 ** (mantissa - 23) for mantissa in range(1, 8))]
    values += [1 + mantissa / 8 for mantissa in range(8)]  # 0001mmm: exponent 0
    # Prefix, exponent bits (sign first, a leading 1 implied), mantissa bits.
    for exponent_bits, mantissa_bits in ((1, 3), (2, 3), (3, 2), (4, 1)):
        for field in range(1 << exponent_bits):
            half = 1 << (exponent_bits - 1)
            exponent = (half + field % half) * (-1 if field >= half else 1)
            steps = 1 << mantissa_bits
            values += [2.0**exponent * (1 + m / steps) for m in range(steps)]
    values[0x6F] = np.inf
    return np.array(values)


def hif8(x: Array, scale: float) -> Array:
    """hif8 codes of x * scale: the nearest value, of two equally near the larger, saturating."""
    values = hif8_values()
    order = np.argsort(values)[:-1]  # without infinity
    ascending = values[order]
    scaled = x * np.float32(scale)
    size = np.abs(scaled).astype(float)
    above = np.searchsorted(ascending, size).clip(1, len(order) - 1)
    nearer_above = ascending[above] - size <= size - ascending[above - 1]
    codes = order[np.where(nearer_above, above, above - 1)]
    return np.where((scaled < 0) & (codes > 0), codes | 0x80, codes).astype(np.uint8)


def fp4(x: Array) -> tuple[Array, Array]:
    """f4E2M1 and the power of two of each row that brings its largest value to 4 .. 8."""
    exponents = np.floor(np.log2(np.abs(x).max(axis=1)))
    factor = np.exp2(2 - exponents).astype(np.float32)
    half = (x * factor[:, None]).astype(ml_dtypes.bfloat16)
    return np.clip(half.astype(np.float32), -6, 6).astype(ml_dtypes.float4_e2m1fn), factor


def main() -> None:
    """Runs the three kernels and compares."""
    module = pto.parse(KERNELS)
    x = np.random.default_rng(0).normal(size=(16, 128)).astype(np.float32)

    expected, factor = fp8(x)
    codes, scale = np.zeros((16, 128), ml_dtypes.float8_e4m3fn), np.zeros(16, np.float32)
    pto.run(module, "to_fp8", x, codes, scale, len(x))
    _report("f8E4M3FN", codes, expected, codes.astype(np.float32) / scale[:, None], x)
    print(f"  {(scale != factor).sum()} of {len(x)} scales differ")

    plain = np.zeros((16, 128), np.uint8)
    pto.run(module, "to_hif8", x, plain, 2.0, len(x))
    values = hif8_values()[plain & 0x7F] * np.where(plain & 0x80, -1, 1)
    _report("hif8", plain, hif8(x, 2.0), values / 2, x)

    expected, factor = fp4(x)
    narrow = np.zeros((16, 128), ml_dtypes.float4_e2m1fn)
    pto.run(module, "to_fp4", x, factor, narrow, len(x))
    _report("f4E2M1", narrow, expected, narrow.astype(np.float32) / factor[:, None], x)


def _report(name: str, codes: Array, expected: Array, values: Array, x: Array) -> None:
    error = np.sqrt(np.mean((values - x) ** 2) / np.mean(x**2))
    print(
        f"{name}: {(codes != expected).sum()} of {codes.size} codes differ; rms error {error:.2%}"
    )


if __name__ == "__main__":
    main()
