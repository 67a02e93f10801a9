"""The element formats of spec F, one record each.

A record is all that is known of a format: its fields and special values, how it is spelt, how it
lies in memory. Nothing here depends on numpy until an array is asked for, so that a tool which only
needs names and widths starts fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

Kind = Literal["float", "tapered", "scale", "signed", "unsigned", "complex"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Format:
    """One element format. Widths are in bits; the codes are unsigned bit patterns.

    There is one record of each format, so formats compare by identity.
    """

    name: str  #: spec name, such as "f8e4m3fn"
    bits: int  #: width of one element
    kind: Kind  #: "tapered" is hif8, "scale" is f8e8m0 (exponent only)
    exponent_bits: int = 0  #: width of the exponent field; 0 where there is none or it varies
    mantissa_bits: int = 0  #: width of the stored mantissa; the largest one for "tapered"
    bias: int = 0  #: exponent field minus bias is the unbiased exponent
    max_code: int = 0  #: code of the largest finite value
    inf_code: int | None = None  #: code of +inf, None where the format has none
    nan_code: int | None = None  #: the canonical quiet NaN, None where the format has none
    part: str = ""  #: format of the real and imaginary parts of a complex format
    carrier_name: str = ""  #: numpy or ml_dtypes scalar type that carries one element
    mlir: tuple[str, ...] = ()  #: element types of `.pto` files, the current spelling first
    ascendc: str = ""  #: type name in AscendC
    pypto: str = ""  #: type name in PyPTO

    @property
    def is_float(self) -> bool:
        """Whether the elements are real numbers in a floating-point format."""
        return self.kind in ("float", "tapered", "scale")

    @property
    def is_integer(self) -> bool:
        """Whether the elements are two's complement or unsigned integers."""
        return self.kind in ("signed", "unsigned")

    @property
    def is_complex(self) -> bool:
        """Whether an element is a pair of real numbers."""
        return self.kind == "complex"

    @property
    def is_signed(self) -> bool:
        """Whether negative values exist."""
        return self.kind not in ("unsigned", "scale")

    @property
    def has_inf(self) -> bool:
        """Whether the format encodes infinities."""
        return self.inf_code is not None

    @property
    def has_nan(self) -> bool:
        """Whether the format encodes NaN."""
        return self.nan_code is not None

    @property
    def is_wide_float(self) -> bool:
        """Whether saturation does not apply to conversions into it: f32 and f64 (spec S4)."""
        return self.kind == "float" and self.mantissa_bits >= 23

    @property
    def per_byte(self) -> int:
        """Elements that share a byte: two of the 4-bit formats, the even one low (spec F2)."""
        return 2 if self.bits == 4 else 1

    @property
    def storage_bits(self) -> int:
        """Width of the unpacked array element."""
        return max(1 << (self.bits - 1).bit_length(), 8)

    @property
    def memory_bits(self) -> int:
        """Width of one element in memory, packed where the format packs."""
        return self.storage_bits // self.per_byte

    @property
    def magnitude_mask(self) -> int:
        """All bits of a float code except the sign."""
        return (1 << (self.bits - 1)) - 1

    @property
    def min_exponent(self) -> int:
        """Unbiased exponent of the smallest normal value of a "float" format."""
        return 1 - self.bias

    @property
    def max_int(self) -> int:
        """Largest integer of an integer format."""
        return (1 << (self.bits - (self.kind == "signed"))) - 1

    @property
    def min_int(self) -> int:
        """Smallest integer of an integer format."""
        return -self.max_int - 1 if self.kind == "signed" else 0

    @cached_property
    def code_dtype(self) -> np.dtype[Any]:
        """Unsigned numpy dtype of one unpacked code."""
        import numpy as np

        dtype: np.dtype[Any] = np.dtype(f"u{self.storage_bits // 8}")
        return dtype

    @cached_property
    def carrier(self) -> np.dtype[Any]:
        """Numpy dtype of the arrays that hold this format's values.

        numpy's own for f16, f32, f64, integers and c64; ml_dtypes for bf16, f8e4m3fn, f8e5m2,
        f8e8m0, f4e2m1 and i4; the unsigned codes for hif8, f4e1m2 and c32.
        """
        import numpy as np

        home: Any = np
        if not self.is_carried_by_numpy:
            import ml_dtypes as home
        dtype: np.dtype[Any] = np.dtype(getattr(home, self.carrier_name))
        return dtype

    @cached_property
    def is_carried_by_numpy(self) -> bool:
        """Whether the carrier is one of numpy's own dtypes, which `.npy` files know."""
        import numpy as np

        return hasattr(np, self.carrier_name)

    @property
    def is_carried_by_codes(self) -> bool:
        """Whether arrays hold bare codes, which do not tell the format: hif8, f4e1m2 and c32."""
        return not self.is_integer and self.carrier_name.startswith("uint")

    @cached_property
    def max_value(self) -> float | int:
        """Largest finite value."""
        return self.max_int if self.is_integer else float(value_of(self.max_code, self))

    @cached_property
    def min_value(self) -> float | int:
        """Most negative finite value; for f8e8m0 the smallest value."""
        if self.is_integer:
            return self.min_int
        return value_of(0, self) if self.kind == "scale" else -self.max_value

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return format_of, (self.name,)


Names = tuple[str, str, str, str]
"""Carrier, spellings in `.pto` files (with spaces between), AscendC and PyPTO names."""


def _format(name: str, bits: int, kind: Kind, names: Names, **fields: Any) -> Format:
    carrier, mlir, ascendc, pypto = names
    return Format(
        name=name,
        bits=bits,
        kind=kind,
        carrier_name=carrier,
        mlir=tuple(mlir.split()),
        ascendc=ascendc,
        pypto=pypto,
        **fields,
    )


def _float(name: str, exponent_bits: int, mantissa_bits: int, names: Names, **codes: Any) -> Format:
    return _format(
        name,
        1 + exponent_bits + mantissa_bits,
        "float",
        names,
        exponent_bits=exponent_bits,
        mantissa_bits=mantissa_bits,
        bias=max((1 << (exponent_bits - 1)) - 1, 1),
        **codes,
    )


def _ieee(name: str, exponent_bits: int, mantissa_bits: int, *names: str) -> Format:
    """An IEEE-like format: the all-ones exponent holds inf and NaN."""
    inf = ((1 << exponent_bits) - 1) << mantissa_bits
    quiet = 1 << (mantissa_bits - 1)
    codes = {"max_code": inf - 1, "inf_code": inf, "nan_code": inf | quiet}
    return _float(name, exponent_bits, mantissa_bits, names, **codes)  # type: ignore[arg-type]


def _finite(name: str, exponent_bits: int, mantissa_bits: int, *names: str) -> Format:
    """A format whose codes are all finite numbers."""
    largest = (1 << (exponent_bits + mantissa_bits)) - 1
    return _float(name, exponent_bits, mantissa_bits, names, max_code=largest)  # type: ignore[arg-type]


def _signed(bits: int) -> Format:
    """What a signless integer means in PTO, too."""
    ascendc = "int4b_t" if bits == 4 else f"int{bits}_t"
    names = (f"int{bits}", f"i{bits} si{bits}", ascendc, f"DT_INT{bits}")
    return _format(f"i{bits}", bits, "signed", names)


def _unsigned(bits: int) -> Format:
    names = (f"uint{bits}", f"ui{bits} u{bits}", f"uint{bits}_t", f"DT_UINT{bits}")
    return _format(f"ui{bits}", bits, "unsigned", names)


_E4M3 = ("float8_e4m3fn", "f8E4M3FN f8E4M3", "fp8_e4m3fn_t", "DT_FP8E4M3FN")
_E8M0 = ("float8_e8m0fnu", "!pto.f8E8M0 f8E8M0FNU", "", "DT_FP8E8M0")
_HIF8 = ("uint8", "!pto.hif8", "hifloat8_t", "DT_HF8")

_ALL = [
    _ieee("f64", 11, 52, "float64", "f64", "double", ""),
    _ieee("f32", 8, 23, "float32", "f32", "float", "DT_FP32"),
    _ieee("f16", 5, 10, "float16", "f16 half", "half", "DT_FP16"),
    _ieee("bf16", 8, 7, "bfloat16", "bf16", "bfloat16_t", "DT_BF16"),
    _float("f8e4m3fn", 4, 3, _E4M3, max_code=0x7E, nan_code=0x7F),
    _ieee("f8e5m2", 5, 2, "float8_e5m2", "f8E5M2", "fp8_e5m2_t", "DT_FP8E5M2"),
    _format("f8e8m0", 8, "scale", _E8M0, exponent_bits=8, bias=127, max_code=0xFE, nan_code=0xFF),
    _format(
        "hif8", 8, "tapered", _HIF8, mantissa_bits=3, max_code=0x6E, inf_code=0x6F, nan_code=0x80
    ),
    _finite(
        "f4e2m1", 2, 1, "float4_e2m1fn", "!pto.f4E2M1x2 f4E2M1FN", "fp4x2_e2m1_t", "DT_FP4E2M1"
    ),
    _finite("f4e1m2", 1, 2, "uint8", "!pto.f4E1M2x2", "fp4x2_e1m2_t", "DT_FP4E1M2"),
    *map(_signed, (4, 8, 16, 32, 64)),
    *map(_unsigned, (8, 16, 32, 64)),
    _format("c32", 32, "complex", ("uint32", "complex<f16>", "complex32", ""), part="f16"),
    _format("c64", 64, "complex", ("complex64", "complex<f32>", "complex64", ""), part="f32"),
]

#: Every format of spec F by its spec name.
FORMATS: dict[str, Format] = {fmt.name: fmt for fmt in _ALL}

#: The formats by the element types of `.pto` files.
BY_MLIR: dict[str, Format] = {spelling: fmt for fmt in _ALL for spelling in fmt.mlir}

_BY_ANY_NAME = {
    spelling.removeprefix("!pto.").lower(): fmt
    for fmt in _ALL
    for spelling in (fmt.name, fmt.ascendc, fmt.pypto, *fmt.mlir)
    if spelling
}


def format_of(name: str | Format) -> Format:
    """The format called `name`, in the spelling of the spec, `.pto` files, AscendC or PyPTO.

    Raises ValueError that lists the formats.
    """
    if isinstance(name, Format):
        return name
    found = _BY_ANY_NAME.get(str(name).removeprefix("!pto.").lower())
    if found is None:
        raise ValueError(f"unknown format {name!r}; the formats are {', '.join(FORMATS)}")
    return found


def _scaled(significand: int, exponent: int) -> float:
    """significand * 2**exponent, exactly (every format's values are float64 values)."""
    from math import ldexp

    return ldexp(float(significand), exponent)


def _hif8_value(code: int) -> float:
    """Spec F1: prefix-coded dot field, sign-magnitude exponent, mantissa."""
    if code in (0x00, 0x80):
        return 0.0 if code == 0 else float("nan")
    sign = -1.0 if code & 0x80 else 1.0
    low = code & 0x7F
    if low == 0x6F:
        return sign * float("inf")
    if low < 8:  # 0000mmm: a denormal is the power of two 2^(m - 23)
        return sign * _scaled(1, low - 23)
    if low < 16:  # 0001mmm: exponent 0
        return sign * _scaled(8 | low & 7, -3)
    # Exponent bits (its sign included) and mantissa bits by prefix.
    width, mantissa_bits = (
        (1, 3) if low < 0x20 else (2, 3) if low < 0x40 else (3, 2) if low < 0x60 else (4, 1)
    )
    mantissa = low & ((1 << mantissa_bits) - 1)
    field = (low >> mantissa_bits) & ((1 << width) - 1)
    magnitude = 1 << (width - 1) | field & ((1 << (width - 1)) - 1)  # the leading 1 is implicit
    exponent = -magnitude if field >> (width - 1) else magnitude
    return sign * _scaled(1 << mantissa_bits | mantissa, exponent - mantissa_bits)


def _float_value(code: int, fmt: Format) -> float:
    sign = -1.0 if code >> (fmt.bits - 1) else 1.0
    magnitude = code & fmt.magnitude_mask
    if magnitude > fmt.max_code:
        return sign * float("inf") if magnitude == fmt.inf_code else float("nan")
    exponent = max(magnitude >> fmt.mantissa_bits, 1)
    significand = magnitude - ((exponent - 1) << fmt.mantissa_bits)
    return sign * _scaled(significand, exponent - fmt.bias - fmt.mantissa_bits)


def value_of(code: int, fmt: str | Format) -> float | int:
    """The exact value of one code: float for a float format, int for an integer one.

    `code` is the unsigned bit pattern. Complex formats have no single real value: ValueError.
    """
    fmt = format_of(fmt)
    if not 0 <= code < 1 << fmt.bits:
        raise ValueError(f"code {code:#x} does not fit the {fmt.bits} bits of {fmt.name}")
    match fmt.kind:
        case "signed":
            return code - ((code >> (fmt.bits - 1)) << fmt.bits)
        case "unsigned":
            return code
        case "scale":
            return float("nan") if code == fmt.nan_code else _scaled(1, code - fmt.bias)
        case "tapered":
            return _hif8_value(code)
        case "float":
            return _float_value(code, fmt)
        case _:
            raise ValueError(f"{fmt.name} is a pair of {fmt.part}: take its parts one by one")


def _decode_floats(codes: NDArray[Any], fmt: Format) -> NDArray[np.float64]:
    import numpy as np

    if fmt.bits <= 8:
        table = np.array([value_of(c, fmt) for c in range(1 << fmt.bits)], dtype=np.float64)
        return np.take(table, codes & ((1 << fmt.bits) - 1))
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        if fmt.name == "bf16":
            return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return codes.view(fmt.carrier).astype(np.float64)


def decode(codes: ArrayLike, fmt: str | Format) -> NDArray[Any]:
    """Values of unsigned bit patterns, any shape.

    Returns float64 for float formats (exact), int64 or uint64 for integer formats, complex64 for
    complex ones. Raises ValueError for an unknown format.
    """
    import numpy as np

    fmt = format_of(fmt)
    array = np.asarray(codes).astype(fmt.code_dtype)
    match fmt.kind:
        case "unsigned":
            return array.astype(np.uint64)
        case "signed":
            shift = fmt.storage_bits - fmt.bits
            signed = (array << shift).view(f"i{fmt.storage_bits // 8}") >> shift
            return np.asarray(signed, dtype=np.int64)
        case "complex":
            parts = np.ascontiguousarray(array)[..., None].view(format_of(fmt.part).carrier)
            return parts.astype(np.float32).view(np.complex64)[..., 0]
        case _:
            return _decode_floats(array, fmt)


def pack4(codes: ArrayLike) -> NDArray[np.uint8]:
    """Packs 4-bit codes two to a byte along the last axis, the even element in the low nibble.

    `codes` has shape (..., n) with n even, one code per element; returns uint8 of shape
    (..., n / 2). Raises ValueError for an odd n or a code above 15 (spec F2).
    """
    import numpy as np

    array = np.asarray(codes)
    array = array.view(np.uint8) & 0xF if array.dtype.kind == "V" else array
    if array.ndim == 0 or array.shape[-1] % 2:
        raise ValueError(
            f"4-bit elements pack in pairs; the last axis of {array.shape} is not even"
        )
    if array.size and (array.max() > 15 or array.min() < 0):
        raise ValueError("a 4-bit code is between 0 and 15")
    nibbles: NDArray[np.uint8] = array.astype(np.uint8)
    return (nibbles[..., 0::2] | nibbles[..., 1::2] << 4).astype(np.uint8, copy=False)


def unpack4(packed: ArrayLike) -> NDArray[np.uint8]:
    """The 4-bit codes of packed bytes: shape (..., n) becomes (..., 2 n), low nibble first."""
    import numpy as np

    array = np.asarray(packed).view(np.uint8)
    return np.stack([array & 0xF, array >> 4], axis=-1).reshape(*array.shape[:-1], -1)
