"""`pto.convert`: what a target's tables allow, and the defaults they set."""

from typing import Any

import numpy as np
import pytest

from pto.conversion import convert
from pto.numerics import FORMATS
from pto.targets import tables, tcvt_table

INF = float("inf")


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_every_row_of_tcvt_converts_in_every_mode(arch: str) -> None:
    table = tcvt_table(arch)
    assert table is not None
    for row in table.rows:
        for mode in (None, "NONE", *row.modes):
            if not row.accepts(mode):
                continue
            zeros = np.zeros(4, FORMATS[row.src].code_dtype)
            got = convert(zeros, row.dst, src=row.src, mode=mode, arch=arch)
            assert got.view(FORMATS[row.dst].code_dtype).tolist() == [0] * 4


def test_every_row_of_every_table_converts() -> None:
    for table in tables():
        if table.instruction == "MulCast":
            continue
        for row in table.rows:
            ones = np.ones(2, FORMATS[row.src].code_dtype)
            for mode in row.modes or (None,):
                convert(ones, row.dst, src=row.src, mode=mode, arch=table.product)


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
        ("f32", {"saturation": "OFF"}, "no choice of saturation"),
    ],
)
def test_errors(to: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        convert(np.ones(3, np.float32), to, **options)
