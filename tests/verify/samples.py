"""Values on which two ways to convert are most likely to differ."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

_DTYPES = {"i16": np.int16, "i32": np.int32, "i64": np.int64}


@cache
def samples(src: str) -> Array:
    """Finite values: all of the 16-bit formats, of the others those near short significands."""
    if src in ("f16", "bf16"):
        dtype = np.dtype(np.float16 if src == "f16" else ml_dtypes.bfloat16)
        codes: Array = np.arange(65536, dtype=np.uint16).view(dtype)
        return codes[np.isfinite(codes.astype(np.float32))]
    if src == "i16":
        return np.arange(-32768, 32768).astype(np.int16)
    rng = np.random.default_rng(1)
    significands = rng.integers(-(2**13), 2**13, 60000).astype(np.float64)
    low, high = {"f32": (-45, 110), "i32": (-8, 17), "i64": (-8, 39)}[src]
    exponents = rng.integers(low, high, 60000).astype(np.float64)
    near = significands * 2.0**exponents
    steps = rng.integers(-2, 3, 60000)
    if src == "f32":
        ulps: Array = near.astype(np.float32).view(np.int32) + steps.astype(np.int32)
        return ulps.view(np.float32)
    return (near.astype(np.int64) + steps).astype(_DTYPES[src])
