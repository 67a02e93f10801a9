"""`pto-opt verify`, `tmp`, `table` and `explain ID` as commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pto
from pto.cli import docs, main

LEGAL = """\
module attributes {pto.target_arch = "a5"} {
func.func @f(%s: !pto.tile_buf<vec, 16x64xf32>, %d: !pto.tile_buf<vec, 16x64xbf16>) {
  pto.tcvt ins(%s : !pto.tile_buf<vec, 16x64xf32>) outs(%d : !pto.tile_buf<vec, 16x64xbf16>)
  return
}
}
"""
ILLEGAL = LEGAL.replace("xbf16", "xi8")
WARNS = """\
module attributes {pto.target_arch = "a3"} {
func.func @f(%s: !pto.tile_buf<vec, 16x64xf16>, %d: !pto.tile_buf<vec, 16x64xi8>) {
  pto.tcvt ins(%s : !pto.tile_buf<vec, 16x64xf16>) outs(%d : !pto.tile_buf<vec, 16x64xi8>)
  return
}
}
"""
NO_TARGET = LEGAL.replace(' attributes {pto.target_arch = "a5"}', "")
SMALL_TMP = """\
// A kernel with too small a tmp.
module attributes {pto.target_arch = "a3"} {
func.func @k(%s: !pto.tile_buf<vec, 16x80xf32, valid=16x65>, %d: !pto.tile_buf<vec, 16x80xi16, valid=16x65>) {
  %tmp = pto.alloc_tile : !pto.tile_buf<vec, 1x256xi8>   // scratch
  %other = pto.alloc_tile : !pto.tile_buf<vec, 1x256xi8>
  pto.tcvt ins(%s, %tmp {rmode = #pto<round_mode RINT>} : !pto.tile_buf<vec, 16x80xf32, valid=16x65>, !pto.tile_buf<vec, 1x256xi8>) outs(%d : !pto.tile_buf<vec, 16x80xi16, valid=16x65>)
  return
}
}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in (("b/legal.pto", LEGAL), ("a/illegal.pto", ILLEGAL), ("c.pto", WARNS)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "notes.txt").write_text("not PTO")
    return tmp_path


Out = pytest.CaptureFixture[str]


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


def test_a_folder_that_cannot_be_read(
    tree: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def refuse(path: str) -> object:  # root may read every folder
        if Path(path) == tree / "b":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert run("verify", tree) == 2
    assert f"{tree / 'b'}: Permission denied" in capsys.readouterr().err


def test_no_name_is_no_file(capsys: Out) -> None:
    assert run("verify", "") == 2
    assert "'': no such file" in capsys.readouterr().err


def test_a_written_location_does_not_move_findings(tmp_path: Path, capsys: Out) -> None:
    path = tmp_path / "k.pto"
    for location in ('"orig.py":900:70', '"orig.py":2:1', 'fused<1>["a":1:2]', "unknown"):
        path.write_text(ILLEGAL.replace("xi8>)\n", f"xi8>) loc({location})\n"))
        assert run("verify", path) == 1
        assert f"{path}:3:87: error: a5 does not convert f32 to i8" in capsys.readouterr().out
    path.write_text(SMALL_TMP.replace("i16, valid=16x65>)\n", 'i16, valid=16x65>) loc("a":9:9)\n'))
    assert run("tmp", path) == 1
    assert f"{path}:6:3 " in capsys.readouterr().out


def test_exit_status(tree: Path, capsys: Out) -> None:
    assert run("verify", tree / "b") == 0
    assert run("verify", tree / "c.pto") == 0
    assert run("verify", tree / "a/illegal.pto") == 1
    assert run("verify", tree) == 1
    assert run("verify", tree / "missing.pto") == 2
    assert "no such file" in capsys.readouterr().err


def test_wrong_use(tree: Path, capsys: Out) -> None:
    for options in (["--arch", "a7"], ["-W", "round-mod"], ["--no-warn", "shape"]):
        assert run("verify", *options, tree) == 2
    messages = capsys.readouterr().err
    assert "unknown target 'a7'" in messages
    assert "did you mean 'round-mode'" in messages
    assert "// pto: allow(shape)" in messages
    with pytest.raises(SystemExit) as exit_:
        run("verify", "--format", "xml", tree)
    assert exit_.value.code == 2


def test_a_folder_without_files_is_wrong_use(tmp_path: Path, capsys: Out) -> None:
    assert run("verify", tmp_path) == 2
    assert "no .pto files" in capsys.readouterr().err


def test_unreadable_files_do_not_hide_the_others(tree: Path, capsys: Out) -> None:
    (tree / "a/binary.pto").write_bytes(b"\xff\xfe\x00")
    assert run("verify", tree) == 2
    captured = capsys.readouterr()
    assert "binary.pto: not a text file" in captured.err
    assert "illegal.pto:3" in captured.out


def test_a_syntax_error_is_a_diagnostic(tree: Path, capsys: Out) -> None:
    (tree / "a/cut.pto").write_text(LEGAL[: LEGAL.index("outs")])
    assert run("verify", tree) == 1
    assert "[syntax]" in capsys.readouterr().out


def test_a_defect_is_reported_without_a_traceback(
    tree: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(text: str, *, filename: str) -> object:
        raise RuntimeError("boom")

    monkeypatch.setattr(pto, "parse", parse, raising=False)
    assert run("verify", tree / "b") == 2
    assert "internal error, please report it: RuntimeError('boom')" in capsys.readouterr().err


def test_summary(tree: Path, capsys: Out) -> None:
    run("verify", tree)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "3 files, 3 conversions: 1 error, 1 warning, 0 remarks"


def test_files_without_a_target_are_counted(tree: Path, capsys: Out) -> None:
    (tree / "d.pto").write_text(NO_TARGET)
    run("verify", tree / "d.pto")
    out = capsys.readouterr().out
    assert "no target is known" not in out
    assert "1 file without a known target: only what holds on every target was checked" in out
    run("verify", "--remarks", tree / "d.pto")
    assert "no target is known" in capsys.readouterr().out
    run("verify", "--arch", "a5", tree / "d.pto")
    assert "without a known target" not in capsys.readouterr().out


def test_results_are_in_path_order_whatever_the_jobs(tree: Path, capsys: Out) -> None:
    for n in range(20):
        (tree / f"b/{n:02}.pto").write_text(ILLEGAL if n % 3 else LEGAL)
    outputs = []
    for jobs in (1, 2, 3):
        assert run("verify", "-j", jobs, tree) == 1
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]
    places = [line.split(":")[0] for line in outputs[0].splitlines() if "[type-pair]" in line]
    assert places == sorted(places)
    assert len(places) == 14


def test_jobs_must_not_be_negative(tree: Path) -> None:
    with pytest.raises(SystemExit):
        run("verify", "-j", "-1", tree)


def test_warning_options(tree: Path, capsys: Out) -> None:
    path = tree / "c.pto"
    assert run("verify", "-Werror", path) == 1
    assert run("verify", "-W", "error=native-overflow", path) == 1
    assert run("verify", "-W", "error=double-rounding", path) == 0
    capsys.readouterr()
    for off in (["--no-warn", "native-overflow"], ["-Wno-native-overflow"]):
        assert run("verify", *off, path) == 0
        assert "native-overflow" not in capsys.readouterr().out
    assert run("verify", "-W", "nan-to-zero,negative-to-unsigned", path) == 0
    assert "[nan-to-zero]" in capsys.readouterr().out


def test_standard_input(tree: Path) -> None:
    command = [sys.executable, "-m", "pto.cli", "verify", "-"]
    result = subprocess.run(command, input=ILLEGAL, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stdout.startswith("-:3:")
    assert result.stderr == ""


def test_any_encoding_of_the_terminal(tree: Path) -> None:
    path = tree / "c.pto"
    path.write_text(WARNS.replace("outs(", "outs( // 转换\n"))
    command = [sys.executable, "-m", "pto.cli", "verify", "-Werror", str(path)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert result.returncode == 1
    assert b"[native-overflow]" in result.stdout
    assert result.stderr == b""


def test_no_colour_or_bar_off_the_terminal(tree: Path, capsys: Out) -> None:
    run("verify", "-j", 2, tree)
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err
    run("verify", "--color", "always", tree)
    assert "\x1b[1;31m" in capsys.readouterr().out


def test_verify_diagnostics(tree: Path, capsys: Out) -> None:
    path = tree / "expected.pto"
    at = "  // expected-error@+1 {{does not convert f32 to i8}}\n"
    path.write_text(ILLEGAL.replace("  pto.tcvt", f"{at}  pto.tcvt"))
    assert run("verify", "--verify-diagnostics", path) == 0
    path.write_text(ILLEGAL.replace("  pto.tcvt", f"{at.replace('i8', 'i4')}  pto.tcvt"))
    assert run("verify", "--verify-diagnostics", path) == 1
    out = capsys.readouterr().out
    assert "expected.pto:4:" in out
    assert "unexpected error: a5 does not convert f32 to i8 [type-pair]" in out
    assert "expected error on line 4: does not convert f32 to i4" in out


@pytest.mark.parametrize(
    "comment",
    [
        ("{line} // expected-error {{{{type-pair}}}}"),
        ("// expected-error@below {{{{type-pair}}}}\n{line}"),
        ("{line}\n// expected-error@above {{{{type-pair}}}}"),
        ("{line}\n// expected-error@-1 {{{{type-pair}}}}"),
        ("// expected-error-re@+1 {{{{does not convert {{{{[a-z]+32}}}} to i8}}}}\n{line}"),
        ("// expected-error@below {{{{type-pair}}}}\n// expected-note@below {{{{route}}}}\n{line}"),
    ],
)
def test_forms_of_expected_comments(comment: str, tree: Path) -> None:
    line = ILLEGAL.splitlines()[2]
    path = tree / "expected.pto"
    path.write_text(ILLEGAL.replace(line, comment.format(line=line)))
    assert run("verify", "--verify-diagnostics", path) == 0


def test_split_input_keeps_line_numbers(tree: Path, capsys: Out) -> None:
    path = tree / "split.pto"
    path.write_text(f"{LEGAL}// -----\n{ILLEGAL}")
    assert run("verify", "--split-input-file", path) == 1
    assert f"split.pto:{LEGAL.count(chr(10)) + 4}:" in capsys.readouterr().out


# tmp


def test_tmp_text(tree: Path, capsys: Out) -> None:
    path = tree / "tmp.pto"
    path.write_text(SMALL_TMP)
    assert run("tmp", path) == 1
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == [
        "function",
        "conversion",
        "valid",
        "stride",
        "head",
        "tail",
        "H",
        "needs",
        "has",
    ]
    cells = f"{path}:6:3 @k f32 -> i16 16x65 80 256 4832 - 4832 256 short by 4576"
    assert row.split() == cells.split()


def test_tmp_json(tree: Path, capsys: Out) -> None:
    path = tree / "tmp.pto"
    path.write_text(SMALL_TMP)
    assert run("tmp", "--format", "json", path, tree / "c.pto") == 1
    native, small = json.loads(capsys.readouterr().out)
    assert small == {
        "path": str(path),
        "func": "k",
        "line": 6,
        "column": 3,
        "src": "f32",
        "dst": "i16",
        "rows": 16,
        "cols": 65,
        "row_stride": 80,
        "required": 4832,
        "worst": 4832,
        "provided": 256,
        "bound": "exact",
        "head": 256,
        "tail": 4832,
        "H": 0,
    }
    assert (native["required"], native["provided"], native["H"]) == (256, None, 64)


def test_tmp_of_a_dynamic_region_is_an_upper_bound(tree: Path, capsys: Out) -> None:
    path = tree / "tmp.pto"
    path.write_text(SMALL_TMP.replace("valid=16x65", "valid=?x?"))
    assert run("tmp", path) == 0
    assert "<=5056" in capsys.readouterr().out
    run("tmp", "--format", "json", path)
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["required"], row["bound"], row["rows"], row["cols"]) == (4864, "upper", 16, 80)
    assert row["worst"] == 5056


def test_tmp_on_a5_is_wasted(tree: Path, capsys: Out) -> None:
    path = tree / "tmp.pto"
    path.write_text(SMALL_TMP)
    assert run("tmp", "--arch", "a5", path) == 0
    assert "unused, 256 wasted" in capsys.readouterr().out


@pytest.mark.parametrize("where", [["-i"], ["-o", "out.pto"]])
def test_tmp_writes_only_with_fix(tree: Path, capsys: Out, where: list[str]) -> None:
    assert run("tmp", tree / "c.pto", *where) == 2
    assert "give --fix too" in capsys.readouterr().err


def test_tmp_of_unreadable_and_broken_files(tree: Path, capsys: Out) -> None:
    (tree / "cut.pto").write_text(SMALL_TMP[: SMALL_TMP.index("outs")])
    assert run("tmp", tree / "cut.pto") == 1
    captured = capsys.readouterr()
    assert "cut.pto:6:" in captured.err
    assert captured.out == ""
    assert run("tmp", "--fix", "-i", tree / "cut.pto") == 1
    (tree / "binary.pto").write_bytes(b"\xff\xfe")
    assert run("tmp", "-j", 2, tree) == 2
    captured = capsys.readouterr()
    assert "binary.pto: not a text file" in captured.err
    assert "c.pto:3:3" in captured.out


def test_fix_in_place(tree: Path, capsys: Out) -> None:
    path = tree / "tmp.pto"
    path.write_text(SMALL_TMP)
    os.chmod(path, 0o640)
    assert run("tmp", "--fix", "-i", path) == 0
    fixed = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tree.iterdir() if p.name.startswith(".")] == []
    changed = [
        (old, new)
        for old, new in zip(SMALL_TMP.splitlines(), fixed.splitlines(), strict=True)
        if old != new
    ]
    assert len(changed) == 2
    assert changed[0][1] == "  %tmp = pto.alloc_tile : !pto.tile_buf<vec, 1x4832xi8>   // scratch"
    assert "!pto.tile_buf<vec, 1x4832xi8>) outs" in changed[1][1]
    assert run("tmp", path) == 0
    assert run("verify", "-Werror", path) == 0
    assert run("tmp", "--fix", "-i", path) == 0
    assert path.read_text() == fixed


def test_fix_to_another_file_keeps_line_ends_and_the_long_form(tree: Path) -> None:
    path, out = tree / "tmp.pto", tree / "out.pto"
    long = (
        "!pto.tile_buf<loc=vec, dtype=i32, rows=1, cols=64, v_row=1, v_col=64,"
        " blayout=row_major, slayout=none_box, fractal=512, pad=0>"
    )
    text = SMALL_TMP.replace("!pto.tile_buf<vec, 1x256xi8>", long).replace("\n", "\r\n")
    path.write_bytes(text.encode())
    assert run("tmp", "--fix", "-o", out, path) == 0
    assert path.read_bytes() == text.encode()
    grown = long.replace("cols=64", "cols=1208").replace("v_col=64", "v_col=1208")
    assert out.read_bytes().decode().count(grown) == 2
    assert out.read_bytes().count(b"\r\n") == text.count("\r\n")


def test_fix_leaves_parameters_alone(tree: Path, capsys: Out) -> None:
    path = tree / "tmp.pto"
    alloc = "  %tmp = pto.alloc_tile : !pto.tile_buf<vec, 1x256xi8>   // scratch\n"
    text = SMALL_TMP.replace(alloc, "").replace("(%s:", "(%tmp: !pto.tile_buf<vec, 1x256xi8>, %s:")
    path.write_text(text)
    assert run("tmp", "--fix", "-i", path) == 1
    assert "left as it is: %tmp: it is a parameter" in capsys.readouterr().err
    assert path.read_text() == text


def test_fix_wants_to_know_where_to(tree: Path, capsys: Out) -> None:
    assert run("tmp", "--fix", tree) == 2
    assert run("tmp", "--fix", "-o", tree / "x", tree) == 2
    assert "--fix wants" in capsys.readouterr().err


# table, explain


def test_table_text(capsys: Out) -> None:
    assert run("table", "--arch", "a5", "--instruction", "tcvt", "--src", "f32") == 0
    heading, _, *rows = capsys.readouterr().out.splitlines()
    assert heading == "TCVT on a5 (Ascend 950PR/950DT (Atlas 350))"
    assert [row.split()[1] for row in rows] == [
        *("f16", "f32", "bf16", "i16", "i32", "i64", "f8e4m3fn", "f8e5m2", "hif8")
    ]


def test_table_json(capsys: Out) -> None:
    assert run("table", "--arch", "a3", "--format", "json") == 0
    value = json.loads(capsys.readouterr().out)
    assert [(t["instruction"], t["product"]) for t in value] == [
        *(("TCVT", "a2a3"), ("Cast", "a2"), ("Cast", "a3"), ("MulCast", "a2a3"))
    ]
    row = next(r for r in value[0]["rows"] if (r["src"], r["dst"]) == ("f32", "i16"))
    assert (row["default_saturation"], row["pytorch"]) == ("OFF", True)


def test_table_wrong_use(capsys: Out) -> None:
    assert run("table", "--arch", "a4") == 2
    assert run("table", "--src", "flaot") == 2
    assert "f64, f32, f16" in capsys.readouterr().err


def test_explain_id(capsys: Out) -> None:
    assert run("explain", "overlap") == 0
    out = capsys.readouterr().out
    assert out.startswith("`overlap` (error)")
    assert "Instead:" in out
    assert run("explain", "overlp") == 2
    assert "did you mean 'overlap'" in capsys.readouterr().err


# docs

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", docs.PAGES)
def test_the_generated_docs_are_up_to_date(name: str) -> None:
    """Write them again with `python -m pto.cli.docs docs`."""
    assert (DOCS / name).read_text(encoding="utf-8") == docs.PAGES[name]()


def test_the_guide_shows_what_is_printed(capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS.parent / "examples")
    blocks = (DOCS / "verify.md").read_text(encoding="utf-8").split("```\n")
    shown = [block for block in blocks if block.lstrip().startswith(("mistakes.pto", "function"))]
    run("verify", "mistakes.pto")
    assert shown[0] in capsys.readouterr().out
    run("tmp", "mistakes.pto")
    assert shown[1] == capsys.readouterr().out
