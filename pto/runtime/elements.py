"""How elements are stored in memory, and in which type they are computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from pto.dialect.types import element_format, elements_per_column, type_text
from pto.numerics import FORMATS, Format, pack4, unpack4
from pto.runtime.errors import Fault

Array = NDArray[Any]


@dataclass(frozen=True)
class Element:
    """An element type in memory.

    A 4-bit element shares its byte with a neighbour (spec F2): `storage` is then the byte.
    """

    text: str
    """The type as PTO writes it."""
    format: Format
    storage: np.dtype[Any]
    """Dtype of the stored arrays: the format's carrier, or bytes of packed pairs."""
    bits: np.dtype[Any]
    """Unsigned dtype of `storage`'s width."""
    work: np.dtype[Any]
    """Dtype in which arithmetic is done: f32 for the narrower floats, else the type itself."""
    per_byte: int
    """2 for packed 4-bit elements, else 1."""
    counts_pairs: bool
    """Whether extents count bytes of two elements (the `x2` types), not elements (`i4`)."""

    @property
    def size(self) -> int:
        """Bytes of one stored item."""
        return self.storage.itemsize

    @property
    def is_float(self) -> bool:
        """Whether the elements are real numbers in a floating-point format."""
        return self.format.is_float

    @property
    def is_native(self) -> bool:
        """Whether arithmetic happens on the stored values themselves."""
        return self.work == self.storage

    def stored(self, extent: int) -> int:
        """Stored items in a row of `extent` columns."""
        if self.per_byte == 2 and not self.counts_pairs:
            if extent % 2:
                raise Fault(f"{extent} columns of {self.text} do not fill whole bytes")
            return extent // 2
        return extent

    def logical(self, extent: int) -> int:
        """Elements in a row of `extent` columns."""
        return 2 * extent if self.counts_pairs else extent


_CARRIERS_THAT_COMPUTE = frozenset(
    ("f64", "f32", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "c64")
)


@cache
def element_of(dtype: Attribute) -> Element:
    """The element of a type. Raises Fault for a type that no tile of this project holds."""
    name = element_format(dtype)
    if name is None:
        raise Fault(f"elements of type {type_text(dtype)} are not executed here")
    fmt = FORMATS[name]
    packed = fmt.bits == 4
    storage = np.dtype(np.uint8) if packed else fmt.carrier
    return Element(
        text=type_text(dtype),
        format=fmt,
        storage=storage,
        bits=np.dtype(f"u{storage.itemsize}"),
        work=storage if name in _CARRIERS_THAT_COMPUTE else np.dtype(np.float32),
        per_byte=2 if packed else 1,
        counts_pairs=elements_per_column(dtype) == 2,
    )


def rounded(values: Array, storage: np.dtype[Any]) -> Array:
    """The values ready to be cast to a carrier dtype: that cast then rounds them once.

    ml_dtypes rounds an f64 to f32 first. An f32 whose last bit says that something was lost (round
    to odd) rounds on to fewer bits as the f64 would.
    """
    if values.dtype != np.float64 or storage.isbuiltin == 1:
        return values
    nearest = values.astype(np.float32)
    bits = nearest.view(np.uint32)
    bits = bits - (np.abs(nearest) > np.abs(values)) | (nearest != values)
    result: Array = bits.view(np.float32)
    return result


def unpack(stored: Array, element: Element) -> Array:
    """The codes of stored items, one each: unsigned, 4-bit pairs taken apart."""
    if element.per_byte == 2:
        return unpack4(stored)
    return stored.view(element.bits)


def pack(codes: Array, element: Element) -> Array:
    """The inverse of `unpack`."""
    if element.per_byte == 2:
        return pack4(codes)
    return codes.view(element.storage)
