"""What the vector units of all products have in common: sizes, and bits of the control register."""

from __future__ import annotations

from pto.numerics.formats import Format

BLOCK_BYTES = 32
"""The unified buffer's unit of access: rows and addresses are multiples of it."""
REPEAT_BYTES = 256
"""What a repeat of a vector instruction takes of its widest operand."""
REPEAT_MAX = 255
"""Repeats of one vector instruction."""
STRIDE_MAX = 255
"""Blocks between two blocks, or two repeats, of an operand."""
REGISTER_BYTES = 256
"""A vector register."""

SATURATION_BIT = 59
"""CTRL bit of conversions to integers: 0 saturates, 1 keeps the lowest bits."""
FLOAT_SATURATION_BIT = 48
"""CTRL bit of conversions to narrower floats: 0 saturates, 1 gives infinity and NaN (spec S2)."""
NAN_BIT = 50
"""CTRL bit that keeps NaN in saturating conversions to 8-bit floats (spec S2)."""


def saturation_bit(dst: Format) -> int:
    """The CTRL bit that decides how conversions to this format saturate."""
    return SATURATION_BIT if dst.is_integer else FLOAT_SATURATION_BIT


def lanes_per_repeat(*formats: Format) -> int:
    """Elements of one repeat, by the widest format; 4-bit ones count as 16 bits (spec L2)."""
    return REPEAT_BYTES * 8 // max(16 if f.per_byte == 2 else f.memory_bits for f in formats)
