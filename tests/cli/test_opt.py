"""`pto-opt FILE`: the driver, its exit status and what it writes."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import pto
from pto.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SSA = str(EXAMPLES / "ssa.pto")


def test_prints_the_module(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([SSA]) == 0
    assert capsys.readouterr().out == pto.print_module(pto.parse(Path(SSA)))


def test_reads_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"module {\n  func.func @f(%x: nothing)\n}\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["-"]) == 1
    assert capsys.readouterr().err.startswith(
        "<stdin>:2:20: error: expected a type, found 'nothing'"
    )


def test_runs_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([SSA, "-p", "pto-tile-to-buf", "--print-between-passes", "--time-passes"]) == 0
    printed = capsys.readouterr()
    assert "pto.tcvt ins(" in printed.out
    assert "pto-tile-to-buf" in printed.err


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "usage: pto-opt FILE"),
        (["no_such_file.pto"], 2, "no_such_file.pto: No such file or directory"),
        (["verfy"], 2, "did you mean 'pto-opt verify'?"),
        ([SSA, "-p", "verify-tcvt{arch=a9}"], 2, "did you mean 'a5'?"),
        ([SSA, "-p", "verify-tcvt{default_sat=maybe}"], 2, "'on' or 'off', not 'maybe'"),
        ([SSA, "-p", "verify-tcvt{arch="], 2, "specification: Unknown argument value"),
        ([SSA, "-o", str(EXAMPLES)], 2, f"{EXAMPLES}: Is a directory"),
        ([str(EXAMPLES)], 2, "Is a directory"),
        ([SSA, "-p", "verify-tcv"], 2, "did you mean 'verify-tcvt'?"),
        ([SSA, "-p", "no-pass-at-all"], 2, "pto-lower-tcvt"),
        ([SSA, "-p", "verify-tcvt{arch"], 2, "pipeline"),
        ([SSA, "-p", "verify-tcvt{arc=a5}"], 2, "arc"),
        ([SSA, "-o", "no/such/folder/x.pto"], 2, "no/such/folder/x.pto: No such file"),
        ([str(EXAMPLES / "mistakes.pto"), "-p", "verify-tcvt"], 1, "[round-mode]"),
    ],
)
def test_wrong_use_and_errors(
    arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    message = capsys.readouterr().err
    assert words in message
    assert "Traceback" not in message


@pytest.mark.parametrize("arguments", [["--no-such-option"], [SSA, "-t", "nothing"], ["tmp"]])
def test_unknown_options(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_an_output_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    output = tmp_path / "out.pto"
    assert main([SSA, "-o", str(output)]) == 0
    assert pto.parse(output).is_structurally_equivalent(pto.parse(Path(SSA)))
    before = output.read_text()
    broken = tmp_path / "broken.pto"
    broken.write_text(Path(SSA).read_text() + "}")
    assert main([str(broken), "-o", str(output)]) == 1
    assert output.read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.pto", "out.pto"]


def test_an_output_file_keeps_its_permissions_and_links_to_it(tmp_path: Path) -> None:
    output, link = tmp_path / "out.pto", tmp_path / "link.pto"
    old = os.umask(0o027)
    try:
        assert main([SSA, "-o", str(output)]) == 0
    finally:
        os.umask(old)
    assert stat.S_IMODE(output.stat().st_mode) == 0o640
    output.chmod(0o600)
    output.write_text("")
    link.symlink_to(output)
    assert main([SSA, "-o", str(link)]) == 0
    assert link.is_symlink()
    assert output.read_text()
    assert stat.S_IMODE(output.stat().st_mode) == 0o600


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main([SSA, "-o", str(pipe)]) == 0
        assert os.read(reader, 100_000).decode() == pto.print_module(pto.parse(Path(SSA)))
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_invalid_module_is_reported_at_its_operation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.pto"
    path.write_text("func.func @f(%x: i32) {\n  return %x : i32\n}\n")
    assert main([str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:2:3: error: ")


def test_a_file_that_is_not_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.pto"
    for data in (b"\xff\xfe", b"module {\0}"):
        path.write_bytes(data)
        assert main([str(path)]) == main(["verify", str(path)]) == main(["tmp", str(path)]) == 2
        assert capsys.readouterr().err.count(f"{path}: not a text file") == 3


def test_the_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_text("\ufeff" + Path(SSA).read_text())
    assert main([str(path)]) == main(["verify", str(path)]) == main(["tmp", str(path)]) == 0
    assert pto.print_module(pto.parse(path.read_text())) == pto.print_module(pto.parse(Path(SSA)))


@pytest.mark.parametrize("arguments", [[SSA], ["verify", SSA], ["table"], ["tmp", SSA]])
def test_output_that_cannot_be_written(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "pto.cli", *arguments]
    if Path("/dev/full").exists():
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (2, "pto-opt: No space left on device\n")
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE)
    assert (closed.returncode, closed.stderr) == (0, b"")


def test_a_closed_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["-"]) == main(["verify", "-"]) == 2
    assert capsys.readouterr().err.count("-: standard input is closed") == 2


def test_split_input_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.pto"
    file.write_text("module {\n}\n// -----\nmodule {\n}\n")
    assert main([str(file), "--split-input-file"]) == 0
    assert capsys.readouterr().out.count("builtin.module") == 2


def test_plain_xdsl_opt_reads_pto_files() -> None:
    code = "from xdsl.tools.xdsl_opt import main; main()"
    command = [sys.executable, "-c", code, SSA, "-p", "verify-tcvt"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "pto.tcvt" in done.stdout


def test_help_lists_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for verb in ("verify", "tmp", "run", "convert", "table", "explain"):
        assert f"  {verb} " in text


@pytest.mark.parametrize("verb", ["verify", "tmp", "run", "convert", "table", "explain"])
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([verb, "--help"])
    assert caught.value.code == 0
    assert f"usage: pto-opt {verb}" in capsys.readouterr().out
