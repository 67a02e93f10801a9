"""astype on registers (spec A1, L3): layouts, predicates, the document's examples, its limits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from programs import run_program
from xdsl.utils.exceptions import VerifyException

import pto
from pto.numerics import FORMATS, convert_bits, pack4, unpack4
from pto.runtime.errors import ExecutionError
from pto.targets import Pair, tables

Array = NDArray[Any]

LETTERS = {"RINT": "R", "ROUND": "A", "FLOOR": "F", "CEIL": "C", "TRUNC": "Z", "ODD": "O", "HYBRID": "H"}  # fmt: skip
(ASTYPE,) = [table for table in tables("a5") if table.instruction == "astype"]


def _unit(name: str, pairs: int) -> int:
    return FORMATS[name].bits * pairs // 8


def _vreg(name: str) -> str:
    spelt = FORMATS[name].mlir[0]
    lanes = 256 // max(1, FORMATS[name].bits // 8) * (2 if name == "i4" else 1)
    return f"!pto.vreg<{lanes}x{spelt}>"


def _granularity(name: str) -> int:
    return max(8, min(32, FORMATS[name].bits))


def _registers(statements: str) -> str:
    return f"    pto.vecscope {{\n{statements}    }}\n"


def _convert(pair: Pair, count: int, attributes: str) -> str:
    """Loads a whole register from byte 0, converts, stores the whole result at byte 256."""
    name = pair.src.name
    src, dst = _vreg(name), _vreg(pair.dst.name)
    bits = _granularity(name)
    src_ptr = f"!pto.ptr<{FORMATS[name].mlir[0]}, ub>"
    # The result is stored whole, whatever its type: as bytes of the register.
    return (
        f"    %n = arith.constant {count} : i32\n    %c0 = arith.constant 0 : index\n"
        f"    %out = arith.constant 256 : i64\n"
        f"    %p = pto.castptr %zero : i64 -> {src_ptr}\n"
        f"    %q = pto.castptr %out : i64 -> !pto.ptr<ui8, ub>\n"
        + _registers(
            f'      %all = pto.pset_b8 "PAT_ALL" : !pto.mask<b8>\n'
            f"      %m, %r = pto.plt_b{bits} %n : i32 -> !pto.mask<b{bits}>, i32\n"
            f"      %v = pto.vlds %p[%c0] : {src_ptr} -> {src}\n"
            f"      %d = pto.vcvt %v, %m {{{attributes}}} : {src}, !pto.mask<b{bits}> -> {dst}\n"
            f'      pto.vsts %d, %q[%c0], %all {{dist = "NORM_B8"}} : '
            f"{dst}, !pto.ptr<ui8, ub>, !pto.mask<b8>\n"
        )
    )


def _parts(pair: Pair) -> list[str]:
    return {0: [], 2: ["EVEN", "ODD"], 4: ["P0", "P1", "P2", "P3"]}[len(pair.layouts)]


def _expected(pair: Pair, register: Array, layout: int, lanes: int, mode: str, sat: str) -> Array:
    """The result's 256 bytes, lane by lane: elements, or pairs where a side has 4 bits."""
    source, target = pair.src, pair.dst
    pairs = 2 if 4 in (source.bits, target.bits) else 1
    src_unit, dst_unit = _unit(source.name, pairs), _unit(target.name, pairs)
    step = max(src_unit, dst_unit)
    src_at = layout * src_unit if src_unit < step else 0
    dst_at = layout * dst_unit if dst_unit < step else 0
    granularity = _granularity(pair.src.name) // 8
    result = np.zeros(256, np.uint8)
    for k in range(256 // step):
        raw = register[k * step + src_at : k * step + src_at + src_unit]
        if (k * step + src_at) // granularity >= lanes:
            continue
        codes = unpack4(raw) if source.bits == 4 else raw.view(source.code_dtype)
        out = convert_bits(codes, source, target, mode if pair.rounds else None, sat)
        stored = pack4(out) if target.bits == 4 else out.view(np.uint8)
        result[k * step + dst_at : k * step + dst_at + dst_unit] = stored
    return result


@pytest.mark.parametrize("pair", ASTYPE.rows, ids=lambda p: f"{p.src}-{p.dst}")
def test_every_pair_layout_and_mode(pair: Pair) -> None:
    """Each row of the table, each layout, mode and saturation, under predicates of three lengths."""
    rng = np.random.default_rng(3)
    granularity = _granularity(pair.src.name) // 8
    for layout, part in enumerate(_parts(pair) or [""]):
        for mode in pair.modes or ("",):
            for sat in ("ON", "OFF") if pair.has_saturation else ("",):
                lanes = int(rng.choice([1, 7, 256 // granularity]))
                written = {
                    "part": part,
                    "rnd": LETTERS.get(mode, ""),
                    "sat": {"ON": "SAT", "OFF": "NOSAT", "": ""}[sat],
                }
                text = ", ".join(f'{key} = "{value}"' for key, value in written.items() if value)
                memory = rng.integers(0, 256, 512, np.uint8)
                expected = _expected(pair, memory[:256], layout, lanes, mode, sat or "OFF")
                run_program(_convert(pair, lanes, text), memory, arch="a5")
                assert np.array_equal(memory[256:], expected), (part, mode, sat, lanes)


# ---- The document's examples: through a narrower type and back, in the even lanes


def _round_trip(values: Array, wide: str, narrow: str, attributes: str, back: str) -> Array:
    memory = np.zeros(512, np.uint8)
    memory[:256] = values.view(np.uint8)
    w, n = _vreg(wide), _vreg(narrow)
    bits, low = _granularity(wide), _granularity(narrow)
    ptr = f"!pto.ptr<{wide}, ub>"
    store = f"NORM_B{min(32, FORMATS[wide].bits)}"
    run_program(
        "    %c0 = arith.constant 0 : index\n    %out = arith.constant 256 : i64\n"
        f"    %p = pto.castptr %zero : i64 -> {ptr}\n"
        f"    %q = pto.castptr %out : i64 -> {ptr}\n"
        + _registers(
            f'      %m = pto.pset_b{bits} "PAT_ALL" : !pto.mask<b{bits}>\n'
            f'      %k = pto.pset_b{low} "PAT_ALL" : !pto.mask<b{low}>\n'
            f"      %v = pto.vlds %p[%c0] : {ptr} -> {w}\n"
            f"      %d = pto.vcvt %v, %m {{{attributes}}} : {w}, !pto.mask<b{bits}> -> {n}\n"
            f"      %b = pto.vcvt %d, %k {back}: {n}, !pto.mask<b{low}> -> {w}\n"
            f'      pto.vsts %b, %q[%c0], %m {{dist = "{store}"}} : {w}, {ptr}, !pto.mask<b{bits}>\n'
        ),
        memory,
        arch="a5",
    )
    return memory[256:].view(values.dtype)


@pytest.mark.parametrize(
    ("wide", "narrow", "attributes", "back", "dtype", "through"),
    [
        ("f32", "bf16", 'rnd = "R", part = "EVEN"', '{part = "EVEN"} ', np.float32, ml_dtypes.bfloat16),
        ("f32", "f16", 'rnd = "R", part = "EVEN"', '{part = "EVEN"} ', np.float32, np.float16),
        ("f32", "i32", 'rnd = "R"', '{rnd = "R"} ', np.float32, None),
        ("f32", "f8e4m3fn", 'rnd = "R", sat = "SAT", part = "P0"', '{part = "P0"} ', np.float32,
         ml_dtypes.float8_e4m3fn),
        ("bf16", "f4e2m1", 'rnd = "R", part = "P0"', '{part = "P0"} ', ml_dtypes.bfloat16,
         ml_dtypes.float4_e2m1fn),
        ("i64", "f32", 'rnd = "R", part = "EVEN"', '{rnd = "R", part = "EVEN"} ', np.int64, np.float32),
    ],
)  # fmt: skip
def test_document_examples(
    wide: str, narrow: str, attributes: str, back: str, dtype: Any, through: Any
) -> None:
    rng = np.random.default_rng(4)
    lanes = 256 // np.dtype(dtype).itemsize
    values = (rng.standard_normal(lanes) * (100 if wide == "i64" else 3)).astype(dtype)
    result = _round_trip(values, wide, narrow, attributes, back)
    expected = np.rint(values) if through is None else values.astype(through).astype(dtype)
    assert np.array_equal(result, expected)


def test_document_hif8_example() -> None:
    """f16 to hif8 and back, within the document's tolerance."""
    values = np.linspace(-1, 1, 128).astype(np.float16)
    result = _round_trip(
        values, "f16", "hif8", 'rnd = "A", sat = "SAT", part = "EVEN"', '{part = "EVEN"} '
    )
    assert np.allclose(result, values, rtol=1e-1, atol=1e-1)


# ---- Limits

ROUNDED = 'rnd = "R", sat = "SAT", part = "EVEN"'
REFUSED = [
    ("f16", 'rnd = "H", part = "EVEN"', "b32", "a register conversion of f32 to f16 does not round by HYBRID; modes of this pair: RINT"),
    ("f16", f'{ROUNDED}, mode = "MERGING"', "b32", "mode MERGING is not supported: only ZEROING is"),
    ("f16", 'part = "P2"', "b32", "part of a register conversion of f32 to f16 is one of EVEN ODD, not P2"),
    ("f16", ROUNDED, "b16", "the predicate of a register conversion of f32 to f16 is !pto.mask<b32>, not !pto.mask<b16>"),
    ("i32", 'part = "EVEN"', "b32", "a register conversion of f32 to i32 has no part: equal widths"),
    ("i8", "", "b32", "no register conversion of f32 to i8"),
    ("f16", 'sat = "ON", part = "EVEN"', "b32", "sat is SAT or NOSAT, not ON"),
]  # fmt: skip


@pytest.mark.parametrize(("dst", "attributes", "mask", "message"), REFUSED)
def test_verifier(dst: str, attributes: str, mask: str, message: str) -> None:
    text = f"""func.func @f(%v: !pto.vreg<64xf32>, %m: !pto.mask<{mask}>) {{
      %r = pto.vcvt %v, %m {{{attributes}}} : !pto.vreg<64xf32>, !pto.mask<{mask}> -> {_vreg(dst)}
      return
    }}"""
    with pytest.raises(VerifyException) as error:
        pto.parse(text.replace(" {} ", " ")).verify()
    assert message in str(error.value)


def test_saturation_where_there_is_no_choice() -> None:
    text = """func.func @f(%v: !pto.vreg<128xf16>, %m: !pto.mask<b16>) {
      %r = pto.vcvt %v, %m {sat = "SAT", part = "EVEN"} : !pto.vreg<128xf16>, !pto.mask<b16> -> !pto.vreg<64xf32>
      return
    }"""
    with pytest.raises(VerifyException, match="has no saturation mode"):
        pto.parse(text).verify()


def test_stores_of_unwritten_bytes_are_refused() -> None:
    """A load may take bytes that hold no data; storing what came of them is the error."""
    body = """    %c0 = arith.constant 0 : index
    %few = arith.constant 10 : i32
    %many = arith.constant 11 : i32
    %out = arith.constant 256 : i64
    %q = pto.castptr %out : i64 -> !pto.ptr<f16, ub>
""" + _registers("""      %m, %r = pto.plt_b32 %COUNT : i32 -> !pto.mask<b32>, i32
      %v = pto.vlds %ub_f32[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
      %d = pto.vcvt %v, %m {part = "EVEN"} : !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<128xf16>
      pto.vsts %d, %q[%c0], %m {dist = "PK_B32"} : !pto.vreg<128xf16>, !pto.ptr<f16, ub>, !pto.mask<b32>
""")
    written = np.arange(512) < 40
    run_program(body.replace("COUNT", "few"), np.zeros(512, np.uint8), written=written, arch="a5")
    with pytest.raises(ExecutionError, match="never written"):
        run_program(
            body.replace("COUNT", "many"), np.zeros(512, np.uint8), written=written, arch="a5"
        )


@pytest.mark.parametrize(
    ("offset", "message"), [("4", "the load at byte 16 is not aligned"), ("65520", "out of range")]
)
def test_bad_loads(offset: str, message: str) -> None:
    body = f"    %at = arith.constant {offset} : index\n" + _registers(
        "      %v = pto.vlds %ub_f32[%at] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>\n"
    )
    with pytest.raises(ExecutionError, match=message):
        run_program(body, np.zeros(512, np.uint8), arch="a5")
