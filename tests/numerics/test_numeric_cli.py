"""`pto-opt convert` and `pto-opt explain` from the outside."""

import io
import os
import re
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from pto.cli import main
from pto.numerics import FORMATS, convert

VALUES = np.linspace(-300, 300, 77, dtype=np.float32)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.npy"
    np.save(path, VALUES)
    return path


class TestConvert:
    def test_numpy_formats_are_written_as_themselves(self, source: Path) -> None:
        out = source.with_name("out.npy")
        assert main(["convert", str(source), str(out), "--to", "f16", "--mode", "CAST_FLOOR"]) == 0
        written = np.load(out)
        assert written.dtype == np.float16
        assert np.array_equal(written, convert(VALUES, "f16", mode="FLOOR"))
        assert sorted(p.name for p in source.parent.iterdir()) == ["in.npy", "out.npy"]

    def test_other_formats_are_bit_patterns(self, source: Path) -> None:
        out, back = source.with_name("out.npy"), source.with_name("back.npy")
        assert main(["convert", str(source), str(out), "--to", "hif8"]) == 0
        assert np.load(out).dtype == np.uint8
        assert main(["convert", str(out), str(back), "--from", "hif8", "--to", "f32"]) == 0
        assert np.array_equal(np.load(back), convert(convert(VALUES, "hif8"), "f32", src="hif8"))

    @pytest.mark.parametrize(("sat", "first"), [("on", -128), ("off", -44)])
    def test_saturation_and_target(self, source: Path, sat: str, first: int) -> None:
        half, out = source.with_name("half.npy"), source.with_name("out.npy")
        np.save(half, VALUES.astype(np.float16))
        options = ["--to", "i8", "--sat", sat, "--arch", "a2"]
        assert main(["convert", str(half), str(out), *options]) == 0
        assert np.load(out)[0] == first

    def test_arrays_of_ml_dtypes_need_their_format(
        self, source: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        saved, out = source.with_name("bf16.npy"), source.with_name("out.npy")
        np.save(saved, convert(VALUES, "bf16"))
        assert main(["convert", str(saved), str(out), "--to", "f32"]) == 2
        assert "name its format with --from" in capsys.readouterr().err
        assert main(["convert", str(saved), str(out), "--to", "f32", "--from", "bf16"]) == 0
        assert np.array_equal(np.load(out), convert(convert(VALUES, "bf16"), "f32"))

    def test_a_pipe_is_written_to_and_not_replaced(self, source: Path) -> None:
        pipe = source.with_name("pipe")
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert main(["convert", str(source), str(pipe), "--to", "f16", "--sat", "OFF"]) == 0
            written = np.load(io.BytesIO(os.read(reader, 100_000)))
        finally:
            os.close(reader)
        assert np.array_equal(written, convert(VALUES, "f16", saturation="OFF"))
        assert stat.S_ISFIFO(pipe.stat().st_mode)

    def test_pipes(self, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read, wrote = io.BytesIO(source.read_bytes()), io.BytesIO()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(read))
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(wrote))
        assert main(["convert", "-", "-", "--to", "bf16"]) == 0
        codes = np.load(io.BytesIO(wrote.getvalue()))
        assert np.array_equal(codes, convert(VALUES, "bf16").view(np.uint16))

    @pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
    def test_odd_shapes(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        path = tmp_path / "x.npy"
        np.save(path, np.full(shape, 1.5, np.float32))
        assert main(["convert", str(path), str(path), "--to", "i32"]) == 0
        assert np.array_equal(np.load(path), np.full(shape, 2, np.int32))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--to", "bf17"], "unknown format 'bf17'.*bf16"),
            (["--to", "ui8"], "a5 does not convert f32 to ui8.*--arch none"),
            (["--to", "bf16", "--mode", "ODD"], "no mode ODD"),
            (["--to", "f16", "--from", "bf16"], "bfloat16.*not float32"),
            (["--to", "f16", "--arch", "b9"], "unknown target"),
            (["--to", "f16", "--arch", "a2", "--mode", "HYBRID"], "no mode HYBRID"),
        ],
    )
    def test_wrong_use(
        self,
        source: Path,
        options: list[str],
        message: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        out = source.with_name("out.npy")
        assert main(["convert", str(source), str(out), *options]) == 2
        error = capsys.readouterr().err
        assert re.match(f"pto-opt convert: error: .*{message}", error)
        assert [p.name for p in source.parent.iterdir()] == ["in.npy"]

    @pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
    def test_files_that_are_no_arrays(
        self, tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "x.npy"
        path.write_bytes(content)
        assert main(["convert", str(path), str(tmp_path / "y.npy"), "--to", "f16"]) == 2
        assert "no .npy file" in capsys.readouterr().err

    def test_objects_are_not_unpickled(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "x.npy"
        np.save(path, np.array([{}]), allow_pickle=True)
        assert main(["convert", str(path), str(tmp_path / "y.npy"), "--to", "f16"]) == 2
        assert "array of numbers" in capsys.readouterr().err

    def test_missing_files_and_folders(
        self, source: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        gone = str(source.with_name("gone.npy"))
        assert main(["convert", gone, gone, "--to", "f16"]) == 2
        assert main(["convert", str(source), "/no/such/folder/x.npy", "--to", "f16"]) == 2
        assert capsys.readouterr().err.count("No such file or directory") == 2


def explain(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", *arguments]) == 0
    return capsys.readouterr().out


class TestExplain:
    def test_worked_example_of_cast(self, capsys: pytest.CaptureFixture[str]) -> None:
        """0.5 + 2^-12 from f32 to f16, all six modes."""
        text = explain(capsys, "f32", "f16", "0.500244140625")
        rows = {line.split()[0]: line.split()[1:5] for line in text.splitlines() if "  0x3" in line}
        low = ["0.5", "0x3800", "0011100000000000", "-0.5"]
        high = ["0.50048828125", "0x3801", "0011100000000001", "+0.5"]
        assert {m: rows[m] for m in ("RINT", "FLOOR", "TRUNC")} == dict.fromkeys(
            ("RINT", "FLOOR", "TRUNC"), low
        )
        assert {m: rows[m] for m in ("CEIL", "ROUND", "ODD")} == dict.fromkeys(
            ("CEIL", "ROUND", "ODD"), high
        )
        assert "1.0000000000|1000000000000 x 2^-1" in text
        assert "exactly half an ulp, a tie" in text
        assert "tie: to the even neighbour" in text

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (("f32", "f16", "70000"), ["65504", "inf", "-70.25", "out of range"]),
            (("f16", "i8", "300.5"), ["127", "44", "45", "PyTorch-compatible"]),
            (("f16", "i8", "inf"), ["127", "gives -1"]),
            (("f32", "bf16", "0.1"), ["the f32 nearest to 0.1", "0x3DCC", "0x3DCD", "0.800003"]),
            (("f32", "hif8", "37.123"), ["fraction 10491 < threshold 15860"]),
            (("f32", "f16", "0x3F001000"), ["0.500244140625 from f32"]),
            (("f32", "f16", "-0x1.8p-3"), ["-0.1875 from f32", "exact"]),
            (("f32", "f16", "-inf"), ["-65504", "-inf", "infinity"]),
            (("f32", "f16", "1e-45"), ["subnormal"]),
            (("f32", "f16", "0x1p-26"), ["  significand  0|01", "x 2^-24", "0.25 ulp, less"]),
            (("f8e4m3fn", "f32", "nan"), ["NaN", "0x7FC00000"]),
            (("i32", "f32", "33554435"), ["33554436", "0x4C000001", "|11 x 2^25"]),
            (("i32", "i16", "40000"), ["32767", "-25536", "lowest bits"]),
            (("hif8", "f32", "0x7c"), ["dot", "1110", "room for all of it"]),
            (("bf16", "f8e8m0", "5"), ["0x81", "not offered on a2a3"]),
            (("f32", "f8e4m3fn", "2.6", "--arch", "a5"), ["not offered on a5"]),
            (("f32", "f16", "1", "2", "3"), ["1 from", "2 from", "3 from"]),
        ],
    )
    def test_shows(
        self,
        arguments: tuple[str, ...],
        expected: list[str],
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        text = explain(capsys, *arguments)
        assert [e for e in expected if e not in text] == []
        assert "\x1b" not in text
        assert not re.search(r"[ \t]$", text, re.MULTILINE)

    def test_colour_only_where_wanted(self, capsys: pytest.CaptureFixture[str]) -> None:
        plain = explain(capsys, "f32", "f16", "0.1")
        painted = explain(capsys, "f32", "f16", "0.1", "--color", "always")
        assert "\x1b[" in painted
        assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == plain

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("f32", "f17", "1"), "unknown format 'f17'"),
            (("f32", "f16", "one"), "'one' is no number"),
            (("f32", "f16", "1e999999"), "out of every format's range"),
            (("f16", "f32", "70000"), "larger than the largest f16"),
            (("f16", "f32", "0x10000"), "more than the 16 bits"),
            (("i8", "f16", "1.5"), "is no i8"),
            (("i8", "f16", "128"), "-128 to 127"),
            (("f16", "f16", "1"), "is no conversion"),
            (("c64", "c32", "1"), "part by part"),
            (("f4e2m1", "bf16", "inf"), "has no inf"),
            (("f8e8m0", "bf16", "-1"), "no negative"),
            (("f32", "f16", "1", "--arch", "x"), "unknown target"),
        ],
    )
    def test_wrong_use(
        self, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["explain", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("pto-opt explain: error: ")
        assert message in captured.err

    @pytest.mark.parametrize("src", [n for n, f in FORMATS.items() if f.kind != "complex"])
    def test_every_pair_has_a_page(self, src: str, capsys: pytest.CaptureFixture[str]) -> None:
        codes = {0, 1, 1 << (FORMATS[src].bits - 1), (1 << FORMATS[src].bits) - 1}
        values = [hex(c) for c in sorted(codes)]
        for dst, fmt in FORMATS.items():
            if fmt.kind != "complex" and (dst != src or src == "f32"):
                text = explain(capsys, src, dst, *values, "--arch", "a5")
                assert text.count(f" from {src} to {dst}") == len(values)
