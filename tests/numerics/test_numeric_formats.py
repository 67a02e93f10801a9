"""The formats as data: values, limits, packing."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from numeric_reference import WIDTHS, decode

from pto.numerics import FORMATS, encode, formats, pack4, unpack4
from pto.numerics import decode as decode_array
from pto.numerics.formats import format_of, value_of


@pytest.mark.parametrize("name", [n for n in WIDTHS if WIDTHS[n] <= 16])
def test_values(name: str) -> None:
    """Every code, decoded one by one and as an array, against exact arithmetic."""
    codes = np.arange(1 << WIDTHS[name], dtype=FORMATS[name].code_dtype)
    array = decode_array(codes, name)
    for code, value in zip(codes, array, strict=True):
        negative, exact = decode(name, int(code))
        scalar = value_of(int(code), name)
        if isinstance(exact, str):
            assert str(value) == str(scalar) == exact
        else:
            assert value == scalar == exact[0] * 2.0 ** exact[1]
            if exact[0] == 0 and FORMATS[name].is_float:
                assert np.signbit(value) == negative


@pytest.mark.parametrize(
    ("name", "largest", "smallest"),
    [
        ("f16", 65504, -65504),
        ("f8e4m3fn", 448, -448),
        ("f8e5m2", 57344, -57344),
        ("hif8", 2**15, -(2**15)),
        ("f4e2m1", 6, -6),
        ("f4e1m2", 1.75, -1.75),
        ("f8e8m0", 2.0**127, 2.0**-127),
        ("i4", 7, -8),
        ("ui16", 65535, 0),
        ("i64", 2**63 - 1, -(2**63)),
    ],
)
def test_limits(name: str, largest: float, smallest: float) -> None:
    assert FORMATS[name].max_value == largest
    assert FORMATS[name].min_value == smallest


def test_every_format_has_a_carrier_of_its_width() -> None:
    for fmt in FORMATS.values():
        assert fmt.carrier.itemsize * 8 == fmt.code_dtype.itemsize * 8 == fmt.storage_bits


@pytest.mark.parametrize("name", ["f16", "bf16", "f8e4m3fn", "hif8", "f4e1m2", "i4", "i16"])
def test_encode_inverts_decode(name: str) -> None:
    codes = np.arange(1 << WIDTHS[name], dtype=FORMATS[name].code_dtype)
    values = decode_array(codes, name)
    finite = np.isfinite(values)
    assert np.array_equal(encode(values[finite], name), codes[finite])


def test_copies_are_the_format() -> None:
    assert pickle.loads(pickle.dumps(FORMATS["hif8"])) is FORMATS["hif8"]


def test_complex_parts() -> None:
    z = np.array([1 + 2j, -0.5 - 65504j], dtype=np.complex64)
    assert np.array_equal(decode_array(encode(z, "c32"), "c32"), z)
    assert np.array_equal(decode_array(encode(z, "c64"), "c64"), z)


def test_even_elements_lie_in_the_low_nibble() -> None:
    assert pack4([[1, 2, 15, 0]]).tolist() == [[0x21, 0x0F]]
    assert unpack4(np.array([0x21, 0x0F], np.uint8)).tolist() == [1, 2, 15, 0]
    codes = np.random.default_rng(0).integers(0, 16, (3, 5, 8))
    assert np.array_equal(unpack4(pack4(codes)), codes)


def test_packing_accepts_carriers() -> None:
    values = np.array([-8, 7, -1, 0], dtype=FORMATS["i4"].carrier)
    assert pack4(values).tolist() == [0x78, 0x0F]


@pytest.mark.parametrize("codes", [[1, 2, 3], 5, [16, 0]])
def test_what_cannot_be_packed(codes: object) -> None:
    with pytest.raises(ValueError, match=r"pairs|between 0 and 15"):
        pack4(codes)  # type: ignore[arg-type]


def test_values_need_a_code_that_fits() -> None:
    with pytest.raises(ValueError, match="4 bits"):
        value_of(16, "f4e2m1")
    with pytest.raises(ValueError, match="pair"):
        value_of(0, "c64")


def test_unknown_format_lists_the_formats() -> None:
    with pytest.raises(ValueError, match=r"bf17.*bf16.*hif8"):
        formats.format_of("bf17")


def test_importing_the_records_loads_no_array_library() -> None:
    program = (
        "import sys, pto.numerics.formats as f; f.FORMATS['bf16'].max_code;"
        "print([m for m in ('numpy', 'ml_dtypes', 'llvmlite') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("half", "f16"),
        ("F32", "f32"),
        ("f8E4M3FN", "f8e4m3fn"),
        ("f8E4M3", "f8e4m3fn"),
        ("f8E5M2", "f8e5m2"),
        ("!pto.f8E8M0", "f8e8m0"),
        ("f8E8M0FNU", "f8e8m0"),
        ("!pto.hif8", "hif8"),
        ("!pto.f4E2M1x2", "f4e2m1"),
        ("f4E2M1FN", "f4e2m1"),
        ("!pto.f4E1M2x2", "f4e1m2"),
        ("si16", "i16"),
        ("u32", "ui32"),
    ],
)
def test_spellings_of_pto_files(text: str, name: str) -> None:
    assert format_of(text).name == name
