"""The registry of diagnostics: what each id means, as data.

`diagnostics.toml` has the severity, a summary, an explanation, an example that triggers the id and
what to write instead. The docs and `pto-opt explain ID` are made from it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Severity = Literal["error", "warning", "remark"]


@dataclass(frozen=True, slots=True)
class DiagnosticInfo:
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


@cache
def registry() -> Mapping[str, DiagnosticInfo]:
    """The registry, by id, in the order of the docs."""
    text = Path(__file__).with_name("diagnostics.toml").read_text(encoding="utf-8")
    return {id_: _info(id_, entry) for id_, entry in tomllib.loads(text).items()}


def _info(id_: str, entry: Mapping[str, Any]) -> DiagnosticInfo:
    return DiagnosticInfo(
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


def explain(info: DiagnosticInfo) -> str:
    """What an id means, an example that triggers it and what to write instead, as Markdown."""
    state = "" if info.default else f", off by default (`-W {info.id}` turns it on)"
    out = [f"`{info.id}` ({info.severity}{state}): {info.summary}.", "", info.explanation]
    used = [f"--arch {info.arch}"] if info.arch else []
    used += info.options
    options = f" (with `{' '.join(used)}`)" if used else ""
    for caption, example in ((f"Triggers it{options}:", info.wrong), ("Instead:", info.right)):
        if example:
            out += ["", caption, "", "```mlir", example, "```"]
    return "\n".join(out)
