"""Follows the value of each tile from conversion to conversion, to find double rounding (spec V).

A forward walk over a function keeps, for every tile, how the value in it was rounded last. Any
other write to the tile, or to memory that it shares, forgets it. Control flow is treated
conservatively: a region starts without the tiles that it writes anywhere, and leaves without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation, SSAValue

from pto.dialect.ops import AllocTileOp, RegularOp, SubviewOp, TCvtOp
from pto.dialect.types import TileBufType, TileType
from pto.passes.analysis.placement import AnyTile, constant, root, tile_bytes
from pto.targets.grids import Grid, grid, is_integer, loses

_DIRECTED = ("FLOOR", "CEIL", "TRUNC")


@dataclass(frozen=True, slots=True)
class Step:
    """A tcvt as the chain sees it."""

    op: TCvtOp
    src: str
    """Format names, spec F."""
    dst: str
    mode: str
    """The mode that applies, NONE resolved (spec R7, R9)."""


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of the numbers in a tile."""

    grid: Grid
    """They are all in this set."""
    rounded: Step | None = None
    """The conversion that last lost precision, none yet if None."""
    original: Grid | None = None
    """The set of the numbers before that conversion."""


@dataclass(frozen=True, slots=True)
class DoubleRounding:
    """Two conversions that round the same value one after the other."""

    first: Step
    second: Step
    odd_helps: bool
    """Rounding the first step by ODD would make the result that of rounding once."""


def find_double_rounding(
    block: Block, step_of: Callable[[TCvtOp], Step | None]
) -> Iterator[DoubleRounding]:
    """All double roundings in a function's body. `step_of` gives a legal tcvt as a step."""
    yield from _Walk(step_of).block(block, {})


_State = dict[SSAValue, Value]


class _Walk:
    def __init__(self, step_of: Callable[[TCvtOp], Step | None]) -> None:
        self._step_of = step_of

    def block(self, block: Block, state: _State) -> Iterator[DoubleRounding]:
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

    def _regions(self, op: Operation, state: _State) -> Iterator[DoubleRounding]:
        for inner in op.walk() if state else ():
            for tile in _written(inner):
                _forget(tile, state)
        for region in op.regions:
            for block in region.blocks:
                yield from self.block(block, dict(state))

    def _convert(self, op: TCvtOp, state: _State) -> Iterator[DoubleRounding]:
        step = self._step_of(op)
        source = state.get(root(op.src))
        for tile in _written(op):
            _forget(tile, state)
        if step is None:
            return
        value, found = follow(step, source)
        if found is not None:
            yield found
        target = op.dst if op.dst is not None else op.results[0]
        if value is not None and root(target) is target:  # a window holds only a part of its tile
            state[target] = value


def follow(step: Step, before: Value | None) -> tuple[Value | None, DoubleRounding | None]:
    """The value after a step, and whether the step rounds what was rounded before.

    `before` None is a value that no conversion of the function has made. The value after is None
    where the formats are not described.
    """
    source, destination = grid(step.src), grid(step.dst)
    if source is None or destination is None:
        return None, None
    before = before or Value(source)
    if not loses(before.grid, destination):
        return replace(before, grid=before.grid.within(destination)), None
    first, original = before.rounded, before.original
    found = None
    if first and original and _can_differ(original, first, step, destination):
        odd = replace(first, mode="ODD")
        has_odd = (first.src, first.dst) == ("f32", "f16")  # spec R6
        helps = has_odd and not _can_differ(original, odd, step, destination)
        found = DoubleRounding(first, step, helps)
    after = destination.within(before.grid)
    integral = before.grid.lsb >= 0 or step.src == step.dst
    return Value(after.integers() if integral else after, step, before.grid), found


def _can_differ(original: Grid, first: Step, second: Step, destination: Grid) -> bool:
    """Whether rounding `original` by the two steps can differ from rounding it once."""
    middle = grid(first.dst)
    if middle is None or is_integer(first.dst) or first.src == first.dst:
        return False  # rounding to an integral value is meant as such
    reaching = original.within(destination)
    if middle.holds(reaching):
        return False  # what the first step rounds, the second clips
    unsigned = destination.low == 0  # negatives are clipped: FLOOR is TRUNC there
    modes = [_towards_zero(step.mode) if unsigned else step.mode for step in (first, second)]
    if _loses_only_near_zero(reaching, middle, destination):
        return modes[1] not in ("RINT", "ROUND", "TRUNC") and modes[0] != modes[1]
    if modes[0] == modes[1] and modes[0] in _DIRECTED:
        return not middle.holds(destination)
    if modes == ["TRUNC", "ROUND"]:  # half-way and above goes up, and truncation keeps that
        return not middle.holds(destination.with_halves())
    # Round to odd keeps the sticky bit: safe with two bits to spare (spec R6).
    spare = middle.bits >= destination.bits + 2 and middle.holds(destination.with_halves())
    return not (first.mode == "ODD" and spare)


def _towards_zero(mode: str) -> str:
    return "TRUNC" if mode == "FLOOR" else mode


def _loses_only_near_zero(source: Grid, middle: Grid, destination: Grid) -> bool:
    """Whether the middle format rounds only numbers that are too small to matter: less than half
    of the destination's least step, before and after."""
    if source.used_bits() > middle.bits or not middle.reaches(source):
        return False
    exponent = middle.lsb + source.bits - 1  # from 2^exponent on, the middle holds all bits
    return exponent < destination.lsb - 1


def _written(op: Operation) -> Iterator[SSAValue]:
    """The tiles that an operation may write: all of its tile operands, if it is not known."""
    match op:
        case TCvtOp():
            yield from (v for v in (op.dst, op.tmp) if v is not None)
        case RegularOp() if op.syntax is None:
            yield from (v for v in op.outs if _is_tile(v))
        case AllocTileOp() | SubviewOp():
            return
        case _:
            yield from (v for v in op.operands if _is_tile(v))


def _is_tile(value: SSAValue) -> bool:
    return isinstance(value.type, TileBufType | TileType)


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
