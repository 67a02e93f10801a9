"""PTO assembly front-end: parse, verify, lower and execute tile conversions of Ascend NPUs."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pto.diagnostics import Diagnostic as Diagnostic
    from pto.frontend import ParseError as ParseError
    from pto.frontend import parse as parse
    from pto.frontend import print_module as print_module
    from pto.passes.verify_tcvt import verify as verify
    from pto.runtime import ExecutionError as ExecutionError
    from pto.runtime import run as run
    from pto.targets.convert import convert as convert
    from pto.tiles.tmp import tmp_bytes as tmp_bytes

# Where each public name lives: importing `pto` alone imports none of them.
_HOME = {
    "Diagnostic": "pto.diagnostics",
    "ExecutionError": "pto.runtime",
    "ParseError": "pto.frontend",
    "convert": "pto.targets.convert",
    "parse": "pto.frontend",
    "print_module": "pto.frontend",
    "run": "pto.runtime",
    "tmp_bytes": "pto.tiles.tmp",
    "verify": "pto.passes.verify_tcvt",
}

__all__ = [
    "Diagnostic",
    "ExecutionError",
    "ParseError",
    "convert",
    "parse",
    "print_module",
    "run",
    "tmp_bytes",
    "verify",
]

# In a checkout `pto.grammar` and `pto.passes` lie beside this folder, not in it.
if (Path(__file__).parent.parent / "grammar" / "pto.lark").exists():
    __path__.append(str(Path(__file__).parent.parent))


def __getattr__(name: str) -> Any:
    if (home := _HOME.get(name)) is None:
        raise AttributeError(f"module 'pto' has no attribute '{name}'")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
