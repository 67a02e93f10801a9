"""Between numpy arrays and the memory of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from pto.dialect.type_records import type_text
from pto.dialect.types import AnyTile, PartitionTensorViewType, PtrType, TensorViewType
from pto.runtime.elements import Element, element_of, pack, unpack
from pto.runtime.errors import ArgumentFault, RuntimeFault
from pto.runtime.memory import GlobalBuffer, Memory, Pointer, View
from pto.runtime.ops.scalars import scalar
from pto.runtime.tile import Layout, Tile, layout_of

Array = NDArray[Any]

_NUMBERS = "biufV"
"""Kinds of the dtypes whose elements are real numbers; those of ml_dtypes are V."""


@dataclass
class Argument:
    """A value for a kernel, and what brings the array behind it up to date afterwards.

    `finish` raises RuntimeFault where poison would reach the array.
    """

    value: Any
    finish: Callable[[], None]


def bind(name: str, type_: Attribute, given: object) -> Argument:
    """The value of an argument of this type.

    `given` is an array for pointers, views and tiles (None: a buffer that the kernel fills), a
    number for a scalar. Raises ArgumentFault where it does not fit.
    """
    try:
        return _bound(name, type_, given)
    except ArgumentFault:
        raise
    except RuntimeFault as fault:  # of a type or a value, which do not know whose they are
        raise ArgumentFault(f"%{name}: {fault.message}", *fault.notes) from None


def _bound(name: str, type_: Attribute, given: object) -> Argument:
    if isinstance(type_, PtrType):
        if type_.space not in (None, "gm"):
            raise ArgumentFault(
                f"%{name} points into the memory {type_.space} of a core, which no argument is in"
            )
        return _bind_pointer(name, element_of(type_.dtype), given)
    if isinstance(type_, TensorViewType | PartitionTensorViewType):
        return _bind_view(name, type_, given)
    if isinstance(type_, AnyTile):
        return _bind_tile(name, layout_of(type_), given)
    if given is None:
        raise ArgumentFault(
            f"no value for %{name}, of type {type_text(type_)}", f"give one: --arg {name}=VALUE"
        )
    if isinstance(given, np.ndarray) and given.size == 1:
        given = given.reshape(()).item()
    if not isinstance(given, int | float) and np.asarray(given).dtype.kind not in _NUMBERS:
        raise ArgumentFault(f"%{name} is of type {type_text(type_)}, not {_kind_of(given)}")
    return Argument(scalar(given, type_), lambda: None)


def _kind_of(given: object) -> str:
    if isinstance(given, np.ndarray):
        return f"an array of {given.dtype} of shape {given.shape}"
    return f"a {type(given).__name__}"


def as_bytes(name: str, element: Element, array: object) -> tuple[Array, Callable[[], None]]:
    """The array's bytes in memory order, and what copies them back where they are a copy."""
    if not isinstance(array, np.ndarray):
        raise ArgumentFault(
            f"%{name} takes an array of {carrier_text(element)}, not {_kind_of(array)}"
        )
    if not fits(array.dtype, element):
        raise ArgumentFault(
            f"%{name} takes an array of {carrier_text(element)}, not of {array.dtype}"
        )
    if element.is_packed and array.dtype == element.format.carrier != element.storage:
        return _unpacked_bytes(name, element, array)
    plain = array.flags.c_contiguous and array.flags.writeable and array.dtype.isnative
    stored = array if plain else np.array(array, array.dtype.newbyteorder("="), order="C")
    data = stored.reshape(-1).view(np.uint8)
    if plain or not array.flags.writeable:
        return data, lambda: None

    def copy_back() -> None:
        array[...] = stored

    return data, copy_back


def _unpacked_bytes(name: str, element: Element, array: Array) -> tuple[Array, Callable[[], None]]:
    """The bytes of an array with one 4-bit element each (spec F2)."""
    if array.size % 2:
        raise ArgumentFault(
            f"%{name} has {array.size} elements of 4 bits: half a byte is left over"
        )
    data = pack(np.array(array).reshape(-1).view(np.uint8) & 0xF, element)

    def copy_back() -> None:
        if array.flags.writeable:
            array[...] = unpack(data, element).view(array.dtype).reshape(array.shape)

    return data, copy_back


def fits(dtype: np.dtype[Any], element: Element) -> bool:
    """Whether arrays of this dtype hold the element: its carrier, or its codes."""
    native = dtype.newbyteorder("=")
    if native in (element.format.carrier, element.storage, element.bits):
        return True
    return element.format.is_integer and native.kind in "iub" and native.itemsize == element.size


def carrier_text(element: Element) -> str:
    """The dtypes that `fits` accepts, for messages."""
    carrier, bits = element.format.carrier, element.bits
    codes = "packed bytes (uint8)" if element.is_packed else f"codes ({bits})"
    return str(carrier) if carrier == bits else f"{carrier} or {codes}"


def _bind_pointer(name: str, element: Element, given: object) -> Argument:
    if given is None:
        return Argument(Pointer(GlobalBuffer(name), 0, element), lambda: None)
    data, finish = as_bytes(name, element, given)
    return Argument(Pointer(GlobalBuffer(name, data), 0, element), finish)


def _bind_view(
    name: str, type_: TensorViewType | PartitionTensorViewType, given: object
) -> Argument:
    element = element_of(type_.dtype)
    if given is None:
        raise ArgumentFault(f"no array for %{name}, of type {type_text(type_)}")
    data, finish = as_bytes(name, element, given)
    assert isinstance(given, np.ndarray)
    static = type_.shape
    if len(static) != given.ndim or any(
        extent not in (None, actual) for extent, actual in zip(static, given.shape, strict=True)
    ):
        raise ArgumentFault(
            f"%{name} is of type {type_text(type_)}, not an array of shape {given.shape}"
        )
    strides: list[int] = []
    step = 1
    for extent in reversed(given.shape):
        strides.insert(0, step)
        step *= extent
    pointer = Pointer(GlobalBuffer(name, data), 0, element)
    return Argument(View(pointer, given.shape, tuple(strides)), finish)


def _bind_tile(name: str, layout: Layout, given: object) -> Argument:
    """A tile in a memory of its own, filled from the array of its whole or its valid region."""
    memory = Memory(f"%{name}", layout.size)
    whole = (layout.rows, layout.cols)
    valid = tuple(
        declared if extent is None else extent
        for extent, declared in zip(
            (layout.description.valid_rows, layout.description.valid_cols), whole, strict=True
        )
    )
    if given is None:
        return Argument(Tile(layout, memory, 0, *valid), lambda: None)
    data, finish = as_bytes(name, layout.element, given)
    assert isinstance(given, np.ndarray)
    items = data.view(layout.element.storage)
    shape = tuple(np.shape(given))
    if len(shape) != 2 or items.size != shape[0] * layout.element.stored(_columns(shape, layout)):
        raise ArgumentFault(f"%{name} is a tile of {whole[0]}x{whole[1]}, not of shape {shape}")
    extents = (shape[0], _columns(shape, layout))
    if extents not in (whole, valid) and None not in (
        layout.description.valid_rows,
        layout.description.valid_cols,
    ):
        raise ArgumentFault(f"%{name} is a tile of {whole[0]}x{whole[1]}, not of shape {shape}")
    holder = Tile(layout, memory, 0, *extents)
    matrix = items.reshape(holder.data.shape)
    holder.write()[...] = matrix

    def copy_back() -> None:
        if (poison := holder.poison()) is not None:
            row, col = np.argwhere(poison)[0]
            raise RuntimeFault(
                f"%{name} leaves the function with elements that are poison: {poison.sum()} of"
                f" {poison.size}, the first at row {row}, column {col}",
                memory.cause,
            )
        matrix[...] = holder.data
        finish()

    dynamic = None in (layout.description.valid_rows, layout.description.valid_cols)
    return Argument(Tile(layout, memory, 0, *(extents if dynamic else valid)), copy_back)


def _columns(shape: tuple[int, ...], layout: Layout) -> int:
    """The columns of an array as the tile's type counts them; pairs may be given one by one."""
    element = layout.element
    if element.counts_pairs and shape[-1] == 2 * layout.cols:
        return shape[-1] // 2
    return shape[-1]


def unbind(value: Any) -> Any:
    """A result of a kernel as an array or a number."""
    if isinstance(value, Tile | View):
        return to_carrier(value.read(), value.element)
    return value


def to_carrier(stored: Array, element: Element) -> Array:
    """A copy in the carrier dtype of the element's format, one element each."""
    if element.is_packed:
        return unpack(stored, element).view(element.format.carrier)
    return stored.copy()
