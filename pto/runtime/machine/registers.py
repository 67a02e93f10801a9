"""The register unit: predicates, loads, astype and stores on 256 bytes (spec A, L3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pto.dialect.register_ops import RegisterCast
from pto.numerics import Format, pack4, unpack4
from pto.runtime.errors import RuntimeFault, unsupported
from pto.runtime.machine.lanes import UbPointer
from pto.runtime.machine.vector_unit import VectorUnit, converter
from pto.targets.vector_unit import BLOCK_BYTES, REGISTER_BYTES

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Register:
    """256 bytes, and which of them hold data: what a load took from memory never written does not.

    `known` None means all of them. `defined` likewise says which bytes are not poison; `cause`
    tells where poison came about.
    """

    data: Array
    known: Array | None = None
    defined: Array | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Predicate:
    """The first `lanes` lanes of `lane_bytes` each. The hardware has one bit a byte of the register
    and looks at the lowest byte of a lane."""

    lanes: int
    lane_bytes: int

    def first(self, lane_bytes: int) -> int:
        """How many lanes of this width are selected, the first ones.

        Raises RuntimeFault where they are not the first: a mask of wide lanes on narrow ones.
        """
        if lane_bytes < self.lane_bytes:
            raise RuntimeFault(
                f"a predicate of {self.lane_bytes * 8}-bit lanes on lanes of {lane_bytes * 8} bits"
            )
        return -(-self.lanes * self.lane_bytes // lane_bytes)


_PATTERNS = {"PAT_ALL": REGISTER_BYTES, "PAT_ALLF": 0} | {
    f"PAT_VL{n}": n for n in (1, 2, 3, 4, 8, 16, 32, 64, 128)
}


def pattern(name: str, bits: int) -> Predicate:
    """A predicate by its pattern's name. RuntimeFault for one that is not a run of first lanes."""
    if name not in _PATTERNS:
        raise unsupported(f"the predicate pattern {name}")
    lane_bytes = bits // 8
    return Predicate(min(_PATTERNS[name], REGISTER_BYTES // lane_bytes), lane_bytes)


def less_than(count: int, bits: int) -> tuple[Predicate, int]:
    """`plt`: the first `count` lanes, and what is left of the count after this register."""
    lane_bytes = bits // 8
    lanes = REGISTER_BYTES // lane_bytes
    return Predicate(max(0, min(count, lanes)), lane_bytes), max(0, count - lanes)


# How a load spreads memory over lanes: (bytes of an item in memory, bytes of its lane).
_LOADS = {
    "NORM": (1, 1),
    "UNPK_B8": (1, 2),
    "UNPK_B16": (2, 4),
    "UNPK_B32": (4, 8),
    "UNPK4": (1, 4),
}
# How a store packs lanes into memory: the same.
_STORES = {
    "NORM_B8": (1, 1),
    "NORM_B16": (2, 2),
    "NORM_B32": (4, 4),
    "PK_B16": (1, 2),
    "PK_B32": (2, 4),
    "PK_B64": (4, 8),
    "PK4_B32": (1, 4),
}


def load(dist: str) -> Callable[[VectorUnit, UbPointer, bool], Register]:
    """`vlds` with this distribution. Raises RuntimeFault for one that is not supported.

    The function takes the address and whether memory ends where the tile's memory does: reading on
    is then an error, while a tile in a memory of its own is followed by bytes that hold no data.
    """
    if dist not in _LOADS:
        raise unsupported(f"the load distribution {dist}", f"supported: {', '.join(_LOADS)}")
    item, lane = _LOADS[dist]
    size = REGISTER_BYTES * item // lane
    name = f"vlds {dist}"

    def vlds(unit: VectorUnit, pointer: UbPointer, bounded: bool) -> Register:
        pointer.require_block("the load")
        use, start = pointer.use, pointer.address
        memory = use.memory
        if start < use.start or (bounded and start + size > memory.size):
            raise RuntimeFault(
                f"out of range: bytes {start} to {start + size} of {memory.name}, which has"
                f" {memory.size}"
            )
        use.touch(min(start, use.end), min(start + size, use.end))
        unit.report.instructions[name] += 1
        unit.report.bytes_read += size
        data, known = memory.data[start : start + size], memory.written[start : start + size]
        if data.size < size:
            data = np.concatenate([data, np.zeros(size - data.size, np.uint8)])
            known = np.concatenate([known, np.zeros(size - known.size, np.bool_)])
        defined = None if memory.poison is None else ~memory.poison[start : start + size]
        if defined is not None and defined.size < size:
            defined = np.concatenate([defined, np.ones(size - defined.size, np.bool_)])
        spread = data.copy() if item == lane else _spread(data, item, lane)
        return Register(
            spread,
            _lane_flags(known, item, lane),
            _lane_flags(defined, item, lane),
            memory.cause,
        )

    return vlds


def _lane_flags(flags: Array | None, item: int, lane: int) -> Array | None:
    """The flags of a register's bytes from those of the items loaded; None if all are set."""
    if flags is None or b"\0" not in flags.tobytes():  # faster than `all`
        return None
    return flags.copy() if item == lane else _spread_known(flags, item, lane)


def _spread(data: Array, item: int, lane: int) -> Array:
    return data.view(f"u{item}").astype(f"u{lane}").view(np.uint8)


def _spread_known(known: Array, item: int, lane: int) -> Array:
    spread = np.ones((REGISTER_BYTES // lane, lane), np.bool_)
    spread[:, :item] = known.reshape(-1, item)
    return spread.reshape(-1)


def store(dist: str) -> Callable[[VectorUnit, Register, UbPointer, Predicate], None]:
    """`vsts` with this distribution. Raises RuntimeFault for one that is not supported."""
    if dist not in _STORES:
        raise unsupported(f"the store distribution {dist}", f"supported: {', '.join(_STORES)}")
    item, lane = _STORES[dist]
    name = f"vsts {dist}"

    def vsts(unit: VectorUnit, value: Register, pointer: UbPointer, predicate: Predicate) -> None:
        pointer.require_block("the store")
        lanes = predicate.first(lane)
        size, start = lanes * item, pointer.address
        unit.report.instructions[name] += 1
        unit.report.bytes_written += size
        if not lanes:
            return
        pointer.use.touch(start, start + -(-size // BLOCK_BYTES) * BLOCK_BYTES)
        if value.known is not None and not value.known.reshape(-1, lane)[:lanes, :item].all():
            raise RuntimeFault("stores lanes that hold bytes which were never written")
        data = value.data if item == lane else value.data.view(f"u{lane}").astype(f"u{item}")
        memory = pointer.use.memory
        memory.data[start : start + size] = data.view(np.uint8)[:size]
        memory.written[start : start + size] = True
        if value.defined is not None:
            stored = value.defined.reshape(-1, lane)[:lanes, :item].reshape(-1)
            memory.poison_flags()[start : start + size] = ~stored
            memory.cause = value.cause
        elif memory.poison is not None:
            memory.poison[start : start + size] = False

    return vsts


def astype(
    cast: RegisterCast, name: str = "vcvt"
) -> Callable[[VectorUnit, Register, Predicate], Register]:
    """`vcvt` (spec A1): the conversion of the selected lanes; every other lane becomes zero.

    `name` is what the report counts it as.
    """
    conversion = cast.conversion()
    convert, keeping = converter(conversion, False), converter(conversion, True)
    take, take_known = _taker(cast)
    put, put_known = _putter(cast)
    source, _, step = _geometry(cast)
    pairs = _per_unit(cast)
    offset = cast.layout * source if source < step else 0

    def vcvt(unit: VectorUnit, value: Register, predicate: Predicate) -> Register:
        # A unit is selected by the predicate's bit for the first byte of its source.
        lanes = max(0, -(-(predicate.lanes * predicate.lane_bytes - offset) // step))
        codes = (keeping if unit.keeps_nan() else convert)(take(value.data))
        codes[lanes * pairs :] = 0
        unit.report.instructions[name] += 1
        unit.report.elements += lanes * pairs
        if value.known is None and value.defined is None:
            return Register(put(codes))
        known, defined = (flags_of(flags, lanes) for flags in (value.known, value.defined))
        return Register(put(codes), known, defined, value.cause)

    def flags_of(flags: Array | None, lanes: int) -> Array | None:
        if flags is None:
            return None
        units = take_known(flags)
        units[lanes:] = True  # zero
        return put_known(units)

    return vcvt


Mover = Callable[[Array], Array]


def _per_unit(cast: RegisterCast) -> int:
    """Elements that move together: two where one side is a 4-bit format (spec A1), else one."""
    return max(cast.src.per_byte, cast.dst.per_byte)


def _geometry(cast: RegisterCast) -> tuple[int, int, int]:
    """Bytes of a source and of a destination unit, and the bytes from one to the next."""
    source, target = (f.memory_bits * _per_unit(cast) // 8 for f in (cast.src, cast.dst))
    return source, target, max(source, target)


def _code_dtype(fmt: Format) -> np.dtype[Any]:
    """Unsigned dtype of an element, or of the byte of a pair."""
    return np.dtype(f"u{fmt.storage_bits // 8}")


def _taker(cast: RegisterCast) -> tuple[Mover, Mover]:
    """From a register to the codes of its elements, and to whether each unit is known."""
    unit, _, step = _geometry(cast)
    ratio, layout = step // unit, cast.layout if unit < step else 0
    is_packed, code = cast.src.per_byte == 2, _code_dtype(cast.src)

    def take(data: Array) -> Array:
        if is_packed:
            return unpack4(data[layout::ratio])
        codes = data.view(code)
        return codes if ratio == 1 else np.ascontiguousarray(codes[layout::ratio])

    def take_known(known: Array) -> Array:
        at = layout * unit
        return np.asarray(known.reshape(-1, step)[:, at : at + unit].all(axis=1))

    return take, take_known


def _putter(cast: RegisterCast) -> tuple[Mover, Mover]:
    """From codes to a register, and from whether each unit is known to the register's bytes."""
    _, unit, step = _geometry(cast)
    ratio, layout = step // unit, cast.layout if unit < step else 0
    is_packed, code = cast.dst.per_byte == 2, _code_dtype(cast.dst)

    def put(codes: Array) -> Array:
        if is_packed:
            codes = pack4(codes)
        if ratio == 1:
            return codes.view(np.uint8)
        data = np.zeros(REGISTER_BYTES, np.uint8)
        data.view(code)[layout::ratio] = codes
        return data

    def put_known(known: Array) -> Array:
        found = np.ones((REGISTER_BYTES // step, step), np.bool_)
        at = layout * unit
        found[:, at : at + unit] = known[:, None]
        return found.reshape(-1)

    return put, put_known
