"""What a program did on the machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pto.runtime.machine.lanes import TileUse


@dataclass
class Report:
    """Counts of one run. Bytes are those of the selected elements, whatever the blocks."""

    arch: str
    instructions: Counter[str] = field(default_factory=Counter)
    """Instructions issued, by name."""
    repeats: int = 0
    elements: int = 0
    """Elements converted."""
    bytes_read: int = 0
    bytes_written: int = 0
    tiles: list[TileUse] = field(default_factory=list)
    """Every tile whose address was taken, in order."""

    def touched(self, name: str) -> int:
        """Extent in bytes that was touched of the tile of this name, 0 if none was."""
        return max((use.last for use in self.tiles if use.name == name), default=0)

    def text(self) -> str:
        """The report for people, a few lines."""
        issued = ", ".join(f"{count} {name}" for name, count in self.instructions.most_common())
        lines = [
            f"machine {self.arch}: {self.instructions.total()} instructions ({issued})",
            f"  repeats {self.repeats}, elements converted {self.elements}",
            f"  bytes read {self.bytes_read}, written {self.bytes_written}",
        ]
        lines += [
            f"  {use.name}: {use.last} of {use.size} bytes touched, at byte {use.start}"
            for use in self.tiles
        ]
        return "\n".join(lines)
