"""The state of one core while it runs a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pto.dialect.machine_ops import BLOCK_BYTES
from pto.runtime.errors import Fault
from pto.runtime.memory import Memory
from pto.runtime.tile import Layout, Tile

CUBE_SPACES = frozenset(("mat", "left", "right", "acc", "bias", "scaling"))
"""Memory spaces of the cube side."""


@dataclass(frozen=True)
class Place:
    """A core's place in the grid."""

    block_idx: int = 0
    block_num: int = 1
    subblock_idx: int = 0
    subblock_num: int = 1


HERE = Place()
"""The only core there is."""


@dataclass
class Core:
    """One vector core: its unified buffer, its place in the grid, and its tiles by address."""

    unified_buffer: Memory
    place: Place = HERE
    progress: Callable[[int, int], None] | None = None
    """Called with the iteration and the count of an outermost loop."""
    tiles: dict[tuple[Layout, int, int, int], Tile] = field(default_factory=dict)
    flags: dict[str, int] = field(default_factory=dict)
    """Flags set and not yet waited for, by pipes and event."""
    depth: int = 0
    """Calls in progress."""

    def tile_at(self, layout: Layout, address: int, valid_rows: int, valid_cols: int) -> Tile:
        """The tile of a layout at a byte address of its memory space."""
        key = (layout, address, valid_rows, valid_cols)
        if (tile := self.tiles.get(key)) is None:
            if address % BLOCK_BYTES:
                raise Fault(f"address {address} is not a multiple of {BLOCK_BYTES} bytes")
            tile = Tile(layout, self.space(layout.space), address, valid_rows, valid_cols)
            self.tiles[key] = tile
        return tile

    def space(self, name: str) -> Memory:
        """The memory of a space. Raises Fault for those of the cube side."""
        if name in CUBE_SPACES:
            raise Fault(f"tiles in {name} are on the cube side, which is not executed here")
        return self.unified_buffer


def fresh_tile(layout: Layout, valid_rows: int, valid_cols: int) -> Tile:
    """A tile in a memory of its own."""
    if layout.space in CUBE_SPACES:
        raise Fault(f"tiles in {layout.space} are on the cube side, which is not executed here")
    memory = Memory("the tile's own memory", layout.size)
    return Tile(layout, memory, 0, valid_rows, valid_cols)
