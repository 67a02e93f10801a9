"""The LALR(1) tables of a grammar, as Lark builds them.

The tables are kept in a cache file beside Python's own bytecode, so that a program that only parses
never pays for building them, nor for importing Lark.
"""

from __future__ import annotations

import marshal
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import source_hash
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_CACHE_VERSION = 2


@dataclass(frozen=True)
class Production:
    """One production, as the parser reduces it."""

    action: str
    """The name of the action: the production's alias, or its rule's name."""
    origin: str
    """The rule that the production belongs to."""
    size: int
    """How many symbols it takes off the stack."""
    kept: tuple[int, ...]
    """Which of them the action is given; -1 stands for an optional part that is absent."""
    repeats: bool
    """Whether it is one step of a repetition (`x*`, `x+`), whose value is a list."""


@dataclass(frozen=True)
class Tables:
    """LALR(1) tables of one grammar.

    `states[s]` maps a terminal to what to do on it: a number >= 0 is the state to go to, a negative
    one `-1 - production` the production to reduce by. It maps a rule's name to the state to go to
    after it.
    """

    states: list[dict[str, int]]
    productions: list[Production]
    start_states: dict[str, int]
    end_states: dict[str, int]
    pattern: str
    """One regular expression for all terminals, each a named group; white space comes before."""
    keywords: dict[str, str]
    """Words that are terminals of their own, by text."""
    spellings: dict[str, str]
    """The text of every terminal that has just one."""


@cache
def load(name: str) -> Tables:
    """The tables of `name.lark` (`pto` or `types`).

    Raises:
        FileNotFoundError: there is no such grammar.
    """
    text = (_HERE / f"{name}.lark").read_text(encoding="utf-8")
    key = source_hash(f"{_CACHE_VERSION} {sys.version} {text}".encode()).hex()
    file_name = f"{name}.{key}.tables"
    for folder in _cache_folders():
        with suppress(OSError, ValueError, EOFError, TypeError):
            return _decode(marshal.loads((folder / file_name).read_bytes()))
    tables = _build(text)
    for folder in _cache_folders():
        with suppress(OSError):
            _write_whole(folder / file_name, marshal.dumps(_encode(tables)))
            break
    return tables


def _cache_folders() -> Iterator[Path]:
    """Where tables may be kept: beside the bytecode, else in the user's cache folder."""
    yield _HERE / "__pycache__"
    if base := os.environ.get("XDG_CACHE_HOME"):
        yield Path(base) / "pto-opt"
    else:
        with suppress(RuntimeError):
            yield Path.home() / ".cache" / "pto-opt"


def _write_whole(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def _encode(tables: Tables) -> tuple[Any, ...]:
    productions = [(p.action, p.origin, p.size, p.kept, p.repeats) for p in tables.productions]
    return (
        tables.states,
        productions,
        tables.start_states,
        tables.end_states,
        tables.pattern,
        tables.keywords,
        tables.spellings,
    )


def _decode(data: tuple[Any, ...]) -> Tables:
    states, productions, *rest = data
    return Tables(states, [Production(*production) for production in productions], *rest)


def _build(text: str) -> Tables:
    """Has Lark compile a grammar, and keeps of it what a parser needs.

    Lark's parse table is reached through names that are private to it: it has no public way to its
    tables. Driving them ourselves (`lalr.py`) reads a file five times as fast as Lark's own loop,
    which is why `pyproject.toml` pins lark below its next major version.
    """
    from lark import Lark

    starts = ["file", "operation"] if "\nfile:" in text else ["type", "attribute"]
    lark = Lark(text, parser="lalr", lexer="basic", start=starts, maybe_placeholders=True)
    table = lark.parser.parser._parse_table
    numbers = {state: index for index, state in enumerate(table.states)}
    known = {rule: index for index, rule in enumerate(lark.rules)}
    productions = [_production(rule) for rule in lark.rules]
    states: list[dict[str, int]] = []
    for actions in table.states.values():
        row: dict[str, int] = {}
        for symbol, (action, argument) in actions.items():
            if action.name == "Shift":
                row[symbol] = numbers[argument]
            else:
                row[symbol] = -1 - _number(argument, known, productions)
        states.append(row)
    pattern, keywords = _pattern(lark)
    return Tables(
        states,
        productions,
        {start: numbers[table.start_states[start]] for start in starts},
        {start: numbers[table.end_states[start]] for start in starts},
        pattern,
        keywords,
        {
            terminal.name: terminal.pattern.value
            for terminal in lark.terminals
            if terminal.pattern.type == "str"
        },
    )


def _number(rule: Any, known: dict[Any, int], productions: list[Production]) -> int:
    """A rule's number; Lark adds one rule per start symbol that is not in its own list."""
    if rule not in known:
        known[rule] = len(productions)
        productions.append(_production(rule))
    return known[rule]


def _production(rule: Any) -> Production:
    kept: list[int] = []
    absent = rule.options.empty_indices or (False,) * (len(rule.expansion) + 1)
    position = 0
    for is_absent in absent:
        if is_absent:
            kept.append(-1)
        elif position < len(rule.expansion):
            symbol = rule.expansion[position]
            dropped = symbol.is_term and symbol.filter_out and not rule.options.keep_all_tokens
            if not dropped:
                kept.append(position)
            position += 1
    return Production(
        action=str(rule.alias or rule.origin.name),
        origin=str(rule.origin.name),
        size=len(rule.expansion),
        kept=tuple(kept),
        repeats=str(rule.origin.name).startswith("__"),
    )


def _pattern(lark: Any) -> tuple[str, dict[str, str]]:
    """The lexer's regular expression, and the words that a more general terminal would match."""
    ignored = [t for t in lark.terminals if t.name in lark.ignore_tokens]
    terminals = [t for t in lark.terminals if t.name not in lark.ignore_tokens]
    words = re.compile(r"[A-Za-z_][\w$]*(?:\.[\w$]+)*")
    keywords = {
        t.pattern.value: t.name
        for t in terminals
        if t.pattern.type == "str" and words.fullmatch(t.pattern.value)
    }
    for terminal in terminals:  # `MODULE: "module" | "builtin.module"` is a list of words too
        alternatives = re.fullmatch(r"\(\?:((?:\w|\\\.|\|)+)\)", terminal.pattern.to_regexp())
        if alternatives and terminal.pattern.type == "re":
            for word in alternatives[1].replace("\\", "").split("|"):
                keywords[word] = terminal.name
    rest = [t for t in terminals if t.name not in keywords.values()]
    rest.sort(key=lambda t: -len(t.pattern.value) if t.pattern.type == "str" else -sys.maxsize)
    groups = "|".join(f"(?P<{t.name}>{t.pattern.to_regexp()})" for t in rest)
    blank = "|".join(t.pattern.to_regexp() for t in ignored)
    return f"(?:{blank})*+(?:{groups})", keywords
