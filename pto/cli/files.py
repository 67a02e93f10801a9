"""Files of the command line: finding, reading, sharing between processes, and replacing them."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
    without such files or that cannot be read.
    """
    found: dict[str, None] = {}
    for path in paths:
        if path == "-":
            found["-"] = None
        elif path and Path(path).is_dir():
            inside = list(_files_in(path))
            if not inside:
                raise InputError(f"{path}: no {SUFFIX} files in this folder")
            found.update(dict.fromkeys(inside))
        elif path and Path(path).exists():
            found[path] = None
        else:
            raise InputError(f"{path or repr(path)}: no such file or folder")
    return sorted(found)


def _files_in(folder: str) -> Iterator[str]:
    """The `*.pto` files in a folder and its own; links to folders are not followed."""

    def refuse(error: OSError) -> None:
        raise InputError(f"{error.filename}: {error.strerror}") from error

    for place, _, names in os.walk(folder, onerror=refuse):
        for name in names:
            path = Path(place, name)
            if name.endswith(SUFFIX) and path.is_file():
                yield str(path)


def read_text(path: str) -> str:
    """The text of a file, or of standard input for `-`, its line ends as they are.

    Raises InputError where it cannot be read or is not text.
    """
    from pto.frontend import NotText, decode_text

    try:
        return decode_text(read_input() if path == "-" else Path(path).read_bytes(), path)
    except NotText as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def read_input() -> bytes:
    """Everything on standard input. Raises OSError where that is closed."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed", "-")
    return sys.stdin.buffer.read()


def is_stream(path: Path) -> bool:
    """Whether the path is a device or a pipe, which is written to and never replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that a reader sees the old one or the new one, never a part.

    A symbolic link stays, and what it leads to is written. Raises OSError that names `path`.
    """
    if is_stream(path):
        path.write_bytes(data)
        return
    with replacing(path) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file to write to, which takes the place and the permissions of `path` at the end.

    After an exception `path` is as it was. Raises OSError that names `path`.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
        handle, name = tempfile.mkstemp(prefix=".pto-opt.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
