"""What the verbs share: options, tables, colours, suggestions, and progress on the terminal."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from pto.spelling import did_you_mean

Result = TypeVar("Result")


class UsageError(Exception):
    """Wrong use of an option."""


# Options -----------------------------------------------------------------------------------------


def add_paths(parser: argparse.ArgumentParser) -> None:
    """The files and folders of a verb."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder, or - for stdin")


def add_target(
    parser: argparse.ArgumentParser, help: str = "target; wins over the one the module names"
) -> None:
    """`--arch`, None where it is not given."""
    parser.add_argument("--arch", metavar="A", help=help)


def add_default_saturation(parser: argparse.ArgumentParser) -> None:
    """`--default-sat`: target, on or off (spec S14)."""
    parser.add_argument(
        "--default-sat",
        type=str.lower,
        choices=("target", "on", "off"),
        default="target",
        help="what an absent satmode means (default: each pair's own default)",
    )


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """`-j`: a number of processes."""
    parser.add_argument(
        "-j",
        "--jobs",
        type=_process_count,
        default=1,
        metavar="N",
        help="processes, 0 for one a core",
    )


def _process_count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text) or os.cpu_count() or 1


def add_colour(parser: argparse.ArgumentParser) -> None:
    """`--color`, which `use_colour` reads."""
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")


def use_colour(when: str) -> bool:
    """Whether to print in colours: by default on a terminal, unless NO_COLOR is set."""
    wanted = when == "auto" and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return when == "always" or bool(wanted)


# Texts -------------------------------------------------------------------------------------------


def unknown(kind: str, word: str, known: Iterable[str]) -> str:
    """`unknown id 'x'; did you mean 'y'?`."""
    return f"unknown {kind} {word!r}{did_you_mean(word, known)}"


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """The rows as lines of a table, the columns `right` aligned at their right."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = []
    for row in rows:
        padded = (
            cell.rjust(width) if n in right else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(padded).rstrip())
    return lines


def complain(verb: str, message: object, notes: Iterable[str] = ()) -> None:
    """Says on standard error what went wrong; without a verb, in `pto-opt FILE`."""
    print(f"pto-opt {verb}: {message}" if verb else f"pto-opt: {message}", file=sys.stderr)
    for note in notes:
        print(f"  note: {note}", file=sys.stderr)


def write_out(text: str) -> None:
    """Writes text that may quote any source line to a terminal of any encoding."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, errors="replace").decode(encoding))


# Progress ----------------------------------------------------------------------------------------


class StatusLine:
    """A line on the terminal for work that takes more than a moment; nothing anywhere else."""

    def __init__(self, delay: float, interval: float = 0.1) -> None:
        self.is_on = sys.stderr.isatty()
        self._next = time.monotonic() + delay
        self._interval = interval
        self._shown = False

    def show(self, text: Callable[[], str]) -> None:
        """Shows the text in place of what stood there, where it is time to."""
        now = time.monotonic()
        if not self.is_on or now < self._next:
            return
        self._next, self._shown = now + self._interval, True
        sys.stderr.write(f"\r\x1b[K{text()}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")


_BAR = 30  # characters


def follow(results: Iterable[Result], total: int) -> Iterator[Result]:
    """Passes results on, and shows a bar of how many of the total there are."""
    line = StatusLine(delay=0.5)
    for done, result in enumerate(results, start=1):
        line.show(partial(_bar, done, total))
        yield result
    line.clear()


def _bar(done: int, total: int) -> str:
    filled = _BAR * done // total
    return f"[{'#' * filled}{'.' * (_BAR - filled)}] {done}/{total}"
