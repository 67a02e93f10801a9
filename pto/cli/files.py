"""Input files of the verbs that take many: finding, reading and sharing them between processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

SUFFIX = ".pto"

Item = TypeVar("Item")
Result = TypeVar("Result")


class InputError(Exception):
    """An input that cannot be read, or a path with nothing to read."""

    status = 2
    """The exit status that it leads to."""


class SyntaxFailure(InputError):
    """An input that is not PTO assembly, where that ends the work on it."""

    status = 1


def find_files(paths: Sequence[str]) -> list[str]:
    """The files that the paths name, folders searched for `*.pto`, in path order, each once.

    `-` is standard input. Raises InputError for a path that does not exist and for a folder
    without such files.
    """
    found: dict[str, None] = {}
    for path in paths:
        if path == "-":
            found["-"] = None
        elif Path(path).is_dir():
            inside = [str(p) for p in Path(path).rglob(f"*{SUFFIX}") if p.is_file()]
            if not inside:
                raise InputError(f"{path}: no {SUFFIX} files in this folder")
            found.update(dict.fromkeys(inside))
        elif Path(path).exists():
            found[path] = None
        else:
            raise InputError(f"{path}: no such file or folder")
    return sorted(found)


def read_text(path: str) -> str:
    """The text of a file, or of standard input for `-`, its line ends as they are.

    Raises InputError where it cannot be read as UTF-8.
    """
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def in_parallel(
    work: Callable[[Item], Result], items: Sequence[Item], jobs: int
) -> Iterator[Result]:
    """`work` of each item, in the order of the items, by `jobs` processes."""
    if jobs <= 1 or len(items) <= 1:
        yield from map(work, items)
        return
    from concurrent.futures import ProcessPoolExecutor

    jobs = min(jobs, len(items))
    chunk = max(1, min(8, len(items) // (4 * jobs)))
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        yield from pool.map(work, items, chunksize=chunk)


class Progress:
    """A bar on the terminal for runs that take more than a moment; nothing anywhere else."""

    _WIDTH = 30
    _DELAY = 0.5  # seconds without a bar

    def __init__(self, total: int) -> None:
        self._total = total
        self._start = time.monotonic()
        self._shown = False
        self._on = total > 1 and sys.stderr.isatty()

    def follow(self, results: Iterable[Result]) -> Iterator[Result]:
        """Passes the results on, and moves the bar."""
        for n, result in enumerate(results, start=1):
            if self._on and time.monotonic() - self._start > self._DELAY:
                self._draw(n)
            yield result
        if self._shown:
            sys.stderr.write("\r\x1b[K")

    def _draw(self, done: int) -> None:
        filled = self._WIDTH * done // self._total
        bar = "#" * filled + "." * (self._WIDTH - filled)
        sys.stderr.write(f"\r[{bar}] {done}/{self._total}")
        sys.stderr.flush()
        self._shown = True
