"""Values of kernel arguments from the command line."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from pto.cli.arrays import read_bin, read_npy
from pto.cli.terminal import UsageError
from pto.dialect.type_records import type_text
from pto.dialect.types import AnyTile, PartitionTensorViewType, PtrType, TensorViewType
from pto.runtime.elements import Element, element_of
from pto.runtime.ops.scalars import is_integer

Array = NDArray[Any]

_ZEROS = re.compile(r"zeros:(\d+(?:x\d+)*)")
_WORDS = {"true": 1, "false": 0}


def element_behind(type_: Attribute) -> Element | None:
    """The element type of the array that an argument of this type takes; None for a scalar."""
    if isinstance(type_, PtrType | TensorViewType | PartitionTensorViewType | AnyTile):
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
        return read_npy(text, element.format)
    if text.endswith(".bin"):
        return read_bin(text, element.storage)
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
