"""Lets xDSL's own parser read pto statements, through the one grammar that defines them."""

from __future__ import annotations

import re
from typing import TypeVar, cast

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser as XdslParser
from xdsl.parser import UnresolvedOperand
from xdsl.utils.lexer import Span

from pto.frontend.builder_state import BuilderState
from pto.frontend.builders import builders_of
from pto.frontend.source import Source
from pto.grammar.lalr import Parser, SyntaxProblem, Token, Tokens, tokens_on_demand

OpT = TypeVar("OpT", bound=Operation)

_RESULTS_BEFORE = re.compile(r"(?:%[\w$.-]+(?::[0-9]+)?\s*,\s*)*%[\w$.-]+(?::[0-9]+)?\s*=\s*\Z")
_LONGEST_RESULT_LIST = 2000


class _XdslState(BuilderState):
    """The state of reading one operation, of which xDSL's parser keeps the values.

    Values that are defined in a region of the operation itself are kept here.
    """

    def __init__(self, source: Source, tokens: Tokens, parser: XdslParser) -> None:
        super().__init__(source, tokens)
        self._parser = parser

    def use(self, token: Token, type: Attribute | None = None) -> SSAValue:
        name, _, index = self.texts[token].partition("#")
        if self.is_defined(name):
            return super().use(token, type)
        start = self.tokens.starts[token]
        span = Span(start, start + len(name), self._parser.lexer.input)
        operand = UnresolvedOperand(span, int(index[:9] or 0))
        if type is None:
            known = self._parser.ssa_values.get(name[1:])
            if known is None or operand.index >= len(known):
                raise SyntaxProblem(token, f"'{self.texts[token]}' is not defined")
            type = known[operand.index].type
        return self._parser.resolve_operand(operand, type)

    def define_results(self, token: Token, op: Operation) -> None:
        if self.statements:  # xDSL's parser names the results of the operation itself
            super().define_results(token, op)


def parse_statement(cls: type[OpT], parser: XdslParser) -> OpT:
    """Parses the operation whose name xDSL's parser has just read.

    The longest text that the grammar takes as one operation is read, and xDSL's parser goes on
    behind it. Errors are raised by xDSL's parser.
    """
    content = parser.lexer.input.content
    name_start = content.rindex(cls.name, 0, parser.pos)
    start = name_start
    before = content[max(0, name_start - _LONGEST_RESULT_LIST) : name_start]
    if (match := _RESULTS_BEFORE.search(before)) is not None:
        start = name_start - len(before) + match.start()
    source = Source(content, parser.lexer.input.name)
    tokens = tokens_on_demand("pto", content, start)
    state = _XdslState(source, tokens, parser)
    grammar = Parser("pto", state, builders_of(state))
    try:
        op = grammar.parse(tokens, "operation", prefix=True)
    except SyntaxProblem as problem:
        at = tokens.starts[problem.token]
        parser.raise_error(problem.message, Span(at, at + 1, parser.lexer.input))
    last = grammar.stopped_at - 1
    parser._resume_from(tokens.starts[last] + len(tokens.texts[last]))
    return cast(OpT, op)
