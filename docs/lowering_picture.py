"""Draws how a2a3's vector casts walk a tile: `python docs/lowering_picture.py > docs/lowering.svg`.

The tile is converted on the machine, and what each call reads is drawn: one box a repeat, in the
colour of its call. Options choose another pair and shape.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from xml.sax.saxutils import escape

from xdsl.context import Context

import pto
from pto.numerics import FORMATS
from pto.passes.lower_tcvt import LowerTcvtPass
from pto.runtime import machine
from pto.runtime.machine.lanes import Lanes, UbPointer
from pto.runtime.machine.report import Report
from pto.runtime.machine.vector_unit import Compute, VectorUnit

CELL_HEIGHT = 26
WIDTH = 880
LEFT, TOP = 60, 64
HEAD = ("#9ecae1", "#6baed6")
TAIL = "#fdae6b"


@dataclass(frozen=True)
class Box:
    """One repeat of one call: elements `first` up to `last` of a row of the source."""

    call: int
    row: int
    first: int
    last: int
    is_tail: bool


class RecordingUnit(VectorUnit):
    """A vector unit that remembers what the casts read."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self.reads: list[tuple[Lanes, int]] = []

    def issue(
        self,
        name: str,
        repeats: int,
        lanes: list[Lanes],
        pointers: list[UbPointer],
        compute: Compute,
    ) -> None:
        """Notes the source of a cast, then runs it."""
        self.reads.append((lanes[1], pointers[1].address - pointers[1].use.start))
        super().issue(name, repeats, lanes, pointers, compute)


def boxes(src: str, dst: str, rows: int, cols: int, stride: int) -> list[Box]:
    """What each call of the lowered conversion reads of a tile of `rows` rows of `stride`."""
    source, target = (
        f"!pto.tile_buf<vec, {rows}x{stride}x{t}, valid={rows}x{cols}>" for t in (src, dst)
    )
    module = pto.parse(f"""func.func @f() attributes {{pto.target_arch = "a2a3"}} {{
      %zero = arith.constant 0 : i64
      %behind = arith.constant 65536 : i64
      %s = pto.alloc_tile addr = %zero : {source}
      %d = pto.alloc_tile addr = %behind : {target}
      pto.tcvt ins(%s : {source}) outs(%d : {target})
      return
    }}""")
    LowerTcvtPass().apply(Context(), module)
    kernel = machine.MachineKernel(module)
    unit = RecordingUnit(kernel.report)
    core = kernel.core(vector_unit=unit)
    core.unified_buffer.written[:] = True
    kernel.launch_on(core)
    size = FORMATS[src].bits // 8
    whole = 256 // max(size, FORMATS[dst].bits // 8)
    found = []
    for call, (lanes, address) in enumerate(unit.reads, 1):
        for repeat in range(lanes.repeat):
            element = address // size + repeat * lanes.repeat_stride * 32 // size
            row, first = divmod(element, stride)
            found.append(Box(call, row, first, first + len(lanes.lanes), len(lanes.lanes) < whole))
    return found


def svg(src: str, dst: str, rows: int, cols: int, stride: int) -> str:
    """The picture."""
    scale = (WIDTH - LEFT - 20) / stride
    found = boxes(src, dst, rows, cols, stride)
    height = TOP + rows * CELL_HEIGHT + 74
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        _text(
            LEFT,
            22,
            f"{src} to {dst} on a2a3: {rows} rows of {cols} valid columns, row stride {stride}",
            14,
        ),
        f'<rect x="{LEFT}" y="{TOP}" width="{stride * scale:.1f}" height="{rows * CELL_HEIGHT}" '
        'fill="#eeeeee" stroke="#999999"/>',
    ]
    for box in found:
        shade = TAIL if box.is_tail else HEAD[box.row % 2]
        x, y = LEFT + box.first * scale, TOP + box.row * CELL_HEIGHT
        width = (box.last - box.first) * scale
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{CELL_HEIGHT}" fill="{shade}" '
            'stroke="white"/>'
        )
        parts.append(_text(x + width / 2, y + 17, str(box.call), 12, middle=True))
    parts += [
        _text(LEFT - 12, TOP + r * CELL_HEIGHT + 17, str(r), 11, end=True) for r in range(rows)
    ]
    marks = sorted({0, cols, stride, *(box.first for box in found)})
    parts += [_text(LEFT + m * scale, TOP - 8, str(m), 11, middle=True) for m in marks]
    parts += _legend(found, TOP + rows * CELL_HEIGHT + 22)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(found: list[Box], y: int) -> list[str]:
    lines = []
    for title, colour, is_tail in (("head", HEAD[0], False), ("tail", TAIL, True)):
        calls = sorted({box.call for box in found if box.is_tail is is_tail})
        if not calls:
            continue
        one = [box for box in found if box.call == calls[0]]
        span = f"call {calls[0]}"
        if len(calls) > 1:
            span = f"calls {calls[0]} to {calls[-1]}, each"
        lines.append(
            (
                f"{title}: {span} {len(one)} repeats of {one[0].last - one[0].first} elements",
                colour,
            )
        )
    lines.append(("beyond the valid columns: neither read nor written", "#eeeeee"))
    parts = []
    for number, (text, colour) in enumerate(lines):
        at = y + number * 18
        parts.append(f'<rect x="{LEFT}" y="{at - 10}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(LEFT + 20, at, text, 12))
    return parts


def _text(
    x: float, y: float, text: str, size: int, *, middle: bool = False, end: bool = False
) -> str:
    anchor = "middle" if middle else "end" if end else "start"
    return (
        f'<text x="{x:.1f}" y="{y}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def main() -> None:
    """Prints the picture of the shape that the options give."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", default="f32")
    parser.add_argument("--dst", default="f16")
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--cols", type=int, default=150)
    parser.add_argument("--stride", type=int, default=176, help="columns of a row of the tile")
    args = parser.parse_args()
    print(svg(args.src, args.dst, args.rows, args.cols, args.stride), end="")


if __name__ == "__main__":
    main()
