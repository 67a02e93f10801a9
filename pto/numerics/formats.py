"""The element formats of spec F, as data.

A format is a frozen record; nothing here depends on numpy until an array is asked for, so that a
tool which only needs names and widths starts fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

Kind = Literal["float", "tapered", "scale", "signed", "unsigned", "complex"]


@dataclass(frozen=True, eq=False)
class Format:
    """One element format. Widths are in bits; the codes are unsigned bit patterns.

    There is one record of each format, so formats compare by identity.
    """

    name: str  #: spec name, such as "f8e4m3fn"
    bits: int  #: width of one element; 4-bit elements pack two to a byte (spec F2)
    kind: Kind  #: "tapered" is hif8, "scale" is f8e8m0 (exponent only)
    exponent_bits: int = 0  #: width of the exponent field; 0 where there is none or it varies
    mantissa_bits: int = 0  #: width of the stored mantissa; the largest one for "tapered"
    bias: int = 0  #: exponent field minus bias is the unbiased exponent
    max_code: int = 0  #: code of the largest finite value
    inf_code: int | None = None  #: code of +inf, None where the format has none
    nan_code: int | None = None  #: the canonical quiet NaN, None where the format has none
    part: str = ""  #: format of the real and imaginary parts of a complex format
    carrier_name: str = ""  #: numpy or ml_dtypes scalar type that carries one element

    @property
    def is_float(self) -> bool:
        """Whether the elements are real numbers in a floating-point format."""
        return self.kind in ("float", "tapered", "scale")

    @property
    def is_integer(self) -> bool:
        """Whether the elements are two's complement or unsigned integers."""
        return self.kind in ("signed", "unsigned")

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
    def storage_bits(self) -> int:
        """Width of the unpacked array element: 8 for the 4-bit formats, else `bits`."""
        return max(self.bits, 8)

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
        f8e8m0, f4e2m1 and i4; the unsigned codes for hif8, f4e1m2 and (re, im) pairs for c32.
        """
        import numpy as np

        home: Any = np
        if not hasattr(np, self.carrier_name):
            import ml_dtypes as home
        dtype: np.dtype[Any] = np.dtype(getattr(home, self.carrier_name))
        return dtype

    @cached_property
    def max_value(self) -> float | int:
        """Largest finite value."""
        if self.is_integer:
            return self.max_int
        return float(decode(self.max_code, self))

    @cached_property
    def min_value(self) -> float | int:
        """Most negative finite value; for f8e8m0 the smallest value."""
        if self.is_integer:
            return self.min_int
        if self.kind == "scale":
            return float(decode(0, self))
        return -self.max_value

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return format_of, (self.name,)


def _ieee(name: str, exponent_bits: int, mantissa_bits: int, carrier: str) -> Format:
    """An IEEE-like format: the all-ones exponent holds inf and NaN."""
    inf = ((1 << exponent_bits) - 1) << mantissa_bits
    return Format(
        name,
        1 + exponent_bits + mantissa_bits,
        "float",
        exponent_bits,
        mantissa_bits,
        (1 << (exponent_bits - 1)) - 1,
        max_code=inf - 1,
        inf_code=inf,
        nan_code=inf | 1 << (mantissa_bits - 1),
        carrier_name=carrier,
    )


def _integers() -> list[Format]:
    signed = [Format(f"i{n}", n, "signed", carrier_name=f"int{n}") for n in (4, 8, 16, 32, 64)]
    unsigned = [Format(f"ui{n}", n, "unsigned", carrier_name=f"uint{n}") for n in (8, 16, 32, 64)]
    return signed + unsigned


_ALL = [
    _ieee("f64", 11, 52, "float64"),
    _ieee("f32", 8, 23, "float32"),
    _ieee("f16", 5, 10, "float16"),
    _ieee("bf16", 8, 7, "bfloat16"),
    Format(
        "f8e4m3fn",
        8,
        "float",
        4,
        3,
        7,
        max_code=0x7E,
        nan_code=0x7F,
        carrier_name="float8_e4m3fn",
    ),
    _ieee("f8e5m2", 5, 2, "float8_e5m2"),
    Format(
        "f8e8m0",
        8,
        "scale",
        8,
        0,
        127,
        max_code=0xFE,
        nan_code=0xFF,
        carrier_name="float8_e8m0fnu",
    ),
    Format(
        "hif8",
        8,
        "tapered",
        0,
        3,
        0,
        max_code=0x6E,
        inf_code=0x6F,
        nan_code=0x80,
        carrier_name="uint8",
    ),
    Format("f4e2m1", 4, "float", 2, 1, 1, max_code=7, carrier_name="float4_e2m1fn"),
    Format("f4e1m2", 4, "float", 1, 2, 1, max_code=7, carrier_name="uint8"),
    *_integers(),
    Format("c32", 32, "complex", part="f16", carrier_name="uint32"),
    Format("c64", 64, "complex", part="f32", carrier_name="complex64"),
]

#: Every format of spec F by its spec name.
FORMATS: dict[str, Format] = {fmt.name: fmt for fmt in _ALL}


#: Other spellings of formats, in lower case: those of `.pto` files (spec F).
_SPELLINGS = {
    "half": "f16",
    "f8e4m3": "f8e4m3fn",
    "f8e8m0fnu": "f8e8m0",
    "f4e2m1x2": "f4e2m1",
    "f4e2m1fn": "f4e2m1",
    "f4e1m2x2": "f4e1m2",
    **{f"si{bits}": f"i{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"u{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
}


def format_name(text: str) -> str:
    """The name in spec F of a format in any spelling that `.pto` files have; else the text."""
    plain = text.removeprefix("!pto.").lower()
    plain = _SPELLINGS.get(plain, plain)
    return plain if plain in FORMATS else text


def format_of(name: str | Format) -> Format:
    """The format called `name`, in any spelling. Raises ValueError that lists the formats."""
    if isinstance(name, Format):
        return name
    name = format_name(name)
    if name not in FORMATS:
        raise ValueError(f"unknown format {name!r}; the formats are {', '.join(FORMATS)}")
    return FORMATS[name]


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


def encode(values: ArrayLike, fmt: str | Format, *, saturation: str = "ON") -> NDArray[Any]:
    """Codes of float64 values under the format's natural mode (spec R9): the inverse of `decode`.

    `values` of any shape, read as float64 (int64 or uint64 when they are integers); complex formats
    read complex64. Returns the unsigned codes.
    """
    import numpy as np

    from pto.numerics.conversion import convert_bits

    fmt = format_of(fmt)
    array = np.asarray(values)
    if fmt.kind == "complex":
        pairs = np.asarray(array, dtype=np.complex64)
        if fmt.name == "c64":
            return pairs.view(np.uint64)
        return convert_bits(pairs.view(np.uint64), "c64", fmt.name, None, saturation)
    if array.dtype.kind not in "iu":
        array = array.astype(np.float64)
    source = {"i": "i64", "u": "ui64", "f": "f64"}[array.dtype.kind]
    codes = array.astype(array.dtype.kind + "8").view(np.uint64)
    if source == fmt.name:
        return codes
    return convert_bits(codes, source, fmt.name, None, saturation)


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
