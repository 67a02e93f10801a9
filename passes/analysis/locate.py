"""Turns a finding about an operation into a place in the text."""

from __future__ import annotations

import re
from functools import cached_property

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation

from pto.diagnostics import Diagnostic, Severity, rules
from pto.frontend.source import Source, position_of
from pto.passes.rules.tcvt_findings import Finding, Where
from pto.spans import Span, Statement, find_statement, part_of_type

_ALLOW = re.compile(r"(?://|#(?=\s)).*?\bpto:\s*allow\(([^)]*)\)")


def position(op: Operation) -> tuple[int, int]:
    """1-based line and column of an operation; of the one around it where a pass made this one.

    An operation with a written `loc(..)` is where it stands in the text that was parsed.
    """
    current: Operation | None = op
    while current is not None:
        if (written := position_of(current)) is not None:
            return written
        location = current.location
        if isinstance(location, FileLineColLoc):
            return location.line.data, location.column.data
        current = current.parent_op()
    return 1, 1


class Locator:
    """Places findings in the text of one module, or at their operation's location without text."""

    def __init__(self, source: Source | None) -> None:
        self._source = source
        self._statements: dict[Operation, Statement | None] = {}
        self._lines: dict[Diagnostic, tuple[int, int]] = {}

    def diagnostic(self, op: Operation, finding: Finding) -> Diagnostic:
        """The finding with its place and its severity."""
        line, column, length = self._place(op, finding.where)
        severity: Severity = finding.severity or rules()[finding.id].severity
        diagnostic = Diagnostic(
            severity=severity,
            id=finding.id,
            message=finding.message,
            line=line,
            column=column,
            notes=finding.notes,
            length=length,
            filename=self._filename(op),
            quiet=finding.quiet,
        )
        self._lines[diagnostic] = self._extent(op, line)
        return diagnostic

    def is_allowed(self, diagnostic: Diagnostic) -> bool:
        """Whether a `// pto: allow(id)` comment on one of the statement's lines names it."""
        if not self._allowed:
            return False
        first, last = self._lines[diagnostic]
        return any(diagnostic.id in self._allowed.get(n, ()) for n in range(first, last + 1))

    @cached_property
    def _allowed(self) -> dict[int, set[str]]:
        """Line → the ids that a comment on it allows."""
        if self._source is None or "allow(" not in self._source.text:
            return {}
        lines = enumerate(self._source.text.split("\n"), start=1)
        return {
            number: {id_.strip() for id_ in match.group(1).split(",")}
            for number, line in lines
            if (match := _ALLOW.search(line)) is not None
        }

    def _filename(self, op: Operation) -> str:
        if self._source is not None:
            return self._source.filename
        location = op.location
        return location.filename.data if isinstance(location, FileLineColLoc) else "<string>"

    def _place(self, op: Operation, where: Where) -> tuple[int, int, int]:
        statement = self._statement(op)
        if self._source is None or statement is None:
            return *position(op), 1
        text = self._source.text
        span = _span(text, statement, where)
        line, column = self._source.position(span.start)
        end_of_line = text.find("\n", span.start)
        end = span.end if end_of_line < 0 else min(span.end, end_of_line)
        return line, column, max(1, end - span.start)

    def _extent(self, op: Operation, line: int) -> tuple[int, int]:
        """First and last line of the statement."""
        statement = self._statement(op)
        if self._source is None or statement is None:
            return line, line
        return position(op)[0], self._source.position(statement.end)[0]

    def _statement(self, op: Operation) -> Statement | None:
        if self._source is None:
            return None
        if op not in self._statements:
            name = "module" if isinstance(op, ModuleOp) else op.name
            offset = self._source.offset(*position(op))
            self._statements[op] = find_statement(self._source.text, offset, name)
        return self._statements[op]


def _span(text: str, statement: Statement, where: Where) -> Span:
    """The span of a part of a statement; of its name where the part is not written."""
    if where.role == "attribute":
        return _attribute_span(statement, where.part)
    if where.role == "name":
        return statement.name
    group = statement.outs if where.role == "dst" else statement.ins
    index = 1 if where.role == "tmp" else 0
    spans = group.types if where.part or index >= len(group.operands) else group.operands
    if index >= len(spans):
        return statement.name
    return part_of_type(text, spans[index], where.part) if where.part else spans[index]


def _attribute_span(statement: Statement, part: str) -> Span:
    """The value (`=key`) or the key of an attribute; `satmode` may be spelt `sat_mode`."""
    key = part.removeprefix("=")
    spellings = (key, "sat_mode") if key == "satmode" else (key,)
    entry = next((e for k in spellings if (e := statement.attributes.get(k)) is not None), None)
    if entry is None:
        return statement.name
    return entry.value if part.startswith("=") and entry.value else entry.key
