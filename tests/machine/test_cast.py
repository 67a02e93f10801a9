"""Cast on the unified buffer: the document's examples, the addressing of its forms, its limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from programs import at, cast, module_text, place, run_program
from xdsl.utils.exceptions import VerifyException

import pto
from pto.numerics import convert_bits, pack4, unpack4
from pto.runtime.errors import ExecutionError
from pto.targets import Pair, tables

Array = NDArray[Any]

VALUES = np.array([1.4, 1.5, 1.6, 2.4, 2.5, 2.6], np.float16)
OUT = (
    2048  # byte address of the destination in the document's examples: 1024 bytes of halves before
)
FORMS = {
    "count": "count = 512",
    "contiguous": "mask = 64, repeat = 8, strides = array<i64: 1, 1, 8, 4>",
    "bitwise": "mask = array<i64: -1>, repeat = 8, strides = array<i64: 1, 1, 8, 4>",
}


def _example(mode: str, form: str) -> Array:
    """The document's example: 512 halves to i32."""
    source = np.resize(VALUES, 512)
    memory = place(source, OUT + 2048)
    body = at("ub_i32", OUT // 4, "d")
    attributes = f"rmode = #pto<round_mode {mode}>, {form}"
    run_program(body + cast("ub_f16", "d", ("f16", "i32"), attributes), memory)
    return memory[OUT:].view(np.int32)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("CEIL", [2, 2, 2, 3, 3, 3]),
        ("NONE", [1, 2, 2, 2, 2, 3]),
        ("RINT", [1, 2, 2, 2, 2, 3]),
        ("FLOOR", [1, 1, 1, 2, 2, 2]),
        ("ROUND", [1, 2, 2, 2, 3, 3]),
        ("TRUNC", [1, 1, 1, 2, 2, 2]),
    ],
)
def test_document_example(mode: str, expected: list[int], form: str) -> None:
    assert np.array_equal(_example(mode, form), np.resize(np.array(expected, np.int32), 512))


def test_document_int4_example() -> None:
    """128 halves to 64 bytes of pairs, the lower nibble first."""
    source = (np.arange(128) % 40 / 4 - 5).astype(np.float16)
    memory = place(source, 512)
    attributes = (
        "rmode = #pto<round_mode CEIL>, mask = 128, repeat = 1, strides = array<i64: 1, 1, 2, 8>"
    )
    run_program(at("ub_i4", 512, "d") + cast("ub_f16", "d", ("f16", "i4"), attributes), memory)
    nibbles = unpack4(memory[256:320]).astype(int)
    signed = np.where(nibbles > 7, nibbles - 16, nibbles)
    assert np.array_equal(signed, np.ceil(source).astype(int))
    assert (memory[320:] == 0xA5).all()


def test_document_masked_example() -> None:
    """Only the first 32 elements of each repeat are computed; the others keep their bytes."""
    text = Path(__file__).with_name("masked_example.txt").read_text(encoding="ascii")
    given_text, computed_text = text.split("\n", 1)[1].split("\n\n")
    source = np.array(given_text.split(), np.float16)
    computed = np.array(computed_text.split(), np.int32).reshape(8, 32)
    memory = place(source, OUT + 2048)
    attributes = (
        "rmode = #pto<round_mode CEIL>, mask = 32, repeat = 8, strides = array<i64: 1, 1, 8, 4>"
    )
    run_program(
        at("ub_i32", OUT // 4, "d") + cast("ub_f16", "d", ("f16", "i32"), attributes), memory
    )
    result = memory[OUT:].reshape(8, 256)
    assert np.array_equal(result[:, :128].copy().view(np.int32), computed)
    assert (result[:, 128:] == 0xA5).all()


# ---- Addressing, against the definition written out element by element


def _reference(
    memory: Array,
    types: tuple[int, int],
    addresses: tuple[int, int],
    lanes: list[int],
    repeat: int,
    strides: tuple[int, int, int, int],
    convert: Any,
) -> None:
    """Cast of the selected lanes, one repeat after the other."""
    dst_size, src_size = types
    dst_block, src_block, dst_repeat, src_repeat = strides

    def address(base: int, size: int, lane: int, r: int, block: int, rep: int) -> int:
        per_block = 32 // size
        return base + r * rep * 32 + lane // per_block * block * 32 + lane % per_block * size

    for r in range(repeat):
        values = []
        for lane in lanes:
            a = address(addresses[1], src_size, lane, r, src_block, src_repeat)
            values.append(memory[a : a + src_size].copy())
        for lane, raw in zip(lanes, values, strict=True):
            a = address(addresses[0], dst_size, lane, r, dst_block, dst_repeat)
            memory[a : a + dst_size] = convert(raw)


PAIRS = [("f16", "f32", 2, 4), ("f32", "f16", 4, 2), ("f16", "i16", 2, 2), ("i8", "f16", 1, 2)]


@settings(max_examples=100, deadline=None)
@given(
    pair=st.sampled_from(PAIRS),
    repeat=st.integers(0, 6),
    strides=st.tuples(*[st.integers(0, 12)] * 4),
    selection=st.one_of(st.integers(1, 128), st.lists(st.booleans(), min_size=128, max_size=128)),
    addresses=st.tuples(st.integers(0, 200), st.integers(0, 200)),
    seed=st.integers(0, 1000),
)
def test_addressing(
    pair: tuple[str, str, int, int],
    repeat: int,
    strides: tuple[int, int, int, int],
    selection: int | list[bool],
    addresses: tuple[int, int],
    seed: int,
) -> None:
    """Any strides and masks, overlapping operands included."""
    src, dst, src_size, dst_size = pair
    count = 256 // max(src_size, dst_size)
    if isinstance(selection, int):
        assume(selection <= count)
        lanes, mask = list(range(selection)), str(selection)
    else:
        lanes = [n for n in range(count) if selection[n]]
        assume(lanes)
        words = [sum(1 << (n % 64) for n in lanes if n // 64 == w) for w in range(-(-count // 64))]
        mask = f"array<i64: {', '.join(str(w - (w >> 63 << 64)) for w in words)}>"
    memory = np.random.default_rng(seed).integers(0, 256, 32 * 512, np.uint8)
    wanted = memory.copy()
    size = f"u{src_size}"

    def convert(raw: Array) -> Array:
        return convert_bits(raw.view(size), src, dst, "RINT", "ON").view(np.uint8)

    places = (addresses[0] * 32, addresses[1] * 32)
    _reference(wanted, (dst_size, src_size), places, lanes, repeat, strides, convert)
    body = at(f"ub_{dst}", places[0] // dst_size, "d") + at(f"ub_{src}", places[1] // src_size, "s")
    attributes = (
        f"rmode = #pto<round_mode RINT>, mask = {mask}, repeat = {repeat}, "
        f"strides = array<i64: {', '.join(map(str, strides))}>"
    )
    run_program(body + cast("s", "d", (src, dst), attributes), memory)
    assert np.array_equal(memory, wanted)


@settings(max_examples=30, deadline=None)
@given(count=st.integers(0, 700))
def test_count(count: int) -> None:
    source = np.arange(700, dtype=np.float32)
    memory = place(source, 8192)
    run_program(
        at("ub_f16", 1536, "d") + cast("ub_f32", "d", ("f32", "f16"), f"count = {count}"), memory
    )
    assert np.array_equal(memory[3072 : 3072 + 2 * count].view(np.float16), source[:count])
    assert (memory[3072 + 2 * count :] == 0xA5).all()


CAST_ROWS = [
    (arch, row)
    for arch, product in (("a2a3", "a2"), ("a5", "a5"))
    for table in tables(arch)
    if (table.instruction, table.product) == ("Cast", product)
    for row in table.rows
]


@pytest.mark.parametrize(
    ("arch", "row"), CAST_ROWS, ids=lambda v: v if isinstance(v, str) else f"{v.src}-{v.dst}"
)
def test_every_pair_of_the_tables(arch: str, row: Pair) -> None:
    """Each row in each of its modes, in the form that all types have."""
    source, target = row.src, row.dst
    types = tuple(fmt.mlir[0] for fmt in (source, target))
    saturation = "ON" if row.has_saturation else "OFF"  # infinities stay where there is no choice
    for mode in row.modes or (None,):
        memory = np.random.default_rng(9).integers(0, 256, 1024, np.uint8)
        raw = memory[: 64 * source.bits // 8]
        codes = unpack4(raw) if source.bits == 4 else raw.view(source.code_dtype)
        written = mode if row.rounds else None
        expected = convert_bits(codes, source, target, written, saturation)
        stored = pack4(expected) if target.bits == 4 else expected.view(np.uint8)
        rmode = "" if mode is None else f"rmode = #pto<round_mode {mode}>, "
        body = (
            "    %behind = arith.constant 512 : i64\n"
            f"    %p = pto.castptr %zero : i64 -> !pto.ptr<{types[0]}, ub>\n"
            f"    %q = pto.castptr %behind : i64 -> !pto.ptr<{types[1]}, ub>\n"
        )
        before = memory.copy()
        run_program(
            body + cast("p", "q", (types[0], types[1]), f"{rmode}count = 64"), memory, arch=arch
        )
        assert np.array_equal(memory[512 : 512 + stored.size], stored), mode
        assert np.array_equal(memory[:512], before[:512])
        assert np.array_equal(memory[512 + stored.size :], before[512 + stored.size :])


def test_bitwise_masks_may_be_written_unsigned() -> None:
    """UINT64_MAX as the document writes it, in a list."""
    source = np.arange(128, dtype=np.float16)
    memory = place(source, 1024)
    mask = "mask = [18446744073709551615 : ui64, 1 : ui64], repeat = 1, strides = array<i64: 1, 1, 8, 8>"
    run_program(at("ub_i16", 256, "d") + cast("ub_f16", "d", ("f16", "i16"), mask), memory)
    assert np.array_equal(memory[512:642].view(np.int16), source[:65])
    assert (memory[642:] == 0xA5).all()


def test_four_bit_sources() -> None:
    codes = np.arange(64, dtype=np.uint8) % 16
    memory = place(pack4(codes), 256)
    run_program(
        at("ub_f16", 64, "d")
        + cast(
            "ub_i4", "d", ("i4", "f16"), "mask = 64, repeat = 1, strides = array<i64: 1, 1, 8, 2>"
        ),
        memory,
    )
    signed = np.where(codes > 7, codes.astype(int) - 16, codes)
    assert np.array_equal(memory[128:].view(np.float16), signed)


# ---- The state of the machine


@pytest.mark.parametrize(
    ("types", "bit", "value", "saturating", "wrapping"),
    [
        (("f32", "i16"), 59, 40_000.0, 32767, 40_000 - 65536),
        (("f32", "i32"), 59, np.inf, 2**31 - 1, 2**31 - 1),
        (("f32", "f16"), 48, np.inf, 65504.0, np.inf),
        (("f32", "f16"), 48, np.nan, 0.0, np.nan),
    ],
)
def test_control_register_decides_saturation(
    types: tuple[str, str], bit: int, value: float, saturating: float, wrapping: float
) -> None:
    """CTRL is 0 at first, which saturates."""
    dtype = {"i16": np.int16, "i32": np.int32, "f16": np.float16}[types[1]]
    form = "rmode = #pto<round_mode RINT>, count = 1"
    convert = at(f"ub_{types[1]}", 64 // np.dtype(dtype).itemsize, "d") + cast(
        "ub_f32", "d", types, form
    )
    set_bit = (
        f"    %bit = arith.constant {bit} : i64\n    %ctrl = pto.get_ctrl : i64\n"
        "    %off = pto.sbitset1 %ctrl, %bit : i64, i64 -> i64\n    pto.set_ctrl %off : i64\n"
    )
    for body, expected in ((convert, saturating), (set_bit + convert, wrapping)):
        memory = place(np.array([value], np.float32), 128)
        run_program(body, memory)
        assert np.array_equal(memory[64:].view(dtype)[0], expected, equal_nan=True)


def test_dequantisation_scale() -> None:
    """i32 to f16 multiplies by the scale that was set (spec S13)."""
    memory = place(np.array([100, -3, 2**30], np.int32), 128)
    scale = "    %s = arith.constant 0.5 : f16\n    pto.set_deqscale %s : f16\n"
    run_program(
        scale + at("ub_f16", 32, "d") + cast("ub_i32", "d", ("i32", "f16"), "count = 3"), memory
    )
    assert memory[64:70].view(np.float16).tolist() == [50.0, -1.5, 65504.0]


# ---- What the machine refuses


def _fails(body: str, message: str, **options: Any) -> None:
    with pytest.raises(ExecutionError) as error:
        run_program(body, np.zeros(8192, np.uint8), **options)
    assert message in str(error.value)


REPEATS = "mask = 64, repeat = 1, strides = array<i64: 1, 1, 8, 4>"


def test_unaligned_address() -> None:
    body = at("ub_f16", 8, "s") + cast("s", "ub_i32", ("f16", "i32"), REPEATS)
    _fails(body, "src0 at byte 16 is not aligned to 32 bytes")


def test_out_of_range() -> None:
    """One element beyond the buffer's end, in a block beyond it."""
    body = at("ub_i32", 192 * 1024 // 4 - 64, "d")
    run_program(body + cast("ub_f16", "d", ("f16", "i32"), REPEATS), np.zeros(8192, np.uint8))
    past = REPEATS.replace("repeat = 1", "repeat = 2")
    _fails(body + cast("ub_f16", "d", ("f16", "i32"), past), "out of range")


def test_uninitialised_bytes() -> None:
    """Selected elements only: a mask that leaves them out is fine."""
    written = np.ones(8192, np.bool_)
    written[126] = False  # half 63
    read = at("ub_i32", 1024, "d")
    _fails(read + cast("ub_f16", "d", ("f16", "i32"), REPEATS), "never written", written=written)
    masked = REPEATS.replace("mask = 64", "mask = 63")
    run_program(
        read + cast("ub_f16", "d", ("f16", "i32"), masked),
        np.zeros(8192, np.uint8),
        written=written,
    )


# ---- What the verifier refuses, with the limit


def _verify(statement: str, arch: str = "a2a3") -> None:
    pto.parse(module_text(statement, arch)).verify()


REFUSALS = (VerifyException, pto.ParseError)
"""What holds whatever the target is refused as soon as it is read."""
STRIDES = "strides = array<i64: 1, 1, 8, 4>"
REFUSED = [
    (("f16", "i32"), f"mask = 65, repeat = 1, {STRIDES}", "mask is 65, but must be in [1, 64]"),
    (("f16", "i32"), f"mask = 0, repeat = 1, {STRIDES}", "mask is 0, but must be in [1, 64]"),
    (("f16", "i16"), f"mask = 129, repeat = 1, {STRIDES}", "must be in [1, 128]"),
    (("i64", "f32"), f"mask = 33, repeat = 1, {STRIDES}", "must be in [1, 32]"),
    (("f16", "i32"), f"mask = 64, repeat = 256, {STRIDES}", "repeat is 256, but must be in [0, 255]"),
    (("f16", "i32"), "mask = 64, repeat = 1, strides = array<i64: 1, 1, 256, 4>",
     "dst repeat stride is 256, but must be in [0, 255]"),
    (("f16", "i32"), "mask = 64, repeat = 1, strides = array<i64: 1, 300, 8, 4>",
     "src block stride is 300, but must be in [0, 255]"),
    (("f16", "i32"), "mask = 64, repeat = 1, strides = array<i64: 8, 4>", "strides are 4"),
    (("f16", "i4"), f"mask = 7, repeat = 1, {STRIDES}", "mask is 7, but must be even for i4"),
    (("f16", "i4"), "count = 3", "count is 3, but must be even for i4"),
    (("f16", "i4"), f"mask = array<i64: 1, 0>, repeat = 1, {STRIDES}", "both bits of a pair are equal"),
    (("f16", "i32"), f"mask = array<i64: 0, -1>, repeat = 1, {STRIDES}", "has 1 words of 64 bits, not 2"),
    (("f16", "i32"), f"mask = array<i64: 0>, repeat = 1, {STRIDES}", "selects 1 to 64 elements"),
    (("f16", "i16"), f"mask = array<i64: 0, 0>, repeat = 1, {STRIDES}", "selects 1 to 128 elements"),
    (("i64", "i32"), f"mask = array<i64: 4294967296>, repeat = 1, {STRIDES}", "selects 1 to 32 elements"),
    (("f16", "i32"), f"count = 4, repeat = 1, {STRIDES}", "count goes without mask, repeat and strides"),
    (("f16", "i32"), f"mask = 4, {STRIDES}", "give count, or mask, repeat and strides"),
    (("f16", "bf16"), "count = 4", "Cast f16 to bf16 is not offered on a2a3"),
    (("f16", "i32"), "rmode = #pto<round_mode ODD>, count = 4", "has no mode ODD"),
    (("f16", "i32"), "satmode = #pto<saturation_mode ON>, count = 4", "unknown attribute satmode"),
    (("f16", "i32"), 'rmode = "CEIL", count = 4', "rmode is a #pto<round_mode ..>"),
    (("f16", "i32"), "count = 1.5", "count is an integer"),
]  # fmt: skip


@pytest.mark.parametrize(("types", "attributes", "message"), REFUSED)
def test_verifier(types: tuple[str, str], attributes: str, message: str) -> None:
    with pytest.raises(REFUSALS) as error:
        _verify(cast(f"ub_{types[0]}", f"ub_{types[1]}", types, attributes))
    assert message in str(error.value)


@pytest.mark.parametrize("types", [("i64", "i32"), ("f64", "f32")])
def test_wide_types_have_the_count_form_only_on_a5(types: tuple[str, str]) -> None:
    source, target = (f"ub_{name}" for name in types)
    _verify(cast(source, target, types, "count = 8"), "a5")
    masked = f"mask = 32, repeat = 1, {STRIDES}"
    with pytest.raises(VerifyException, match="count only on a5"):
        _verify(cast(source, target, types, masked), "a5")


@pytest.mark.parametrize(
    ("product", "mode", "allowed"),
    [
        ("atlas-training", "ODD", True),
        ("atlas-training", "FLOOR", False),
        ("atlas-inference", "FLOOR", False),
        ("Ascend910B1", "FLOOR", True),
    ],
)
def test_modes_are_those_of_the_product(product: str, mode: str, allowed: bool) -> None:
    """f32 to f16 has NONE and ODD on the oldest products."""
    text = cast("ub_f32", "ub_f16", ("f32", "f16"), f"rmode = #pto<round_mode {mode}>, count = 8")
    if allowed:
        _verify(text, product)
    else:
        with pytest.raises(VerifyException, match=f"has no mode {mode}"):
            _verify(text, product)


def test_pointer_must_be_into_the_unified_buffer() -> None:
    text = """func.func @f(%p: !pto.ptr<f32>, %q: !pto.ptr<f16, ub>) {
      pto.cast ins(%p {count = 8} : !pto.ptr<f32>) outs(%q : !pto.ptr<f16, ub>)
      return
    }"""
    with pytest.raises(REFUSALS, match="src is a pointer into the unified buffer"):
        pto.parse(text).verify()
