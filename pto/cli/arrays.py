"""Arrays in files: `.npy`, where formats that numpy lacks are bit patterns, and raw `.bin`."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pto.cli.files import InputError, is_stream, read_input, replacing
from pto.cli.terminal import UsageError
from pto.numerics.formats import Format

Array = NDArray[Any]


def read_npy(path: str, fmt: Format | None = None, *, mapped: bool = False) -> Array:
    """The array of a `.npy` file, `-` for standard input; `mapped` reads it where it is used.

    numpy writes the dtypes of ml_dtypes as bytes without a type: with a format, its codes.
    Raises InputError where the file cannot be read, or holds bytes and no format is given.
    """
    try:
        if path == "-":
            array = np.load(io.BytesIO(read_input()), allow_pickle=False)
        else:
            array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise InputError(f"{path}: no .npy file with an array of numbers") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: an archive of arrays, not one .npy array")
    if array.dtype.kind == "V" and array.dtype.names is None:
        if fmt is None:
            raise InputError(
                f"{path}: bytes of a type that numpy does not know, such as bfloat16;"
                " name its format with --from"
            )
        if array.dtype.itemsize == fmt.code_dtype.itemsize:
            return array.view(fmt.code_dtype)
    return array


def read_bin(path: str, dtype: np.dtype[Any]) -> Array:
    """The items of a raw file, of shape (n,). Raises InputError where they are not whole."""
    try:
        data = np.fromfile(path, np.uint8)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    if data.size % dtype.itemsize:
        raise InputError(f"{path}: {data.size} bytes are no whole items of {dtype.itemsize}")
    return data.view(dtype)


def stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in a file: numpy's own, or that of the bit patterns."""
    return dtype if dtype.isbuiltin == 1 else np.dtype(f"u{dtype.itemsize}")


def check_output_name(path: str) -> None:
    """Raises UsageError for an ending that `write_array` does not know."""
    if not path.endswith((".bin", ".npy")):
        raise UsageError(f"{path}: the name of an output ends in .npy or .bin")


def write_array(path: str, array: Array) -> None:
    """Writes a `.npy` file, or raw bytes for `.bin`; `-` is standard output.

    Raises OSError, which names the path, where it cannot be written.
    """
    array = array.view(stored(array.dtype))
    if path == "-":
        _write(sys.stdout.buffer, array, path)
        sys.stdout.buffer.flush()
    elif is_stream(Path(path)):
        with open(path, "wb") as stream:
            _write(stream, array, path)
    else:
        with replacing(Path(path)) as temporary, open(temporary, "wb") as stream:
            _write(stream, array, path)


def _write(stream: BinaryIO, array: Array, path: str) -> None:
    """Writes the array in the form that the ending of the path says."""
    if path.endswith(".bin"):
        stream.write(array.tobytes())
    else:
        buffer = io.BytesIO()  # a pipe has no place to return to
        np.save(buffer, array, allow_pickle=False)
        stream.write(buffer.getbuffer())
