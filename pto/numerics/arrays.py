"""Conversion of arrays between any two formats: spec R and S, without a target's restrictions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pto.numerics import engines
from pto.numerics.formats import FORMATS, Format, format_of
from pto.numerics.rules import is_dequantisation, parts, rule_of

Array = NDArray[Any]


def convert(
    x: ArrayLike,
    to: str | Format,
    *,
    src: str | Format | None = None,
    mode: str | None = None,
    saturation: str | None = None,
    pytorch_path: bool = False,
    nan_saturation: str = "zero",
    deq_scale: float = 1.0,
    out: Array | None = None,
    engine: str = "auto",
) -> Array:
    """Converts every element of `x` to the format `to`.

    Args:
        x: Array of any shape and layout, of the carrier dtype of its format (see
            `Format.carrier`) or of its unsigned codes; it is never changed. Python numbers and
            lists are read as the carrier of `src`, by default as numpy reads them.
        to: Name of the destination format (spec F).
        src: Name of the source format; by default that of the dtype. Needed for hif8, f4e1m2,
            c32 and for codes.
        mode: RINT, ROUND, FLOOR, CEIL, TRUNC, ODD, NONE or HYBRID, with or without `CAST_`;
            None is the pair's natural mode (spec R9).
        saturation: "ON", "OFF", or None, which means ON (spec S2 to S11). No effect where the pair
            has no choice.
        pytorch_path: Whether OFF follows the PyTorch-compatible path on the pairs that have it
            (spec S10).
        nan_saturation: "zero", or "keep" for NaN to survive a saturating conversion to f8e4m3fn
            or f8e5m2 (CTRL[50] = 1, spec S2).
        deq_scale: Multiplier of an i32 to f16 conversion (spec S13); a half on the device.
        out: Array that receives the result: of x's shape, and of the destination's carrier or
            code dtype. It may be x's own memory.
        engine: "numpy", "jit", or "auto", which takes the faster for the size.

    Returns:
        `out`, or a new array of x's shape in the destination's carrier dtype; the unsigned codes
        for hif8, f4e1m2 (one code per element) and c32.

    Raises:
        ValueError: unknown format, pair, mode or engine, with the list of what is offered; a dtype
            or shape that does not fit.
    """
    target = format_of(to)
    array, source = as_source(x, src)
    result = output_for(array.shape, target, out)
    convert_bits(
        codes_of(array, source),
        source,
        target,
        mode,
        saturation,
        pytorch_path=pytorch_path,
        nan_saturation=nan_saturation,
        deq_scale=deq_scale,
        out=codes_of(result, target),
        engine=engine,
    )
    return result


def convert_bits(
    src_bits: Array,
    src: str | Format,
    dst: str | Format,
    mode: str | None = None,
    saturation: str | None = None,
    *,
    pytorch_path: bool = False,
    nan_saturation: str = "zero",
    deq_scale: float = 1.0,
    out: Array | None = None,
    engine: str = "auto",
) -> Array:
    """Converts bit patterns: like `convert`, on unsigned codes and with no check of saturation.

    `src_bits` has the unsigned dtype of the source's width (uint8 for the 4-bit formats), in any
    layout and byte order; so has `out`, for the destination. A saturation where the pair has no
    choice has no effect. Returns `out`, or a new array of codes.
    """
    source, target = format_of(src), format_of(dst)
    conversion = _conversion(source, target, mode, saturation, bool(pytorch_path), nan_saturation)
    if out is None:
        out = np.empty(src_bits.shape, target.code_dtype)
    if deq_scale != 1.0:
        _dequantise(src_bits, out, source, target, deq_scale, engine)
        return out
    if source.is_complex:
        conversion.run(_parts_of(src_bits, source), _parts_of(out, target), engine)
    else:
        conversion.run(src_bits, out, engine)
    return out


@lru_cache(maxsize=512)
def _conversion(
    src: Format,
    dst: Format,
    mode: str | None,
    saturation: str | None,
    pytorch_path: bool,
    nan_saturation: str,
) -> engines.Conversion:
    rule = rule_of(
        src, dst, mode, saturation, through_i32=pytorch_path, nan_saturation=nan_saturation
    )
    return engines.Conversion(*parts(src, dst), rule)


def _dequantise(
    codes: Array, out: Array, src: Format, dst: Format, scale: float, engine: str
) -> None:
    """i32 to f16 of x * scale (spec S13). Every product with a half is exact in f64."""
    if not is_dequantisation(src, dst):
        raise ValueError(f"deq_scale applies to i32 to f16 only, not to {src} to {dst}")
    if not np.isfinite(scale):
        raise ValueError(f"deq_scale must be finite, not {scale}")
    conversion = _conversion(FORMATS["f64"], dst, "RINT", "ON", False, "zero")
    native = [np.dtype(np.uint32), dst.code_dtype]
    for block, target in engines.blocks(codes, out, native):
        product = block.view(np.int32) * np.float64(scale)
        conversion.run(product.view(np.uint64), target, engine)


def _parts_of(codes: Array, fmt: Format) -> Array:
    """The (re, im) codes of complex codes, in a new last axis of length 2."""
    part = format_of(fmt.part).code_dtype.newbyteorder(codes.dtype.byteorder)
    return (
        np.ndarray((*codes.shape, 2), part, codes, strides=(*codes.strides, part.itemsize))
        if codes.flags.c_contiguous
        else codes[..., None].view(part)
    )


def as_source(x: ArrayLike, src: str | Format | None) -> tuple[Array, Format]:
    """The array and its format. Raises ValueError if the dtype fits no format, or not `src`."""
    fmt = None if src is None else format_of(src)
    if fmt is not None and not isinstance(x, np.ndarray | np.generic):
        return np.asarray(x, dtype=fmt.carrier), fmt
    array = np.asarray(x)
    found = format_of_dtype(array.dtype)
    if fmt is None:
        if found is None:
            raise ValueError(f"no format has arrays of dtype {array.dtype}; name one with src=")
        return array, found
    if found is not fmt and not _fits(array.dtype, fmt):
        raise ValueError(f"an array of {fmt} has dtype {_dtypes(fmt)}, not {array.dtype}")
    return array, fmt


def _dtypes(fmt: Format) -> str:
    codes = f"{fmt.code_dtype} (codes)"
    return codes if fmt.carrier == fmt.code_dtype else f"{fmt.carrier} or {codes}"


def _fits(dtype: np.dtype[Any], fmt: Format) -> bool:
    native = dtype.newbyteorder("=")
    return native in (fmt.carrier, fmt.code_dtype)


@lru_cache(maxsize=64)
def format_of_dtype(dtype: np.dtype[Any]) -> Format | None:
    """The format whose values arrays of this dtype hold, in either byte order."""
    native = dtype.newbyteorder("=")
    telling = (fmt for fmt in FORMATS.values() if not fmt.is_carried_by_codes)
    return next((fmt for fmt in telling if fmt.carrier == native), None)


def output_for(shape: tuple[int, ...], dst: Format, out: Array | None) -> Array:
    """The array for a result: `out`, or a new one. Raises ValueError where `out` does not fit."""
    if out is None:
        return np.empty(shape, dst.carrier)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is an array, not {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, the input {shape}")
    if not _fits(out.dtype, dst):
        raise ValueError(f"out for {dst} has dtype {dst.carrier}, not {out.dtype}")
    if not out.flags.writeable:
        raise ValueError("out is read-only")
    return out


def codes_of(array: Array, fmt: Format) -> Array:
    """The same memory as unsigned codes, in the same byte order."""
    code = fmt.code_dtype
    if array.dtype == code:
        return array
    return array.view(code if array.dtype.isnative else code.newbyteorder("S"))


def encode(values: ArrayLike, fmt: str | Format, *, saturation: str = "ON") -> Array:
    """Codes of float64 values under the format's natural mode (spec R9): the inverse of `decode`.

    `values` of any shape, read as float64 (int64 or uint64 when they are integers); complex formats
    read complex64. Returns the unsigned codes.
    """
    fmt = format_of(fmt)
    array = np.asarray(values)
    if fmt.is_complex:
        pairs = np.asarray(array, dtype=np.complex64)
        if fmt.name == "c64":
            return pairs.view(np.uint64)
        return convert_bits(pairs.view(np.uint64), "c64", fmt, None, saturation)
    if array.dtype.kind not in "iu":
        array = array.astype(np.float64)
    source = {"i": "i64", "u": "ui64", "f": "f64"}[array.dtype.kind]
    codes = array.astype(array.dtype.kind + "8").view(np.uint64)
    return codes if source == fmt.name else convert_bits(codes, source, fmt, None, saturation)
