"""One conversion of one value analysed: what is kept, what is dropped, what lies next to it.

Exact, in fractions; the results themselves come from the conversion kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import inf, isfinite, nan

import numpy as np

from pto.numerics.arrays import convert_bits, encode
from pto.numerics.formats import Format, value_of
from pto.numerics.rules import parts


@dataclass(frozen=True)
class RoundingAnalysis:
    """A finite magnitude between two neighbours of the destination."""

    src: Format
    dst: Format
    code: int
    value: Fraction
    lowest_bit: int  #: exponent of the source's last significand bit
    digits: str  #: the source's significand, most significant bit first
    step: int  #: exponent of the destination's ulp at this value

    @property
    def ulp(self) -> Fraction:
        """Distance of the neighbours."""
        return power_of_two(self.step)

    @property
    def kept(self) -> str:
        """The leading digits, which the destination has room for."""
        return self.digits[: max(len(self.digits) - self._cut, 0)]

    @property
    def dropped(self) -> str:
        """The digits that are rounded off, leading zeros included where all are."""
        if self._cut > len(self.digits):
            return "0" * (self._cut - len(self.digits)) + self.digits
        return self.digits[len(self.digits) - self._cut :]

    @property
    def _cut(self) -> int:
        return max(self.step - self.lowest_bit, 0)

    @property
    def below(self) -> Fraction:
        """The neighbour of smaller magnitude, with the value's sign; the value if it is exact."""
        whole = abs(self.value) // self.ulp * self.ulp
        return -whole if self.value < 0 else whole

    @property
    def above(self) -> Fraction:
        """The neighbour of larger magnitude."""
        return self.below + (-self.ulp if self.value < 0 else self.ulp)

    @property
    def part(self) -> Fraction:
        """Where between the neighbours the value lies: 0 is exact, 1/2 a tie."""
        return abs(self.value - self.below) / self.ulp

    @property
    def below_is_even(self) -> bool:
        """Whether the last kept bit is 0."""
        return abs(self.below) // self.ulp % 2 == 0


def power_of_two(exponent: int) -> Fraction:
    """2**exponent, exactly."""
    return Fraction(2) ** exponent


def analyse(src: Format, dst: Format, code: int) -> RoundingAnalysis | None:
    """Takes the conversion of one code apart; None for NaN and infinities.

    Raises ValueError for complex formats and pairs that do not exist.
    """
    if src.is_complex or dst.is_complex:
        raise ValueError("a complex number converts part by part: explain f32 and f16")
    parts(src, dst)
    value = value_of(code, src)
    if not isfinite(value):
        return None
    exact = Fraction(value)
    lowest_bit, digits = _significand(src, code, exact)
    return RoundingAnalysis(src, dst, code, exact, lowest_bit, digits, _step(exact, src, dst))


def _significand(src: Format, code: int, value: Fraction) -> tuple[int, str]:
    if src.is_integer:
        return 0, f"{abs(int(value)):b}"
    if src.kind == "float":
        field = (code & src.magnitude_mask) >> src.mantissa_bits
        lowest_bit = max(field, 1) - src.bias - src.mantissa_bits
        return lowest_bit, f"{int(abs(value) / power_of_two(lowest_bit)):0{src.mantissa_bits + 1}b}"
    exponent = floor_log2(value) if value else 0
    kept = _hif8_mantissa(exponent) if src.kind == "tapered" else 0
    return exponent - kept, f"{int(abs(value) / power_of_two(exponent - kept)):b}"


def floor_log2(value: Fraction) -> int:
    """Exponent of the leading bit of a magnitude that is not 0."""
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    return exponent if size >= power_of_two(exponent) else exponent - 1


def _hif8_mantissa(exponent: int) -> int:
    size = abs(exponent)
    return 3 if size <= 3 else 2 if size <= 7 else 1 if size <= 15 else 0


def _step(value: Fraction, src: Format, dst: Format) -> int:
    """Exponent of the destination's last bit at this value (spec S1: no upper end)."""
    if dst.is_integer or src is dst:
        return 0
    exponent = floor_log2(value) if value else None
    match dst.kind:
        case "scale":
            return -dst.bias if exponent is None else max(exponent, -dst.bias)
        case "tapered":
            if exponent is None or exponent < -22:
                return -22
            return exponent - _hif8_mantissa(exponent)
        case _:
            lowest = dst.min_exponent
            return (lowest if exponent is None else max(exponent, lowest)) - dst.mantissa_bits


def hybrid_threshold(exact: RoundingAnalysis) -> tuple[int, int] | None:
    """(fraction, threshold) of HYBRID, which rounds up where fraction >= threshold (spec R8).

    None where it rounds like ROUND, or where no bit decides.
    """
    exponent = floor_log2(exact.value) if exact.value else 0
    if not 4 <= abs(exponent) <= 23 or exponent > 15:
        return None
    width, size = (10, 2) if exact.src.name == "f16" else (23, 14)
    significand = int(abs(exact.value) / power_of_two(exponent - width))
    threshold = 2 * (significand & 1) + 1 if size == 2 else significand & 0x3FFF
    dropped = exact.step - (exponent - width)
    return (significand >> (dropped - size)) & ((1 << size) - 1), threshold


def result(
    src: Format,
    dst: Format,
    code: int,
    mode: str | None,
    saturation: str | None,
    *,
    pytorch_path: bool = False,
) -> int:
    """The destination's code for one source code."""
    codes = np.array([code], src.code_dtype)
    converted = convert_bits(
        codes, src, dst, mode, saturation, pytorch_path=pytorch_path, engine="numpy"
    )
    return int(converted[0])


def parse_code(text: str, fmt: Format) -> tuple[int, bool]:
    """(the code that a written value stands for, whether it is exactly that value).

    `text` is a decimal number, a hexadecimal float (0x1.8p3), inf, nan, or 0x and the bit pattern.
    A decimal that the format lacks stands for the nearest value, ties to even. Raises ValueError.
    """
    lowered = text.strip().lower().replace("_", "")
    if lowered.startswith("0x") and not set("p.") & set(lowered):
        code = int(lowered, 16)
        if code >> fmt.bits:
            raise ValueError(f"{text} has more than the {fmt.bits} bits of {fmt}")
        return code, True
    if lowered.lstrip("+-") in ("inf", "infinity", "nan"):
        return _special(lowered, fmt), True
    wanted = _exact(lowered, text)
    if fmt.is_integer:
        if wanted.denominator != 1 or not fmt.min_int <= wanted <= fmt.max_int:
            raise ValueError(f"{text} is no {fmt}, which has {fmt.min_int} to {fmt.max_int}")
        return int(wanted) & ((1 << fmt.bits) - 1), True
    return _nearest(wanted, lowered.startswith("-"), fmt, text)


def _special(lowered: str, fmt: Format) -> int:
    value = nan if "nan" in lowered else -inf if lowered.startswith("-") else inf
    code = fmt.nan_code if value != value else fmt.inf_code
    if code is None:
        raise ValueError(f"{fmt} has no {lowered.lstrip('+-')}")
    return code | (1 << (fmt.bits - 1) if value == -inf else 0)


def _exact(lowered: str, text: str) -> Fraction:
    try:
        if "0x" in lowered:
            return Fraction(float.fromhex(lowered))
        number = Decimal(lowered)
        if abs(number.adjusted()) > 5000:
            raise ValueError(f"{text} is out of every format's range")
        return Fraction(number)
    except (InvalidOperation, OverflowError) as error:
        raise ValueError(f"{text!r} is no number and no bit pattern (0x...)") from error


def _nearest(wanted: Fraction, negative: bool, fmt: Format, text: str) -> tuple[int, bool]:
    largest = Fraction(fmt.max_value)
    if abs(wanted) > largest:
        raise ValueError(f"{text} is larger than the largest {fmt}, {fmt.max_value}")
    if fmt.bits <= 8:
        around = range(1 << (fmt.bits - fmt.is_signed))
    else:
        guess = int(encode(np.float64(abs(wanted)), fmt))
        around = range(max(guess - 1, 0), min(guess + 1, fmt.max_code) + 1)
    values = {c: Fraction(v) for c in around if isfinite(v := value_of(c, fmt))}
    code = min(values, key=lambda c: (abs(values[c] - abs(wanted)), c % 2))
    exact = values[code] == abs(wanted)
    signed = negative and fmt.is_signed and not (fmt.kind == "tapered" and code == 0)
    if negative and not fmt.is_signed:
        raise ValueError(f"{fmt} has no negative values")
    return code | (1 << (fmt.bits - 1) if signed else 0), exact
