"""Operations on corresponding elements of tiles, and on tiles and scalars.

The valid region of the destination is the domain (ISA conventions). Where a source's valid region
does not cover it, the result is undefined: it may be held, but not depended on.
Arithmetic is done in the element type, in f32 for f16 and bf16, and rounded once to the type.
exp, log, rsqrt and pow of f32 are computed in f64 and rounded once, so that the result is the
same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation, SSAValue

from pto.runtime.compiler import Compiler, Frame, Step, emits
from pto.runtime.elements import Element
from pto.runtime.errors import Fault, place_of
from pto.runtime.operands import enum_attribute, is_tile, operands_of
from pto.runtime.structure import tile_layout
from pto.runtime.tile import Tile

Array = NDArray[Any]

PRECISION = ("precisionType",)
"""Attributes that choose how a device approximates; every result here is the most precise one."""
Compute = Callable[..., Array]


def domain_check(value: SSAValue, element: Element) -> None:
    """Raises Fault for a source whose element type is not the destination's."""
    source = tile_layout(value).element
    if source.format is not element.format:
        raise Fault(f"a source of {source.text}, a destination of {element.text}")


def apply(op: Operation, result: Tile, compute: Compute, *operands: Any) -> None:
    """Computes into the result from tiles and scalars, element by element.

    In place for a ufunc on the element type itself. Where a source is undefined, so is the result.
    """
    undefined = undefined_in(operands)
    arrays = [o.lanes() if isinstance(o, Tile) else o for o in operands]
    if undefined is not None:  # 1, so that no garbage is divided by
        arrays = [np.where(undefined, np.asarray(a).dtype.type(1), a) for a in arrays]
    if result.element.is_native and isinstance(compute, np.ufunc):
        compute(*arrays, out=result.write())
    else:
        result.assign(compute(*arrays))
    if undefined is not None:
        mark(op, result, undefined, *operands)


def copy(op: Operation, result: Tile, source: Tile) -> None:
    """Copies stored items, broadcast over the result; what is undefined stays so."""
    undefined = undefined_in((source,))
    np.copyto(result.write(), source.data.view(result.element.storage))
    if undefined is not None:
        mark(op, result, undefined, source)


def undefined_in(operands: Sequence[Any]) -> Array | None:
    """Which elements are undefined in any of the tiles among the operands, None for none.

    Raises Fault where a tile was never written.
    """
    found: Array | None = None
    for operand in operands:
        if not isinstance(operand, Tile):
            continue
        if operand.ready and operand.memory.undefined is None:
            continue
        undefined = operand.undefined()
        if undefined is not None:
            found = undefined if found is None else found | undefined
    return found


def mark(op: Operation, result: Tile, undefined: Array, *sources: Any) -> None:
    """Notes that elements of an operation's result are undefined, and since where."""
    cause = ""
    for source in sources:
        if (
            isinstance(source, Tile)
            and source.beyond is None
            and source.memory.undefined is not None
        ):
            cause = source.memory.cause
    if not cause:
        filename, line, column = place_of(op)
        cause = f"undefined since {filename}:{line}:{column}, beyond the valid region of a source"
    result.mark_undefined(np.broadcast_to(undefined, result.data.shape), cause)


def for_integers(element: Element, name: str, compute: Compute, integer: Compute | None) -> Compute:
    """The form of an operation for an element type. Raises Fault where it has none."""
    if not element.format.is_integer:
        return compute
    if integer is None:
        raise Fault(f"{name} of {element.text} does not exist")
    return integer


# What each operation computes --------------------------------------------------------------------


def in_f64(ufunc: np.ufunc) -> Compute:
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
        raise Fault("division of integers by zero")


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
        raise Fault("a negative power of integers")
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


# For floats and, where there is one, for integers.
UNARY: dict[str, tuple[Compute, Compute | None]] = {
    "tabs": (np.abs, np.abs),
    "tneg": (np.negative, np.negative),
    "texp": (in_f64(np.exp), None),
    "tlog": (in_f64(np.log), None),
    "tsqrt": (np.sqrt, None),
    "trsqrt": (reciprocal_root, None),
    "trecip": (np.reciprocal, None),
    "trelu": (relu, relu),
}
BINARY: dict[str, tuple[Compute, Compute | None]] = {
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
}
INTEGER_ONLY: dict[str, Compute] = {
    "tand": np.bitwise_and,
    "tor": np.bitwise_or,
    "txor": np.bitwise_xor,
    "tshl": shift_left,
    "tshr": shift_right,
}


def computation(name: str, element: Element) -> Compute:
    """What the operation of that name computes on an element type. Raises Fault for none."""
    if (integer := INTEGER_ONLY.get(name)) is not None:
        if not element.format.is_integer:
            raise Fault(f"{name} of {element.text} does not exist")
        return integer
    compute, for_ints = (UNARY | BINARY)[name]
    return for_integers(element, name, compute, for_ints)


# Steps -------------------------------------------------------------------------------------------


@emits(*(f"pto.{name}" for name in UNARY), "pto.tnot", attributes=PRECISION)
def _unary(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    src, dst = compiler.slot(operands.ins[0]), operands.target(compiler)
    element = tile_layout(operands.outs[0]).element
    domain_check(operands.ins[0], element)
    name = op.name.removeprefix("pto.")
    compute = np.invert if name == "tnot" else computation(name, element)
    if name == "tnot" and not element.format.is_integer:
        raise Fault(f"tnot of {element.text} does not exist")

    def step(frame: Frame) -> None:
        source, result = frame[src], dst(frame)
        apply(op, result, compute, source.over(result.valid_rows, result.valid_cols))

    return step


@emits(*(f"pto.{name}" for name in (*BINARY, *INTEGER_ONLY)), attributes=PRECISION)
def _binary(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    a, b = compiler.slots(operands.ins[:2])
    dst = operands.target(compiler)
    element = tile_layout(operands.outs[0]).element
    for value in operands.ins[:2]:
        domain_check(value, element)
    compute = computation(op.name.removeprefix("pto."), element)

    def step(frame: Frame) -> None:
        x, y, result = frame[a], frame[b], dst(frame)
        rows, cols = result.valid_rows, result.valid_cols
        apply(op, result, compute, x.over(rows, cols), y.over(rows, cols))

    return step


_WITH_SCALAR = {
    **{f"{name}s": name for name in ("tadd", "tsub", "tmul", "tdiv", "tmax", "tmin")},
    **{f"{name}s": name for name in ("tand", "tor", "txor", "tshl", "tshr")},
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
        raise Fault(f"scalars of {element.text} are not executed here")
    if element.is_native:
        return lambda value: work(value)
    return lambda value: work(stored(value))


@emits(*(f"pto.{name}" for name in _WITH_SCALAR), attributes=PRECISION)
def _with_scalar(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    tile, scalar = operands.ins[:2]
    reverse = not is_tile(tile)  # scalar / tile is written in that order
    if reverse:
        tile, scalar = scalar, tile
    source, number, dst = compiler.slot(tile), compiler.slot(scalar), operands.target(compiler)
    element = tile_layout(operands.outs[0]).element
    domain_check(tile, element)
    compute = computation(_WITH_SCALAR[op.name.removeprefix("pto.")], element)
    convert = scalar_of(element)

    def step(frame: Frame) -> None:
        result = dst(frame)
        values = frame[source].over(result.valid_rows, result.valid_cols)
        other = convert(frame[number])
        sources = (other, values) if reverse else (values, other)
        apply(op, result, compute, *sources)

    return step


def _first_plus_third(first: Compute) -> Compute:
    def compute(a: Array, b: Any, c: Array) -> Array:
        result: Array = first(a, b) + c
        return result

    return compute


# first(src0, src1 or the scalar), then + the third operand; each step rounded in the work type.
_THREE = {
    "taddc": _first_plus_third(np.add),
    "tsubc": _first_plus_third(np.subtract),
    "taddsc": _first_plus_third(np.add),
    "tsubsc": _first_plus_third(np.subtract),
}


@emits(*(f"pto.{name}" for name in _THREE))
def _three(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    slots, dst = compiler.slots(operands.ins[:3]), operands.target(compiler)
    element = tile_layout(operands.outs[0]).element
    compute, convert = _THREE[op.name.removeprefix("pto.")], scalar_of(element)
    tiles = [is_tile(value) for value in operands.ins[:3]]

    def step(frame: Frame) -> None:
        result = dst(frame)
        rows, cols = result.valid
        sources = (
            frame[slot].over(rows, cols) if tile else convert(frame[slot])
            for slot, tile in zip(slots, tiles, strict=True)
        )
        apply(op, result, compute, *sources)

    return step


@emits("pto.taxpy")
def _axpy(op: Operation, compiler: Compiler) -> Step:
    """scalar * src + dst, fused: rounded once."""
    operands = operands_of(op)
    src, scalar = compiler.slots(operands.ins[:2])
    dst = operands.target(compiler)
    convert = scalar_of(tile_layout(operands.ins[0]).element)
    wide = np.float64 if tile_layout(operands.outs[0]).element.is_float else None

    def step(frame: Frame) -> None:
        result = dst(frame)
        values = frame[src].over(*result.valid).values()
        base, factor = result.values(), convert(frame[scalar])
        if wide is not None:
            values, base, factor = values.astype(wide), base.astype(wide), wide(factor)
        result.assign(values * factor + base)

    return step


@emits("pto.texpands")
def _fill(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    scalar, dst = compiler.slot(operands.ins[0]), operands.target(compiler)
    convert = scalar_of(tile_layout(operands.outs[0]).element)

    def step(frame: Frame) -> None:
        dst(frame).write()[...] = convert(frame[scalar])

    return step


@emits("pto.tpartadd", "pto.tpartmul", "pto.tpartmax", "pto.tpartmin")
def _partial(op: Operation, compiler: Compiler) -> Step:
    """Where only one source is valid, its element is the result."""
    operands = operands_of(op)
    a, b = compiler.slots(operands.ins[:2])
    dst = operands.target(compiler)
    element = tile_layout(operands.outs[0]).element
    compute = computation(op.name.replace("pto.tpart", "t"), element)

    def step(frame: Frame) -> None:
        first, second, result = frame[a], frame[b], dst(frame)
        if first.valid != result.valid:
            first, second = second, first
        rows, cols = second.valid
        if first.valid != result.valid or rows > first.valid_rows or cols > first.valid_cols:
            raise Fault(
                f"valid regions {first.valid} and {second.valid} for a result of {result.valid}:"
                " one source must have the result's, the other must not exceed it [valid-region]"
            )
        values = first.values().copy()
        values[:rows, :cols] = compute(values[:rows, :cols], second.values())
        result.assign(values)

    return step


# Comparing and selecting -------------------------------------------------------------------------

COMPARISONS: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def row_bytes(tile: Tile, count: int) -> Tile:
    """The first `count` bytes of each valid row, as a tile of bytes; raises Fault where the valid
    region has fewer."""
    held = tile.data.shape[1] * tile.element.size
    if held < count:
        raise Fault(f"a mask row of {held} bytes for {count} [valid-region]")
    return tile.as_bytes(count)


@emits("pto.tcmp", "pto.tcmps", attributes=("cmpMode", "cmp_mode"))
def _compare(op: Operation, compiler: Compiler) -> Step:
    """Element j of a row is bit j mod 8 of byte j div 8 of the mask's row."""
    operands = operands_of(op)
    a, b = compiler.slots(operands.ins[:2])
    dst, element = operands.target(compiler), tile_layout(operands.ins[0]).element
    mode = enum_attribute(op, "cmpMode", "cmp_mode", choices=COMPARISONS) or "eq"
    compare, convert = COMPARISONS[mode], scalar_of(element)
    with_tile = is_tile(operands.ins[1])

    def step(frame: Frame) -> None:
        first, mask = frame[a], dst(frame)
        second = frame[b].over(*first.valid).values() if with_tile else convert(frame[b])
        held = compare(first.values(), second)
        if mask.valid_rows != first.valid_rows:
            raise Fault(f"{mask.valid_rows} rows of mask for {first.valid_rows} [valid-region]")
        packed = np.packbits(held, axis=1, bitorder="little")
        rows = row_bytes(mask, packed.shape[1])
        mask.write()[...] = 0
        rows.write()[...] = packed

    return step


def _mask_bits(mask: Tile, rows: int, cols: int) -> Array:
    if mask.valid_rows < rows:
        raise Fault(f"{mask.valid_rows} rows of mask for {rows} [valid-region]")
    packed = row_bytes(mask, -(-cols // 8)).read()[:rows]
    return np.unpackbits(packed, axis=1, count=cols, bitorder="little").astype(bool)


@emits("pto.tsel", "pto.tsels")
def _select(op: Operation, compiler: Compiler) -> Step:
    operands = operands_of(op)
    mask, a, *rest = operands.ins
    b = rest[-1] if op.name == "pto.tsels" else rest[0]
    slots, dst = compiler.slots((mask, a, b)), operands.target(compiler)
    element = tile_layout(operands.outs[0]).element
    domain_check(a, element)
    convert = None if is_tile(b) else scalar_of(element)

    def step(frame: Frame) -> None:
        result = dst(frame)
        rows, cols = result.valid
        chosen = _mask_bits(frame[slots[0]], rows, cols)
        first = frame[slots[1]].over(rows, cols).read()
        second = (
            frame[slots[2]].over(rows, cols).read()
            if convert is None
            else element.storage.type(convert(frame[slots[2]]))
        )
        result.assign(np.where(chosen, first, second))

    return step
