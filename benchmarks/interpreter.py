"""Cost of execution: per tile operation on small tiles, per scalar operation, and on large tiles.

    python benchmarks/interpreter.py

The small tiles are 1x8, where numpy costs next to nothing per element: what is printed is the
overhead of one operation, in microseconds. Large tiles are 128x256, beside numpy's own time for the
same computation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pto
from pto.runtime.arguments import bind
from pto.runtime.launch import Kernel

LOOPS = 2000
LARGE = (128, 256)

_LOOP = """
func.func @f({arguments}, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a0 = arith.constant 0 : i64
  %s = arith.constant 1.5 : f32
  scf.for %i = %c0 to %n step %c1 {{
    {body}
  }}
  return
}}
"""


def tile(dtype: str, rows: int, cols: int, extra: str = "") -> str:
    """A tile type."""
    return f"!pto.tile_buf<vec, {rows}x{cols}x{dtype}{extra}>"


def statements(rows: int, cols: int) -> dict[str, tuple[str, dict[str, str]]]:
    """Operations by name: the statement, and the types of its arguments."""
    t, h, i = tile("f32", rows, cols), tile("f16", rows, cols), tile("i32", rows, cols)
    b = tile("bf16", rows, cols)
    column = tile("f32", rows, 1, ", blayout=col_major")
    row = tile("f32", 1, cols)
    binary = "pto.{0} ins(%x, %y : {1}, {1}) outs(%z : {1})"
    unary = "pto.{0} ins(%x : {1}) outs(%z : {2})"
    three = {"x": t, "y": t, "z": t}
    return {
        "tadd f32": (binary.format("tadd", t), three),
        "tmul f16": (binary.format("tmul", h), {"x": h, "y": h, "z": h}),
        "tadd bf16": (binary.format("tadd", b), {"x": b, "y": b, "z": b}),
        "tmax i32": (binary.format("tmax", i), {"x": i, "y": i, "z": i}),
        "tmuls f32": (f"pto.tmuls ins(%x, %s : {t}, f32) outs(%z : {t})", {"x": t, "z": t}),
        "texpands f32": (f"pto.texpands ins(%s : f32) outs(%z : {t})", {"z": t}),
        "texp f32": (unary.format("texp", t, t), {"x": t, "z": t}),
        "tmov f32": (unary.format("tmov", t, t), {"x": t, "z": t}),
        "trowsum f32": (unary.format("trowsum", t, column), {"x": t, "z": column}),
        "tcolexpandmul f32": (
            f"pto.tcolexpandmul ins(%x, %y : {t}, {row}) outs(%z : {t})",
            {"x": t, "y": row, "z": t},
        ),
        "tcvt f32 to f16": (unary.format("tcvt", t, h), {"x": t, "z": h}),
        "tcvt f32 to bf16": (unary.format("tcvt", t, b), {"x": t, "z": b}),
        "tcvt f32 to i32": (unary.format("tcvt", t, i), {"x": t, "z": i}),
        "alloc_tile": (f"%t = pto.alloc_tile addr = %a0 : {t}", {"x": t}),
    }


_ALU = """
    %j = arith.muli %i, %c1 : index
    %k = arith.addi %j, %c1 : index
    %l = arith.cmpi slt, %k, %n : index
    %m = arith.select %l, %k, %j : index
"""
SCALAR = {
    "four arith operations": (_ALU, {"x": "!pto.ptr<f32>"}),
    "load_scalar, store_scalar": (
        "%v = pto.load_scalar %x[%c1] : !pto.ptr<f32> -> f32\n"
        "    pto.store_scalar %v, %x[%c0] : !pto.ptr<f32>, f32",
        {"x": "!pto.ptr<f32>"},
    ),
}


def seconds(body: str, types: dict[str, str], loops: int, shape: tuple[int, int]) -> float:
    """Best time of one iteration of a loop around the statement."""
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in types.items())
    kernel = Kernel(pto.parse(_LOOP.format(arguments=arguments, body=body)), "f")
    values = [_value(type_, shape) for type_ in types.values()]

    def run() -> None:
        bound = [
            bind(name, type_, value)
            for (name, type_), value in zip(kernel.arguments.items(), [*values, loops], strict=True)
        ]
        kernel.launch(bound)

    run()
    return best(run) / loops


def _value(type_: str, shape: tuple[int, int]) -> Any:
    import ml_dtypes

    rows = 1 if f"1x{shape[1]}x" in type_ else shape[0]
    cols = 1 if "col_major" in type_ else shape[1]
    kinds = {"xf16": np.float16, "xbf16": ml_dtypes.bfloat16, "xi32": np.int32}
    dtype = next((kind for text, kind in kinds.items() if text in type_), np.float32)
    return np.ones((rows, cols), dtype)


def best(run: Callable[[], object], repeats: int = 5) -> float:
    """The fastest of several times, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def numpy_seconds(name: str) -> float | None:
    """numpy's time for the same computation on a large tile, where there is one call for it."""
    x, y = np.ones(LARGE, np.float32), np.ones(LARGE, np.float32)
    z, half, row = np.empty_like(x), np.empty(LARGE, np.float16), np.ones(LARGE[1], np.float32)
    calls: dict[str, Callable[[], object]] = {
        "tadd f32": lambda: np.add(x, y, out=z),
        "tmuls f32": lambda: np.multiply(x, np.float32(1.5), out=z),
        "texpands f32": lambda: z.fill(1.5),
        "tmov f32": lambda: np.copyto(z, x),
        "tcolexpandmul f32": lambda: np.multiply(x, row, out=z),
        "tcvt f32 to f16": lambda: np.copyto(half, x, casting="unsafe"),
    }
    if name not in calls:
        return None
    call = calls[name]
    return best(lambda: [call() for _ in range(50)]) / 50


def main() -> None:
    """Prints the tables."""
    empty = seconds("", {"x": "!pto.ptr<f32>"}, LOOPS, (1, 8))
    print(f"empty loop: {empty * 1e6:.2f} us an iteration\n\n1x8 tiles, us an operation")
    for name, (body, types) in statements(1, 8).items():
        print(f"  {name:20} {(seconds(body, types, LOOPS, (1, 8)) - empty) * 1e6:6.2f}")
    print("\nscalars, us for all of")
    for name, (body, types) in SCALAR.items():
        print(f"  {name:26} {(seconds(body, types, 20 * LOOPS, (1, 8)) - empty) * 1e6:6.2f}")
    print("\n128x256 tiles, us an operation (numpy)")
    for name, (body, types) in statements(*LARGE).items():
        own = numpy_seconds(name)
        beside = f" ({own * 1e6:.1f})" if own is not None else ""
        print(f"  {name:20} {seconds(body, types, 500, LARGE) * 1e6:8.1f}{beside}")


if __name__ == "__main__":
    main()
