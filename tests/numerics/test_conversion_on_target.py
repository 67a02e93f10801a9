"""`pto.convert`: what a target's tables allow, and the defaults they set."""

from typing import Any

import numpy as np
import pytest

from pto.numerics import FORMATS
from pto.targets import product_of, table_of, tables
from pto.targets.convert import convert

INF = float("inf")


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_every_row_of_tcvt_converts_in_every_mode(arch: str) -> None:
    table = table_of("TCVT", product_of(arch))
    assert table is not None
    for row in table.rows:
        for mode in (None, "NONE", *row.modes):
            if not row.accepts(mode):
                continue
            zeros = np.zeros(4, row.src.code_dtype)
            got = convert(zeros, row.dst.name, src=row.src.name, mode=mode, arch=arch)
            assert got.view(row.dst.code_dtype).tolist() == [0] * 4


def test_every_row_of_every_table_converts() -> None:
    for table in tables():
        if table.instruction == "MulCast":
            continue
        for row in table.rows:
            ones = np.ones(2, row.src.code_dtype)
            for mode in row.modes or (None,):
                convert(ones, row.dst.name, src=row.src.name, mode=mode, arch=table.product)


@pytest.mark.parametrize(
    ("value", "src", "to", "options", "result"),
    [
        (INF, "f16", "i8", {}, -1),  # OFF by default, PyTorch-compatible path on a5
        (INF, "f16", "i8", {"arch": "a2a3"}, 127),  # OFF by default, native path
        (INF, "f16", "i8", {"arch": "a2a3", "tmp": True}, -1),
        (300.0, "f16", "i8", {"saturation": "ON"}, 127),
        (300.0, "f16", "i8", {"arch": None}, 127),  # without a target: ON
        (300.0, "f16", "ui8", {"arch": "a3"}, 44),
        (70000, "i32", "i16", {}, 4464),
        (70000, "i32", "ui16", {}, 65535),
        (1e6, "f32", "f16", {}, 65504),
        (2.5, "f16", "ui8", {"arch": "kirin-x90"}, 3),  # only CEIL is offered
        (9.0, "f16", "i4", {"arch": "a2"}, 7),
        (INF, "f16", "bf16", {}, INF),  # no choice of saturation, and nothing to saturate
        (INF, "f16", "i32", {}, 2**31 - 1),
    ],
)
def test_defaults(value: float, src: str, to: str, options: dict[str, Any], result: float) -> None:
    assert convert([value], to, src=src, **options).astype(np.float64).tolist() == [result]


@pytest.mark.parametrize(
    ("to", "options", "message"),
    [
        ("bf16", {"mode": "ODD"}, "no mode ODD on a5.*TCVT offers RINT, ROUND, FLOOR, CEIL, TRUNC"),
        ("f8e4m3fn", {"mode": "TRUNC"}, "TCVT offers RINT"),
        ("hif8", {"mode": "RINT"}, "ROUND, HYBRID"),
        ("f8e4m3fn", {"arch": "a2a3"}, "a2a3 does not convert f32 to f8e4m3fn.*f16.*arch=None"),
        ("ui8", {}, "a5 does not convert f32 to ui8"),
        ("f16", {"arch": "a7"}, "unknown target.*a5"),
        ("f16", {"instruction": "vcvt"}, "unknown instruction 'vcvt'.*tcvt, cast, astype, mulcast"),
        ("f8e4m3fn", {"arch": "a2a3", "instruction": "cast"}, "does not convert f32 to .* by Cast"),
    ],
)
def test_errors(to: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        convert(np.ones(3, np.float32), to, **options)


@pytest.mark.parametrize("arch", ["a2a3", "a5", None])
@pytest.mark.parametrize("instruction", [None, "tcvt", "cast", "TCVT"])
@pytest.mark.parametrize(("src", "to"), [("i16", "f32"), ("f16", "f32"), ("i8", "f16")])
def test_saturation_without_a_choice_has_no_effect(
    arch: str | None, instruction: str | None, src: str, to: str
) -> None:
    """As `verify` says of it (`satmode-ignored`)."""
    fmt = FORMATS[src]
    codes = np.arange(1 << fmt.bits).astype(fmt.code_dtype)
    plain, *others = (
        convert(codes, to, src=src, arch=arch, instruction=instruction, saturation=choice)
        for choice in (None, "ON", "OFF", "off")
    )
    for other in others:
        assert np.array_equal(plain.view(np.uint8), other.view(np.uint8))


def test_the_instruction_says_which_default_applies() -> None:
    """TCVT of f32 to i16 wraps by default, Cast saturates (spec S14)."""
    found = [
        int(convert([70000.0], "i16", src="f32", arch="a2", instruction=name)[0])
        for name in (None, "tcvt", "cast")
    ]
    assert found[0] == found[1] != found[2] == 32767


def test_an_instruction_that_a_target_lacks() -> None:
    with pytest.raises(ValueError, match="a2a3 does not convert f16 to f32 by astype"):
        convert(np.ones(1, np.float16), "f32", arch="a2a3", instruction="astype")
