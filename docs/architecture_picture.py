"""Draws the rooms of the code: `python docs/architecture_picture.py > docs/architecture.svg`.

The thin arrows are the imports that the code has, read from it; one that follows from two others is
left out. The thick path is the way of a file.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parent.parent
PACKAGES = {"pto": ROOT / "pto", "pto.grammar": ROOT / "grammar", "pto.passes": ROOT / "passes"}

WIDTH, HEIGHT = 880, 640
BOX = (170, 46)
ROOMS = {  # name: (centre x, y, what it holds)
    "cli": (440, 40, "pto-opt, one file a verb"),
    "passes": (440, 140, "verify, legalize, lower ..."),
    "frontend": (200, 250, "text to IR and back"),
    "runtime": (680, 250, "tiles and memory, execution"),
    "diagnostics": (790, 90, "ids, text, JSON, SARIF"),
    "tiles": (560, 360, "bytes, strides, overlap, tmp"),
    "dialect": (380, 450, "types, operations, locations"),
    "grammar": (110, 450, "the language"),
    "targets": (440, 540, "what each product has"),
    "numerics": (620, 610, "formats and conversions"),
}
WAY = {  # name: (points, label and its place)
    "FILE.pto": ([(40, 180), (130, 227)], (14, 172)),
    "IR": ([(285, 240), (400, 163)], (318, 196)),
    "findings": ([(525, 130), (705, 95)], (590, 104)),
    "IR, lowered or as it is": ([(500, 163), (640, 227)], (584, 190)),
    "arrays": ([(765, 250), (850, 250)], (800, 240)),
    "text": ([(120, 250), (40, 250)], (60, 242)),
}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the package by name, with its file."""
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            relative = path.relative_to(folder).with_suffix("")
            parts = [part for part in relative.parts if part != "__init__"]
            yield ".".join([package, *parts]), path


def room_of(module: str) -> str:
    """The room that a module is in, or the module itself at the root of the package."""
    return module.removeprefix("pto.").partition(".")[0]


def imports_of(path: Path) -> Iterator[str]:
    """The modules of this package that a file imports, at its head or inside of a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (names if node.module == "pto" else [node.module])
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def room_imports() -> dict[str, set[str]]:
    """Which rooms each room imports; the modules at the root of the package are left out."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, path in modules():
        room = room_of(module)
        for name in imports_of(path):
            other = room_of(name) if name.startswith("pto.") else ""
            if room in ROOMS and other in ROOMS and other != room:
                found[room].add(other)
    return dict(found)


def reduced(arrows: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The arrows that do not follow from others."""

    def reaches(start: str, end: str) -> bool:
        return any(n == end or reaches(n, end) for n in arrows.get(start, ()))

    return sorted(
        (a, b)
        for a, others in arrows.items()
        for b in others
        if not any(c != b and reaches(c, b) for c in others)
    )


def _text(x: float, y: float, text: str, size: int, extra: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{extra}>{escape(text)}</text>'


def _edge(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """Where the line from the centre of a box at `a` towards `b` leaves the box."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    reach = min(
        (BOX[0] / 2 + 2) / abs(dx) if dx else float("inf"),
        (BOX[1] / 2 + 2) / abs(dy) if dy else float("inf"),
    )
    return a[0] + dx * reach, a[1] + dy * reach


def _line(points: list[tuple[float, float]], style: str) -> str:
    path = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" {style}/>'


def svg() -> str:
    """The picture."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        '<defs><marker id="thin" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#888888"/></marker>'
        '<marker id="way" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="5" markerHeight="5" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#d95f0e"/></marker></defs>',
    ]
    for a, b in reduced(room_imports()):
        start, end = ROOMS[a][:2], ROOMS[b][:2]
        ends = [_edge(start, end), _edge(end, start)]
        parts.append(_line(ends, 'stroke="#888888" marker-end="url(#thin)"'))
    for name, (x, y, holds) in ROOMS.items():
        parts.append(
            f'<rect x="{x - BOX[0] / 2:g}" y="{y - BOX[1] / 2:g}" width="{BOX[0]}" '
            f'height="{BOX[1]}" rx="4" fill="#deebf7" stroke="#3182bd"/>'
        )
        middle = ' text-anchor="middle"'
        parts.append(_text(x, y - 4, name, 14, f'{middle} font-weight="bold"'))
        parts.append(_text(x, y + 13, holds, 11, middle))
    for label, (points, (x, y)) in WAY.items():
        parts.append(_line(points, 'stroke="#d95f0e" stroke-width="3" marker-end="url(#way)"'))
        parts.append(_text(x, y, label, 12, ' fill="#a63603"'))
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    print(svg(), end="")
