"""What the runtime tests share: kernels as text, and arrays of every element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import pto

Array = NDArray[Any]

DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
}
"""Element types by their PTO name."""
FLOATS = ("f32", "f16", "bf16")


def tile(
    dtype: str,
    rows: int,
    cols: int,
    valid: tuple[int | str, int | str] | None = None,
    extra: str = "",
) -> str:
    """A tile type."""
    extents = "" if valid is None else f", valid={valid[0]}x{valid[1]}"
    return f"!pto.tile_buf<vec, {rows}x{cols}x{dtype}{extents}{extra}>"


def column(dtype: str, rows: int) -> str:
    """A col_major tile of one column."""
    return tile(dtype, rows, 1, extra=", blayout=col_major")


def operation(
    name: str, ins: Sequence[str], out: str, attributes: str = "", inside: str = ""
) -> str:
    """A module whose function @f applies one operation to its arguments, the last one `outs`."""
    names = [f"%a{number}" for number in range(len(ins))]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip([*names, "%d"], [*ins, out], strict=True))
    return (
        f"func.func @f({arguments}) {{\n"
        f"  pto.{name} ins({', '.join(names)} {inside} : {', '.join(ins)})"
        f" outs(%d : {out}) {attributes}\n  return\n}}"
    )


def apply(module: str, *arguments: Any, arch: str = "a5") -> None:
    """Runs @f of a module; the arrays are updated in place."""
    pto.run(pto.parse(module), "f", *arguments, arch=arch)


def sample(dtype: str, shape: tuple[int, ...], seed: int, low: int = -50, high: int = 50) -> Array:
    """Numbers of the type, the same for a seed; floats have fractions."""
    generator = np.random.default_rng(seed)
    if dtype in FLOATS:
        return generator.uniform(low, high, shape).astype(np.float32).astype(DTYPES[dtype])
    low = max(low, 0) if dtype.startswith("ui") else low
    return generator.integers(low, high, shape).astype(DTYPES[dtype])


def wide(array: Array) -> Array:
    """The type that arithmetic is done in: f32 for the 16-bit floats."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and is_float(array) else array


def is_float(array: Array) -> bool:
    """Whether the elements are floats, bf16 included."""
    return array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16


def same(actual: Array, expected: Array) -> None:
    """Asserts equality bit for bit, NaN aside."""
    np.testing.assert_array_equal(actual.astype(np.float64), expected.astype(np.float64))


def close(actual: Array, expected: Array) -> None:
    """Asserts equality within one unit in the last place of the type."""
    step = {np.dtype(np.float32): 2**-23, np.dtype(np.float16): 2**-10}.get(actual.dtype, 2**-7)
    np.testing.assert_allclose(actual.astype(float), expected.astype(float), rtol=step, atol=0)
