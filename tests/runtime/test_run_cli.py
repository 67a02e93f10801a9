"""`pto-opt run`, and the distances that `--check` prints."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pto.cli import main
from pto.cli.compare import compare
from pto.numerics import FORMATS, decode

KERNEL = """module attributes {pto.target_arch = "a5"} {
  func.func @cast(%x: !pto.ptr<f32>, %y: !pto.ptr<bf16>, %n: index, %block_idx: i32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %b = arith.index_cast %block_idx : i32 to index
    %row = arith.muli %b, %c4 : index
    %xv = pto.make_tensor_view %x, shape = [%n, %c16], strides = [%c16, %c1]
      : !pto.tensor_view<?x?xf32>
    %yv = pto.make_tensor_view %y, shape = [%n, %c16], strides = [%c16, %c1]
      : !pto.tensor_view<?x?xbf16>
    %xp = pto.partition_view %xv, offsets = [%row, %c0], sizes = [%c4, %c16]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<4x16xf32>
    %yp = pto.partition_view %yv, offsets = [%row, %c0], sizes = [%c4, %c16]
      : !pto.tensor_view<?x?xbf16> -> !pto.partition_tensor_view<4x16xbf16>
    %s = pto.alloc_tile : !pto.tile_buf<vec, 4x16xf32>
    %d = pto.alloc_tile : !pto.tile_buf<vec, 4x16xbf16>
    pto.tload ins(%xp : !pto.partition_tensor_view<4x16xf32>)
      outs(%s : !pto.tile_buf<vec, 4x16xf32>)
    pto.tcvt ins(%s {rmode = #pto<round_mode RINT>} : !pto.tile_buf<vec, 4x16xf32>)
      outs(%d : !pto.tile_buf<vec, 4x16xbf16>)
    pto.tstore ins(%d : !pto.tile_buf<vec, 4x16xbf16>)
      outs(%yp : !pto.partition_tensor_view<4x16xbf16>)
    return
  }
}
"""

LOAD = KERNEL[: KERNEL.index("pto.tload")].count("\n") + 1
CONVERT = KERNEL[: KERNEL.index("pto.tcvt")].count("\n") + 1

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kernel, its input and what it should give, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("cast.pto").write_text(KERNEL)
    x = np.random.default_rng(3).normal(size=(8, 16)).astype(np.float32)
    np.save("x.npy", x)
    np.save("expected.npy", x.astype(ml_dtypes.bfloat16).view(np.uint16))
    return tmp_path


def run(*arguments: str) -> int:
    return main(["run", "cast.pto", *arguments])


def test_all_blocks_in_turn_and_the_shape_of_the_view(folder: Path, capsys: Capture) -> None:
    status = run("--arg", "x=x.npy", "--arg", "n=8", "--block-num", "2", "--out", "y=y.npy",
                 "--check", "expected.npy")  # fmt: skip
    assert status == 0
    assert (np.load("y.npy") == np.load("expected.npy")).all()
    assert capsys.readouterr().out.splitlines() == [
        "y: 8x16 bf16 -> y.npy",
        "y: all 128 elements equal expected.npy",
    ]


def test_one_block_by_position_and_raw_bytes(folder: Path, capsys: Capture) -> None:
    np.load("x.npy").tofile("x.bin")
    status = run("--arg", "x.bin", "--arg", "1=zeros:8x16", "--arg", "n=8", "--block-idx", "1",
                 "--block-num", "2", "--out", "1=y.bin")  # fmt: skip
    assert status == 0
    y, expected = np.fromfile("y.bin", np.uint16).reshape(8, 16), np.load("expected.npy")
    assert (y[4:] == expected[4:]).all()
    assert not y[:4].any()
    assert "without satmode: the default of each pair on a5" in capsys.readouterr().err


def test_failed_check_lists_the_worst_first(folder: Path, capsys: Capture) -> None:
    wrong = np.load("expected.npy")
    wrong[0, 1] += 1
    wrong[3, 4] += 5
    np.save("wrong.npy", wrong)
    options = ("--arg", "x=x.npy", "--arg", "n=8", "--block-num", "2", "--check", "y=wrong.npy")
    assert run(*options) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "y: 2 of 128 elements differ from wrong.npy"
    assert lines[1].startswith("  [3, 4]: ")
    assert lines[1].endswith(" (5 ulp)")
    assert lines[2].endswith(" (1 ulp)")
    assert run(*options, "--tolerance", "1") == 1
    assert run(*options, "--tolerance", "5") == 0


def test_trace_counts_what_conversions_lose(folder: Path, capsys: Capture) -> None:
    x = np.load("x.npy")
    x[0, 0], x[0, 1], x[0, 2] = np.nan, np.inf, 3.4e38
    np.save("x.npy", x)
    assert run("--arg", "x=x.npy", "--arg", "n=8", "--trace") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{LOAD:>5}  pto.tload  tile_buf<vec, 4x16xf32>: ")
    assert lines[0].endswith(" .. 3.4e+38, 1 NaN, 1 inf")
    assert lines[1].startswith(f"{CONVERT:>5}  pto.tcvt  f32 to bf16: ")
    assert lines[1].endswith("2 saturated, 1 NaN to a number")
    assert f"cast.pto:{CONVERT}:5: 1 runs, 64 elements: 2 saturated, 1 NaN to a number" in lines[3]
    assert lines[4] == "y: 8x16 bf16, written but not saved (--out y=)"


@pytest.mark.parametrize(
    ("dst", "attributes", "expected"),
    [
        ("i16", "satmode = #pto<saturation_mode ON>", "-32768 .. 32767, 2 saturated, 1 NaN to a"),
        ("i16", "satmode = #pto<saturation_mode OFF>", "-25536 .. 25536, 2 wrapped, 1 NaN to a"),
        ("f16", "satmode = #pto<saturation_mode OFF>", "-40000 .. 40000, 1 NaN"),
        ("f8E5M2", "satmode = #pto<saturation_mode OFF>", "-40960 .. 40960, 1 NaN"),
        ("f8E4M3FN", "satmode = #pto<saturation_mode ON>", "-448 .. 448, 2 saturated, 1 NaN to"),
    ],
)
def test_trace_names_what_becomes_of_large_numbers(
    dst: str, attributes: str, expected: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "f.pto"
    path.write_text(f"""func.func @f(%s: !pto.tile<1x32xf32>) -> !pto.tile<1x32x{dst}> {{
      %d = pto.tcvt %s {{{attributes}}} : !pto.tile<1x32xf32> -> !pto.tile<1x32x{dst}>
      return %d : !pto.tile<1x32x{dst}>
    }}""")
    x = np.zeros((1, 32), np.float32)
    x[0, :4] = 40000, -40000, np.nan, 448.000031
    np.save(tmp_path / "x.npy", x)
    out = f"result={tmp_path / 'd.npy'}"
    assert main(["run", str(path), "--arg", str(tmp_path / "x.npy"), "--out", out, "--trace"]) == 0
    assert expected in capsys.readouterr().out.splitlines()[0]


def test_trace_of_poison(tmp_path: Path, capsys: Capture) -> None:
    """Two rows of %b and so of %i are poison; nothing depends on them."""
    half, whole = "!pto.tile_buf<vec, 4x8xf32, valid=2x8>", "!pto.tile_buf<vec, 4x8xf32>"
    result, held = whole.replace("f32", "i32"), half.replace("f32", "i32")
    (tmp_path / "f.pto").write_text(f"""func.func @f(%x: {half}) -> {held} {{
      %b = pto.alloc_tile : {whole}
      pto.tadd ins(%x, %x : {half}, {half}) outs(%b : {whole})
      %i = pto.alloc_tile : {result}
      pto.tcvt ins(%b : {whole}) outs(%i : {result})
      %y = pto.alloc_tile : {held}
      pto.tmov ins(%i : {result}) outs(%y : {held})
      return %y : {held}
    }}""")
    assert main(["run", str(tmp_path / "f.pto"), "--arg", "x=zeros:2x8", "--trace"]) == 0
    assert "    5  pto.tcvt  f32 to i32: partly poison" in capsys.readouterr().out


def test_the_machine_gives_the_same_array(folder: Path, capsys: Capture) -> None:
    status = run("--arg", "x=x.npy", "--arg", "n=8", "--block-num", "2", "--machine",
                 "--check", "y=expected.npy")  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert lines[0].startswith("machine a5: ")
    assert lines[-1] == "y: all 128 elements equal expected.npy"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--arg", "n=8"], 2, f"cast.pto:{LOAD}:5: error: pto.tload: reads %x, for which no"),
        (["--arg", "x=x.npy"], 2, "no value for %n, of type index"),
        (
            ["--arg", "x=x.npy", "--arg", "n=12", "--block-num", "3"],
            1,
            f"cast.pto:{LOAD}:5: error: pto.tload: reads bytes 512 to 768 of %x",
        ),
        (["--arg", "x=x.npy", "--arg", "n=3"], 1, "elements 0 to 4 of axis 0 of %x, which has 3"),
        (["--arg", "z=x.npy"], 2, "no argument 'z'; arguments: x, y, n, block_idx"),
        (["--arg", "x=3"], 2, "x is of type !pto.ptr<f32>: give FILE.npy, FILE.bin or zeros:SHAPE"),
        (["--arg", "n=many"], 2, "n is of type index; 'many' is no such number"),
        (["--arg", "x=absent.npy"], 2, "absent.npy: No such file"),
        (["--arg", "x=cast.pto.npy"], 2, "cast.pto.npy: "),
        (["--arg", "x=expected.npy", "--arg", "n=8"], 2, "%x takes an array of float32"),
        (["--arg", "x=zeros:9999999999x9999999999"], 2, "x: "),
        (["--arg", "n=99999999999999"], 2, "%x would take 6399999999999936 bytes"),
        (["--arch", "a9"], 2, "unknown target 'a9'"),
        (["--func", "g"], 2, "no function 'g' with a body; functions: cast"),
        (["--block-idx", "2"], 2, "--block-idx 2 of --block-num 1"),
        (["--check", "expected.npy"], 2, "--check: name the array, NAME=FILE.npy"),
        (["--trace", "--machine"], 2, "--trace and --machine exclude each other"),
        (["--out", "y"], 2, "--out y: write NAME=FILE"),
        # Before the kernel, which would fail for want of %x, has run.
        (["--arg", "n=8", "--out", "y=y.txt"], 2, "y.txt: the name of an output ends in .npy"),
        (["--arg", "n=8", "--out", "n=n.npy"], 2, "n is a scalar; only arrays are written"),
        (["--arg", "n=8", "--arg", "2=8"], 2, "--arg 2=8: n has a value already"),
        (["--out", "y=y.npy", "--out", "y=z.npy"], 2, "y goes to y.npy already"),
        (["--block-num", "0"], 2, "--block-num 0: at least 1"),
        (["--tolerance", "-1"], 2, "--tolerance -1: at least 0"),
    ],
)
def test_wrong_use(
    arguments: list[str], status: int, message: str, folder: Path, capsys: Capture
) -> None:
    Path("cast.pto.npy").write_text(KERNEL)
    assert run(*arguments) == status
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "status"),
    [("func.func @f() {", 1), ("\x00", 2), (None, 2)],
)
def test_unreadable_programs(
    text: str | None, status: int, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "bad.pto"
    if text is not None:
        path.write_text(text)
    assert main(["run", str(path)]) == status
    assert "bad.pto" in capsys.readouterr().err


def test_the_machine_refuses_what_the_target_lacks(folder: Path, capsys: Capture) -> None:
    Path("cast.pto").write_text(KERNEL.replace("RINT", "ODD"))
    assert run("--arg", "x=x.npy", "--arg", "n=8", "--machine") == 1
    message = capsys.readouterr().err
    assert f"pto-opt run: error: cast.pto:{CONVERT}:5: f32 to bf16 does not round by ODD" in message


def test_results_of_a_function(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "f.pto"
    path.write_text("""func.func @f(%t: !pto.tile<1x8xf32>) -> (!pto.tile<1x8xi32>, i32) {
      %c = arith.constant 7 : i32
      %d = pto.tcvt %t {rmode = #pto<round_mode FLOOR>} : !pto.tile<1x8xf32> -> !pto.tile<1x8xi32>
      return %d, %c : !pto.tile<1x8xi32>, i32
    }""")
    np.save(tmp_path / "t.npy", np.linspace(-2, 2, 8, dtype=np.float32).reshape(1, 8))
    out = f"result0={tmp_path / 'd.npy'}"
    assert main(["run", str(path), "--arg", str(tmp_path / "t.npy"), "--out", out]) == 0
    assert np.load(tmp_path / "d.npy").tolist() == [[-2, -2, -1, -1, 0, 0, 1, 2]]
    assert capsys.readouterr().out.splitlines()[1] == "result1: 7"


@pytest.mark.parametrize("name", ["f16", "bf16", "f8e4m3fn", "f8e5m2", "hif8", "i8", "ui16"])
def test_neighbours_are_one_ulp_apart(name: str) -> None:
    fmt = FORMATS[name]
    codes = np.arange(1 << fmt.bits).astype(fmt.code_dtype)
    values = np.asarray(decode(codes, fmt), np.float64)
    finite = np.flatnonzero(np.isfinite(values))
    order = finite[np.argsort(values[finite], kind="stable")]
    ascending = codes[order]
    ascending = ascending[np.diff(values[order], prepend=-np.inf) > 0]
    comparison = compare(ascending[:-1], ascending[1:], fmt, limit=1)
    assert comparison.largest == 1
    assert comparison.count == ascending.size - 1


def test_distances_of_nan_zero_and_extremes() -> None:
    def bits(*values: float) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        return np.float32(values).view(np.uint32)

    fmt = FORMATS["f32"]
    assert compare(bits(0.0, np.nan), bits(-0.0, -np.nan), fmt).count == 0
    found = compare(bits(1.0, np.nan, 1.0), bits(2.0, 1.0, 1.0), fmt)
    assert [(m.index, m.ulps) for m in found.worst] == [((1,), None), ((0,), 1 << 23)]
    smallest, largest = np.array([1 << 63], np.uint64), np.array([(1 << 63) - 1], np.uint64)
    widest = compare(smallest, largest, FORMATS["i64"])
    assert widest.largest == (1 << 64) - 1


def test_an_output_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = str(Path(__file__).parents[2] / "examples" / "ssa.pto")
    arguments = ["run", kernel, "--arg", "x=zeros:8x32"]
    assert main([*arguments, "--out", f"y={tmp_path / 'no' / 'y.npy'}"]) == 2
    assert main([*arguments, "--out", f"y={tmp_path / 'y.npy'}"]) == 0
    assert np.load(tmp_path / "y.npy").shape == (8, 32)
    assert [path.name for path in tmp_path.iterdir()] == ["y.npy"]
    assert "No such file or directory" in capsys.readouterr().err
