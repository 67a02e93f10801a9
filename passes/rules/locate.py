"""Turns a finding about an operation into a place in the text."""

from __future__ import annotations

import re
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from pto.diagnostics import Diagnostic, Severity, registry
from pto.dialect.location import location_of
from pto.frontend.source import Source
from pto.frontend.spans import Span, Statement, find_statement, part_of_type
from pto.passes.rules.finding import Anchor, Finding

_ALLOW = re.compile(r"(?://|#(?=\s)).*?\bpto:\s*allow\(([^)]*)\)")


class Locator:
    """Places findings in the text of one module, or at their operation's location without text."""

    def __init__(self, source: Source | None) -> None:
        self._source = source
        self._statements: dict[Operation, Statement | None] = {}
        self._lines: dict[Diagnostic, tuple[int, int]] = {}

    def diagnostic(self, op: Operation, finding: Finding) -> Diagnostic:
        """The finding with its place and its severity."""
        line, column, length = self._place(op, finding.anchor)
        severity: Severity = finding.severity or registry()[finding.id].severity
        filename = location_of(op).filename if self._source is None else self._source.filename
        diagnostic = Diagnostic(
            severity=severity,
            id=finding.id,
            message=finding.message,
            line=line,
            column=column,
            notes=finding.notes,
            length=length,
            filename=filename,
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

    def operand_names(self, op: Operation) -> list[str]:
        """The names of an operation's operands in the text, none where they are not found."""
        statement = self._statement(op)
        if self._source is None or statement is None:
            return []
        spans = (*statement.ins.operands, *statement.outs.operands)
        return [self._source.text[span.start : span.end] for span in spans]

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

    def _place(self, op: Operation, anchor: Anchor) -> tuple[int, int, int]:
        statement = self._statement(op)
        if self._source is None or statement is None:
            place = location_of(op, in_text=True)
            return place.line, place.column, 1
        text = self._source.text
        span = _span(text, statement, anchor)
        line, column = self._source.position(span.start)
        end_of_line = text.find("\n", span.start)
        end = span.end if end_of_line < 0 else min(span.end, end_of_line)
        return line, column, max(1, end - span.start)

    def _extent(self, op: Operation, line: int) -> tuple[int, int]:
        """First and last line of the statement."""
        statement = self._statement(op)
        if self._source is None or statement is None:
            return line, line
        return location_of(op, in_text=True).line, self._source.position(statement.end)[0]

    def _statement(self, op: Operation) -> Statement | None:
        if self._source is None:
            return None
        if op not in self._statements:
            name = "module" if isinstance(op, ModuleOp) else op.name
            place = location_of(op, in_text=True)
            offset = self._source.offset(place.line, place.column)
            self._statements[op] = find_statement(self._source.text, offset, name)
        return self._statements[op]


def _span(text: str, statement: Statement, anchor: Anchor) -> Span:
    """The span of a part of a statement; of its name where the part is not written."""
    if anchor.attribute:
        return _attribute_span(statement, anchor)
    if not anchor.operand:
        return statement.name
    group = statement.outs if anchor.operand == "dst" else statement.ins
    index = 1 if anchor.operand == "tmp" else 0
    spans = group.types if anchor.part or index >= len(group.operands) else group.operands
    if index >= len(spans):
        return statement.name
    return part_of_type(text, spans[index], anchor.part) if anchor.part else spans[index]


def _attribute_span(statement: Statement, anchor: Anchor) -> Span:
    """The key or the value of an attribute; `satmode` may be spelt `sat_mode`."""
    key = anchor.attribute
    spellings = (key, "sat_mode") if key == "satmode" else (key,)
    entry = next((e for k in spellings if (e := statement.attributes.get(k)) is not None), None)
    if entry is None:
        return statement.name
    return entry.value if anchor.value and entry.value else entry.key
