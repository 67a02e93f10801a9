"""Every tile operation against numpy, on partial valid regions.

The references are written out here from the ISA's formulas; nothing of them comes from the runtime.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from runtime_support import (
    DTYPES,
    FLOATS,
    Array,
    apply,
    close,
    column,
    operation,
    same,
    sample,
    tile,
    wide,
)

from pto.runtime import ExecutionError

ROWS, COLS, VALID = 8, 32, (5, 20)
ALL = tuple(DTYPES)
SIGNED = ("f32", "f16", "bf16", "i32", "i16", "i8")
INTEGERS = ("i32", "i16", "i8", "ui8", "ui16", "ui32")


def check(
    name: str,
    dtype: str,
    reference: Callable[..., Array],
    sources: list[Array],
    *,
    equal: Callable[[Array, Array], None] = same,
    scalar: Any = None,
    attributes: str = "",
) -> None:
    """Applies an operation to partial tiles; the rest of the destination must stay as it was."""
    type_ = tile(dtype, ROWS, COLS, VALID)
    ins, values = [type_] * len(sources), list(sources)
    if scalar is not None:
        ins.append(dtype)
        values.append(scalar)
    before = sample(dtype, (ROWS, COLS), 99)
    result = before.copy()
    apply(operation(name, ins, type_, attributes), *values, result)
    rows, cols = VALID
    with np.errstate(all="ignore"):
        operands = [wide(source[:rows, :cols]) for source in sources]
        if scalar is not None:
            operands.append(wide(np.array(scalar).astype(DTYPES[dtype])))
        expected = reference(*operands).astype(DTYPES[dtype])
    equal(result[:rows, :cols], expected)
    kept = np.ones((ROWS, COLS), bool)
    kept[:rows, :cols] = False
    same(result[kept], before[kept])


def truncated(a: Array, b: Array) -> Array:
    """Quotient of integers, in exact arithmetic."""
    quotients = [
        int(abs(int(x)) // abs(int(y)))
        for x, y in zip(a.flat, np.broadcast_to(b, a.shape).flat, strict=True)
    ]
    signs = np.where((a < 0) != (b < 0), -1, 1)
    return np.array(quotients).reshape(a.shape) * signs


BINARY: dict[str, tuple[tuple[str, ...], Callable[..., Array]]] = {
    "tadd": (ALL, lambda a, b: a + b),
    "tsub": (ALL, lambda a, b: a - b),
    "tmul": (ALL, lambda a, b: a * b),
    "tmax": (ALL, lambda a, b: np.where(a > b, a, b)),
    "tmin": (ALL, lambda a, b: np.where(a < b, a, b)),
    "taddrelu": (FLOATS, lambda a, b: np.where(a + b > 0, a + b, 0)),
    "tprelu": (FLOATS, lambda a, b: np.where(a > 0, a, a * b)),
    "tand": (INTEGERS, lambda a, b: a & b),
    "tor": (INTEGERS, lambda a, b: a | b),
    "txor": (INTEGERS, lambda a, b: a ^ b),
}
CASES = [(name, dtype) for name, (dtypes, _) in BINARY.items() for dtype in dtypes]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_binary(name: str, dtype: str) -> None:
    sources = [sample(dtype, (ROWS, COLS), seed) for seed in (1, 2)]
    check(name, dtype, BINARY[name][1], sources)


@pytest.mark.parametrize("dtype", ALL)
def test_division(dtype: str) -> None:
    a, b = sample(dtype, (ROWS, COLS), 1), sample(dtype, (ROWS, COLS), 2, 1, 9)
    check("tdiv", dtype, np.divide if dtype in FLOATS else truncated, [a, b])


@pytest.mark.parametrize(
    ("name", "dtype", "reference"),
    [
        ("tfmod", "f32", lambda a, b: a - np.trunc(a.astype(float) / b) * b),
        ("trem", "f32", lambda a, b: a - np.floor(a.astype(float) / b) * b),
        ("tfmod", "i32", lambda a, b: a - truncated(a, b) * b),
        ("trem", "i16", lambda a, b: a % b),
        ("tshl", "i16", lambda a, b: a << b),
        ("tshr", "i16", lambda a, b: a >> b),
        ("tshr", "ui16", lambda a, b: a >> b),
    ],
)
def test_remainders_and_shifts(name: str, dtype: str, reference: Callable[..., Array]) -> None:
    a, b = sample(dtype, (ROWS, COLS), 1), sample(dtype, (ROWS, COLS), 2, 1, 9)
    check(name, dtype, reference, [a, b], equal=close if dtype == "f32" else same)


def elementwise(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of Python floats on an array."""
    return lambda a: np.array([function(float(x)) for x in a.flat]).reshape(a.shape)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "function", "low"),
    [
        ("texp", math.exp, -8),
        ("tlog", math.log, 1),
        ("tsqrt", math.sqrt, 1),
        ("trsqrt", lambda x: 1 / math.sqrt(x), 1),
        ("trecip", lambda x: 1 / x, 1),
    ],
)
def test_functions(name: str, function: Callable[[float], float], low: int, dtype: str) -> None:
    source = sample(dtype, (ROWS, COLS), 3, low, 8)
    check(name, dtype, elementwise(function), [source], equal=close)


@pytest.mark.parametrize("dtype", SIGNED)
def test_sign_operations(dtype: str) -> None:
    source = sample(dtype, (ROWS, COLS), 4)
    check("tneg", dtype, lambda a: -a, [source])
    check("tabs", dtype, lambda a: np.where(a < 0, -a, a), [source])
    check("trelu", dtype, lambda a: np.where(a > 0, a, 0), [source])


def test_complement() -> None:
    check("tnot", "i16", lambda a: -a - 1, [sample("i16", (ROWS, COLS), 4)])


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("tadds", lambda a, s: a + s),
        ("tsubs", lambda a, s: a - s),
        ("tmuls", lambda a, s: a * s),
        ("tmaxs", lambda a, s: np.where(a > s, a, s)),
        ("tmins", lambda a, s: np.where(a < s, a, s)),
    ],
)
def test_with_scalar(name: str, reference: Callable[..., Array], dtype: str) -> None:
    check(name, dtype, reference, [sample(dtype, (ROWS, COLS), 5)], scalar=3)


def test_a_scalar_is_rounded_to_the_element_type_first() -> None:
    check("tmuls", "bf16", lambda a, s: a * s, [sample("bf16", (ROWS, COLS), 5)], scalar=1.001)


def test_scalar_over_tile_is_in_the_order_written() -> None:
    type_ = tile("f32", 1, 8)
    x, result = sample("f32", (1, 8), 6, 1, 9), np.zeros((1, 8), np.float32)
    module = operation("tdivs", ["f32", type_], type_)
    apply(module, 2.0, x, result)
    same(result, np.float32(2) / x)
    apply(operation("tdivs", [type_, "f32"], type_), x, 2.0, result)
    same(result, x / np.float32(2))


def test_wrapping_of_integers() -> None:
    type_ = tile("i8", 1, 32)
    x, result = np.full((1, 32), 127, np.int8), np.zeros((1, 32), np.int8)
    apply(operation("tadds", [type_, "i8"], type_), x, 1, result)
    assert (result == -128).all()


def test_half_precision_rounds_once_and_overflows_to_infinity() -> None:
    type_ = tile("f16", 1, 16)
    x, result = np.full((1, 16), 60000, np.float16), np.zeros((1, 16), np.float16)
    apply(operation("tadd", [type_, type_], type_), x, x, result)
    assert np.isposinf(result).all()


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("taddc", lambda a, b, c: a + b + c),
        ("tsubc", lambda a, b, c: a - b + c),
    ],
)
def test_three_tiles(name: str, reference: Callable[..., Array]) -> None:
    check(name, "f32", reference, [sample("f32", (ROWS, COLS), seed) for seed in (1, 2, 3)])


@pytest.mark.parametrize(("name", "sign"), [("taddsc", 1), ("tsubsc", -1)])
def test_two_tiles_and_a_scalar(name: str, sign: int) -> None:
    type_ = tile("f32", 2, 8)
    a, b = sample("f32", (2, 8), 1), sample("f32", (2, 8), 2)
    result = np.zeros((2, 8), np.float32)
    apply(operation(name, [type_, "f32", type_], type_), a, 0.5, b, result)
    same(result, a + np.float32(sign * 0.5) + b)


def test_axpy_adds_to_its_destination() -> None:
    type_ = tile("f32", 2, 8)
    x, y = sample("f32", (2, 8), 1), sample("f32", (2, 8), 2)
    result = y.copy()
    apply(operation("taxpy", [type_, "f32"], type_), x, 0.1, result)
    same(result, (x.astype(float) * np.float32(0.1) + y).astype(np.float32))


@pytest.mark.parametrize("dtype", ALL)
def test_fill_with_scalar(dtype: str) -> None:
    type_ = tile(dtype, ROWS, COLS, VALID)
    result = np.zeros((ROWS, COLS), DTYPES[dtype])
    apply(operation("texpands", [dtype], type_), 7, result)
    assert (result[:5, :20].astype(float) == 7).all()
    assert result.astype(float).sum() == 7 * 100


@pytest.mark.parametrize(
    ("name", "dtype", "scalar", "reference"),
    [
        ("tands", "i16", 12, lambda a, s: a & s),
        ("tors", "ui8", 12, lambda a, s: a | s),
        ("txors", "i32", -1, lambda a, s: a ^ s),
        ("tshls", "i32", 3, lambda a, s: a << s),
        ("tshrs", "i16", 2, lambda a, s: a >> s),
        ("tdivs", "i32", -7, truncated),
        ("tfmods", "f32", 3, lambda a, s: a - np.trunc(a.astype(float) / s) * s),
        ("trems", "f32", -3, lambda a, s: a - np.floor(a.astype(float) / s) * s),
        ("tpows", "f32", 2, lambda a, s: a.astype(float) ** 2),
        ("tlrelu", "f16", 0.125, lambda a, s: np.where(a > 0, a, a * s)),
    ],
)
def test_other_operations_with_a_scalar(
    name: str, dtype: str, scalar: float, reference: Callable[..., Array]
) -> None:
    source = sample(dtype, (ROWS, COLS), 6)
    check(name, dtype, reference, [source], scalar=scalar, equal=close if dtype == "f32" else same)


@pytest.mark.parametrize("dtype", FLOATS)
def test_power(dtype: str) -> None:
    base, exponent = sample(dtype, (ROWS, COLS), 1, 1, 4), sample(dtype, (ROWS, COLS), 2, -2, 3)
    check("tpow", dtype, lambda a, b: a.astype(float) ** b, [base, exponent], equal=close)


def test_shifts_by_the_width_or_more() -> None:
    type_ = tile("i16", 1, 16)
    x, result = np.full((1, 16), -2, np.int16), np.zeros((1, 16), np.int16)
    count = np.array([[0, 1, 14, 15, 16, 17, 100] + [0] * 9], np.int16)
    apply(operation("tshr", [type_, type_], type_), x, count, result)
    assert result[0, :7].tolist() == [-2, -1, -1, -1, -1, -1, -1]
    apply(operation("tshl", [type_, type_], type_), x, count, result)
    assert result[0, :7].tolist() == [-2, -4, -(2**15), 0, 0, 0, 0]


def test_partial_operands() -> None:
    full, part = tile("f32", 4, 16), tile("f32", 4, 16, (2, 8))
    a, b = sample("f32", (4, 16), 1), sample("f32", (4, 16), 2)
    expected = a.copy()
    expected[:2, :8] += b[:2, :8]
    for module, arguments in (
        (operation("tpartadd", [full, part], full), (a, b)),
        (operation("tpartadd", [part, full], full), (b, a)),
    ):
        result = np.zeros((4, 16), np.float32)
        apply(module, *arguments, result)
        same(result, expected)


# Reductions and expansions -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("kind", ["sum", "max", "min", "prod"])
def test_row_and_column_reductions(kind: str, dtype: str) -> None:
    source = sample(dtype, (ROWS, COLS), 8, 1, 3)
    valid = source[:5, :20].astype(float)
    reduce = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}[kind]
    src = tile(dtype, ROWS, COLS, VALID)
    for name, out, shape, axis in (
        (f"trow{kind}", tile(dtype, ROWS, 1, (5, 1), ", blayout=col_major"), (ROWS, 1), 1),
        (f"tcol{kind}", tile(dtype, 1, COLS, (1, 20)), (1, COLS), 0),
    ):
        result = np.zeros(shape, DTYPES[dtype])
        apply(operation(name, [src], out), source, result)
        exact = reduce(valid, axis=axis, keepdims=True)
        if dtype in FLOATS:
            expected = exact.astype(np.float32) if dtype == "f32" else exact
        else:
            bits = np.dtype(DTYPES[dtype]).itemsize * 8
            expected = np.array([int(x) % (1 << bits) for x in exact.flat]).reshape(exact.shape)
        actual = result[:5] if axis == 1 else result[:, :20]
        with np.errstate(over="ignore"):
            rounded = expected.astype(float if dtype in FLOATS else np.int64).astype(DTYPES[dtype])
        same(actual, rounded)


def test_sums_are_rounded_once() -> None:
    """1 + 2^-8 lies between two bf16; what is added beyond f32's precision decides."""
    source = np.zeros((2, 16), ml_dtypes.bfloat16)
    source[:, :3] = [[1, 2**-8, 2**-40], [1, 2**-8, -(2**-40)]]
    result = np.zeros((2, 1), ml_dtypes.bfloat16)
    apply(operation("trowsum", [tile("bf16", 2, 16)], column("bf16", 2)), source, result)
    same(result, np.array([[1 + 2**-7], [1]]))


@pytest.mark.parametrize("name", ["trowsum", "trowmax", "tcolmin", "tcolsum", "trowargmax"])
def test_reducing_nothing_does_nothing(name: str) -> None:
    source = tile("f32", 4, 8, (0, 8) if name.startswith("tcol") else (4, 0))
    dtype = "i32" if "arg" in name else "f32"
    shape = (1, 8) if name.startswith("tcol") else (4, 1)
    out = tile(dtype, 1, 8) if name.startswith("tcol") else column(dtype, 4)
    result = np.full(shape, 7, DTYPES[dtype])
    apply(operation(name, [source], out), np.zeros((4, 8), np.float32), result)
    assert (result == 7).all()


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_positions_of_extremes(kind: str) -> None:
    source = sample("f32", (4, 16), 9)
    source[1, 3] = source[1, 9] = 100 if kind == "argmax" else -100
    find = np.argmax if kind == "argmax" else np.argmin
    result = np.zeros((4, 1), np.int32)
    apply(operation(f"trow{kind}", [tile("f32", 4, 16)], column("i32", 4)), source, result)
    same(result[:, 0], find(source, axis=1))
    result = np.zeros((1, 16), np.uint32)
    apply(operation(f"tcol{kind}", [tile("f32", 4, 16)], tile("ui32", 1, 16)), source, result)
    same(result[0], find(source, axis=0))


EXPANDED: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "max": lambda a, b: np.where(a > b, a, b),
    "min": lambda a, b: np.where(a < b, a, b),
    "expdif": lambda a, b: np.exp((a - b).astype(float)),
}


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("kind", list(EXPANDED))
def test_expanded_operands(kind: str, dtype: str) -> None:
    full = sample(dtype, (4, 32), 10, 1, 5)
    per_row, per_col = sample(dtype, (4, 1), 11, 1, 5), sample(dtype, (1, 32), 12, 1, 5)
    type_, equal = tile(dtype, 4, 32), close if kind == "expdif" else same
    for name, other, values in (
        (f"trowexpand{kind}", column(dtype, 4), per_row),
        (f"tcolexpand{kind}", tile(dtype, 1, 32), per_col),
    ):
        result = np.zeros((4, 32), DTYPES[dtype])
        apply(operation(name, [type_, other], type_), full, values, result)
        expected = EXPANDED[kind](wide(full), wide(values)).astype(DTYPES[dtype])
        equal(result, expected)


def test_row_operand_of_32_byte_blocks() -> None:
    full, blocks = sample("f32", (4, 32), 1), sample("f32", (4, 8), 2)
    result = np.zeros((4, 32), np.float32)
    type_ = tile("f32", 4, 32)
    apply(operation("trowexpandmul", [type_, tile("f32", 4, 8)], type_), full, blocks, result)
    same(result, full * np.tile(blocks, (1, 4)))


def test_expanded_operand_may_come_first() -> None:
    full, row = sample("f32", (4, 32), 1), sample("f32", (4, 1), 2)
    result = np.zeros((4, 32), np.float32)
    type_ = tile("f32", 4, 32)
    apply(operation("trowexpandsub", [column("f32", 4), type_], type_), row, full, result)
    same(result, row - full)


@pytest.mark.parametrize("dtype", ALL)
def test_expansion_over_rows_and_columns(dtype: str) -> None:
    row, col = sample(dtype, (1, 32), 1), sample(dtype, (4, 1), 2)
    result = np.zeros((4, 32), DTYPES[dtype])
    apply(operation("tcolexpand", [tile(dtype, 1, 32)], tile(dtype, 4, 32)), row, result)
    same(result, np.broadcast_to(row, (4, 32)))
    apply(operation("trowexpand", [column(dtype, 4)], tile(dtype, 4, 32)), col, result)
    same(result, np.broadcast_to(col, (4, 32)))


# Comparing and selecting -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_compare_and_select(mode: str) -> None:
    a, b = sample("i32", (4, 40), 1, 0, 4), sample("i32", (4, 40), 2, 0, 4)
    type_, mask = tile("i32", 4, 40), tile("ui8", 4, 32, (4, 5))
    bits = np.zeros((4, 32), np.uint8)
    inside = f"{{cmpMode = #pto<cmp {mode}>}}"
    apply(operation("tcmp", [type_, type_], mask, inside=inside), a, b, bits)
    held = getattr(np, {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
                        "gt": "greater", "ge": "greater_equal"}[mode])(a, b)  # fmt: skip
    for row in range(4):
        for col in range(40):
            assert bits[row, col // 8] >> (col % 8) & 1 == held[row, col]
    result = np.zeros((4, 40), np.int32)
    apply(operation("tsel", [mask, type_, type_], type_), bits, a, b, result)
    same(result, np.where(held, a, b))
    apply(operation("tsels", [mask, type_, "i32"], type_), bits, a, -9, result)
    same(result, np.where(held, a, -9))


# Moves -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL)
def test_moves(dtype: str) -> None:
    x = sample(dtype, (4, 32), 1)
    result = np.zeros((4, 32), DTYPES[dtype])
    apply(operation("tmov", [tile(dtype, 4, 32)], tile(dtype, 4, 32, (3, 9))), x, result)
    same(result[:3, :9], x[:3, :9])
    assert not result[3:].astype(float).any()
    turned = np.zeros((32, 4), DTYPES[dtype])
    apply(operation("ttrans", [tile(dtype, 4, 32)], tile(dtype, 32, 4)), x, turned)
    same(turned, x.T)
    joined = np.zeros((4, 64), DTYPES[dtype])
    pair = [tile(dtype, 4, 32, (4, 20)), tile(dtype, 4, 32)]
    apply(operation("tconcat", pair, tile(dtype, 4, 64, (4, 52))), x, x, joined)
    same(joined[:, :52], np.concatenate([x[:, :20], x], axis=1))


def test_windows() -> None:
    x, small = sample("f32", (4, 32), 1), np.zeros((2, 8), np.float32)
    types = [tile("f32", 4, 32), "index", "index"]
    apply(operation("textract", types, tile("f32", 2, 8)), x, 1, 16, small)
    same(small, x[1:3, 16:24])
    large = x.copy()
    types = [tile("f32", 2, 8), "index", "index"]
    apply(operation("tinsert", types, tile("f32", 4, 32)), small, 2, 0, large)
    x[2:4, 0:8] = small
    same(large, x)


@pytest.mark.parametrize(
    ("dtype", "pad", "value"),
    [
        ("f32", 1, 0),
        ("f32", 2, np.inf),
        ("f32", 3, -np.inf),
        ("bf16", 3, -np.inf),
        ("i16", 2, 32767),
        ("i16", 3, -32768),
        ("ui8", 3, 0),
    ],
)
def test_padding(dtype: str, pad: int, value: float) -> None:
    x = sample(dtype, (4, 32), 1)
    result = np.zeros((4, 32), DTYPES[dtype])
    out = tile(dtype, 4, 32, extra=f", pad={pad}")
    apply(operation("tfillpad", [tile(dtype, 4, 32, (3, 20))], out), x, result)
    expected = np.full((4, 32), value, DTYPES[dtype])
    expected[:3, :20] = x[:3, :20]
    same(result, expected)


def test_sequences() -> None:
    result = np.zeros((1, 32), np.int32)
    apply(operation("tci", ["i32"], tile("i32", 1, 32)), 5, result)
    same(result[0], np.arange(5, 37))
    down = "{descending = true}"
    apply(operation("tci", ["i32"], tile("i32", 1, 32), attributes=down), 5, result)
    same(result[0], np.arange(5, -27, -1))


def test_gathers() -> None:
    x = sample("f32", (4, 16), 1)
    index = np.random.default_rng(2).integers(0, 64, (2, 16)).astype(np.int32)
    result = np.zeros((2, 16), np.float32)
    types = [tile("f32", 4, 16), tile("i32", 2, 16)]
    apply(operation("tgather", types, tile("f32", 2, 16)), x, index, result)
    same(result, x.reshape(-1)[index])
    odd = np.zeros((4, 8), np.float32)
    pattern = "{maskPattern = #pto.mask_pattern<P1010>}"
    module = operation("tgather", [tile("f32", 4, 16)], tile("f32", 4, 8), inside=pattern)
    apply(module, x, odd)
    same(odd, x[:, 1::2])


def test_gather_of_blocks() -> None:
    x, result = sample("f32", (4, 16), 1), np.zeros((2, 16), np.float32)
    offsets = np.zeros((2, 8), np.uint32)
    offsets[:, :2] = [[0, 96], [224, 32]]
    types = [tile("f32", 4, 16), tile("ui32", 2, 8, (2, 2))]
    apply(operation("tgatherb", types, tile("f32", 2, 16)), x, offsets, result)
    flat = x.reshape(-1)
    same(result[0], np.concatenate([flat[0:8], flat[24:32]]))
    same(result[1], np.concatenate([flat[56:64], flat[8:16]]))


@pytest.mark.parametrize("diagonal", [-2, 0, 3])
def test_triangles(diagonal: int) -> None:
    result = np.zeros((6, 8), np.float32)
    apply(operation("ttri", ["i32"], tile("f32", 6, 8)), diagonal, result)
    same(result, np.tri(6, 8, diagonal))
    upper = operation("ttri", ["i32"], tile("f32", 6, 8), inside="{upperOrLower = 1 : i32}")
    apply(upper, diagonal, result)
    same(result, 1 - np.tri(6, 8, diagonal - 1))


def test_scatter() -> None:
    x, result = sample("f32", (1, 8), 1), np.zeros((2, 8), np.float32)
    index = np.array([[3, 15, 0, 8, 9, 2, 11, 4]], np.int32)
    types = [tile("f32", 1, 8), tile("i32", 1, 8)]
    apply(operation("tscatter", types, tile("f32", 2, 8)), x, index, result)
    expected = np.zeros(16, np.float32)
    expected[index[0]] = x[0]
    same(result.reshape(-1), expected)


def test_sorting_and_merging() -> None:
    x = sample("f32", (1, 128), 1)
    index = np.arange(128, dtype=np.uint32).reshape(1, 128)
    pairs = np.zeros((1, 256), np.float32)
    types = [tile("f32", 1, 128), tile("ui32", 1, 128)]
    apply(operation("tsort32", types, tile("f32", 1, 256)), x, index, pairs)
    for block in range(4):
        values = pairs[0, 64 * block : 64 * block + 64 : 2]
        positions = pairs.view(np.uint32)[0, 64 * block + 1 : 64 * block + 64 : 2]
        order = sorted(range(32 * block, 32 * block + 32), key=lambda i: -x[0, i])
        assert positions.tolist() == order
        same(values, x[0, order])
    merged = np.zeros((1, 256), np.float32)
    apply(
        operation("tmrgsort", [tile("f32", 1, 256), "i32"], tile("f32", 1, 256)), pairs, 64, merged
    )
    same(merged[0, 0::2], -np.sort(-x[0]))
    same(x[0, merged.view(np.uint32)[0, 1::2]], merged[0, 0::2])


def test_merging_lists_of_half_precision() -> None:
    """Pairs of f16: the value, two bytes of padding, the index."""
    values = np.sort(sample("f16", (3, 32), 1), axis=1)[:, ::-1]
    pairs = np.zeros((3, 32), np.dtype([("value", "f2"), ("pad", "u2"), ("index", "u4")]))
    pairs["value"], pairs["index"] = values, np.arange(96).reshape(3, 32)
    lists = [row.reshape(1, -1).view(np.float16) for row in pairs]
    types = [tile("f16", 1, 128)] * 3 + [tile("f16", 1, 512)]
    result = np.zeros((1, 384), np.float16)
    module = operation("tmrgsort", types, tile("f16", 1, 384), inside="{exhausted = false}")
    apply(module, *lists, np.zeros((1, 512), np.float16), result)
    merged = result.view(pairs.dtype)[0]
    order = np.argsort(-values.reshape(-1).astype(float), kind="stable")
    assert merged["index"].tolist() == order.tolist()
    same(merged["value"], values.reshape(-1)[order])


# Quantisation ------------------------------------------------------------------------------------


def test_quantisation_by_row_and_back() -> None:
    x = sample("f32", (4, 32), 1)
    scale, zero = sample("f32", (4, 1), 2, 1, 5), sample("f32", (4, 1), 3, 100, 150)
    signed, unsigned = np.zeros((4, 32), np.int8), np.zeros((4, 32), np.uint8)
    types = [tile("f32", 4, 32), column("f32", 4)]
    apply(operation("tquant", types, tile("i8", 4, 32)), x, scale, signed)
    same(signed, np.clip(np.rint(x * scale), -128, 127))
    types.append(column("f32", 4))
    apply(operation("tquant", types, tile("ui8", 4, 32)), x, scale, zero, unsigned)
    same(unsigned, np.clip(np.rint(x * scale + zero), 0, 255))
    back = np.zeros((4, 32), np.float32)
    types = [tile("i8", 4, 32), column("f32", 4), column("f32", 4)]
    apply(operation("tdequant", types, tile("f32", 4, 32)), signed, scale, zero, back)
    same(back, (signed.astype(np.float32) - zero) * scale)


# Wrong use ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        (
            operation("tadd", [tile("f32", 2, 8), tile("f32", 4, 8)], tile("f32", 4, 8)),
            (np.zeros((2, 8), np.float32), *(np.zeros((4, 8), np.float32),) * 2),
            "4x8 elements are read of a source of 2x8 [valid-region]",
        ),
        (
            operation("tdiv", [tile("i32", 1, 8)] * 2, tile("i32", 1, 8)),
            (np.zeros((1, 8), np.int32),) * 3,
            "division of integers by zero",
        ),
        (
            operation("tpow", [tile("i32", 1, 8)] * 2, tile("i32", 1, 8)),
            (np.full((1, 8), 2, np.int32), np.full((1, 8), -1, np.int32), np.zeros((1, 8), "i4")),
            "a negative power of integers",
        ),
        (
            operation("trowsum", [tile("f32", 4, 8)], tile("f32", 4, 8)),
            (np.zeros((4, 8), np.float32),) * 2,
            "valid region of the result is 4x8, not 4x1",
        ),
        (
            operation("tgather", [tile("f32", 1, 8), tile("i32", 1, 8)], tile("f32", 1, 8)),
            (
                np.zeros((1, 8), np.float32),
                np.full((1, 8), 8, np.int32),
                np.zeros((1, 8), np.float32),
            ),
            "index 8 into a tile of 8 elements",
        ),
        (
            operation("textract", [tile("f32", 4, 8), "index", "index"], tile("f32", 2, 8)),
            (np.zeros((4, 8), np.float32), 3, 0, np.zeros((2, 8), np.float32)),
            "2x8 elements at [3, 0] of a tile of 4x8",
        ),
        (
            operation("tadd", [tile("f32", 1, 8), tile("i32", 1, 8)], tile("f32", 1, 8)),
            (
                np.zeros((1, 8), np.float32),
                np.zeros((1, 8), np.int32),
                np.zeros((1, 8), np.float32),
            ),
            "a source of i32, a destination of f32",
        ),
        (
            operation("tfillpad", [tile("f32", 1, 8)], tile("f32", 1, 8)),
            (np.zeros((1, 8), np.float32),) * 2,
            "no padding value",
        ),
    ],
)
def test_wrong_use_is_a_located_error(
    module: str, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ExecutionError) as caught:
        apply(module, *(a.copy() if isinstance(a, np.ndarray) else a for a in arguments))
    assert message in str(caught.value)
    assert str(caught.value).startswith("<string>:2:3: error: pto.t")
