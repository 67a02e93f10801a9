"""All forms in which reports are written."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pto.diagnostics.github import render_github
from pto.diagnostics.json_form import to_json
from pto.diagnostics.report import FileReport
from pto.diagnostics.sarif import to_sarif
from pto.diagnostics.text import render_text

FORMATS = ("text", "json", "github", "sarif")
"""The forms that `render` writes."""


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
