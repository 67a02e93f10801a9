"""Follows the value of each tile from conversion to conversion, to find double rounding (spec V).

A forward walk over a function keeps, for every tile, how the value in it was rounded last. Any
other write to the tile, or to memory that it shares, forgets it. Control flow is treated
conservatively: a region starts without the tiles that it writes anywhere, and leaves without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation, SSAValue

from pto.dialect.ops import AllocTileOp, GroupedOp, OpaqueOp, SubviewOp, TCvtOp
from pto.dialect.types import AnyTile
from pto.numerics.double_rounding import DoubleRounding, Known, Rounding, follow
from pto.tiles.geometry import constant, root, tile_bytes


@dataclass(frozen=True, slots=True)
class Found:
    """Two conversions of a function that round the same value one after the other."""

    first: TCvtOp
    second: TCvtOp
    rounding: DoubleRounding


def find_double_rounding(
    block: Block, step_of: Callable[[TCvtOp], Rounding | None]
) -> Iterator[Found]:
    """All double roundings in a function's body. `step_of` says how a legal tcvt rounds."""
    yield from _Walk(step_of).block(block, {})


@dataclass(frozen=True, slots=True)
class _Value:
    """What is known of the numbers in a tile."""

    known: Known
    rounded_by: TCvtOp | None
    """The conversion that last lost precision."""


_State = dict[SSAValue, _Value]


class _Walk:
    def __init__(self, step_of: Callable[[TCvtOp], Rounding | None]) -> None:
        self._step_of = step_of

    def block(self, block: Block, state: _State) -> Iterator[Found]:
        for op in block.ops:
            if isinstance(op, TCvtOp):
                yield from self._convert(op, state)
            elif isinstance(op, CallOp):
                state.clear()
            elif op.regions:
                yield from self._regions(op, state)
            elif state:
                for tile in _written(op):
                    _forget(tile, state)

    def _regions(self, op: Operation, state: _State) -> Iterator[Found]:
        for inner in op.walk() if state else ():
            for tile in _written(inner):
                _forget(tile, state)
        for region in op.regions:
            for block in region.blocks:
                yield from self.block(block, dict(state))

    def _convert(self, op: TCvtOp, state: _State) -> Iterator[Found]:
        step = self._step_of(op)
        before = state.get(root(op.src))
        for tile in _written(op):
            _forget(tile, state)
        if step is None:
            return
        known, found = follow(step, None if before is None else before.known)
        if found is not None and before is not None and before.rounded_by is not None:
            yield Found(before.rounded_by, op, found)
        target = op.dst if op.dst is not None else op.results[0]
        if known is None or root(target) is not target:
            return  # a window holds only a part of its tile
        rounds_here = known.rounded is step
        carried = None if before is None else before.rounded_by
        state[target] = _Value(known, op if rounds_here else carried)


def _written(op: Operation) -> Iterator[SSAValue]:
    """The tiles that an operation may write: all of its tile operands, if it is not known."""
    match op:
        case TCvtOp():
            yield from (v for v in (op.dst, op.tmp) if v is not None)
        case GroupedOp() if not (isinstance(op, OpaqueOp) and op.syntax):
            yield from (v for v in op.outs if _is_tile(v))
        case AllocTileOp() | SubviewOp():
            return
        case _:
            yield from (v for v in op.operands if _is_tile(v))


def _is_tile(value: SSAValue) -> bool:
    return isinstance(value.type, AnyTile)


def _forget(written: SSAValue, state: _State) -> None:
    """A write to a tile: it, and every tile that may share its memory, is unknown from here."""
    written = root(written)
    state.pop(written, None)
    if not state:
        return
    address = _address(written)
    if address is None and isinstance(written.owner, AllocTileOp) and written.owner.addr is None:
        return  # a tile without an address has memory of its own
    for tile in [t for t in state if _may_share(address, _address(t), t)]:
        del state[tile]


def _may_share(
    written: tuple[int, int] | None, other: tuple[int, int] | None, tile: SSAValue
) -> bool:
    if other is None:
        return not (isinstance(tile.owner, AllocTileOp) and tile.owner.addr is None)
    return written is None or (written[0] < other[1] and other[0] < written[1])


def _address(tile: SSAValue) -> tuple[int, int] | None:
    """The bytes that a tile occupies, if its address is constant."""
    owner = tile.owner
    if not isinstance(owner, AllocTileOp) or owner.addr is None:
        return None
    start = constant(owner.addr)
    type_: AnyTile = owner.result.type
    size = tile_bytes(type_)
    return None if start is None or size is None else (start, start + size)
