"""`--verify-diagnostics`: comparison with the comments that say what is expected, as in MLIR.

`// expected-error@+1 {{text}}` expects an error on the next line whose message (with its `[id]`)
contains the text. `error` may be `warning`, `remark` or `note`; the line is this one, `@+N`, `@-N`,
`@above` or `@below`; `-re` after the kind makes the text a template with `{{...}}` expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pto.diagnostics import FileReport

_EXPECTED = re.compile(
    r"expected-(?P<kind>error|warning|remark|note)(?P<re>-re)?"
    r"\s*(?:@(?P<at>[+-]\d+|above|below))?\s*\{\{(?P<text>(?:\{\{.*?\}\}|(?!\}\}).)*)\}\}"
)


@dataclass(slots=True)
class _Expectation:
    line: int
    """Where the diagnostic is expected."""
    written: int
    """Where the comment stands."""
    kind: str
    text: str
    pattern: re.Pattern[str]
    met: bool = False


def compare(text: str, report: FileReport) -> list[str]:
    """What differs between a file's diagnostics and its comments, one line each.

    Every error, warning and remark must be expected, quiet remarks excepted; notes need not be.
    """
    expectations = list(_expectations(text))
    problems: list[tuple[int, str]] = []
    for d in report.diagnostics:
        if d.quiet:
            continue
        if not _meet(expectations, d.line, d.severity, f"{d.message} [{d.id}]"):
            place = f"{report.path}:{d.line}:{d.column}"
            problems.append((d.line, f"{place}: unexpected {d.severity}: {d.message} [{d.id}]"))
        for note in d.notes:
            _meet(expectations, d.line, "note", note)
    for e in expectations:
        if not e.met:
            place = f"{report.path}:{e.written}"
            problems.append((e.written, f"{place}: expected {e.kind} on line {e.line}: {e.text}"))
    return [problem for _, problem in sorted(problems)]


def _meet(expectations: list[_Expectation], line: int, kind: str, text: str) -> bool:
    for e in expectations:
        if not e.met and e.line == line and e.kind == kind and e.pattern.search(text):
            e.met = True
            return True
    return False


def _expectations(text: str) -> Iterator[_Expectation]:
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        _, slashes, comment = line.partition("//")
        if not slashes or "expected-" not in comment:
            continue
        for match in _EXPECTED.finditer(comment):
            wanted = match["text"]
            pattern = _template(wanted) if match["re"] else re.compile(re.escape(wanted))
            target = _target_line(match["at"], number, lines)
            yield _Expectation(target, number, match["kind"], wanted, pattern)


def _target_line(at: str | None, number: int, lines: list[str]) -> int:
    if at is None:
        return number
    if at not in ("above", "below"):
        return number + int(at)
    step = -1 if at == "above" else 1
    line = number + step
    while 0 < line <= len(lines) and "expected-" in lines[line - 1]:
        line += step
    return line


def _template(text: str) -> re.Pattern[str]:
    """The text as a pattern, its `{{expression}}` parts being regular expressions."""
    pieces = re.split(r"\{\{(.*?)\}\}", text)
    return re.compile("".join(p if n % 2 else re.escape(p) for n, p in enumerate(pieces)))
