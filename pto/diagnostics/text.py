"""Diagnostics as text: the place, the source line with a caret under it, and the notes."""

from __future__ import annotations

import unicodedata

from pto.diagnostics.report import Diagnostic, FileReport

_COLOURS = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;35m",
    "remark": "\x1b[1;34m",
    "note": "\x1b[1;36m",
    "caret": "\x1b[1;32m",
    "bold": "\x1b[1m",
}
_RESET = "\x1b[0m"
_MIN_WIDTH = 40


def render_text(report: FileReport, *, colour: bool = False, width: int = 100) -> str:
    """Each diagnostic as `file:line:col: severity: message [id]`, the line, a caret, the notes.

    Lines longer than `width` are cut around the caret, since a tile statement can be 700 long.
    """
    return "".join(
        _one_as_text(d, report.lines.get(d.line), colour, width) for d in report.diagnostics
    )


def _one_as_text(d: Diagnostic, line: str | None, colour: bool, width: int) -> str:
    def paint(text: str, role: str) -> str:
        return f"{_COLOURS[role]}{text}{_RESET}" if colour else text

    place = paint(f"{d.filename}:{d.line}:{d.column}:", "bold")
    label = paint(f"{d.severity}:", d.severity)
    out = [f"{place} {label} {paint(d.message, 'bold')} [{d.id}]"]
    gutter = f"{d.line:>5} | "
    if line is not None:
        shown, column, length = _window(line, d.column, d.length, max(width, _MIN_WIDTH))
        caret = "^" + "~" * (length - 1)
        out.append(f"{gutter}{shown}")
        out.append(f"{' ' * 5} | {_blank(shown[: column - 1])}{paint(caret, 'caret')}")
    for note in d.notes:
        first, *more = note.split("\n")
        out.append(f"{' ' * 5} = {paint('note:', 'note')} {first}")
        out.extend(f"{' ' * 13}{text}" for text in more)
    return "\n".join(out) + "\n"


def _blank(text: str) -> str:
    """Spaces as wide as the text is on a terminal."""
    return "".join("  " if unicodedata.east_asian_width(c) in "WF" else " " for c in text)


def _window(line: str, column: int, length: int, width: int) -> tuple[str, int, int]:
    """A part of the line that shows the underlined part, with the part's place in it."""
    line = line.replace("\t", " ")
    length = max(1, min(length, len(line) - column + 1))
    room = width - len("12345 | ")
    if len(line) <= room:
        return line, column, length
    fits_at_the_start = column - 1 + length < room
    before = 0 if fits_at_the_start else max(0, min(column - 1 - room // 3, len(line) - room))
    after = before + room
    shown = line[before:after]
    if before:
        shown = "…" + shown[1:]
    if after < len(line):
        shown = shown[:-1] + "…"
    column -= before
    return shown, column, min(length, room - column + 1)
