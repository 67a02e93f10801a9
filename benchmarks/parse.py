"""Parsing: this package against xDSL's own parser, growth with the file's size, memory, start-up.

    python benchmarks/parse.py [FOLDER]

Without a folder of `.pto` files, generated kernels are used. Each figure is the best of the runs;
ratios are of figures measured in turn in one process.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kernels import kernel_text
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.universe import Universe

import pto

_RUNS = 5
_MB = 1e6


def best(function: Callable[[], object]) -> float:
    """Seconds of the fastest of the runs."""
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def xdsl_context() -> Context:
    """A context with all dialects, this package's included."""
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context


def compare(texts: list[str]) -> None:
    """MB/s of both parsers on the same modules, each on its own form of them."""
    ours = xdsl = ours_bytes = xdsl_bytes = 0.0
    for text in texts:
        generic = pto.print_module(pto.parse(text), generic=True)
        context = xdsl_context()
        Parser(context, generic).parse_module()  # loads the dialects
        ours += best(lambda text=text: pto.parse(text))
        xdsl += best(lambda c=context, g=generic: Parser(c, g).parse_module())
        ours_bytes += len(text)
        xdsl_bytes += len(generic)
    print(f"modules                   {len(texts)}")
    print(f"this parser, .pto text    {ours_bytes / ours / _MB:6.2f} MB/s  {ours:7.3f} s")
    print(f"xDSL, generic form        {xdsl_bytes / xdsl / _MB:6.2f} MB/s  {xdsl:7.3f} s")
    print(f"ratio of MB/s             {ours_bytes / ours / (xdsl_bytes / xdsl):6.2f}")
    print(f"ratio of times            {xdsl / ours:6.2f}")


def growth() -> None:
    """Seconds per MB as the text grows, and the peak memory of each size's own process."""
    for size in (10_000, 100_000, 1_000_000, 10_000_000):
        code = (
            "import resource, sys, time\n"
            f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "import pto\nfrom kernels import kernel_text\n"
            f"text = kernel_text({size})\npto.parse(kernel_text(1000))\n"
            "start = time.perf_counter()\nmodule = pto.parse(text)\n"
            "seconds = time.perf_counter() - start\n"
            "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
            "print(len(text), seconds, peak)\n"
        )
        out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        length, seconds, peak = map(float, out.stdout.split())
        print(
            f"{length / _MB:8.2f} MB  {length / seconds / _MB:6.2f} MB/s  "
            f"peak memory {peak:7.0f} MiB"
        )


def start_up() -> None:
    """Wall time of `pto-opt verify` on a 25 KB file against importing xDSL's parser."""
    with tempfile.NamedTemporaryFile("w", suffix=".pto") as file:
        file.write(kernel_text(23_000))
        file.flush()
        verify = [sys.executable, "-m", "pto.cli", "verify", "-q", file.name]
        imported = [sys.executable, "-c", "import xdsl.parser"]
        ratios = []
        for _ in range(2 * _RUNS + 1):
            times = []
            for command in (verify, imported):
                start = time.perf_counter()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                times.append(time.perf_counter() - start)
            ratios.append(times[0] / times[1])
        size = Path(file.name).stat().st_size
    print(
        f"verify of a {size / 1000:.0f} KB file: {times[0]:.3f} s, import xdsl.parser: "
        f"{times[1]:.3f} s, ratio {statistics.median(ratios[1:]):.2f} (median)"
    )


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--limit", type=int, default=30, help="at most so many files")
    args = parser.parse_args()
    if args.folder is None:
        texts = [kernel_text(25_000), kernel_text(250_000)]
    else:
        files = sorted(args.folder.rglob("*.pto"))
        texts = [text for file in files if "pto.tcvt" in (text := file.read_text())]
        texts = [text for text in texts if "RUN: not" not in text][
            :: max(1, len(texts) // args.limit)
        ]
    compare(texts)
    growth()
    start_up()


if __name__ == "__main__":
    main()
