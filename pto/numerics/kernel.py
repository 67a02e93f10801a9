"""What a conversion computes: spec R and S as straight-line arithmetic on bit patterns.

Every conversion is the same three steps. *Decode* splits the source code into a sign and a
magnitude. *Round* adds a bias that depends on the mode (`rounding_bias`, the only place where modes
differ) and shifts the magnitude right. *Saturate* limits the magnitude and puts the special values
in place. No pair has code of its own except where the spec names one.

In names and comments, the field of a float code that holds the biased exponent is its exponent
field; significand means the mantissa with its implicit leading bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import frexp, ldexp
from typing import TYPE_CHECKING, Any

from pto.numerics.formats import FORMATS, Format, value_of
from pto.numerics.kernel_ir import (
    Program,
    Value,
    floor_log2_field,
    larger,
    less,
    nonzero,
    select,
    smaller,
    to_float,
    top_bit,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

F16, F32, F64 = FORMATS["f16"], FORMATS["f32"], FORMATS["f64"]


@dataclass(frozen=True)
class ConversionRule:
    """How to convert, everything optional resolved."""

    mode: str  #: RINT ROUND FLOOR CEIL TRUNC ODD HYBRID
    saturate: bool = True  #: saturation ON (spec S2, S8, S11)
    keep_nan: bool = False  #: CTRL[50] = 1: a saturating f8 conversion keeps NaN (spec S2)
    through_i32: bool = False  #: the PyTorch-compatible path (spec S10)
    plain: bool = False  #: no source magnitude is above `plain_limit`: limits need no code


@dataclass(frozen=True)
class Real:
    """A number being converted: a sign, and a magnitude in the layout of `fmt` without its sign."""

    code: Value  #: sign bit and magnitude
    sign: Value  #: mask: all ones for a negative number
    magnitude: Value
    fmt: Format  #: f16, bf16, f32 or f64
    is_number: Value  #: mask: 0 for NaN


def build(src: Format, dst: Format, rule: ConversionRule) -> Program:
    """The program that converts one code of `src` to one of `dst` (neither complex)."""
    lane_bits = 64 if 64 in (src.bits, dst.bits) else 32
    program = Program(lane_bits, src.storage_bits, dst.storage_bits)
    if src.is_integer:
        result = _from_integer(program, src, dst, rule)
    else:
        result = _from_real(_load_real(program, src, rule), src, dst, rule)
    return program.finish(result & ((1 << dst.bits) - 1))


def build_with_table(table: NDArray[Any]) -> Program:
    """Converts f32 by its first 16 bits: `table` holds the result for every bf16.

    Right where the destination has at most 6 significant bits: rounded to odd, the 8 of bf16 keep
    whether anything was dropped, and on which side of a tie it was.
    """
    program = Program(32, 32, table.itemsize * 8)
    code = program.load(32)
    return program.finish(program.table(table, code >> 16 | nonzero(code & 0xFFFF)))


def plain_limit(src: Format, dst: Format) -> int | None:
    """The largest magnitude code of a float format that no rounding takes out of `dst`'s range.

    None where the conversion has no shorter form for such numbers.
    """
    if src.kind != "float" or src.bits < 32 or dst.kind not in ("float", "signed") or src is dst:
        return None
    limit = float(dst.max_value)
    if limit >= src.max_value:
        return src.max_code
    below = limit > dst.max_value  # 2**(N - 1) stands for the largest integer, 2**(N - 1) - 1
    fraction, exponent = frexp(limit)
    significand = int(ldexp(fraction, src.mantissa_bits + 1))
    return ((exponent - 2 + src.bias) << src.mantissa_bits) + significand - below


# ------------------------------------------------------------------------------------- rounding


def rounding_bias(
    mode: str, kept_lsb: Value, dropped: Value, sign: Value, *, always: bool = False
) -> Value:
    """What to add to a magnitude so that dropping its low bits rounds it (spec R1 to R6).

    `dropped` is the mask of the bits to drop, which may be 0 unless something is `always` dropped;
    `kept_lsb` is the lowest bit that stays; `sign` is the mask of negative numbers.
    """
    match mode:
        case "RINT":  # just under half an ulp, and the whole half where the kept part is odd
            bias = (dropped >> 1) + kept_lsb
            return bias if always else bias & dropped
        case "ROUND":
            return (dropped >> 1) + 1 if always else dropped - (dropped >> 1)
        case "FLOOR":
            return dropped & sign
        case "CEIL":
            return dropped & ~sign
        case "TRUNC":
            return dropped & 0
        case "ODD":  # carries only into an even kept part, and so sets its last bit
            return dropped & (kept_lsb - 1)
        case _:
            raise AssertionError(mode)


def round_off(value: Value, shift: Value, mode: str, sign: Value, *, always: bool = False) -> Value:
    """value >> shift, rounded. The sum of value and 2**shift must fit the lane.

    `always` says that no shift is 0.
    """
    dropped = (1 << shift) - 1
    kept_lsb = (value >> shift) & 1
    return (value + rounding_bias(mode, kept_lsb, dropped, sign, always=always)) >> shift


def _round_off_full(value: Value, shift: Value, mode: str, sign: Value) -> Value:
    """`round_off` for values that may fill the lane."""
    dropped = (1 << shift) - 1
    kept = value >> shift
    return kept + (((value & dropped) + rounding_bias(mode, kept & 1, dropped, sign)) >> shift)


# --------------------------------------------------------------------------------------- decode


@cache
def _f32_table(src: Format) -> NDArray[Any]:
    """f32 bits of every code of a format of 8 bits or fewer. NaN keeps its sign (spec S3)."""
    import numpy as np

    values = np.array([value_of(code, src) for code in range(1 << src.bits)], dtype=np.float32)
    bits = values.view(np.uint32)
    signed_nan = src.kind == "float"
    for code in np.flatnonzero(np.isnan(values)):
        bits[code] = 0x7FC00000 | (int(code) >> (src.bits - 1) << 31 if signed_nan else 0)
    bits.flags.writeable = False
    return bits


def _load_real(program: Program, src: Format, rule: ConversionRule) -> Real:
    code, fmt = program.load(src.bits), src
    if src.bits <= 8:
        code, fmt = program.table(_f32_table(src), code), F32
    magnitude = code & fmt.magnitude_mask
    assert fmt.inf_code is not None
    anything = program.constant(program.all_ones)
    is_number = anything if rule.plain else less(magnitude, fmt.inf_code + 1)
    return Real(code, _sign(code, fmt.bits), magnitude, fmt, is_number)


def _load_integer(program: Program, src: Format) -> tuple[Value, Value]:
    """(the integer in two's complement across the lane, the mask of negative ones)."""
    code = program.load(src.bits)
    if src.kind == "unsigned":
        return code, program.constant(0)
    if src.bits < program.lane_bits:
        sign_bit = 1 << (src.bits - 1)
        code = (code ^ sign_bit) - sign_bit
    return code, top_bit(code)


def _sign(code: Value, bits: int) -> Value:
    """The mask of the codes whose bit `bits` - 1 is set, all higher ones being 0."""
    return top_bit(code) if bits == code.program.lane_bits else -(code >> (bits - 1))


def _apply_sign(integer: Value, sign: Value) -> Value:
    """The negative of the integer where the sign is set: also how to undo that."""
    return (integer ^ sign) - sign


def _significand(real: Real, mode: str) -> tuple[Value, Value]:
    """(significand, exponent field) for a rounding that drops all bits of every subnormal.

    A subnormal has the field of the smallest normal (spec S16). Where only nearness counts it may
    as well get a leading 1, and so may zero: it is still less than half of what is kept.
    """
    mantissa_bits = real.fmt.mantissa_bits
    exponent = real.magnitude >> mantissa_bits
    if mode in ("RINT", "ROUND", "TRUNC"):
        leading = 1 << mantissa_bits
        return real.magnitude & (leading - 1) | leading, exponent
    exponent = larger(exponent, 1)
    return real.magnitude - ((exponent - 1) << mantissa_bits), exponent


# ------------------------------------------------------------------------------ float to float


def _from_real(real: Real, src: Format, dst: Format, rule: ConversionRule) -> Value:
    if dst.is_integer:
        return _to_integer(real, dst, rule)
    if src is dst:
        return _finish_float(_integral(real, rule.mode), real, dst, rule)
    if rule.plain and _one_range(real.fmt, dst):  # no carry reaches the sign, which may stay on
        drop = real.code.program.constant(real.fmt.mantissa_bits - dst.mantissa_bits)
        return round_off(real.code, drop, rule.mode, real.sign)
    if dst.kind == "float":
        return _finish_float(_round_float(real, dst, rule.mode), real, dst, rule)
    real = _as_f32(real)
    if dst.kind == "scale":
        return _to_scale(real)
    return _finish_hif8(_round_hif8(real, src, rule.mode), real, dst, rule)


def _round_float(real: Real, dst: Format, mode: str) -> Value:
    """The magnitude code, as if the destination's exponent were unbounded (spec S1).

    Infinities and overflow give codes above `dst.max_code`.
    """
    src = real.fmt
    if dst.mantissa_bits > src.mantissa_bits or dst.min_exponent < src.min_exponent:
        real = _widen(real)
        src = real.fmt
    if src is dst:
        return real.magnitude
    drop = src.mantissa_bits - dst.mantissa_bits
    program = real.magnitude.program
    if _one_range(src, dst):  # the fields line up, and a carry walks into the exponent by itself
        return round_off(real.magnitude, program.constant(drop), mode, real.sign)
    # Below the destination's smallest normal, its subnormal step decides how much to drop.
    smallest = src.bias - dst.bias + 1
    significand, exponent = _significand(real, mode)
    assert drop + smallest > src.mantissa_bits + 2
    capped = smaller(exponent, smallest)
    # All bits, and the bit that decides ties, are gone two places beyond the significand.
    shift = smaller(drop + smallest - capped, src.mantissa_bits + 2)
    kept = round_off(significand, shift, mode, real.sign, always=drop > 0)
    return ((exponent - capped) << dst.mantissa_bits) + kept


def _one_range(src: Format, dst: Format) -> bool:
    """Whether the formats differ in nothing but their mantissa, of which dst has less."""
    same_fields = src.bias == dst.bias and src.exponent_bits == dst.exponent_bits
    return same_fields and src.mantissa_bits > dst.mantissa_bits


def _widen(real: Real) -> Real:
    """The same number in the lane's own float format: f32, or f64 in 64-bit lanes. Exact."""
    src, magnitude = real.fmt, real.magnitude
    dst = F32 if magnitude.program.lane_bits == 32 else F64
    if src is dst:
        return real
    aligned = magnitude << (dst.mantissa_bits - src.mantissa_bits)
    if src.bias == dst.bias:
        return replace(real, magnitude=aligned, fmt=dst)
    rebias = (dst.bias - src.bias) << dst.mantissa_bits
    special = less(src.max_code, magnitude)  # to the other format's all-ones field
    normal = aligned + rebias + (special & rebias)
    # A subnormal is an integer of smallest steps; zero stays zero.
    step = (src.bias - 1 + src.mantissa_bits) << dst.mantissa_bits
    subnormal = larger(to_float(magnitude), step) - step
    is_subnormal = less(magnitude, 1 << src.mantissa_bits)
    return replace(real, magnitude=select(is_subnormal, subnormal, normal), fmt=dst)


def _as_f32(real: Real) -> Real:
    """The number as f32; f64 rounds to odd, which no later rounding to fewer bits can notice."""
    if real.fmt is not F64:
        return _widen(real) if real.fmt is not F32 else real
    assert F32.inf_code is not None
    magnitude = smaller(_round_float(real, F32, "ODD"), F32.inf_code)
    return replace(real, magnitude=magnitude, fmt=F32)


def _finish_float(magnitude: Value, real: Real, dst: Format, rule: ConversionRule) -> Value:
    """Limits the magnitude code, places NaN and the sign (spec S2 to S5, S15)."""
    sign_bit = 1 << (dst.bits - 1)
    if rule.plain:
        return magnitude | real.sign & sign_bit
    bounded = dst.is_wide_float  # saturation does not apply (spec S4)
    if dst.nan_code is None or (rule.saturate and not bounded):
        magnitude = smaller(magnitude, dst.max_code)
        if dst.nan_code is None or not (rule.keep_nan and dst.bits == 8):
            return (magnitude | real.sign & sign_bit) & real.is_number
        magnitude = magnitude + (~real.is_number & (dst.nan_code - dst.max_code))
    else:
        overflow = dst.max_code + 1  # inf, or the NaN of a format without inf (spec S3)
        magnitude = smaller(magnitude, overflow)
        if dst.nan_code != overflow:
            magnitude = magnitude + (~real.is_number & (dst.nan_code - overflow))
    keeps_sign = not dst.has_inf  # f8e4m3fn (spec S3)
    sign = real.sign if keeps_sign else real.sign & real.is_number
    return magnitude | sign & sign_bit


def _integral(real: Real, mode: str) -> Value:
    """The magnitude of the number rounded to an integral value, in its own format (spec R11)."""
    fmt = real.fmt
    significand, exponent = _significand(real, mode)
    unit = fmt.bias + fmt.mantissa_bits  # exponent field at which the significand is the integer
    shift = smaller(unit - smaller(exponent, unit), fmt.mantissa_bits + 2)
    integer = round_off(significand, shift, mode, real.sign)
    return select(less(exponent, unit), to_float(integer), real.magnitude)


def _to_scale(real: Real) -> Value:
    """f8e8m0: the exponent field, whatever sign and mantissa are (spec S6)."""
    dst = FORMATS["f8e8m0"]
    return smaller(real.magnitude >> F32.mantissa_bits, dst.max_code) | ~real.is_number


# ----------------------------------------------------------------------------------------- hif8


def _hif8_region(exponent: Value) -> tuple[Value, Value, Value, Value]:
    """(|E|, and the masks for |E| >= 2, >= 4, >= 8) of an f32 exponent field (spec F1).

    Of hif8's 3 mantissa bits, 1 is lost to the exponent from |E| = 4 on, and 2 from 8 on.
    """
    distance = _apply_sign(exponent - F32.bias, less(exponent, F32.bias))
    return distance, less(1, distance), less(3, distance), less(7, distance)


def _round_hif8(real: Real, src: Format, mode: str) -> Value:
    """The magnitude as f32 bits, rounded to the precision that hif8 has at its exponent."""
    distance, _, from_4, from_8 = _hif8_region(real.magnitude >> 23)
    # The denormal range, from E = -16 down, keeps only the leading bit. E = -23, half the smallest
    # denormal, does not keep that either, but carries. Beyond, all is 0 or overflow.
    lost = -(from_4 + from_8 + less(15, distance) + less(22, distance))
    significand = real.magnitude & 0x7FFFFF | 0x800000
    carry = (significand >> (lost + 19)) & 1
    if mode == "HYBRID":
        carry = select(from_4, _hybrid_carry(significand, lost, src), carry)
    place = smaller(lost + 20, 23)
    return ((real.magnitude >> place) + carry) << place


def _hybrid_carry(significand: Value, lost: Value, src: Format) -> Value:
    """1 if the dropped bits reach the threshold that the lowest source bits set (spec R8)."""
    if src is F16:  # two bits against 1 or 3, from the lowest of the ten mantissa bits
        width, threshold = 2, ((significand >> 12) & 2) | 1
    else:
        width, threshold = 14, significand & 0x3FFF
    fraction = (significand >> (lost + (20 - width))) & ((1 << width) - 1)
    return less(fraction, threshold) + 1


def _hif8_code(magnitude: Value) -> Value:
    """hif8 code of f32 bits without sign whose mantissa fits (spec F1)."""
    exponent = magnitude >> 23
    distance, from_2, from_4, from_8 = _hif8_region(exponent)
    kept = from_4 + from_8 + 3
    mantissa = (magnitude & 0x7FFFFF) >> (23 - kept)
    # The sign of E has a bit of its own above the rest of E; the dot field lies above that. Taking
    # the implicit leading 1 of |E| into account, they add 8, 16, 48 or 80 by region.
    sign_bit = 8 - (from_2 << 3)
    prefix = sign_bit + ((3 - kept) << 5)
    normal = (distance << kept) + mantissa + prefix + (less(exponent, F32.bias) & sign_bit)
    denormal_base = F32.bias - 23
    denormal = larger(exponent, denormal_base) - denormal_base
    return select(less(exponent, F32.bias - 15), denormal, normal)


def _finish_hif8(magnitude: Value, real: Real, dst: Format, rule: ConversionRule) -> Value:
    """Limits, the only zero, and the only NaN (spec S7)."""
    largest = (F32.bias + 15) << F32.mantissa_bits
    infinity = largest | 1 << (F32.mantissa_bits - 1)  # 1.5 * 2**15, whose code means inf
    code = _hif8_code(smaller(magnitude, largest if rule.saturate else infinity))
    code = code | real.sign & (code + 0x7F) & 0x80  # no sign on zero
    assert dst.nan_code is not None
    return select(real.is_number, code, 0 if rule.saturate else dst.nan_code)


# -------------------------------------------------------------------------------- float to int


def _to_integer(real: Real, dst: Format, rule: ConversionRule) -> Value:
    if rule.through_i32 and not rule.saturate:  # spec S10: saturate to i32, keep the low bits
        return _to_integer(real, FORMATS["i32"], replace(rule, saturate=True))
    fmt = real.fmt
    significand, exponent = _significand(real, rule.mode)
    unit = fmt.bias + fmt.mantissa_bits  # exponent field at which the significand is the integer
    capped = smaller(exponent, unit)
    shift = smaller(unit - capped, fmt.mantissa_bits + 2)
    integer = round_off(significand, shift, rule.mode, real.sign)
    if rule.plain:
        fits = dst.max_int < 1 << fmt.mantissa_bits  # no bits of the integer lie above the unit
        return _apply_sign(integer << (0 if fits else exponent - capped), real.sign)
    # NaN becomes 0, infinities the limits (spec S8, S9).
    infinite = nonzero(real.magnitude ^ (fmt.inf_code or 0)) - 1
    if not rule.saturate:
        wrapped = _apply_sign(integer << (exponent - capped), real.sign)
        return select(infinite, _extreme(real.sign, dst), wrapped) & real.is_number
    # At `top` every magnitude saturates, so larger exponents need no larger shift.
    top = max(fmt.bias + dst.bits - (dst.kind == "signed"), unit)
    integer = integer << (smaller(exponent, top) - capped)
    if top - unit + fmt.mantissa_bits + 1 > integer.program.lane_bits:
        integer = integer | less(top - 1, exponent)  # the shift ran out of the lane
    if float(value_of(fmt.max_code, fmt)) <= dst.max_int:
        integer = select(infinite, dst.max_int + (dst.kind == "signed"), integer)
    return _clamp(integer, real.sign, dst) & real.is_number


def _extreme(sign: Value, dst: Format) -> Value:
    """The destination's largest integer, or its smallest where the sign is set."""
    return ~sign & dst.max_int if dst.kind == "unsigned" else dst.max_int - sign


def _clamp(magnitude: Value, sign: Value, dst: Format) -> Value:
    """The integer nearest to the signed one that the destination has."""
    if dst.kind == "unsigned":
        return smaller(magnitude, dst.max_int) & ~sign
    return _apply_sign(smaller(magnitude, dst.max_int - sign), sign)


# --------------------------------------------------------------------------------- integers


def _from_integer(program: Program, src: Format, dst: Format, rule: ConversionRule) -> Value:
    integer, sign = _load_integer(program, src)
    if dst.is_integer:
        return _narrow(integer, sign, src, dst, rule)
    return _round_integer(integer, sign, src, dst, rule)


def _narrow(integer: Value, sign: Value, src: Format, dst: Format, rule: ConversionRule) -> Value:
    """Integer to integer (spec S11, S12). The lowest bits of the result are the code."""
    if dst.min_int <= src.min_int and src.max_int <= dst.max_int:
        return integer
    if dst.bits > src.bits:  # a negative number has no code however wide (spec S12)
        return integer & ~sign
    return _clamp(_apply_sign(integer, sign), sign, dst) if rule.saturate else integer


def _round_integer(
    integer: Value, sign: Value, src: Format, dst: Format, rule: ConversionRule
) -> Value:
    """Integer to float (spec S13): overflow, where it can happen, saturates."""
    program = integer.program
    # f32 rounded to odd serves the formats whose precision varies.
    target, mode = (dst, rule.mode) if dst.kind == "float" else (F32, "ODD")
    magnitude = _apply_sign(integer, sign)
    lane = F32 if program.lane_bits == 32 else F64
    if target is lane and mode == "RINT":
        code = to_float(magnitude)
    else:
        fills_lane = src.kind == "unsigned" and src.bits == program.lane_bits
        code = _float_of(magnitude, sign, target, lane, mode, fills_lane)
    real = Real(code, sign, code, F32, program.constant(program.all_ones))
    saturating = replace(rule, saturate=True, plain=src.max_int <= dst.max_value)
    match dst.kind:
        case "scale":
            return _to_scale(real)
        case "tapered":
            return _finish_hif8(_round_hif8(real, src, rule.mode), real, dst, saturating)
        case _:
            return _finish_float(code, real, dst, saturating)


def _float_of(
    magnitude: Value, sign: Value, target: Format, lane: Format, mode: str, fills_lane: bool
) -> Value:
    """The magnitude code of a positive integer, as if the exponent had no upper end."""
    exponent = floor_log2_field(magnitude)
    unit = lane.bias + target.mantissa_bits  # exponent field whose ulp in the target is 1
    capped = smaller(exponent, unit)
    rounding = _round_off_full if fills_lane else round_off
    kept = rounding(magnitude, exponent - capped, mode, sign) << (unit - capped)
    offset = lane.bias - target.bias + 1
    return ((larger(exponent, offset) - offset) << target.mantissa_bits) + kept
