"""From `.pto` text to xDSL IR and back."""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pto.frontend.source import NotText, ParseError, Source, remember_source, source_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from pto.grammar.lalr import SyntaxProblem, Tokens

__all__ = ["NotText", "ParseError", "parse", "print_module", "source_of"]

_BYTE_ORDER_MARK = "\ufeff"
_FILE_NAME = re.compile(r"[^\n{}]+\.pto")
_WORD = re.compile(r"[\w.$]+")


def parse(source: str | Path, *, filename: str = "<string>") -> ModuleOp:
    """Parses PTO assembly: the SSA, DPS and PTO-AS forms, and the generic form of any operation.

    Args:
        source: the text, or the path of a UTF-8 file.
        filename: how locations name a text; a path names itself.

    Returns:
        The module. Every operation carries its location. Several top-level operations come wrapped
        in one module.

    Raises:
        ParseError: the text is not PTO assembly, with line, column and what was expected.
        OSError: the file cannot be read.
        TypeError: `source` is neither.
    """
    if isinstance(source, Path):
        filename = str(source)
        source = read_text(source)
    if not isinstance(source, str):
        raise TypeError(f"parse takes a text or a Path, not {type(source).__name__}")
    if _FILE_NAME.fullmatch(source):
        message = f"this is the name of a file, not a text: pass Path({source!r})"
        raise ParseError(Source(source, filename), 0, message, width=len(source))
    return _parse(Source(source.removeprefix(_BYTE_ORDER_MARK), filename))


def read_text(path: Path) -> str:
    """The text of a `.pto` file.

    Raises:
        NotText: it is not UTF-8 text.
        OSError: it cannot be read.
    """
    return decode_text(path.read_bytes(), str(path))


def decode_text(data: bytes, filename: str) -> str:
    """The text that the bytes of a file encode.

    Raises:
        NotText: they are not UTF-8 text.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotText(filename, f"byte {error.start} is not UTF-8") from None
    if "\0" in text:
        raise NotText(filename, "it holds a zero byte")
    return text.removeprefix(_BYTE_ORDER_MARK)


def _parse(source: Source) -> ModuleOp:
    from pto.frontend.builder_state import BuilderState
    from pto.frontend.builders import builders_of
    from pto.grammar.lalr import Parser, SyntaxProblem, tokenize

    # Nothing that parsing builds becomes garbage before it ends, so the collector, which looks at
    # all of it again and again as it grows, would only make parsing time quadratic.
    collecting = gc.isenabled()
    gc.disable()
    try:
        tokens = tokenize("pto", source.text)
        state = BuilderState(source, tokens)
        module: ModuleOp = Parser("pto", state, builders_of(state)).parse(tokens, "file")
    except SyntaxProblem as problem:
        raise error_at(source, tokens, problem) from None
    finally:
        if collecting:
            gc.enable()
    remember_source(module, source)
    return module


def error_at(source: Source, tokens: Tokens, problem: SyntaxProblem) -> ParseError:
    """The error for a problem at a token."""
    from pto.frontend.tiles import attribute_wanted

    token = problem.token
    text = tokens.texts[token]
    if tokens.kinds[token] == "$END" and token > 0:  # point at the last significant token
        token -= 1
        text = tokens.texts[token]
    if problem.offset:
        word = _WORD.match(text, problem.offset)
        text = word[0] if word else ""
    width = len(text.splitlines()[0]) if text else 1
    offset = tokens.starts[token] + problem.offset
    message, id_ = problem.message, problem.id
    if (wanted := attribute_wanted(tokens, problem.token)) is not None:
        message, id_ = wanted, "attribute"
    return ParseError(source, offset, message, width=width, id=id_)


def print_module(module: ModuleOp, *, generic: bool = False, long_types: bool = False) -> str:
    """The module as text, which parses again to the same module.

    Args:
        module: the module.
        generic: print every operation in generic form.
        long_types: print tile types with every field named.

    Raises:
        TypeError: `module` is not a module.
    """
    from xdsl.dialects.builtin import ModuleOp

    from pto.frontend.printing import module_text

    if not isinstance(module, ModuleOp):
        raise TypeError(f"print_module takes a module, not {type(module).__name__}")

    return module_text(module, generic=generic, long_types=long_types)
