"""Diagnostics as workflow commands of GitHub, which shows them beside the line they are about."""

from __future__ import annotations

from pto.diagnostics.report import Diagnostic, FileReport

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
