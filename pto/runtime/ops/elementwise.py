"""Operations on corresponding elements of tiles, and on tiles and scalars.

The valid region of the destination is the domain (ISA conventions). Where a source's valid region
does not cover it, the result is poison: it may be held, but not depended on.
Arithmetic is done in the element type, in f32 for f16 and bf16, and rounded once to the type.
exp, log, rsqrt and pow of f32 are computed in f64 and rounded once, so that the result is the
same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.runtime.compiler import Implementations
from pto.runtime.elements import Element
from pto.runtime.errors import RuntimeFault, region_fault, unsupported
from pto.runtime.ops.tile_operation import Compute, TileOperation, tile_operation
from pto.runtime.tile import Tile

Array = NDArray[Any]

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements

PRECISION = ("precisionType",)
"""Attributes that choose how a device approximates; every result here is the most precise one."""
Function = Callable[..., Array]
"""From arrays of elements, and scalars, to an array."""


def apply(op: TileOperation, dst: Tile, function: Function, *operands: Any) -> None:
    """Computes into the destination from tiles and scalars, element by element.

    In place for a ufunc on the element type itself. Where a source is poison, so is the result.
    """
    poison = poison_of(operands)
    arrays = [o.lanes() if isinstance(o, Tile) else o for o in operands]
    if poison is not None:  # 1, so that no garbage is divided by
        arrays = [np.where(poison, np.asarray(a).dtype.type(1), a) for a in arrays]
    if dst.element.is_native and isinstance(function, np.ufunc):
        function(*arrays, out=dst.write())
    else:
        dst.assign(function(*arrays))
    if poison is not None:
        mark(op, dst, poison, *operands)


def copy(op: TileOperation, dst: Tile, source: Tile) -> None:
    """Copies stored items, broadcast over the destination; what is poison stays so."""
    poison = poison_of((source,))
    np.copyto(dst.write(), source.data.view(dst.element.storage))
    if poison is not None:
        mark(op, dst, poison, source)


def poison_of(operands: Iterable[Any]) -> Array | None:
    """Which elements are poison in any of the tiles among the operands, None for none.

    Raises RuntimeFault where a tile was never written.
    """
    found: Array | None = None
    for operand in operands:
        if not isinstance(operand, Tile):
            continue
        if operand.ready and operand.memory.poison is None:
            continue
        poison = operand.poison()
        if poison is not None:
            found = poison if found is None else found | poison
    return found


def mark(op: TileOperation, dst: Tile, poison: Array, *sources: Any) -> None:
    """Notes that elements of a destination are poison, and since where."""
    cause = ""
    for source in sources:
        if isinstance(source, Tile) and source.beyond is None and source.memory.poison is not None:
            cause = source.memory.cause
    if not cause:
        cause = f"poison since {op.location()}, beyond the valid region of a source"
    dst.mark_poison(np.broadcast_to(poison, dst.data.shape), cause)


# What each operation computes --------------------------------------------------------------------


def in_f64(ufunc: np.ufunc) -> Function:
    """The function in f64, for f32 sources; in f32 for the narrower types."""

    def compute(*sources: Array) -> Array:
        result: Array = ufunc(*(source.astype(np.float64) for source in sources))
        return result

    return compute


def reciprocal_root(x: Array) -> Array:
    """1 / sqrt(x)."""
    result: Array = 1.0 / np.sqrt(x.astype(np.float64))
    return result


def relu(x: Array) -> Array:
    """max(x, 0)."""
    result: Array = np.maximum(x, x.dtype.type(0))
    return result


def leaky(x: Array, slope: Array) -> Array:
    """x where positive, x * slope elsewhere."""
    return np.where(x > 0, x, x * slope)


def _nonzero(divisor: Array) -> None:
    if not np.all(divisor):
        raise RuntimeFault("division of integers by zero")


def integer_divide(a: Array, b: Array) -> Array:
    """Quotient of integers, towards zero."""
    _nonzero(np.asarray(b))
    quotient = a // b
    result: Array = quotient + ((a % b != 0) & ((a < 0) != (b < 0)))
    return result


def integer_fmod(a: Array, b: Array) -> Array:
    """Remainder with the sign of the dividend."""
    _nonzero(np.asarray(b))
    result: Array = np.fmod(a, b)
    return result


def integer_remainder(a: Array, b: Array) -> Array:
    """Remainder with the sign of the divisor."""
    _nonzero(np.asarray(b))
    result: Array = np.remainder(a, b)
    return result


def integer_power(a: Array, b: Array) -> Array:
    """a to the power of b, modulo the width."""
    if np.any(np.asarray(b) < 0):
        raise RuntimeFault("a negative power of integers")
    result: Array = np.power(a, b)
    return result


def shift_left(a: Array, b: Array) -> Array:
    """a << b; 0 once every bit is out."""
    width = a.dtype.itemsize * 8
    result: Array = np.where((b >= 0) & (b < width), a << (b & (width - 1)), a.dtype.type(0))
    return result


def shift_right(a: Array, b: Array) -> Array:
    """a >> b, arithmetic for signed types."""
    last = a.dtype.itemsize * 8 - 1
    overshot = (b < 0) | (b > last)
    result: Array = np.where(overshot & (a.dtype.kind == "u"), 0, a >> np.where(overshot, last, b))
    return result.astype(a.dtype)


def add_then_relu(a: Array, b: Array) -> Array:
    """max(a + b, 0)."""
    return relu(a + b)


def exp_of_difference(a: Array, b: Array) -> Array:
    """exp(a - b), the difference rounded first."""
    return in_f64(np.exp)(a - b)


Functions = tuple[Function | None, Function | None]
"""For floats and for integers; None where there is none."""

UNARY: dict[str, Functions] = {
    "tabs": (np.abs, np.abs),
    "tneg": (np.negative, np.negative),
    "texp": (in_f64(np.exp), None),
    "tlog": (in_f64(np.log), None),
    "tsqrt": (np.sqrt, None),
    "trsqrt": (reciprocal_root, None),
    "trecip": (np.reciprocal, None),
    "trelu": (relu, relu),
    "tnot": (None, np.invert),
}
BITWISE: dict[str, Functions] = {
    "tand": (None, np.bitwise_and),
    "tor": (None, np.bitwise_or),
    "txor": (None, np.bitwise_xor),
    "tshl": (None, shift_left),
    "tshr": (None, shift_right),
}
BINARY: dict[str, Functions] = {
    "tadd": (np.add, np.add),
    "tsub": (np.subtract, np.subtract),
    "tmul": (np.multiply, np.multiply),
    "tdiv": (np.divide, integer_divide),
    "tmax": (np.maximum, np.maximum),
    "tmin": (np.minimum, np.minimum),
    "tfmod": (np.fmod, integer_fmod),
    "trem": (np.remainder, integer_remainder),
    "tpow": (in_f64(np.power), integer_power),
    "taddrelu": (add_then_relu, add_then_relu),
    "tprelu": (leaky, None),
    **BITWISE,
}


def function_of(name: str, element: Element) -> Function:
    """What the operation of that name computes on an element type.

    Raises RuntimeFault where it does not exist.
    """
    function = (UNARY | BINARY)[name][element.format.is_integer]
    if function is None:
        raise RuntimeFault(f"{name} of {element.text} does not exist")
    return function


# Operations --------------------------------------------------------------------------------------


@implements(*(f"pto.{name}" for name in UNARY), attributes=PRECISION)
@tile_operation
def unary(op: TileOperation) -> Compute:
    """function(src)."""
    function = function_of(op.kind, op.same_format("src"))

    def compute(src: Tile, dst: Tile) -> None:
        apply(op, dst, function, src.over(dst.valid_rows, dst.valid_cols))

    return compute


@implements(*(f"pto.{name}" for name in BINARY), attributes=PRECISION)
@tile_operation
def binary(op: TileOperation) -> Compute:
    """function(src0, src1)."""
    function = function_of(op.kind, op.same_format("src0", "src1"))

    def compute(src0: Tile, src1: Tile, dst: Tile) -> None:
        rows, cols = dst.valid_rows, dst.valid_cols
        apply(op, dst, function, src0.over(rows, cols), src1.over(rows, cols))

    return compute


_WITH_SCALAR = {
    **{f"{name}s": name for name in ("tadd", "tsub", "tmul", "tdiv", "tmax", "tmin")},
    **{f"{name}s": name for name in BITWISE},
    **{f"{name}s": name for name in ("tfmod", "trem", "tpow")},
    "tlrelu": "tprelu",
}


def scalar_of(element: Element) -> Callable[[Any], Any]:
    """Turns a scalar into the element type, then into the type that arithmetic is done in."""
    stored, work = element.storage.type, element.work.type
    if element.format.is_integer:
        low, high = int(element.format.min_int), int(element.format.max_int)
        span = high - low + 1
        return lambda value: work((int(value) - low) % span + low)
    if element.storage.kind == "u":
        raise unsupported(f"a scalar of {element.text}")
    if element.is_native:
        return lambda value: work(value)
    return lambda value: work(stored(value))


@implements(*(f"pto.{name}" for name in _WITH_SCALAR), attributes=PRECISION)
@tile_operation
def with_scalar(op: TileOperation) -> Compute:
    """function(src, scalar); function(scalar, src) where they are written in that order."""
    is_reversed = not op.is_tile("src")
    element = op.same_format("scalar" if is_reversed else "src")
    function, convert = function_of(_WITH_SCALAR[op.kind], element), scalar_of(element)

    def compute(src: Tile, scalar: Any, dst: Tile) -> None:
        values = src.over(dst.valid_rows, dst.valid_cols)
        apply(op, dst, function, values, convert(scalar))

    def compute_reversed(src: Any, scalar: Tile, dst: Tile) -> None:
        values = scalar.over(dst.valid_rows, dst.valid_cols)
        apply(op, dst, function, convert(src), values)

    return compute_reversed if is_reversed else compute


@implements("pto.taddc", "pto.tsubc")
@tile_operation
def add_third(op: TileOperation) -> Compute:
    """(src0 + src1) + src2, or (src0 - src1) + src2, each step rounded in the work type."""
    op.same_format("src0", "src1", "src2")
    function = _then_add(np.add if op.kind == "taddc" else np.subtract)

    def compute(src0: Tile, src1: Tile, src2: Tile, dst: Tile) -> None:
        apply(op, dst, function, *(src.over(*dst.valid) for src in (src0, src1, src2)))

    return compute


@implements("pto.taddsc", "pto.tsubsc")
@tile_operation
def add_scalar_and_third(op: TileOperation) -> Compute:
    """(src0 + scalar) + src1, or (src0 - scalar) + src1, each step rounded in the work type."""
    convert = scalar_of(op.same_format("src0", "src1"))
    function = _then_add(np.add if op.kind == "taddsc" else np.subtract)

    def compute(src0: Tile, scalar: Any, src1: Tile, dst: Tile) -> None:
        first, third = src0.over(*dst.valid), src1.over(*dst.valid)
        apply(op, dst, function, first, convert(scalar), third)

    return compute


def _then_add(first: Function) -> Function:
    def function(a: Array, b: Any, c: Array) -> Array:
        result: Array = first(a, b) + c
        return result

    return function


@implements("pto.taxpy")
@tile_operation
def axpy(op: TileOperation) -> Compute:
    """scalar * src + dst, fused: rounded once."""
    convert = scalar_of(op.element("src"))
    wide = np.float64 if op.element("dst").is_float else None

    def compute(src: Tile, scalar: Any, dst: Tile) -> None:
        values = src.over(*dst.valid).values()
        base, factor = dst.values(), convert(scalar)
        if wide is not None:
            values, base, factor = values.astype(wide), base.astype(wide), wide(factor)
        dst.assign(values * factor + base)

    return compute


@implements("pto.texpands")
@tile_operation
def fill(op: TileOperation) -> Compute:
    """The scalar everywhere."""
    convert = scalar_of(op.element("dst"))

    def compute(scalar: Any, dst: Tile) -> None:
        dst.write()[...] = convert(scalar)

    return compute


@implements("pto.tpartadd", "pto.tpartmul", "pto.tpartmax", "pto.tpartmin")
@tile_operation
def partial(op: TileOperation) -> Compute:
    """Where only one source is valid, its element is the result."""
    function = function_of(op.kind.replace("tpart", "t"), op.element("dst"))

    def compute(src0: Tile, src1: Tile, dst: Tile) -> None:
        first, second = (src0, src1) if src0.valid == dst.valid else (src1, src0)
        rows, cols = second.valid
        if first.valid != dst.valid or rows > first.valid_rows or cols > first.valid_cols:
            raise region_fault(
                f"valid regions {first.valid} and {second.valid} for a result of {dst.valid}:"
                " one source must have the result's, the other must not exceed it"
            )
        values = first.values().copy()
        values[:rows, :cols] = function(values[:rows, :cols], second.values())
        dst.assign(values)

    return compute


# Comparing and selecting -------------------------------------------------------------------------

COMPARISONS: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@implements("pto.tcmp", attributes=("cmpMode", "cmp_mode"))
@tile_operation
def compare(op: TileOperation) -> Compute:
    """Where src0 compares to src1, as bits."""
    holds = _comparison(op)

    def compute(src0: Tile, src1: Tile, dst: Tile) -> None:
        _write_mask(dst, src0, holds(src0.values(), src1.over(*src0.valid).values()))

    return compute


@implements("pto.tcmps", attributes=("cmpMode", "cmp_mode"))
@tile_operation
def compare_with_scalar(op: TileOperation) -> Compute:
    """Where src compares to the scalar, which may be a tile, as bits."""
    holds, convert = _comparison(op), scalar_of(op.element("src"))
    with_tile = op.is_tile("scalar")

    def compute(src: Tile, scalar: Any, dst: Tile) -> None:
        second = scalar.over(*src.valid).values() if with_tile else convert(scalar)
        _write_mask(dst, src, holds(src.values(), second))

    return compute


def _comparison(op: TileOperation) -> np.ufunc:
    return COMPARISONS[op.choice("cmpMode", "cmp_mode", choices=COMPARISONS) or "eq"]


def _write_mask(dst: Tile, source: Tile, held: Array) -> None:
    """Element j of a row is bit j mod 8 of byte j div 8 of the mask's row."""
    if dst.valid_rows != source.valid_rows:
        raise region_fault(f"{dst.valid_rows} rows of mask for {source.valid_rows}")
    packed = np.packbits(held, axis=1, bitorder="little")
    rows = row_bytes(dst, packed.shape[1])
    dst.write()[...] = 0
    rows.write()[...] = packed


def row_bytes(tile: Tile, count: int) -> Tile:
    """The first `count` bytes of each valid row, as a tile of bytes; raises RuntimeFault where the
    valid region has fewer."""
    held = tile.data.shape[1] * tile.element.size
    if held < count:
        raise region_fault(f"a mask row of {held} bytes for {count}")
    return tile.as_bytes(count)


def _mask_bits(mask: Tile, rows: int, cols: int) -> Array:
    if mask.valid_rows < rows:
        raise region_fault(f"{mask.valid_rows} rows of mask for {rows}")
    packed = row_bytes(mask, -(-cols // 8)).read()[:rows]
    return np.unpackbits(packed, axis=1, count=cols, bitorder="little").astype(bool)


@implements("pto.tsel")
@tile_operation
def select(op: TileOperation) -> Compute:
    """src0 where the mask's bit is set, src1 elsewhere."""
    op.same_format("src0", "src1")

    def compute(mask: Tile, src0: Tile, src1: Tile, dst: Tile) -> None:
        rows, cols = dst.valid
        chosen = _mask_bits(mask, rows, cols)
        dst.assign(np.where(chosen, src0.over(rows, cols).read(), src1.over(rows, cols).read()))

    return compute


@implements("pto.tsels")
@tile_operation
def select_scalar(op: TileOperation) -> Compute:
    """src0 where the mask's bit is set, the scalar elsewhere."""
    element = op.same_format("src0")
    convert = scalar_of(element)

    def compute(mask: Tile, src0: Tile, scalar: Any, dst: Tile) -> None:
        rows, cols = dst.valid
        chosen, other = _mask_bits(mask, rows, cols), element.storage.type(convert(scalar))
        dst.assign(np.where(chosen, src0.over(rows, cols).read(), other))

    return compute
