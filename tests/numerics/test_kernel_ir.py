"""The kernels' language: each operation on both engines, and whole random programs."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from numeric_support import ENGINES, Array

from pto.numerics import kernel_ir
from pto.numerics.jit_engine import JitProgram, is_available
from pto.numerics.kernel_ir import Program, Value
from pto.numerics.numpy_engine import NumpyProgram

INPUTS = {
    bits: np.unique(
        np.concatenate(
            [
                np.array([0, 1, 2, 3, 31, 32, 33, 63, 64, 65, (1 << bits) - 1], dtype=np.uint64),
                np.uint64(1) << np.arange(bits, dtype=np.uint64),
                np.random.default_rng(0).integers(0, 1 << 64, 5000, dtype=np.uint64, endpoint=False)
                >> np.uint64(64 - bits),
            ]
        )
    ).astype(f"u{bits // 8}")
    for bits in (32, 64)
}


def execute(bits: int, kernel: Callable[[Value], Value], engine: str) -> Array:
    program = Program(bits, bits, bits)
    program.finish(kernel(program.load(bits)))
    inputs = INPUTS[bits]
    out = np.empty_like(inputs)
    (NumpyProgram if engine == "numpy" else JitProgram)(program).run(inputs, out)
    return out


def wrapped(bits: int, function: Callable[[int], int]) -> Array:
    values = [function(int(x)) & ((1 << bits) - 1) for x in INPUTS[bits]]
    return np.array(values, dtype=f"u{bits // 8}")


def signed(x: int, bits: int) -> int:
    return x - (x >> (bits - 1) << bits)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bits", [32, 64])
class TestOperations:
    def test_wrapping_arithmetic(self, bits: int, engine: str) -> None:
        got = execute(bits, lambda x: (x + x) ^ (5 - x), engine)
        assert np.array_equal(got, wrapped(bits, lambda x: (2 * x % 2**bits) ^ ((5 - x) % 2**bits)))

    def test_shift_by_more_than_the_width_gives_zero(self, bits: int, engine: str) -> None:
        left = execute(bits, lambda x: 3 << x, engine)
        assert np.array_equal(left, wrapped(bits, lambda x: 3 << x if x < bits else 0))
        right = execute(bits, lambda x: ~(x & 0) >> x, engine)
        assert np.array_equal(right, wrapped(bits, lambda x: (2**bits - 1) >> min(x, bits)))

    def test_minimum_and_maximum_are_unsigned(self, bits: int, engine: str) -> None:
        got = execute(
            bits, lambda x: kernel_ir.larger(kernel_ir.smaller(x, ~(x & 0) >> 1), 7), engine
        )
        assert np.array_equal(got, wrapped(bits, lambda x: max(min(x, 2 ** (bits - 1) - 1), 7)))

    def test_less_is_a_mask(self, bits: int, engine: str) -> None:
        got = execute(bits, lambda x: kernel_ir.less(x >> 1, 100), engine)
        assert np.array_equal(got, wrapped(bits, lambda x: -(x >> 1 < 100)))

    def test_select(self, bits: int, engine: str) -> None:
        got = execute(
            bits, lambda x: kernel_ir.select(kernel_ir.top_bit(x), x >> 3, x << 1), engine
        )
        assert np.array_equal(
            got, wrapped(bits, lambda x: x >> 3 if signed(x, bits) < 0 else x << 1)
        )

    def test_to_float_rounds_to_even(self, bits: int, engine: str) -> None:
        got = execute(bits, kernel_ir.to_float, engine)
        floats = INPUTS[bits].astype(f"f{bits // 8}")
        assert np.array_equal(got, floats.view(f"u{bits // 8}"))

    def test_floor_log2_field(self, bits: int, engine: str) -> None:
        bias = 127 if bits == 32 else 1023
        got = execute(bits, kernel_ir.floor_log2_field, engine)
        assert np.array_equal(got, wrapped(bits, lambda x: x and x.bit_length() - 1 + bias))


@pytest.mark.skipif(not is_available(), reason="no llvmlite")
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_agree(seed: int) -> None:
    """Programs of 30 random operations give the same words on both engines."""
    choose = random.Random(seed)
    bits = choose.choice((32, 64))
    binary = ("__add__", "__sub__", "__and__", "__or__", "__xor__", "__lshift__", "__rshift__")

    def kernel(x: Value) -> Value:
        state = random.Random(seed)
        pool = [x, x.program.constant(state.getrandbits(bits)), x >> 7]
        for _ in range(30):
            a, b = state.choice(pool), state.choice(pool)
            operation = state.choice((*binary, "smaller", "larger", "top_bit", "to_float"))
            if operation in binary:
                pool.append(getattr(a, operation)(b))
            elif operation in ("smaller", "larger"):
                pool.append(getattr(kernel_ir, operation)(a, b))
            else:
                pool.append(getattr(kernel_ir, operation)(a))
        result = pool[0]
        for word in pool[-6:]:
            result = result ^ word
        return result

    assert np.array_equal(execute(bits, kernel, "numpy"), execute(bits, kernel, "jit"))


def test_constants_fold_and_equal_work_is_shared() -> None:
    program = Program(32, 32, 32)
    x = program.load(32)
    assert (x + 0, x & 0xFFFFFFFF, x ^ 0, x << 0) == (x, x, x, x)
    assert (x & 0).constant == 0
    assert (program.constant(3) - 5).constant == 2**32 - 2
    assert (x + 1).index == (x + 1).index
    assert (x >> 24 >> 8).constant == 0


def test_unneeded_instructions_are_dropped() -> None:
    program = Program(32, 32, 32)
    x = program.load(32)
    _ = x + 12345
    assert len(program.finish(x ^ 1).instructions) == 3
