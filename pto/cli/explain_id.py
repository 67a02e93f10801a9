"""`pto-opt explain ID`: what a diagnostic means, an example, and what to write instead."""

from __future__ import annotations

import argparse
import sys

from pto.cli.terminal import columns, complain, unknown
from pto.diagnostics import DiagnosticInfo, registry
from pto.diagnostics.registry import explain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `pto-opt explain ID`."""
    parser.description = "Explain a diagnostic of `pto-opt verify`."
    parser.add_argument("id", nargs="?", metavar="ID", help="diagnostic id; without it, all ids")


def run(args: argparse.Namespace) -> int:
    """Prints the explanation and returns the exit status."""
    if args.id is None:
        print(listing())
        return 0
    if (info := registry().get(args.id)) is None:
        complain("explain", unknown("id", args.id, registry()))
        print(listing(), file=sys.stderr)
        return 2
    print(explain(info))
    return 0


def listing() -> str:
    """All ids with their summaries, one line each."""
    return "\n".join(columns([(r.id, r.severity, r.summary) for r in registry().values()]))


DOCUMENT_PREFACE = """\
# Diagnostics

Every diagnostic of `pto-opt verify`, by id. This page is generated from
`pto/diagnostics/diagnostics.toml`; `pto-opt explain ID` prints the same section.

An error makes the exit status 1. `-Werror` makes errors of all warnings, `-W error=ID` of one;
`-W ID` turns a warning on, `--no-warn ID` off. At a line that is right as it is, a comment
`// pto: allow(ID)` (or several ids, with commas) silences it; the comment may stand on any line of
the statement. Remarks about something that has no effect on any result are shown with `--remarks`
and in JSON.
"""


def document() -> str:
    """The docs' page of all diagnostics."""
    index = [
        "| id | severity | |",
        "| --- | --- | --- |",
        *(f"| [{r.id}](#{r.id}) | {_severity(r)} | {r.summary} |" for r in registry().values()),
    ]
    sections = [f"## {r.id}\n\n{explain(r)}" for r in registry().values()]
    return "\n".join([DOCUMENT_PREFACE, *index, "", "\n\n".join(sections), ""])


def _severity(info: DiagnosticInfo) -> str:
    return info.severity if info.default else f"{info.severity}, off"
