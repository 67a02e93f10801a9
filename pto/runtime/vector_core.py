"""The state of one vector core while it runs a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pto.runtime.errors import RuntimeFault, unsupported
from pto.runtime.memory import Memory
from pto.runtime.tile import Layout, Tile
from pto.targets.vector_unit import BLOCK_BYTES

CUBE_SPACES = frozenset(("mat", "left", "right", "acc", "bias", "scaling"))
"""Memory spaces of the cube side."""


@dataclass(frozen=True)
class GridPosition:
    """Where a core is in the grid of a launch."""

    block_idx: int = 0
    block_num: int = 1
    subblock_idx: int = 0
    subblock_num: int = 1


ONLY_CORE = GridPosition()
"""The position of the only core of a launch."""


@dataclass
class VectorCore:
    """One vector core: its unified buffer, its position in the grid, and its tiles by address."""

    unified_buffer: Memory
    position: GridPosition = ONLY_CORE
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
                raise RuntimeFault(f"address {address} is not a multiple of {BLOCK_BYTES} bytes")
            check_space(layout.space)
            tile = Tile(layout, self.unified_buffer, address, valid_rows, valid_cols)
            self.tiles[key] = tile
        return tile


def check_space(space: str) -> None:
    """Raises RuntimeFault for a memory space of the cube side."""
    if space in CUBE_SPACES:
        raise unsupported(f"the cube side, where tiles in {space} are,")


def fresh_tile(layout: Layout, valid_rows: int, valid_cols: int) -> Tile:
    """A tile in a memory of its own."""
    check_space(layout.space)
    memory = Memory("the tile's own memory", layout.size)
    return Tile(layout, memory, 0, valid_rows, valid_cols)
