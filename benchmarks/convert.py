"""Speed of `pto.numerics.convert` against memcpy and against everything else that converts.

    python benchmarks/convert.py [--elements N] [--rounds R] [--only NAME] [--json FILE]

One run interleaves all contestants, so that they meet the same machine, and reports medians.
Arrays have 2^24 elements and the output is preallocated. Ratios are speed relative to the
contestant named: more than 1 means that pto is faster. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.numerics import FORMATS, convert
from pto.numerics.arrays import _conversion
from pto.numerics.jit_engine import is_available

Array = NDArray[Any]
FIVE = ("RINT", "ROUND", "FLOOR", "CEIL", "TRUNC")

# The pairs that every table is about: source, destination, modes timed.
PAIRS = [
    ("f32", "bf16", FIVE),
    ("f32", "f16", (*FIVE, "ODD")),
    ("f32", "f8e4m3fn", ("RINT",)),
    ("f32", "f8e5m2", ("RINT",)),
    ("f32", "hif8", ("ROUND", "HYBRID")),
    ("f32", "i32", FIVE),
    ("f32", "i16", FIVE),
    ("f32", "i8", ("RINT", "TRUNC")),
    ("f32", "i64", ("RINT",)),
    ("f32", "f32", ("RINT",)),
    ("f16", "f32", ("RINT",)),
    ("f16", "i8", FIVE),
    ("f16", "i32", ("RINT",)),
    ("f16", "hif8", ("ROUND", "HYBRID")),
    ("bf16", "f32", ("RINT",)),
    ("bf16", "f16", ("RINT",)),
    ("bf16", "f4e2m1", ("RINT",)),
    ("i32", "f32", ("RINT",)),
    ("i32", "i16", ("RINT",)),
    ("i32", "f16", ("RINT",)),
    ("i16", "f16", ("RINT",)),
    ("i64", "f32", ("RINT",)),
    ("i64", "i32", ("RINT",)),
    ("ui8", "f16", ("RINT",)),
    ("f8e4m3fn", "f32", ("RINT",)),
    ("hif8", "f32", ("RINT",)),
    ("f64", "f32", ("RINT",)),
]

MOST_USED = {
    ("bf16", "f32"),
    ("f32", "bf16"),
    ("i32", "f32"),
    ("f32", "i32"),
    ("f32", "f16"),
    ("f16", "f32"),
    ("f16", "i8"),
    ("f32", "i16"),
}

TORCH_TYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "ui8": "uint8",
}
NUMPY_TYPES = {"f64", "f32", "f16", "i8", "i16", "i32", "i64", "ui8"}
ML_DTYPES = {"bf16", "f8e4m3fn", "f8e5m2", "f4e2m1"}


@dataclass
class Contest:
    """One conversion and everybody who does it."""

    src: str
    dst: str
    bytes_moved: int
    runs: dict[str, Callable[[], Any]] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)  #: of the elements, where fewer are run

    def seconds(self, name: str) -> float | None:
        """Median time for all elements."""
        if name not in self.times:
            return None
        return statistics.median(self.times[name]) / self.shares.get(name, 1.0)


def optional(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


def source(name: str, elements: int) -> Array:
    """Values of a normal distribution, of magnitudes that every destination has."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal(elements, dtype=np.float32) * 10
    fmt = FORMATS[name]
    if fmt.is_integer:
        high = min(fmt.max_int, 1 << 40)
        return rng.integers(max(fmt.min_int, -high), high, elements).astype(fmt.carrier)
    if name == "hif8":
        return convert(values, "hif8")
    return values.astype(fmt.carrier)


def contests(elements: int, only: str | None) -> list[Contest]:
    """Sets up every pair with its preallocated output."""
    found = []
    for src, dst, modes in PAIRS:
        if only is not None and only not in f"{src}-{dst}":
            continue
        x = source(src, elements)
        out = np.empty(elements, FORMATS[dst].carrier)
        contest = Contest(src, dst, x.nbytes + out.nbytes)
        for engine in ("jit", "numpy") if is_available() else ("numpy",):
            for mode in modes:
                contest.runs[f"{engine} {mode}"] = ours(x, dst, src, mode, out, engine)
        copied = np.empty_like(x)
        contest.runs["memcpy"] = lambda copied=copied, x=x: np.copyto(copied, x)
        contest.bytes_moved = x.nbytes + out.nbytes
        contest.shares["memcpy"] = 2 * x.nbytes / contest.bytes_moved
        add_peers(contest, x, out)
        found.append(contest)
    return found


def ours(x: Array, dst: str, src: str, mode: str, out: Array, engine: str) -> Callable[[], Any]:
    return lambda: convert(x, dst, src=src, mode=mode, out=out, engine=engine)


def add_peers(contest: Contest, x: Array, out: Array) -> None:
    """The libraries that have this pair."""
    src, dst = contest.src, contest.dst
    torch, en_dtypes, gfloat = (optional(m) for m in ("torch", "en_dtypes", "gfloat"))
    same = src == dst
    if torch and not same and src in TORCH_TYPES and dst in TORCH_TYPES:
        given = torch.zeros(len(x), dtype=getattr(torch, TORCH_TYPES[src]))
        given.view(torch.uint8).numpy()[:] = x.view(np.uint8)
        got = torch.empty(len(x), dtype=getattr(torch, TORCH_TYPES[dst]))
        contest.runs["torch"] = lambda: got.copy_(given)
    known = {src, dst} <= NUMPY_TYPES | ML_DTYPES
    if known and not same:
        name = "ml_dtypes" if {src, dst} & ML_DTYPES else "numpy cast"
        few = x if name != "ml_dtypes" or dst == "bf16" or src == "bf16" else x[: len(x) // 4]
        contest.shares[name] = len(few) / len(x)
        contest.runs[name] = lambda: np.copyto(out[: len(few)], few, casting="unsafe")
    if en_dtypes and (src, dst) == ("f32", "hif8"):
        some = x[: len(x) // 16]
        contest.shares["en_dtypes"] = len(some) / len(x)
        contest.runs["en_dtypes"] = lambda: some.astype(en_dtypes.hifloat8)
    if gfloat and src == "f32" and dst in ("bf16", "f16", "f8e4m3fn", "f8e5m2"):
        add_gfloat(contest, x)


def add_gfloat(contest: Contest, x: Array) -> None:
    gfloat, formats = import_module("gfloat"), import_module("gfloat.formats")
    name = {"bf16": "bfloat16", "f16": "binary16", "f8e4m3fn": "ocp_e4m3", "f8e5m2": "ocp_e5m2"}
    info = getattr(formats, f"format_info_{name[contest.dst]}")
    some = x[: len(x) // 64].astype(np.float64)
    contest.shares["gfloat"] = len(some) / len(x)
    contest.runs["gfloat"] = lambda: gfloat.round_ndarray(info, some, sat=True)


def measure(contest: Contest, rounds: int) -> None:
    """Runs everybody once to warm up, then in turn."""
    with np.errstate(all="ignore"):
        for run in contest.runs.values():
            run()
        for _ in range(rounds):
            for name, run in contest.runs.items():
                start = time.perf_counter()
                run()
                contest.times.setdefault(name, []).append(time.perf_counter() - start)


def print_pair(contest: Contest) -> dict[str, Any]:
    """One block of the table: time, bytes per second relative to memcpy, speed over each peer."""
    memcpy = contest.seconds("memcpy") or float("nan")
    peers = [n for n in contest.runs if n.split()[0] not in ("jit", "numpy") or n == "numpy cast"]
    peers.remove("memcpy")
    result: dict[str, Any] = {"memcpy_ms": memcpy * 1e3}
    for name in contest.runs:
        if name in peers or name == "memcpy":
            continue
        seconds = contest.seconds(name) or float("nan")
        row = {"ms": seconds * 1e3, "memcpy": memcpy / seconds}
        row |= {peer: (contest.seconds(peer) or float("nan")) / seconds for peer in peers}
        ratios = "  ".join(f"{peer} {row[peer]:6.2f}x" for peer in peers)
        print(
            f"{contest.src + '->' + contest.dst:15} {name:13} {row['ms']:8.2f} ms "
            f"{row['memcpy']:6.0%} of memcpy  {ratios}"
        )
        result[name] = row
    return result


def check(results: dict[str, Any]) -> list[str]:
    """The goals of the project, as far as this run measured them."""
    lines = []
    for key, pair in results.items():
        src, dst = key.split("->")
        jit = {n.split()[1]: row for n, row in pair.items() if n.startswith("jit ")}
        plain = {n.split()[1]: row for n, row in pair.items() if n.startswith("numpy ")}
        natural = "ROUND" if dst == "hif8" else "RINT"
        if jit:
            floor = 0.6 if (src, dst) in MOST_USED else 0.3
            for mode, row in jit.items():
                lines.append(goal(f"{key} jit {mode}: memcpy", row["memcpy"], floor))
            best = jit[natural]
            slowest = max(row["ms"] for row in jit.values())
            lines.append(goal(f"{key} jit: slowest mode", best["ms"] / slowest, 1 / 1.3))
            over = {"torch": 1.0 if dst.startswith("f8") else 0.9, "en_dtypes": 50, "gfloat": 100}
            if src == "f32" and dst == "bf16":
                over["ml_dtypes"] = 2
            if src == "f32" and dst.startswith("f8"):
                over["ml_dtypes"] = 20
            if {src, dst} == {"f32", "f16"}:
                over["numpy cast"] = 5
            lines += [
                goal(f"{key} jit: {peer}", best[peer], wanted)
                for peer, wanted in over.items()
                if peer in best
            ]
        base = plain[natural]
        slowest = max(row["ms"] for mode, row in plain.items() if mode != "HYBRID")
        lines.append(goal(f"{key} numpy: slowest mode", base["ms"] / slowest, 1 / 1.5))
        if src == "f32" and "ml_dtypes" in base and dst != "f4e2m1":
            wanted = 0.4 if dst == "bf16" else 1.0
            lines.append(goal(f"{key} numpy: ml_dtypes", base["ml_dtypes"], wanted))
    return lines


def goal(what: str, got: float, wanted: float) -> str:
    return f"{'ok  ' if got >= wanted else 'MISS'} {what} {got:.2f}x (goal {wanted:.2f}x)"


def small_tiles() -> None:
    """Time of one call on a 16x64 tile, once warm."""
    x = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32)
    print("\na 16x64 tile of f32, microseconds a call")
    for engine in ("jit", "numpy") if is_available() else ("numpy",):
        cells = []
        for dst in ("bf16", "f16", "f8e4m3fn", "hif8", "i32", "i16"):
            convert(x, dst, engine=engine)
            times = []
            for _ in range(2000):
                start = time.perf_counter()
                convert(x, dst, engine=engine)
                times.append(time.perf_counter() - start)
            cells.append(f"{dst} {statistics.median(times) * 1e6:.1f}")
        print(f"  {engine:6} {'  '.join(cells)}")


def compile_times() -> None:
    """Time to compile one conversion for this machine."""
    times = []
    for src, dst, modes in PAIRS:
        args = (FORMATS[src], FORMATS[dst], modes[0], "OFF", False, "zero")
        conversion = _conversion(*args)
        if "jit" not in vars(conversion):
            start = time.perf_counter()
            _ = conversion.jit
            times.append(time.perf_counter() - start)
    if times:
        print(
            f"\ncompiling a conversion: median {statistics.median(times) * 1e3:.0f} ms, "
            f"at most {max(times) * 1e3:.0f} ms"
        )


def busy_ticks() -> tuple[float, float] | None:
    """(CPU time that all processes have used, that this one has), in seconds; None off Linux."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    user, nice, system = (int(n) for n in stat.read_text().split()[1:4])
    own = os.times()
    return (user + nice + system) / os.sysconf("SC_CLK_TCK"), own.user + own.system


def warn_if_busy(before: tuple[float, float] | None, started: float) -> None:
    """Says so where other processes took the cores that the ratios need."""
    after = busy_ticks()
    if before is None or after is None:
        return
    others = (after[0] - before[0]) - (after[1] - before[1])
    share = others / (time.perf_counter() - started)
    if share > 0.2:
        print(
            f"\nother processes used {share:.1f} cores meanwhile: what needs all cores (jit, torch)"
            " is slower here, memcpy and numpy are not"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=1 << 24)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--only", metavar="TEXT", help="pairs whose 'src-dst' contains TEXT")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    args = parser.parse_args()
    torch = optional("torch")
    if torch:
        torch.set_num_threads(2)
    missing = [p for p in ("torch", "ml_dtypes", "en_dtypes", "gfloat") if optional(p) is None]
    print(f"{args.elements} elements, {os.cpu_count()} cores, median of {args.rounds} rounds")
    print(f"not installed, left out: {', '.join(missing)}" if missing else "all peers present")
    if not is_available():
        print("no llvmlite: numpy engine only")
    started, before = time.perf_counter(), busy_ticks()
    results = {}
    for contest in contests(args.elements, args.only):
        measure(contest, args.rounds)
        results[f"{contest.src}->{contest.dst}"] = print_pair(contest)
    small_tiles()
    if is_available():
        compile_times()
    warn_if_busy(before, started)
    print("\ngoals")
    print("\n".join(f"  {line}" for line in check(results)))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
