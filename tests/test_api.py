"""The Python interface: what wrong arguments lead to, and what its values look like."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto

MODULE = """\
func.func @f(%s: !pto.tile_buf<vec, 16x64xf32>, %d: !pto.tile_buf<vec, 16x64xbf16>) {
  pto.tcvt ins(%s {rmode = #pto<round_mode ODD>} : !pto.tile_buf<vec, 16x64xf32>)
           outs(%d : !pto.tile_buf<vec, 16x64xbf16>)
  return
}
"""


@pytest.mark.parametrize("source", [None, 3, MODULE.encode()])
def test_parse_takes_text_or_a_path(source: Any) -> None:
    with pytest.raises(TypeError, match=f"a text or a Path, not {type(source).__name__}"):
        pto.parse(source)


def test_the_name_of_a_file_is_no_text() -> None:
    with pytest.raises(pto.ParseError, match=r"pass Path\('kernels/a b.pto'\)"):
        pto.parse("kernels/a b.pto")


def test_public_names_are_listed() -> None:
    assert set(pto.__all__) <= set(dir(pto))


@pytest.mark.parametrize("module", [None, MODULE, Path("k.pto")])
def test_a_module_is_needed(module: Any) -> None:
    with pytest.raises(TypeError, match="verify takes a module"):
        pto.verify(module)
    with pytest.raises(TypeError, match="print_module takes a module"):
        pto.print_module(module)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"arch": "a7"}, ValueError, "did you mean 'a5'"),
        ({"arch": 5}, TypeError, "a target is a name such as 'a5', not 5"),
        ({"default_sat": "maybe"}, ValueError, "'target', 'on' or 'off', not 'maybe'"),
        ({"default_sat": None}, ValueError, "not None"),
        ({"warn": ["nan-to-zeros"]}, ValueError, "unknown ids: nan-to-zeros; ids: syntax"),
    ],
)
def test_options_of_verify(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        pto.verify(pto.parse(MODULE), **options)


def test_a_diagnostic_reads_as_the_command_writes_it() -> None:
    (found,) = pto.verify(pto.parse(MODULE, filename="k.pto"), arch="a3")
    assert str(found) == (
        "k.pto:2:28: error: f32 to bf16 does not round by ODD on a2a3 [round-mode]"
    )


def test_a_parse_error_survives_pickling(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    for text in (b"module {\n}}", b"module {\0}"):
        path.write_bytes(text)
        with pytest.raises(pto.ParseError) as caught:
            pto.parse(path)
        again = pickle.loads(pickle.dumps(caught.value))
        assert type(again) is type(caught.value)
        assert (str(again), vars(again)) == (str(caught.value), vars(caught.value))


@pytest.mark.parametrize(
    ("extents", "options", "error", "words"),
    [
        ((16.5, 64), {}, TypeError, "float"),
        (("16", 64), {}, TypeError, "str"),
        ((16, None), {}, TypeError, "NoneType"),
        ((-1, 64), {}, ValueError, "must not be negative"),
        ((16, 64), {"row_stride": 56}, ValueError, "shorter than a row"),
        ((16, 64), {"arch": None}, TypeError, "a target is a name"),
        ((16, 64), {"saturation": "maybe"}, ValueError, "'ON', 'OFF' or None"),
    ],
)
def test_arguments_of_tmp_bytes(
    extents: tuple[Any, Any], options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        pto.tmp_bytes("f32", "i16", *extents, **options)


def test_a_mode_is_a_name() -> None:
    with pytest.raises(ValueError, match="unknown rounding mode 3; the modes are RINT"):
        pto.convert(np.float32([1.5]), "f16", mode=3)  # type: ignore[arg-type]


def test_arrays_of_convert() -> None:
    with pytest.raises(TypeError, match="out is an array, not list"):
        pto.convert(np.float32([1.5]), "f16", out=[0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"hif8 has dtype uint8 \(codes\), not int8"):
        pto.convert(np.int8([1]), "f32", src="hif8")


def test_tmp_bytes_of_numpy_integers_is_an_int() -> None:
    size = pto.tmp_bytes("f32", "i16", np.int16(400), np.int16(80), saturation="off")
    assert (type(size), size) == (int, 81344)
