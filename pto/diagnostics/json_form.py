"""Diagnostics as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pto.diagnostics.report import Diagnostic, FileReport, summary


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
