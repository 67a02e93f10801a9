"""The examples of the documents that the spec comes from, and cases from the field.

Examples that contradict the formats are in docs/document-examples.md; what we give instead is
`CONTRADICTED` below.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numeric_support import FIVE, Array

from pto.numerics import FORMATS, convert, decode
from pto.targets.convert import convert as convert_on

FIELD_CASES = [
    json.loads(line)
    for line in Path(__file__).with_name("field_cases.jsonl").read_text().splitlines()
]
INF, NAN = float("inf"), float("nan")


def codes(digits: list[str], fmt: str) -> Array:
    return np.array([int(d, 16) for d in digits], FORMATS[fmt].code_dtype)


@pytest.mark.parametrize("case", FIELD_CASES, ids=lambda c: f"{c['id']}-{c['saturation']}")
def test_cases_from_the_field(case: dict[str, Any]) -> None:
    got = convert_on(
        codes(case["input_bits"], case["src"]),
        case["dst"],
        src=case["src"],
        mode=case["mode"],
        saturation=case["saturation"],
        arch=case["arch"],
        tmp=case["tmp"],
    )
    code = FORMATS[case["dst"]].code_dtype
    assert got.view(code).tolist() == codes(case["output_bits"], case["dst"]).tolist()


# (source, destination, input, results for RINT FLOOR CEIL ROUND TRUNC [ODD]); one result: any mode.
CAST_EXAMPLES = [
    ("f32", "f32", 0.5, (0, 0, 1, 1, 0)),
    (
        *("f32", "f16", 0.5 + 2.0**-12),
        (0.5, 0.5, 0.5 + 2.0**-11, 0.5 + 2.0**-11, 0.5, 0.5 + 2.0**-11),
    ),
    ("f32", "i64", 2**22 + 0.5, (2**22, 2**22, 2**22 + 1, 2**22 + 1, 2**22)),
    ("f32", "i32", 2**22 + 0.5, (2**22, 2**22, 2**22 + 1, 2**22 + 1, 2**22)),
    ("f32", "i16", 2**22 + 0.5, (2**15 - 1,) * 5),
    (
        *("f32", "bf16", 0.5 + 2.0**-9 + 2.0**-11),
        (0.5 + 2.0**-8, 0.5, 0.5 + 2.0**-8, 0.5 + 2.0**-8, 0.5),
    ),
    ("f16", "f32", 1.5 - 2.0**-10, (1.5 - 2.0**-10,)),
    ("f16", "i32", -1.5, (-2, -2, -1, -2, -1)),
    ("f16", "i16", 2**7 - 0.5, (2**7, 2**7 - 1, 2**7, 2**7, 2**7 - 1)),
    ("f16", "i8", 2**7 - 0.5, (2**7 - 1,) * 5),
    ("f16", "ui8", 1.75, (2, 1, 2, 2, 1)),
    ("f16", "i4", 1.5, (2, 1, 2, 2, 1)),
    ("bf16", "f32", 1.5 - 2.0**-6, (1.5 - 2.0**-6,)),
    ("bf16", "i32", 2**6 + 0.5, (2**6, 2**6, 2**6 + 1, 2**6 + 1, 2**6)),
    ("bf16", "f4e2m1", 2.5, (2, 2, 3, 3, 2)),
    ("i4", "f16", 1, (1,)),
    ("i4", "i16", 1, (1,)),
    ("i4", "bf16", 1, (1,)),
    ("ui8", "f16", 1, (1,)),
    ("ui8", "ui16", 255, (255,)),
    ("ui8", "ui32", 255, (255,)),
    ("i8", "f16", -1, (-1,)),
    ("i8", "i16", 127, (127,)),
    ("i8", "i32", 127, (127,)),
    ("ui16", "ui8", 2**16 - 1, (255,)),
    ("ui16", "ui32", 2**16 - 1, (2**16 - 1,)),
    ("i16", "f16", 2**12 + 2, (2**12, 2**12, 2**12 + 4, 2**12 + 4, 2**12)),
    ("i16", "f32", 2**15 - 1, (2**15 - 1,)),
    ("i16", "ui8", 2**15 - 1, (255,)),
    ("i16", "ui32", 2**15 - 1, (2**15 - 1,)),
    ("i16", "i32", 2**15 - 1, (2**15 - 1,)),
    ("ui32", "ui8", 2**32 - 1, (255,)),
    ("ui32", "ui16", 2**32 - 1, (2**16 - 1,)),
    ("ui32", "i16", 2**32 - 1, (2**15 - 1,)),
    ("i32", "f32", 2**25 + 3, (2**25 + 4, 2**25, 2**25 + 4, 2**25 + 4, 2**25)),
    ("i32", "i64", 2**31 - 1, (2**31 - 1,)),
    ("i32", "i16", 2**31 - 1, (2**15 - 1,)),
    ("i32", "ui8", 2**31 - 1, (255,)),
    ("i32", "ui16", 2**31 - 1, (2**16 - 1,)),
    ("i64", "i32", 2**31, (2**31 - 1,)),
    (
        *("i64", "f32", 2**35 + 2**12 + 2**11),
        (2**35 + 2**13, 2**35 + 2**12, 2**35 + 2**13, 2**35 + 2**13, 2**35 + 2**12),
    ),
    (
        *("i64", "f64", 2**61 + 2**9 + 2**8),
        (2**61 + 2**10, 2**61 + 2**9, 2**61 + 2**10, 2**61 + 2**10, 2**61 + 2**9),
    ),
    ("hif8", "f32", 2, (2,)),
    ("hif8", "f16", 2, (2,)),
    ("f8e4m3fn", "f32", 2, (2,)),
    ("f8e5m2", "f32", 2, (2,)),
    ("f4e2m1", "bf16", 2, (2,)),
    (
        *("f64", "f32", 2**35 + 2**12 + 2**11),
        (2**35 + 2**13, 2**35 + 2**12, 2**35 + 2**13, 2**35 + 2**13, 2**35 + 2**12),
    ),
    (
        *("f64", "bf16", 2**35 + 2**28 + 2**27),
        (2**35 + 2**29, 2**35 + 2**28, 2**35 + 2**29, 2**35 + 2**29, 2**35 + 2**28),
    ),
    ("f64", "i32", -1.5, (-2, -2, -1, -2, -1)),
    ("f64", "i64", -1.5, (-2, -2, -1, -2, -1)),
]
CAST_MODES = ("RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD")


def converted(value: float, src: str, dst: str, mode: str | None, saturation: str | None) -> float:
    carrier = FORMATS[src].carrier
    given = np.array([value], np.uint8 if src == "hif8" else carrier)
    if src == "hif8":
        given = convert(np.array([value], np.float32), "hif8")
    got = convert(given, dst, src=src, mode=mode, saturation=saturation)
    return float(decode(got.view(FORMATS[dst].code_dtype), dst)[0])


@pytest.mark.parametrize(
    ("src", "dst", "value", "results"), CAST_EXAMPLES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_examples_of_cast(src: str, dst: str, value: float, results: tuple[float, ...]) -> None:
    if len(results) == 1:
        results = results * 5
    for mode, expected in zip(CAST_MODES, results, strict=False):
        assert converted(value, src, dst, mode, None) == expected, mode


def test_subnormal_example_of_cast() -> None:
    """bf16 2.90573e-06 to f16: 49 steps of 2^-24 up, 48 down."""
    value = 2.90573e-06
    got = [converted(value, "bf16", "f16", mode, None) for mode in CAST_MODES[:5]]
    assert got == [n * 2.0**-24 for n in (49, 48, 49, 49, 48)]


def test_scaling_example_of_cast() -> None:
    """i32 to f16 multiplies by the dequantisation scale."""
    got = convert(np.array([131072, -6], np.int32), "f16", deq_scale=0.25)
    assert got.tolist() == [32768.0, -1.5]


@pytest.mark.parametrize(
    ("mode", "results"),
    [
        ("CEIL", [2, 2, 2, 3, 3, 3]),
        ("NONE", [1, 2, 2, 2, 2, 3]),
        ("RINT", [1, 2, 2, 2, 2, 3]),
        ("FLOOR", [1, 1, 1, 2, 2, 2]),
        ("ROUND", [1, 2, 2, 2, 3, 3]),
        ("TRUNC", [1, 1, 1, 2, 2, 2]),
    ],
)
def test_result_examples_of_cast(mode: str, results: list[int]) -> None:
    values = np.array([1.4, 1.5, 1.6, 2.4, 2.5, 2.6], np.float16)
    assert convert(values, "i32", mode=mode).tolist() == results


# astype table 6: (source, destination, input, result with saturation, result without)
SPECIALS = [
    ("f16", "ui8", 257, 255, 1),
    ("f16", "ui8", -INF, 0, 0),
    ("f16", "ui8", INF, 255, 255),
    ("f16", "ui8", NAN, 0, 0),
    ("f32", "i16", INF, 32767, 32767),
    ("f32", "i16", -INF, -32768, -32768),
    ("f32", "f16", NAN, 0, NAN),
    ("f32", "f16", INF, 65504, INF),
    ("f32", "f16", -1e9, -65504, -INF),
    ("f32", "f8e4m3fn", INF, 448, NAN),
    ("f32", "f8e5m2", NAN, 0, NAN),
    ("i32", "ui8", 256, 255, 0),
]


@pytest.mark.parametrize(("src", "dst", "value", "on", "off"), SPECIALS)
def test_saturation_examples_of_astype(
    src: str, dst: str, value: float, on: float, off: float
) -> None:
    assert converted(value, src, dst, None, "ON") == on
    assert np.array_equal(converted(value, src, dst, None, "OFF"), off, equal_nan=True)


def test_special_values_of_astype() -> None:
    kept = convert(np.array([NAN], np.float32), "f8e5m2", saturation="ON", nan_saturation="keep")
    assert np.isnan(kept.astype(np.float32)[0])
    assert [converted(v, "bf16", "f4e2m1", None, None) for v in (INF, -9, NAN)] == [6, -6, 0]
    given = np.array([INF, -INF, 1e38, NAN, 1.99], FORMATS["bf16"].carrier)
    assert convert(given, "f8e8m0").view(np.uint8).tolist() == [0xFE, 0xFE, 0xFD, 0xFF, 0x7F]
    assert convert(np.array([-5, 7], np.int16), "ui32").tolist() == [0, 7]


# What Cast prints is on the left of docs/document-examples.md; the formats say this (spec X).
CONTRADICTED = [
    ("f32", "hif8", 1.75, ("ROUND",), 1.75),
    ("f16", "hif8", 1.75, ("ROUND",), 1.75),
    ("f32", "f8e4m3fn", 2.5, ("RINT",), 2.5),
    ("f32", "f8e5m2", 2.5, ("RINT",), 2.5),
    ("f16", "bf16", 1.75, FIVE, 1.75),
    ("bf16", "f4e1m2", 2.5, FIVE, 1.75),
    ("i16", "i4", 2**15 - 1, ("NONE",), 7),
]


@pytest.mark.parametrize(("src", "dst", "value", "modes", "result"), CONTRADICTED)
def test_examples_that_contradict_the_formats(
    src: str, dst: str, value: float, modes: tuple[str, ...], result: float
) -> None:
    assert {converted(value, src, dst, mode, None) for mode in modes} == {result}
