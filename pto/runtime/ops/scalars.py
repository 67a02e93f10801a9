"""Scalar arithmetic: the arith dialect on Python integers and numpy floats.

An integer value is kept in the canonical range of its type: signed for signless and index types
(64 bits), 0 or 1 for i1, non-negative for `ui`. A float value is a numpy scalar of its type, so
that every operation rounds to that type.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute, Operation

from pto.dialect.type_records import type_text
from pto.runtime.compiler import Compiler, Implementations
from pto.runtime.elements import Element, element_of, rounded
from pto.runtime.errors import RuntimeFault, unsupported
from pto.runtime.frame import Frame, Step

IMPLEMENTATIONS = Implementations()
implements = IMPLEMENTATIONS.implements

INDEX_BITS = 64


def integer_range(type_: Attribute) -> tuple[int, int]:
    """Smallest and largest canonical value of an integer type."""
    if isinstance(type_, IndexType):
        return -(1 << (INDEX_BITS - 1)), (1 << (INDEX_BITS - 1)) - 1
    assert isinstance(type_, IntegerType)
    width = type_.width.data
    if width == 1 or type_.signedness.data is Signedness.UNSIGNED:
        return 0, (1 << width) - 1
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def is_integer(type_: Attribute) -> bool:
    """Whether values of the type are integers."""
    return isinstance(type_, IndexType | IntegerType)


def wrapper(type_: Attribute) -> Callable[[int], int]:
    """Brings an integer into the canonical range of a type, modulo its width."""
    low, high = integer_range(type_)
    modulus = high - low + 1

    def wrap(value: int) -> int:
        return value if low <= value <= high else (value - low) % modulus + low

    return wrap


def unsigned(type_: Attribute) -> Callable[[int], int]:
    """The value of an integer's bits read as unsigned."""
    low, high = integer_range(type_)
    modulus = high - low + 1
    return lambda value: value % modulus


def float_type(type_: Attribute) -> Callable[[Any], Any]:
    """Makes numpy scalars of a float type, rounded once. Raises RuntimeFault for another type."""
    element = element_of(type_)
    if not element.is_float or element.storage.kind == "u":
        raise unsupported(f"a scalar of {type_text(type_)}")
    storage = element.storage
    if storage.isbuiltin == 1:
        make: type[Any] = storage.type
        return make
    return lambda value: rounded(np.asarray(value, np.float64), storage).astype(storage)[()]


def scalar(value: object, type_: Attribute) -> Any:
    """A Python or numpy number as a value of the type; RuntimeFault where it does not fit."""
    if is_integer(type_):
        if isinstance(value, float) and not value.is_integer():
            raise RuntimeFault(f"{value} is no {type_text(type_)}")
        low, high = integer_range(type_)
        number = int(value)  # type: ignore[call-overload]
        if not (low <= number <= high or 0 <= number <= high - low):
            raise RuntimeFault(f"{number} does not fit {type_text(type_)}")
        return wrapper(type_)(number)
    try:
        return float_type(type_)(value)
    except OverflowError:
        raise RuntimeFault(f"an integer that large does not fit {type_text(type_)}") from None


@implements("arith.constant")
def _constant(op: Operation, compiler: Compiler) -> None:
    assert isinstance(op, arith.ConstantOp)
    value, type_ = op.value, op.result.type
    if isinstance(value, IntegerAttr):
        compiler.constant(op.result, wrapper(type_)(value.value.data))
    elif isinstance(value, FloatAttr):
        compiler.constant(op.result, float_type(type_)(value.value.data))
    elif isinstance(value, DenseIntOrFPElementsAttr):
        compiler.constant(op.result, np.array(value.get_values()))
    else:
        raise unsupported(f"a constant like {value}")


# Integers ----------------------------------------------------------------------------------------


def _divide(truncating: bool) -> Callable[[int, int], int]:
    def divide(a: int, b: int) -> int:
        if b == 0:
            raise RuntimeFault("division by zero")
        if truncating and (a < 0) != (b < 0):
            return -(abs(a) // abs(b))
        return a // b

    return divide


def _remainder(a: int, b: int) -> int:
    if b == 0:
        raise RuntimeFault("division by zero")
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def _ceil_divide(a: int, b: int) -> int:
    if b == 0:
        raise RuntimeFault("division by zero")
    return -(-a // b)


def _shift_left(a: int, b: int) -> int:
    return a << min(b, INDEX_BITS) if b >= 0 else 0


def _shift_right(a: int, b: int) -> int:
    return a >> b if b >= 0 else 0


_SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "shli": _shift_left,
    "shrsi": _shift_right,
    "divsi": _divide(truncating=True),
    "floordivsi": _divide(truncating=False),
    "ceildivsi": _ceil_divide,
    "remsi": _remainder,
    "maxsi": max,
    "minsi": min,
}
_UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "divui": _divide(truncating=False),
    "ceildivui": _ceil_divide,
    "remui": _remainder,
    "shrui": _shift_right,
    "maxui": max,
    "minui": min,
}


@implements(*(f"arith.{name}" for name in _SIGNED))
def _signed(op: Operation, compiler: Compiler) -> Step:
    compute = _SIGNED[op.name.removeprefix("arith.")]
    a, b = compiler.operands(op, 2)
    result, type_ = compiler.slot(op.results[0]), op.results[0].type
    if not is_integer(type_):
        raise unsupported(f"an operand of type {type_text(type_)}")
    low, high = integer_range(type_)
    modulus = high - low + 1

    def step(frame: Frame) -> None:
        value = compute(frame[a], frame[b])
        frame[result] = value if low <= value <= high else (value - low) % modulus + low

    return step


@implements(*(f"arith.{name}" for name in _UNSIGNED))
def _unsigned(op: Operation, compiler: Compiler) -> Step:
    compute = _UNSIGNED[op.name.removeprefix("arith.")]
    a, b = compiler.operands(op, 2)
    result, type_ = compiler.slot(op.results[0]), op.results[0].type
    bits, wrap = unsigned(type_), wrapper(type_)

    def step(frame: Frame) -> None:
        frame[result] = wrap(compute(bits(frame[a]), bits(frame[b])))

    return step


_ORDER: tuple[Callable[[Any, Any], bool], ...] = (
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
)


@implements("arith.cmpi")
def _cmpi(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, arith.CmpiOp)
    predicate = op.predicate.value.data
    a, b = compiler.slots((op.lhs, op.rhs))
    result = compiler.slot(op.result)
    if predicate < len(_ORDER):  # eq, ne and the signed comparisons
        compare = _ORDER[predicate]

        def step(frame: Frame) -> None:
            frame[result] = int(compare(frame[a], frame[b]))

        return step
    compare_bits, bits = _ORDER[predicate - 4], unsigned(op.lhs.type)

    def step_unsigned(frame: Frame) -> None:
        frame[result] = int(compare_bits(bits(frame[a]), bits(frame[b])))

    return step_unsigned


@implements("arith.select")
def _select(op: Operation, compiler: Compiler) -> Step:
    condition, a, b = compiler.operands(op, 3)
    result = compiler.slot(op.results[0])

    def step(frame: Frame) -> None:
        frame[result] = frame[a] if frame[condition] else frame[b]

    return step


# Floats ------------------------------------------------------------------------------------------


def _nan_propagating(pick: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: a if a != a else b if b != b else pick(a, b)


def _nan_ignoring(pick: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: b if a != a else a if b != b else pick(a, b)


_FLOAT: dict[str, Callable[[Any, Any], Any]] = {
    "addf": operator.add,
    "subf": operator.sub,
    "mulf": operator.mul,
    "divf": operator.truediv,
    "remf": np.fmod,
    "maximumf": _nan_propagating(max),
    "minimumf": _nan_propagating(min),
    "maxnumf": _nan_ignoring(max),
    "minnumf": _nan_ignoring(min),
}


@implements(*(f"arith.{name}" for name in _FLOAT))
def _binary_float(op: Operation, compiler: Compiler) -> Step:
    compute = _FLOAT[op.name.removeprefix("arith.")]
    a, b = compiler.operands(op, 2)
    result, make = compiler.slot(op.results[0]), float_type(op.results[0].type)

    def step(frame: Frame) -> None:
        frame[result] = make(compute(frame[a], frame[b]))

    return step


@implements("arith.negf")
def _negf(op: Operation, compiler: Compiler) -> Step:
    (a,), (result,) = compiler.operands(op, 1), compiler.results(op)

    def step(frame: Frame) -> None:
        frame[result] = -frame[a]

    return step


# Result of each predicate when equal, greater, less and unordered, in MLIR's order of them.
_CMPF_TABLE = tuple(
    tuple(map(int, row))
    for row in (
        *("0000", "1000", "0100", "1100", "0010", "1010", "0110", "1110"),  # false, oeq .. ord
        *("1001", "0101", "1101", "0011", "1011", "0111", "0001", "1111"),  # ueq .. uno, true
    )
)


@implements("arith.cmpf")
def _cmpf(op: Operation, compiler: Compiler) -> Step:
    assert isinstance(op, arith.CmpfOp)
    equal, greater, less, unordered = _CMPF_TABLE[op.predicate.value.data]
    a, b = compiler.slots((op.lhs, op.rhs))
    result = compiler.slot(op.result)

    def step(frame: Frame) -> None:
        x, y = frame[a], frame[b]
        frame[result] = equal if x == y else greater if x > y else less if x < y else unordered

    return step


# Casts -------------------------------------------------------------------------------------------


def _from_bits(op: Operation) -> Callable[[int], int]:
    return unsigned(op.operands[0].type)


_INTEGER_CASTS: dict[str, Callable[[Operation], Callable[[int], int] | None]] = {
    "index_cast": lambda op: None,
    "trunci": lambda op: None,
    "extsi": lambda op: operator.neg if op.operands[0].type == IntegerType(1) else None,
    "index_castui": _from_bits,
    "extui": _from_bits,
}


@implements(*(f"arith.{name}" for name in _INTEGER_CASTS))
def _integer_cast(op: Operation, compiler: Compiler) -> Step:
    read = _INTEGER_CASTS[op.name.removeprefix("arith.")](op)
    (a,), (result,) = compiler.operands(op, 1), compiler.results(op)
    wrap = wrapper(op.results[0].type)

    def step(frame: Frame) -> None:
        value = frame[a]
        frame[result] = wrap(value if read is None else read(value))

    return step


@implements("arith.sitofp", "arith.uitofp")
def _to_float(op: Operation, compiler: Compiler) -> Step:
    (a,), (result,) = compiler.operands(op, 1), compiler.results(op)
    type_ = op.results[0].type
    make, double = float_type(type_), element_of(type_).format.name == "f64"
    read = _from_bits(op) if op.name == "arith.uitofp" else int

    def step(frame: Frame) -> None:
        value = read(frame[a])
        frame[result] = make(value if double else _double(value))

    return step


def _double(value: int) -> float:
    """A double that rounds to narrower types as the integer does: rounded to odd."""
    lost = max(abs(value).bit_length() - 53, 0)
    if not lost:
        return float(value)
    kept = abs(value) >> lost << lost
    kept |= (kept != abs(value)) << lost
    return float(kept if value > 0 else -kept)


@implements("arith.fptosi", "arith.fptoui")
def _to_integer(op: Operation, compiler: Compiler) -> Step:
    (a,), (result,) = compiler.operands(op, 1), compiler.results(op)
    type_ = op.results[0].type
    low, high = integer_range(type_)
    if op.name == "arith.fptoui":
        low, high = 0, high - low
    wrap = wrapper(type_)

    def step(frame: Frame) -> None:
        value = float(frame[a])
        if not low - 1 < value < high + 1:  # also false for NaN
            raise RuntimeFault(f"{value} does not fit {type_text(type_)}")
        frame[result] = wrap(int(value))

    return step


@implements("arith.extf", "arith.truncf")
def _float_cast(op: Operation, compiler: Compiler) -> Step:
    (a,), (result,) = compiler.operands(op, 1), compiler.results(op)
    make = float_type(op.results[0].type)

    def step(frame: Frame) -> None:
        frame[result] = make(frame[a])

    return step


@implements("arith.bitcast")
def _bitcast(op: Operation, compiler: Compiler) -> Step:
    (a,), (result,) = compiler.operands(op, 1), compiler.results(op)
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    if source.size != target.size:
        raise RuntimeFault("the types differ in width")
    is_float, wrap = target.is_float, None if target.is_float else wrapper(op.results[0].type)

    def step(frame: Frame) -> None:
        value = np.array([frame[a]], source.storage).view(target.storage)[0]
        frame[result] = value if is_float or wrap is None else wrap(int(value))

    return step


# Between memory and scalars ----------------------------------------------------------------------


def stored(element: Element, number: object) -> object:
    """A scalar to be stored: an integer in the range of the element type, modulo its width."""
    if isinstance(number, int) and element.format.is_integer:
        low, high = element.format.min_int, element.format.max_int
        return (number - low) % (high - low + 1) + low
    return number


def loaded(type_: Attribute) -> Callable[[Any], Any]:
    """What makes a scalar of the type from a stored item."""
    if not is_integer(type_):
        return lambda item: item
    wrap = wrapper(type_)
    return lambda item: wrap(int(item))
