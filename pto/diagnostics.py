"""Diagnostics: the record, the registry of ids, and the forms in which they are written.

The registry is data (`diagnostics.toml`): severity, summary, explanation, an example that triggers
the id and what to write instead. The docs and `pto-opt explain ID` are made from it.
"""

from __future__ import annotations

import json
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

Severity = Literal["error", "warning", "remark"]

FORMATS = ("text", "json", "github", "sarif")
"""The forms that `render` writes."""


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


@dataclass(frozen=True, slots=True)
class Rule:
    """What the registry says of an id."""

    id: str
    severity: Severity
    summary: str
    """One line, no full stop."""
    explanation: str
    wrong: str
    """A module that triggers the id, empty where one cannot be shown (unreadable input)."""
    right: str
    """What to write instead: a module that does not trigger it."""
    arch: str
    """Target that the examples are for, empty for any."""
    options: tuple[str, ...]
    """Options of `pto-opt verify` that the examples need."""
    default: bool
    """Off by default where False: `-W ID` turns it on."""


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


@cache
def rules() -> Mapping[str, Rule]:
    """The registry, by id, in the order of the docs."""
    text = Path(__file__).with_name("diagnostics.toml").read_text(encoding="utf-8")
    return {id_: _rule(id_, entry) for id_, entry in tomllib.loads(text).items()}


def _rule(id_: str, entry: Mapping[str, Any]) -> Rule:
    return Rule(
        id=id_,
        severity=entry["severity"],
        summary=entry["summary"],
        explanation=entry["explanation"].strip(),
        wrong=entry.get("wrong", "").strip("\n"),
        right=entry.get("right", "").strip("\n"),
        arch=entry.get("arch", ""),
        options=tuple(entry.get("options", ())),
        default=entry.get("default", True),
    )


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


# Text ------------------------------------------------------------------------------------------

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


# JSON, GitHub, SARIF ---------------------------------------------------------------------------


def to_json(reports: Sequence[FileReport]) -> dict[str, Any]:
    """The reports as JSON values: `files[]` and `summary`."""
    files = [
        {
            "path": r.path,
            "target": r.target,
            "tcvt": r.tcvt,
            "diagnostics": [_one_as_json(d) for d in r.diagnostics],
        }
        for r in reports
    ]
    return {"files": files, "summary": summary(reports)}


def _one_as_json(d: Diagnostic) -> dict[str, Any]:
    return {
        "severity": d.severity,
        "id": d.id,
        "message": d.message,
        "line": d.line,
        "column": d.column,
        "length": d.length,
        "notes": list(d.notes),
    }


def summary(reports: Sequence[FileReport]) -> dict[str, int]:
    """Totals over all files."""
    return {
        "files": len(reports),
        "tcvt": sum(r.tcvt for r in reports),
        "errors": sum(r.count("error") for r in reports),
        "warnings": sum(r.count("warning") for r in reports),
        "remarks": sum(r.count("remark") for r in reports),
    }


_GITHUB_COMMAND = {"error": "error", "warning": "warning", "remark": "notice"}


def render_github(report: FileReport) -> str:
    """One workflow command a diagnostic, which GitHub shows beside the line of a pull request."""
    return "".join(f"{_one_for_github(d)}\n" for d in report.diagnostics)


def _one_for_github(d: Diagnostic) -> str:
    properties = {
        "file": d.filename,
        "line": d.line,
        "col": d.column,
        "endColumn": d.column + d.length,
        "title": d.id,
    }
    listed = ",".join(f"{k}={_escape_property(str(v))}" for k, v in properties.items())
    text = "\n".join((d.message, *d.notes))
    return f"::{_GITHUB_COMMAND[d.severity]} {listed}::{_escape_data(text)}"


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


_SARIF_LEVEL = {"error": "error", "warning": "warning", "remark": "note"}
SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def to_sarif(reports: Sequence[FileReport], version: str) -> dict[str, Any]:
    """The reports as one SARIF 2.1.0 log (OASIS), one run, all ids as its rules."""
    index = {id_: n for n, id_ in enumerate(rules())}
    driver = {
        "name": "pto-opt",
        "semanticVersion": version,
        "rules": [_sarif_rule(rule) for rule in rules().values()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": _uri(r.path)}} for r in reports],
        "results": [
            _sarif_result(d, _uri(r.path), n, index[d.id])
            for n, r in enumerate(reports)
            for d in r.diagnostics
        ],
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _uri(path: str) -> str:
    from urllib.parse import quote

    if path == "-":
        return "stdin"
    return Path(path).as_uri() if Path(path).is_absolute() else quote(Path(path).as_posix())


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": explain(rule)},
        "defaultConfiguration": {
            "level": _SARIF_LEVEL[rule.severity],
            "enabled": rule.default,
        },
    }


def _sarif_result(d: Diagnostic, uri: str, artifact: int, rule: int) -> dict[str, Any]:
    region = {"startLine": d.line, "startColumn": d.column, "endColumn": d.column + d.length}
    location = {
        "physicalLocation": {
            "artifactLocation": {"uri": uri, "index": artifact},
            "region": region,
        }
    }
    return {
        "ruleId": d.id,
        "ruleIndex": rule,
        "level": _SARIF_LEVEL[d.severity],
        "message": {"text": "\n".join((d.message, *d.notes))},
        "locations": [location],
    }


def render(
    reports: Sequence[FileReport],
    form: str,
    *,
    colour: bool = False,
    width: int = 100,
) -> str:
    """All reports in one of FORMATS, files in the order given."""
    match form:
        case "text":
            return "".join(render_text(r, colour=colour, width=width) for r in reports)
        case "github":
            return "".join(render_github(r) for r in reports)
        case "json":
            return json.dumps(to_json(reports), indent=2) + "\n"
        case "sarif":
            return json.dumps(to_sarif(reports, _version()), indent=2) + "\n"
    raise ValueError(f"unknown format {form!r}; formats: {', '.join(FORMATS)}")


def _version() -> str:
    from importlib.metadata import version

    return version("pto-opt")


# Explanations ----------------------------------------------------------------------------------


def explain(rule: Rule) -> str:
    """What an id means, an example that triggers it and what to write instead, as Markdown."""
    state = "" if rule.default else f", off by default (`-W {rule.id}` turns it on)"
    out = [f"`{rule.id}` ({rule.severity}{state}): {rule.summary}.", "", rule.explanation]
    used = [f"--arch {rule.arch}"] if rule.arch else []
    used += rule.options
    options = f" (with `{' '.join(used)}`)" if used else ""
    for caption, example in ((f"Triggers it{options}:", rule.wrong), ("Instead:", rule.right)):
        if example:
            out += ["", caption, "", "```mlir", example, "```"]
    return "\n".join(out)
