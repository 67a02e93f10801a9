"""Diagnostics as a SARIF 2.1.0 log (OASIS)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pto.diagnostics.registry import DiagnosticInfo, explain, registry
from pto.diagnostics.report import Diagnostic, FileReport

_SARIF_LEVEL = {"error": "error", "warning": "warning", "remark": "note"}
SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def to_sarif(reports: Sequence[FileReport], version: str) -> dict[str, Any]:
    """The reports as one SARIF 2.1.0 log (OASIS), one run, all ids as its rules."""
    index = {id_: n for n, id_ in enumerate(registry())}
    driver = {
        "name": "pto-opt",
        "semanticVersion": version,
        "rules": [_sarif_rule(info) for info in registry().values()],
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


def _sarif_rule(info: DiagnosticInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "shortDescription": {"text": info.summary},
        "fullDescription": {"text": info.explanation},
        "help": {"text": explain(info)},
        "defaultConfiguration": {
            "level": _SARIF_LEVEL[info.severity],
            "enabled": info.default,
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
