"""Lets xDSL's own parser read pto statements, through the one grammar that defines them."""

from __future__ import annotations

import re
from typing import TypeVar, cast

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser as XdslParser
from xdsl.parser import UnresolvedOperand
from xdsl.utils.lexer import Span

from pto.frontend.actions import Builder
from pto.frontend.lalr import CUT, Parser, Problem, Tokens, tokenize
from pto.frontend.source import Source

OpT = TypeVar("OpT", bound=Operation)

_RESULTS_BEFORE = re.compile(r"(?:%[\w$.-]+(?::[0-9]+)?\s*,\s*)*%[\w$.-]+(?::[0-9]+)?\s*=\s*\Z")
_LONGEST_RESULT_LIST = 2000
_FIRST_TOKENS = 64


class _BridgeBuilder(Builder):
    """Builds one operation of which xDSL's parser keeps the values and names the results."""

    def __init__(self, source: Source, tokens: Tokens, parser: XdslParser) -> None:
        super().__init__(source, tokens)
        self._parser = parser

    def _use(self, token: int, type: Attribute | None = None) -> SSAValue:
        name, _, index = self.texts[token].partition("#")
        if name in self._values:  # defined in a region of this very operation
            return super()._use(token, type)
        start = self.tokens.starts[token]
        span = Span(start, start + len(name), self._parser.lexer.input)
        operand = UnresolvedOperand(span, int(index or 0))
        if type is None:
            known = self._parser.ssa_values.get(name[1:])
            if known is None:
                raise Problem(token, f"'{name}' is not defined")
            type = known[operand.index].type
        return self._parser.resolve_operand(operand, type)

    def _define_results(self, token: int, op: Operation) -> None:
        if self._starts:  # xDSL's parser names the results of the operation itself
            super()._define_results(token, op)


def parse_statement(cls: type[OpT], parser: XdslParser) -> OpT:
    """Parses the operation whose name xDSL's parser has just read.

    The longest text that the grammar takes as one operation is read, and xDSL's parser goes on
    behind it.
    """
    content = parser.lexer.input.content
    name_start = content.rindex(cls.name, 0, parser.pos)
    start = name_start
    before = content[max(0, name_start - _LONGEST_RESULT_LIST) : name_start]
    if (match := _RESULTS_BEFORE.search(before)) is not None:
        start = name_start - len(before) + match.start()
    source = Source(content, parser.lexer.input.name)
    limit = _FIRST_TOKENS
    while True:
        tokens = tokenize("pto", content, start, limit)
        grammar = Parser("pto", _BridgeBuilder(source, tokens, parser))
        try:
            op = grammar.parse(tokens, "operation", prefix=True)
        except Problem as problem:
            if tokens.kinds[problem.token] != CUT:
                at = tokens.starts[problem.token]
                parser.raise_error(problem.message, Span(at, at + 1, parser.lexer.input))
        else:
            end = grammar.stopped_at
            if tokens.kinds[end] != CUT:
                break
        limit *= 4
    parser._resume_from(tokens.starts[end - 1] + len(tokens.texts[end - 1]))
    return cast(OpT, op)
