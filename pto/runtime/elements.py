"""How elements are stored in memory, and in which type they are computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from pto.dialect.type_records import type_text
from pto.dialect.types import element_format, elements_per_column
from pto.numerics import Format, pack4, unpack4
from pto.runtime.errors import RuntimeFault, unsupported

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
    counts_pairs: bool
    """Whether extents count bytes of two elements (the `x2` types), not elements (`i4`)."""
    size: int
    """Bytes of one stored item."""
    is_packed: bool
    """Whether a stored item is a byte of two elements."""
    is_native: bool
    """Whether arithmetic happens on the stored values themselves."""
    computes: bool
    """Whether the stored items can be taken as numbers."""

    @property
    def per_byte(self) -> int:
        """2 for packed 4-bit elements, else 1."""
        return self.format.per_byte

    @property
    def is_float(self) -> bool:
        """Whether the elements are real numbers in a floating-point format."""
        return self.format.is_float

    def stored(self, extent: int) -> int:
        """Stored items in a row of `extent` columns."""
        if self.is_packed and not self.counts_pairs:
            if extent % 2:
                raise RuntimeFault(f"{extent} columns of {self.text} do not fill whole bytes")
            return extent // 2
        return extent

    def logical(self, extent: int) -> int:
        """Elements in a row of `extent` columns."""
        return 2 * extent if self.counts_pairs else extent


@cache
def element_of(dtype: Attribute) -> Element:
    """The element of a type. Raises RuntimeFault for a type that no tile of this project holds."""
    fmt = element_format(dtype)
    if fmt is None:
        raise unsupported(f"the type {type_text(dtype)}")
    is_packed = fmt.per_byte == 2
    storage = np.dtype(np.uint8) if is_packed else fmt.carrier
    is_native = not is_packed and (fmt.is_integer or fmt.is_wide_float or fmt.is_complex)
    return Element(
        text=type_text(dtype),
        format=fmt,
        storage=storage,
        bits=np.dtype(f"u{storage.itemsize}"),
        work=storage if is_native else np.dtype(np.float32),
        counts_pairs=elements_per_column(dtype) == 2,
        size=storage.itemsize,
        is_packed=is_packed,
        is_native=is_native,
        computes=not is_packed and not fmt.is_carried_by_codes,
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
    return unpack4(stored) if element.is_packed else stored.view(element.bits)


def pack(codes: Array, element: Element) -> Array:
    """The inverse of `unpack`."""
    return pack4(codes) if element.is_packed else codes.view(element.storage)
