"""Reference conversions in exact integer arithmetic, simple and slow.

Written from the text of spec F, R and S; shares no code with `pto.numerics`. A real number is a
pair (n, k) that stands for n * 2**k, or one of the strings "inf", "-inf", "nan". Every result is an
unsigned code.

`convert` answers for all variants of a conversion at once: the two neighbours of a number in the
destination are worked out once, and every variant picks one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

Number = tuple[int, int] | str


class Layout(NamedTuple):
    """A sign bit, an exponent field, a mantissa field."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: str  #: "ieee", "fn" (only S.1111.111 is NaN), "none"

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def max_code(self) -> int:
        top = (1 << (self.bits - 1)) - 1
        if self.specials == "ieee":
            return top - (1 << self.mantissa_bits)
        return top - (self.specials == "fn")


LAYOUTS = {
    "f64": Layout(11, 52, 1023, "ieee"),
    "f32": Layout(8, 23, 127, "ieee"),
    "f16": Layout(5, 10, 15, "ieee"),
    "bf16": Layout(8, 7, 127, "ieee"),
    "f8e4m3fn": Layout(4, 3, 7, "fn"),
    "f8e5m2": Layout(5, 2, 15, "ieee"),
    "f4e2m1": Layout(2, 1, 1, "none"),
    "f4e1m2": Layout(1, 2, 1, "none"),
}
INTEGERS = {f"i{n}": (n, True) for n in (4, 8, 16, 32, 64)} | {
    f"ui{n}": (n, False) for n in (8, 16, 32, 64)
}
WIDTHS = (
    {name: layout.bits for name, layout in LAYOUTS.items()}
    | {name: bits for name, (bits, _) in INTEGERS.items()}
    | {"hif8": 8, "f8e8m0": 8}
)


def decode(name: str, code: int) -> tuple[bool, Number]:
    """(sign bit, value) of a code."""
    if name in INTEGERS:
        bits, signed = INTEGERS[name]
        value = code - (1 << bits) if signed and code >> (bits - 1) else code
        return value < 0, (value, 0)
    if name == "f8e8m0":
        return False, "nan" if code == 255 else (1, code - 127)
    if name == "hif8":
        return code > 0x80, _decode_hif8(code)
    layout = LAYOUTS[name]
    negative = bool(code >> (layout.bits - 1))
    magnitude = code & ((1 << (layout.bits - 1)) - 1)
    if magnitude > layout.max_code:
        if layout.specials == "ieee" and magnitude == layout.max_code + 1:
            return negative, "-inf" if negative else "inf"
        return negative, "nan"
    exponent, mantissa = divmod(magnitude, 1 << layout.mantissa_bits)
    if exponent:
        mantissa += 1 << layout.mantissa_bits
    scale = max(exponent, 1) - layout.bias - layout.mantissa_bits
    return negative, (-mantissa if negative else mantissa, scale)


def _decode_hif8(code: int) -> Number:
    """Spec F1, read off the bit string from the left."""
    sign = -1 if code >> 7 else 1
    rest = f"{code & 127:07b}"
    if code == 0x80:
        return "nan"
    if code & 127 == 0x6F:
        return "inf" if sign > 0 else "-inf"
    if rest.startswith("0000"):
        return (0, 0) if code == 0 else (sign, int(rest[4:], 2) - 23)
    for prefix, exponent_bits in (("0001", 0), ("001", 1), ("01", 2), ("10", 3), ("11", 4)):
        if rest.startswith(prefix):
            field = rest[len(prefix) : len(prefix) + exponent_bits]
            mantissa = rest[len(prefix) + exponent_bits :]
            break
    exponent = int("1" + field[1:], 2) if field else 0
    if field.startswith("1"):
        exponent = -exponent
    return sign * int("1" + mantissa, 2), exponent - len(mantissa)


def lowest_terms(n: int, k: int) -> tuple[int, int]:
    """The same number with n odd, or (0, 0)."""
    if n == 0:
        return 0, 0
    zeros = (n & -n).bit_length() - 1
    return n >> zeros, k + zeros


HIF8_CODES = {
    lowest_terms(*value): code
    for code in range(128)
    if not isinstance(value := _decode_hif8(code), str)
}


def floor_log2(n: int, k: int) -> int:
    return n.bit_length() - 1 + k


def quotient(n: int, k: int, step: int) -> tuple[int, int]:
    """n * 2**k over 2**step: (integer part, which part of a step is left over in quarters).

    The second is 0 for exact, 1 for less than half, 2 for half, 3 for more than half.
    """
    if k >= step:
        return n << (k - step), 0
    cut = step - k
    whole, rest = n >> cut, n & ((1 << cut) - 1)
    half = 1 << (cut - 1)
    return whole, 0 if rest == 0 else 1 if rest < half else 2 if rest == half else 3


class Variant(NamedTuple):
    """One way to do a conversion."""

    mode: str  #: one that rounds: RINT ROUND FLOOR CEIL TRUNC ODD HYBRID
    saturate: bool = True
    pytorch: bool = False  #: spec S10
    keep_nan: bool = False  #: CTRL[50] = 1


class Neighbours(NamedTuple):
    """A magnitude between two adjacent magnitudes of the destination."""

    below: int
    above: int
    below_is_odd: bool
    quarters: int

    def pick(self, mode: str, negative: bool) -> int:
        """Spec R1 to R6."""
        match mode:
            case "RINT":
                up = self.quarters == 3 or (self.quarters == 2 and self.below_is_odd)
            case "ROUND":
                up = self.quarters >= 2
            case "FLOOR":
                up = self.quarters > 0 and negative
            case "CEIL":
                up = self.quarters > 0 and not negative
            case "TRUNC":
                up = False
            case "ODD":
                up = self.quarters > 0 and not self.below_is_odd
        return self.above if up else self.below


def neighbours(n: int, k: int, step: int) -> Neighbours:
    """n * 2**k between multiples of 2**step, in units of it."""
    whole, quarters = quotient(n, k, step)
    return Neighbours(whole, whole + 1, whole % 2 == 1, quarters)


# ---------------------------------------------------------------------------------- to floats


def _layout_code(layout: Layout, steps: int, step: int) -> int:
    """The magnitude code of steps * 2**step, as if the exponent had no upper end (spec S1)."""
    if steps >> (layout.mantissa_bits + 1):  # carried into the next binade
        steps, step = steps >> 1, step + 1
    mantissa = steps & ((1 << layout.mantissa_bits) - 1)
    normal = steps >> layout.mantissa_bits
    exponent = step + layout.mantissa_bits + layout.bias if normal else 0
    return (exponent << layout.mantissa_bits) + mantissa


def _to_layout(
    name: str, negative: bool, value: Number, variants: Sequence[Variant]
) -> Iterator[int]:
    """To a format of LAYOUTS (spec S1 to S5, S15)."""
    layout = LAYOUTS[name]
    sign = negative << (layout.bits - 1)
    found = None
    if not isinstance(value, str) and value[0]:
        n, k = abs(value[0]), value[1]
        step = max(floor_log2(n, k), 1 - layout.bias) - layout.mantissa_bits
        steps = neighbours(n, k, step)
        found = steps._replace(
            below=_layout_code(layout, steps.below, step),
            above=_layout_code(layout, steps.above, step),
        )
    for variant in variants:
        saturate = variant.saturate and name not in ("f32", "f64")  # spec S4
        saturate = saturate or layout.specials == "none"  # spec S5
        overflow = layout.max_code + (not saturate)
        if value == "nan":
            keep = variant.keep_nan and name in ("f8e4m3fn", "f8e5m2")
            yield _nan(layout, sign) if keep or not saturate else 0
        elif isinstance(value, str):
            yield sign | overflow
        else:
            yield sign | min(found.pick(variant.mode, negative) if found else 0, overflow)


def _nan(layout: Layout, sign: int) -> int:
    if layout.specials == "fn":
        return sign | 0x7F  # spec S3: the sign is kept
    return layout.max_code + 1 + (1 << (layout.mantissa_bits - 1))  # spec S15


def _to_hif8(negative: bool, value: Number, variant: Variant, source: str) -> int:
    """Spec F1, R8, S7."""
    if value == "nan":
        return 0 if variant.saturate else 0x80
    sign = negative << 7
    overflow = sign | (0x6E if variant.saturate else 0x6F)
    if isinstance(value, str):
        return overflow
    n, k = abs(value[0]), value[1]
    exponent = floor_log2(n, k) if n else -1000
    if exponent < -23:
        return 0
    if exponent > 15:
        return overflow
    size = abs(exponent)
    kept = 3 if size <= 3 else 2 if size <= 7 else 1 if size <= 15 else 0
    step = -22 if exponent == -23 else exponent - kept
    whole, quarters = quotient(n, k, step)
    if variant.mode == "HYBRID" and size > 3:
        up = _hybrid_rounds_up(n, k, exponent, kept, source)
    else:
        up = quarters >= 2
    result = lowest_terms(whole + up, step)
    if result[0] == 0:
        return 0
    if floor_log2(*result) > 15 or result == (3, 14):  # 1.5 * 2**15 has the code of inf
        return overflow
    return sign | HIF8_CODES[result]


def _hybrid_rounds_up(n: int, k: int, exponent: int, kept: int, source: str) -> bool:
    """Spec R8, on the mantissa as a string of bits after the leading 1."""
    width = {"f32": 23, "f16": 10}[source]
    bits = f"{quotient(n, k, exponent - width)[0]:b}"[1:]
    if source == "f32":
        digits, threshold = 14, int(bits[-14:], 2)
    else:
        digits, threshold = 2, 2 * int(bits[-1]) + 1
    if exponent == -23:
        return int("1" + bits[: digits - 1], 2) >= threshold
    return int(bits[kept : kept + digits], 2) >= threshold


def _to_f8e8m0(value: Number) -> int:
    """Spec S6."""
    if value == "nan":
        return 0xFF
    if isinstance(value, str):
        return 0xFE
    n, k = abs(value[0]), value[1]
    return min(max(floor_log2(n, k) + 127, 0), 0xFE) if n else 0


# -------------------------------------------------------------------------------- to integers


def _limits(name: str) -> tuple[int, int]:
    bits, signed = INTEGERS[name]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def _float_to_integer(name: str, value: Number, variants: Sequence[Variant]) -> Iterator[int]:
    """Spec S8 to S10."""
    everything = (1 << INTEGERS[name][0]) - 1
    negative = value == "-inf" or (not isinstance(value, str) and value[0] < 0)
    found = None if isinstance(value, str) else neighbours(abs(value[0]), value[1], 0)
    for variant in variants:
        pytorch = variant.pytorch and not variant.saturate
        low, high = _limits("i32" if pytorch else name)
        if value == "nan":
            result = 0
        elif found is None:
            result = low if negative else high
        else:
            result = found.pick(variant.mode, negative) * (-1 if negative else 1)
            if variant.saturate or pytorch:
                result = min(max(result, low), high)
        yield result & everything


def _integer_to_integer(src: str, dst: str, value: int, saturate: bool) -> int:
    """Spec S11, S12."""
    low, high = _limits(dst)
    if saturate or INTEGERS[dst][0] > INTEGERS[src][0]:
        value = min(max(value, low), high)
    return value & ((1 << INTEGERS[dst][0]) - 1)


def _integral(value: Number, mode: str) -> Number:
    """Spec R11."""
    if isinstance(value, str):
        return value
    whole = neighbours(abs(value[0]), value[1], 0).pick(mode, value[0] < 0)
    return (-whole if value[0] < 0 else whole, 0)


def convert(src: str, dst: str, code: int, variants: Sequence[Variant]) -> list[int]:
    """The code of `dst` for one code of `src`, under each variant."""
    negative, value = decode(src, code)
    if src in INTEGERS and dst in INTEGERS:
        integer = int(value[0])
        return [_integer_to_integer(src, dst, integer, v.saturate) for v in variants]
    if dst in INTEGERS:
        return list(_float_to_integer(dst, value, variants))
    if src in INTEGERS:  # spec S13
        mode = "RINT" if (src, dst) == ("i32", "f16") else None
        variants = [Variant(mode or v.mode) for v in variants]
    if (src, dst) == ("f8e8m0", "bf16"):
        variants = [v._replace(saturate=False) for v in variants]  # spec S6
    if dst == "f8e8m0":
        return [_to_f8e8m0(value)] * len(variants)
    if dst == "hif8":
        return [_to_hif8(negative, value, v, src) for v in variants]
    if src == dst:
        rounded = (_integral(value, v.mode) for v in variants)
        return [next(_to_layout(dst, negative, r, [Variant("RINT")])) for r in rounded]
    return list(_to_layout(dst, negative, value, variants))
