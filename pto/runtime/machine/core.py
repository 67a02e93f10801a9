"""A core with a vector unit: what lowered programs run on."""

from __future__ import annotations

from dataclasses import dataclass, field

from pto.runtime.machine.lanes import TileUse, UbPointer
from pto.runtime.machine.report import Report
from pto.runtime.machine.vector_unit import VectorUnit
from pto.runtime.memory import Memory
from pto.runtime.tile import Tile
from pto.runtime.vector_core import VectorCore


@dataclass
class MachineCore(VectorCore):
    """A core whose tiles have addresses and whose vector unit counts what it does."""

    vector_unit: VectorUnit = field(default_factory=lambda: VectorUnit(Report("")))
    uses: dict[tuple[str, int, int, int], TileUse] = field(default_factory=dict)
    """The tiles whose address was taken, by name, memory, place and size."""
    _memories: dict[int, Memory] = field(default_factory=dict)

    def pointer(self, name: str, tile: Tile, bits: int) -> UbPointer:
        """The address of a tile of this name, to elements of this width."""
        layout, memory = tile.layout, tile.memory
        rows = layout.cols if layout.is_col_major else layout.rows
        stride = layout.col_stride if layout.is_col_major else layout.row_stride
        size = (rows - 1) * stride + layout.size // rows
        key = (name, id(memory), tile.offset, size)
        use = self.uses.get(key)
        if use is None:
            self._memories[id(memory)] = memory  # kept, so that its id stays its own
            use = TileUse(name, memory, tile.offset, tile.offset + size)
            self.uses[key] = use
            self.vector_unit.report.tiles.append(use)
        return UbPointer(use, tile.offset, bits)

    def address(self, byte: int, bits: int) -> UbPointer:
        """A byte address of the unified buffer, to elements of this width."""
        memory = self.unified_buffer
        use = self.uses.setdefault(
            ("unified buffer", id(memory), 0, memory.size),
            TileUse("the unified buffer", memory, 0, memory.size),
        )
        return UbPointer(use, byte, bits)
