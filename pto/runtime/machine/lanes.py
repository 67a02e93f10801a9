"""Where the lanes of a repeat-based vector instruction lie in memory (spec C1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.numerics import pack4, unpack4
from pto.runtime.errors import RuntimeFault
from pto.runtime.memory import Memory
from pto.targets.vector_unit import BLOCK_BYTES

Array = NDArray[Any]


@dataclass(slots=True)
class TileUse:
    """A tile as the machine sees it: where it lies and how much of it was touched.

    `start` and `end` are byte addresses in `memory`; the touched range counts whole blocks of 32
    bytes, which is how the unified buffer is accessed.
    """

    name: str
    memory: Memory
    start: int
    end: int
    first: int | None = None
    """Lowest byte touched, relative to the start."""
    last: int = 0
    """End of the highest block touched, relative to the start."""

    @property
    def size(self) -> int:
        """Bytes of the tile."""
        return self.end - self.start

    def touch(self, first: int, last: int) -> None:
        """Notes an access to the bytes from `first` up to `last`, absolute addresses.

        Raises RuntimeFault where they are not in the tile.
        """
        if first < self.start or last > self.end:
            raise RuntimeFault(
                f"out of range: bytes {first - self.start} to {last - self.start} of {self.name},"
                f" which has {self.size}"
            )
        first -= self.start
        last -= self.start
        if self.first is None or first < self.first:
            self.first = first
        if last > self.last:
            self.last = last


@dataclass(frozen=True, slots=True)
class UbPointer:
    """A byte address in the unified buffer, inside a tile."""

    use: TileUse
    address: int
    bits: int
    """Width of the elements that it points to; 8 for packed pairs."""

    def advance(self, count: int) -> UbPointer:
        """The pointer `count` elements further on. Raises RuntimeFault in the middle of a byte."""
        bits = count * self.bits
        if bits & 7:
            raise RuntimeFault(f"element {count} of 4 bits starts in the middle of a byte")
        return UbPointer(self.use, self.address + (bits >> 3), self.bits)

    def retype(self, bits: int) -> UbPointer:
        """The same address, to elements of another width."""
        return UbPointer(self.use, self.address, bits)

    def require_block(self, operand: str) -> None:
        """Raises RuntimeFault unless the address is a multiple of 32 bytes."""
        if self.address % BLOCK_BYTES:
            raise RuntimeFault(
                f"{operand} at byte {self.address} is not aligned to {BLOCK_BYTES} bytes",
                f"it is byte {self.address - self.use.start} of {self.use.name}",
            )


@dataclass(frozen=True)
class Lanes:
    """The lanes of one operand: which elements of each repeat, and the strides between them.

    `lanes` are element numbers within a repeat, ascending. `block_stride` and `repeat_stride` are
    in blocks. An element lies in block `lane * bits // 256` of its repeat.
    """

    bits: int
    repeat: int
    block_stride: int
    repeat_stride: int
    lanes: tuple[int, ...] | range

    item: np.dtype[Any] = field(init=False)
    """Dtype of what is moved: the element's code, or the byte of a 4-bit pair."""
    reach: tuple[int, int] = field(init=False)
    """First byte of the first block and end of the last one, relative to the address."""
    elements: int = field(init=False)
    """Elements of all repeats."""
    bytes: int = field(init=False)
    """Bytes of all elements."""
    repeats_overlap: bool = field(init=False)
    """Whether two repeats share bytes, so that their order matters."""
    _shape: tuple[int, int] = field(init=False)
    _strides: tuple[int, int] | None = field(init=False)
    _offsets: Array | None = field(init=False)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        item_bytes = max(self.bits // 8, 1)
        set_field(self, "item", np.dtype(f"u{item_bytes}"))
        per_block = BLOCK_BYTES // item_bytes
        lanes = np.asarray(self.lanes, np.int64)
        items = lanes[::2] // 2 if self.bits == 4 else lanes
        in_repeat = items // per_block * (self.block_stride * BLOCK_BYTES) + (
            items % per_block * item_bytes
        )
        repeat_bytes = self.repeat_stride * BLOCK_BYTES
        blocks = in_repeat // BLOCK_BYTES
        last_repeat = (self.repeat - 1) * repeat_bytes
        reach = (0, 0)
        if self.repeat and items.size:
            low, high = int(blocks.min()), int(blocks.max()) + 1
            reach = (low * BLOCK_BYTES, high * BLOCK_BYTES + last_repeat)
        set_field(self, "reach", reach)
        set_field(self, "elements", self.repeat * len(self.lanes))
        set_field(self, "bytes", self.elements * self.bits // 8)
        one_repeat = reach[1] - reach[0] - last_repeat
        set_field(self, "repeats_overlap", self.repeat > 1 and repeat_bytes < one_repeat)
        set_field(self, "_shape", (self.repeat, int(items.size)))
        dense = np.array_equal(in_repeat, np.arange(items.size) * item_bytes)
        set_field(self, "_strides", (repeat_bytes, item_bytes) if dense else None)
        offsets = None
        if not dense:
            offsets = in_repeat + np.arange(self.repeat)[:, None] * repeat_bytes
        set_field(self, "_offsets", offsets)

    def codes(self, memory: Memory, address: int) -> Array:
        """The elements' codes in order, one each; RuntimeFault where one was never written."""
        if b"\0" in self._written(memory, address).tobytes():  # faster than `all` on a few lanes
            raise RuntimeFault(
                f"reads bytes that were never written, among {address + self.reach[0]} to"
                f" {address + self.reach[1]} of {memory.name}"
            )
        if self._strides is not None:
            view = np.ndarray(self._shape, self.item, memory.data, address, self._strides)
            items = view.reshape(-1)
        else:
            assert self._offsets is not None
            items = self._flat(memory)[(self._offsets + address) // self.item.itemsize].reshape(-1)
        return unpack4(items) if self.bits == 4 else items

    def poison(self, memory: Memory, address: int) -> Array | None:
        """Which elements are poison, in order, one flag each; None for none."""
        if memory.poison is None:
            return None
        if self._strides is not None:
            items = self._item_bytes(memory.poison, address).any(axis=2).reshape(-1)
        else:
            assert self._offsets is not None
            items = memory.poison[self._offsets + address].reshape(-1)
        if not items.any():
            return None
        return np.repeat(items, 2) if self.bits == 4 else items

    def store(
        self, memory: Memory, address: int, codes: Array, poison: Array | None = None
    ) -> None:
        """Writes the elements' codes; all other bytes stay as they are.

        `poison` says which of them are, None for none.
        """
        self._store_codes(memory, address, codes)
        if poison is None and memory.poison is None:
            return
        items: Array = np.zeros(self._shape, np.bool_)
        if poison is not None:
            pairs = poison.reshape(*self._shape, -1)  # of 4 bits, two to a byte
            items = np.asarray(pairs.any(axis=2))
        flags = memory.poison_flags()
        if self._strides is not None:
            self._item_bytes(flags, address)[...] = items[..., None]
            return
        assert self._offsets is not None
        for byte in range(self.item.itemsize):
            flags[self._offsets + (address + byte)] = items

    def _store_codes(self, memory: Memory, address: int, codes: Array) -> None:
        items = (pack4(codes) if self.bits == 4 else codes).reshape(self._shape)
        if self._strides is not None:
            np.ndarray(self._shape, self.item, memory.data, address, self._strides)[...] = items
            row = (self._shape[0], self._shape[1] * self.item.itemsize)
            written = np.ndarray(row, np.bool_, memory.written, address, (self._strides[0], 1))
            written[...] = True
            return
        assert self._offsets is not None
        self._flat(memory)[(self._offsets + address) // self.item.itemsize] = items
        for byte in range(self.item.itemsize):
            memory.written[self._offsets + (address + byte)] = True

    def _written(self, memory: Memory, address: int) -> Array:
        if self._strides is not None:
            row = (self._shape[0], self._shape[1] * self.item.itemsize)
            return np.ndarray(row, np.bool_, memory.written, address, (self._strides[0], 1))
        assert self._offsets is not None
        last = self.item.itemsize - 1
        written: Array = memory.written[self._offsets + address]
        return written if last == 0 else written & memory.written[self._offsets + (address + last)]

    def _item_bytes(self, flags: Array, address: int) -> Array:
        """The flags of dense lanes: repeats, items, bytes of an item."""
        assert self._strides is not None
        shape = (*self._shape, self.item.itemsize)
        return np.ndarray(shape, np.bool_, flags, address, (*self._strides, 1))

    def _flat(self, memory: Memory) -> Array:
        return np.ndarray((memory.size // self.item.itemsize,), self.item, memory.data)

    def one_by_one(self) -> Iterator[tuple[Lanes, int]]:
        """Each repeat as lanes of its own, with its distance in bytes."""
        single = lanes_of(self.bits, 1, self.block_stride, 0, self.lanes)
        for index in range(self.repeat):
            yield single, index * self.repeat_stride * BLOCK_BYTES


@lru_cache(maxsize=4096)
def lanes_of(
    bits: int,
    repeat: int,
    block_stride: int,
    repeat_stride: int,
    lanes: tuple[int, ...] | range,
) -> Lanes:
    """`Lanes`, kept: programs repeat the same instruction."""
    return Lanes(bits, repeat, block_stride, repeat_stride, lanes)
