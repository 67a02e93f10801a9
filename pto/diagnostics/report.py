"""Findings, and the reports of files that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pto.diagnostics.registry import Severity


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding, at one place of one file."""

    severity: Severity
    id: str
    """Stable id, listed in the registry; used in output and in suppression."""
    message: str
    line: int
    """1-based."""
    column: int
    """1-based, in characters."""
    notes: tuple[str, ...] = ()
    """What would be legal; a line of source in a note can be pasted."""
    length: int = 1
    """Characters that the caret underlines, on `line`."""
    filename: str = "<string>"
    quiet: bool = False
    """A remark about something that changes no result; the command line shows it on request."""

    def __str__(self) -> str:
        """`file:line:column: severity: message [id]`."""
        place = f"{self.filename}:{self.line}:{self.column}"
        return f"{place}: {self.severity}: {self.message} [{self.id}]"


@dataclass(slots=True)
class FileReport:
    """The findings of one file, with the source lines that they point at."""

    path: str
    diagnostics: list[Diagnostic]
    tcvt: int = 0
    """Conversions in the file."""
    target: str | None = None
    """The target that the file was checked against, None for what holds on every target."""
    lines: dict[int, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    """What differs from the expected-error comments, where those are compared."""

    def count(self, severity: Severity) -> int:
        """How many findings have this severity."""
        return sum(d.severity == severity for d in self.diagnostics)


def keep_lines(source: str, diagnostics: Iterable[Diagnostic]) -> dict[int, str]:
    """The source lines that the diagnostics point at, by line number."""
    wanted = {d.line for d in diagnostics}
    if not wanted:
        return {}
    lines = source.split("\n")
    return {n: lines[n - 1].rstrip("\r") for n in wanted if 0 < n <= len(lines)}


def promote(diagnostic: Diagnostic) -> Diagnostic:
    """The warning as an error (`-Werror`)."""
    return replace(diagnostic, severity="error") if diagnostic.severity == "warning" else diagnostic


def summary(reports: Sequence[FileReport]) -> dict[str, int]:
    """Totals over all files."""
    return {
        "files": len(reports),
        "tcvt": sum(r.tcvt for r in reports),
        "errors": sum(r.count("error") for r in reports),
        "warnings": sum(r.count("warning") for r in reports),
        "remarks": sum(r.count("remark") for r in reports),
    }
