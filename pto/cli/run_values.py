"""Values of kernel arguments from the command line, and arrays to and from files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from pto.cli.files import InputError, is_stream, replacing
from pto.dialect.types import (
    PartitionTensorViewType,
    PtrType,
    TensorViewType,
    TileBufType,
    TileType,
    type_text,
)
from pto.runtime.elements import Element, element_of
from pto.runtime.scalars import is_integer

Array = NDArray[Any]

_ZEROS = re.compile(r"zeros:(\d+(?:x\d+)*)")
_WORDS = {"true": 1, "false": 0}


class UsageError(Exception):
    """Wrong use of an option."""


def element_behind(type_: Attribute) -> Element | None:
    """The element type of the array that an argument of this type takes; None for a scalar."""
    if isinstance(type_, PtrType | TensorViewType | PartitionTensorViewType):
        return element_of(type_.dtype)
    if isinstance(type_, TileBufType | TileType):
        return element_of(type_.dtype)
    return None


def read_value(name: str, type_: Attribute, text: str) -> Any:
    """The value of an argument: an array from `FILE.npy`, `FILE.bin` or `zeros:16x64`, or a scalar.

    Raises UsageError for a text that gives no such value, InputError for an unreadable file.
    """
    element = element_behind(type_)
    if element is None:
        return _scalar(name, type_, text)
    if (zeros := _ZEROS.fullmatch(text)) is not None:
        return _zeros(name, tuple(map(int, zeros[1].split("x"))), element)
    if text.endswith(".npy"):
        return read_npy(text, element)
    if text.endswith(".bin"):
        return _read_bin(text, element)
    raise UsageError(
        f"{name} is of type {type_text(type_)}: give FILE.npy, FILE.bin or zeros:SHAPE, "
        f"not {text!r}"
    )


def _zeros(name: str, shape: tuple[int, ...], element: Element) -> Array:
    try:
        return np.zeros(shape, element.storage)
    except ValueError as error:  # more elements or axes than numpy has
        raise UsageError(f"{name}: {error}") from None


def _scalar(name: str, type_: Attribute, text: str) -> int | float:
    word = text.strip().lower()
    try:
        if word in _WORDS:
            return _WORDS[word]
        return int(word, 0) if is_integer(type_) else float(word)
    except ValueError:
        raise UsageError(
            f"{name} is of type {type_text(type_)}; {text!r} is no such number"
        ) from None


def read_npy(path: str, element: Element) -> Array:
    """An array of the element from a file; of formats that numpy lacks, bit patterns.

    Raises InputError where the file cannot be read or holds another type.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise InputError(f"{path}: {reason or 'not a .npy file'}") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: holds several arrays; give one .npy file each")
    if array.dtype.kind == "V" and array.dtype.itemsize == element.size:
        return array.view(element.bits)  # numpy's name for the dtypes that it does not know
    return array


def _read_bin(path: str, element: Element) -> Array:
    try:
        data = np.fromfile(path, np.uint8)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    if data.size % element.size:
        raise InputError(f"{path}: {data.size} bytes are no whole elements of {element.text}")
    return data.view(element.storage)


def check_output_name(path: str) -> None:
    """Raises UsageError for an ending that `write_array` does not know."""
    if not path.endswith((".bin", ".npy")):
        raise UsageError(f"{path}: the name of an output ends in .npy or .bin")


def write_array(path: str, array: Array) -> None:
    """Writes a `.npy` file (bit patterns for dtypes that numpy lacks), raw bytes for `.bin`.

    Raises InputError where it cannot be written.
    """
    array = np.ascontiguousarray(array)
    if array.dtype.isbuiltin != 1:  # not numpy's own
        array = array.view(f"u{array.dtype.itemsize}")
    try:
        if is_stream(Path(path)):
            _write(path, array, path)
        else:
            with replacing(Path(path)) as temporary:
                _write(str(temporary), array, path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def _write(file: str, array: Array, named: str) -> None:
    """Writes the array to a file, in the format that the ending of `named` says."""
    with open(file, "wb") as stream:
        if named.endswith(".bin"):
            stream.write(array.tobytes())
        else:
            np.save(stream, array, allow_pickle=False)
