"""Speed and memory of `pto-opt verify` over a tree of `.pto` files.

    python benchmarks/verify.py [FOLDER]

Without a folder, a tree of 300 generated kernels of about 25 KB each is verified. Prints wall time,
throughput and the largest process, for one process and for two.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KERNELS = 300
CONVERSIONS = 40

_KERNEL = """\
module attributes {{pto.target_arch = "{arch}"}} {{
  func.func @kernel(%p: !pto.ptr<f32>, %n: i64, %m: index) {{
{body}
    return
  }}
}}
"""
_TILE = (
    "!pto.tile_buf<loc=vec, dtype={dtype}, rows=16, cols=128, v_row=?, v_col=?,"
    " blayout=row_major, slayout=none_box, fractal=512, pad=0>"
)


def kernel(number: int) -> str:
    """A kernel with allocations and conversions in the form that compilers emit."""
    f32, bf16 = _TILE.format(dtype="f32"), _TILE.format(dtype="bf16")
    lines = []
    for n in range(CONVERSIONS):
        lines += [
            f"    %a{n} = pto.alloc_tile addr = %n valid_row = %m valid_col = %m : {f32}",
            f"    %b{n} = pto.alloc_tile addr = %n valid_row = %m valid_col = %m : {bf16}",
            f"    pto.tcvt ins(%a{n} {{rmode = #pto<round_mode RINT>}} : {f32})"
            f" outs(%b{n} : {bf16})",
        ]
    return _KERNEL.format(arch=("a2a3", "a5")[number % 2], body="\n".join(lines))


def generate(folder: Path) -> None:
    """Writes the generated kernels."""
    for number in range(KERNELS):
        (folder / f"kernel_{number:03}.pto").write_text(kernel(number))


def measure(folder: Path, jobs: int) -> tuple[float, str]:
    """Seconds of one run, and its summary line."""
    command = [sys.executable, "-m", "pto.cli", "verify", "-j", str(jobs), str(folder)]
    start = time.perf_counter()
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    lines = [line for line in result.stdout.splitlines() if " conversions: " in line]
    return seconds, lines[-1] if lines else result.stderr


def report(folder: Path) -> None:
    """Runs with one process and with two, best of three, and prints the figures."""
    size = sum(path.stat().st_size for path in folder.rglob("*.pto"))
    for jobs in (1, 2):
        seconds, line = min(measure(folder, jobs) for _ in range(3))
        print(f"-j {jobs}: {seconds:5.2f} s  {size / 1e6 / seconds:5.2f} MB/s  ({line})")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest process: {peak:.0f} MB")


def main() -> None:
    """Entry point."""
    if len(sys.argv) > 1:
        report(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as name:
        generate(Path(name))
        report(Path(name))


if __name__ == "__main__":
    main()
