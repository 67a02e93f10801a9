"""Byte-addressed memories, pointers into them, and strided views on global memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.runtime.elements import Element
from pto.runtime.errors import ArgumentFault, RuntimeFault, unsupported

Array = NDArray[Any]


class Memory:
    """A local memory: its bytes, which of them were written, and which are poison.

    Poison, as in LLVM, are the results of computing beyond a source's valid region: a kernel may
    hold them, but nothing may depend on them. `poison` is None as long as there is none.
    A tile without an address has a memory of its own, so that it never shares one.
    """

    __slots__ = ("cause", "data", "name", "poison", "size", "written")

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.data: Array = np.zeros(size, np.uint8)
        self.written = np.zeros(size, bool)
        self.poison: Array | None = None
        self.cause = ""
        """What made elements poison most recently."""

    def poison_flags(self) -> Array:
        """`poison`, made where there is none yet."""
        if self.poison is None:
            self.poison = np.zeros(self.size, bool)
        return self.poison


LARGEST_GROWN = 1 << 32
"""Bytes up to which an array that was not given is made."""


class GlobalBuffer:
    """The memory behind a pointer argument.

    A buffer without an array grows to what the views on it span; what the program reads of it, it
    must have written before.
    """

    __slots__ = ("data", "extent", "given", "name", "written")

    def __init__(self, name: str, data: Array | None = None) -> None:
        self.name = name
        self.given = data is not None
        self.data: Array = np.zeros(0, np.uint8) if data is None else data
        self.written: Array = np.zeros(0, bool)
        self.extent: tuple[int, ...] | None = None
        """Shape of the view that spans the buffer, where one does."""

    @property
    def size(self) -> int:
        """Bytes."""
        return self.data.size

    def grow(self, size: int) -> None:
        """Makes the buffer of an argument that was not given at least `size` bytes long."""
        if self.given or size <= self.data.size:
            return
        if size > LARGEST_GROWN:
            raise ArgumentFault(
                f"%{self.name} would take {size} bytes", "give an array, or check the sizes"
            )
        more = np.zeros(size - self.data.size, np.uint8)
        self.data = np.concatenate([self.data, more])
        self.written = np.concatenate([self.written, more.astype(bool)])

    def check(self, first: int, last: int, what: str) -> None:
        """Raises RuntimeFault unless bytes `first` up to `last` (exclusive) lie in the buffer."""
        if first < 0 or last > self.data.size:
            raise RuntimeFault(
                f"{what} bytes {first} to {last} of %{self.name}, which has {self.data.size}",
                "the array is too small, or the offset is wrong",
            )


@dataclass(frozen=True, slots=True)
class Pointer:
    """An element of a global buffer; `offset` is in bytes."""

    buffer: GlobalBuffer
    offset: int
    element: Element

    def advance(self, count: int) -> Pointer:
        """The pointer `count` elements further on."""
        return Pointer(self.buffer, self.offset + self._bytes(count), self.element)

    def _bytes(self, count: int) -> int:
        if self.element.is_packed and not self.element.counts_pairs:
            if count % 2:
                raise RuntimeFault(
                    f"offset {count} of {self.element.text} is in the middle of a byte"
                )
            return count // 2
        return count * self.element.size

    def item(self, index: int, *, store: bool) -> Array:
        """A view of one element, of shape (1,)."""
        if self.element.is_packed:
            raise unsupported(f"a scalar of {self.element.text}")
        buffer, start = self.buffer, self.offset + index * self.element.size
        end = start + self.element.size
        if store:
            buffer.grow(end)
        buffer.check(start, end, "writes" if store else "reads")
        if not buffer.given:
            if store:
                buffer.written[start:end] = True
            elif not buffer.written[start:end].all():
                raise _not_given(buffer)
        return np.ndarray((1,), self.element.storage, buffer.data, start)


def _not_given(buffer: GlobalBuffer) -> RuntimeFault:
    return ArgumentFault(
        f"reads %{buffer.name}, for which no array was given, before it is written",
        f"give it: --arg {buffer.name}=FILE.npy",
    )


@dataclass(frozen=True, slots=True)
class View:
    """A strided view on global memory: extents and strides in elements, outermost first."""

    pointer: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def window(self, offsets: tuple[int, ...], sizes: tuple[int, ...]) -> View:
        """The window of `sizes` at `offsets`. Raises RuntimeFault where it starts outside."""
        if not len(offsets) == len(sizes) == len(self.shape):
            raise RuntimeFault(
                f"{len(offsets)} offsets and {len(sizes)} sizes on a view of rank {len(self.shape)}"
            )
        for axis, (offset, size, extent) in enumerate(zip(offsets, sizes, self.shape, strict=True)):
            if offset < 0 or size < 0 or offset + size > extent:
                raise RuntimeFault(
                    f"elements {offset} to {offset + size} of axis {axis} of {self.name},"
                    f" which has {extent}"
                )
        shift = sum(o * s for o, s in zip(offsets, self.strides, strict=True))
        return View(self.pointer.advance(shift), sizes, self.strides)

    @property
    def name(self) -> str:
        """The argument that the view is on, as text."""
        return f"%{self.pointer.buffer.name}"

    @property
    def element(self) -> Element:
        """Element type."""
        return self.pointer.element

    def reserve(self) -> None:
        """Grows a buffer that was not given to what the view spans."""
        buffer = self.pointer.buffer
        if buffer.given or 0 in self.shape:
            return
        _, last = self._span()
        if last > buffer.size:
            buffer.grow(last)
            spans = self.pointer.offset == 0 and self._is_compact()
            buffer.extent = self.shape if spans else None

    def _is_compact(self) -> bool:
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != expected:
                return False
            expected *= extent
        return True

    def _stored(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shape in stored items and strides in bytes."""
        element = self.element
        if not element.is_packed or element.counts_pairs:
            return self.shape, tuple(stride * element.size for stride in self.strides)
        if self.strides[-1] != 1 or any(stride % 2 for stride in self.strides[:-1]):
            raise RuntimeFault(f"a view of {element.text} whose rows do not fill whole bytes")
        shape = (*self.shape[:-1], element.stored(self.shape[-1]))
        return shape, (*(stride // 2 for stride in self.strides[:-1]), 1)

    def _span(self) -> tuple[int, int]:
        """First byte and the one after the last."""
        shape, strides = self._stored()
        reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
        first = self.pointer.offset + sum(r for r in reach if r < 0)
        last = self.pointer.offset + sum(r for r in reach if r > 0)
        return first, last + self.element.size

    def read(self) -> Array:
        """The stored items. Raises RuntimeFault out of range, or where nothing was written yet."""
        buffer = self.pointer.buffer
        shape, strides = self._checked("reads")
        if not buffer.given and not self._shadow(shape, strides).all():
            raise _not_given(buffer)
        return np.ndarray(shape, self.element.storage, buffer.data, self.pointer.offset, strides)

    def write(self) -> Array:
        """The stored items, to be written. Raises RuntimeFault out of range."""
        buffer = self.pointer.buffer
        if not buffer.given:
            self.reserve()
        shape, strides = self._checked("writes")
        if not buffer.given:
            self._shadow(shape, strides)[...] = True
        return np.ndarray(shape, self.element.storage, buffer.data, self.pointer.offset, strides)

    def _checked(self, what: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if 0 not in self.shape:
            self.pointer.buffer.check(*self._span(), what)
        return self._stored()

    def _shadow(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
        return np.ndarray(
            (*shape, self.element.size),
            np.bool_,
            self.pointer.buffer.written,
            self.pointer.offset,
            (*strides, 1),
        )
