"""How fast the machine runs lowered conversions: `python benchmarks/machine.py`.

CPU time of the best of several launches, in elements of the tile and in instructions.
"""

from __future__ import annotations

import time

import numpy as np
from xdsl.context import Context

import pto
from pto.passes.lower_tcvt import LowerTcvtPass
from pto.passes.materialize_tmp import MaterializeTmpPass
from pto.runtime.machine import MachineKernel

LAUNCHES = 20
CASES = [
    ("a2a3", "f32", "f16", 64, 256, "ON"),
    ("a2a3", "f32", "f16", 128, 64, "ON"),
    ("a2a3", "f32", "bf16", 255, 48, "ON"),
    ("a2a3", "f32", "i16", 64, 128, "OFF"),
    ("a2a3", "f16", "i16", 64, 128, "OFF"),
    ("a2a3", "f16", "i8", 64, 128, "OFF"),
    ("a5", "f32", "f16", 64, 256, "ON"),
    ("a5", "f16", "f32", 64, 256, "ON"),
    ("a5", "f32", "f8E4M3FN", 64, 256, "ON"),
    ("a5", "f16", "i8", 64, 256, "OFF"),
    ("a5", "f32", "i64", 32, 256, "ON"),
]


def kernel(arch: str, src: str, dst: str, rows: int, cols: int, saturation: str) -> MachineKernel:
    """The lowered conversion of a tile whose source is at byte 0."""
    tiles = [f"!pto.tile_buf<vec, {rows}x{cols}x{name}>" for name in (src, dst)]
    attributes = f"{{satmode = #pto<saturation_mode {saturation}>}}"
    module = pto.parse(f"""func.func @f() attributes {{pto.target_arch = "{arch}"}} {{
      %a = arith.constant 0 : i64
      %b = arith.constant 98304 : i64
      %s = pto.alloc_tile addr = %a : {tiles[0]}
      %d = pto.alloc_tile addr = %b : {tiles[1]}
      pto.tcvt ins(%s {attributes} : {tiles[0]}) outs(%d : {tiles[1]})
      return
    }}""")
    MaterializeTmpPass().apply(Context(), module)
    LowerTcvtPass().apply(Context(), module)
    return MachineKernel(module)


def best(run: MachineKernel) -> float:
    """Seconds of CPU of the fastest launch."""
    core = run.core()
    buffer = core.unified_buffer
    buffer.data[:] = np.random.default_rng(0).integers(0, 256, buffer.size, np.uint8)
    buffer.written[:] = True
    times = []
    for _ in range(LAUNCHES):
        start = time.process_time()
        run.launch_on(core)
        times.append(time.process_time() - start)
    return min(times[1:])


def main() -> None:
    """Prints the table."""
    print(
        f"{'conversion':28} {'tile':>8} {'instructions':>12} {'M elements/s':>12} {'us/instr':>9}"
    )
    for arch, src, dst, rows, cols, saturation in CASES:
        run = kernel(arch, src, dst, rows, cols, saturation)
        seconds = best(run)
        count = run.report.instructions.total() // LAUNCHES
        name = f"{arch} {src} to {dst} {saturation}"
        print(
            f"{name:28} {f'{rows}x{cols}':>8} {count:12} {rows * cols / seconds / 1e6:12.1f}"
            f" {seconds / count * 1e6:9.1f}"
        )


if __name__ == "__main__":
    main()
