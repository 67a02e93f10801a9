"""PTO assembly front-end: parse, verify, lower and execute tile conversions of Ascend NPUs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pto.conversion import convert as convert
    from pto.frontend import ParseError as ParseError
    from pto.frontend import parse as parse
    from pto.frontend import print_module as print_module

# Where each public name lives: importing `pto` alone imports none of them.
_HOME = {
    "ParseError": "pto.frontend",
    "convert": "pto.conversion",
    "parse": "pto.frontend",
    "print_module": "pto.frontend",
}

__all__ = ["ParseError", "convert", "parse", "print_module"]


def __getattr__(name: str) -> Any:
    if (home := _HOME.get(name)) is None:
        raise AttributeError(f"module 'pto' has no attribute '{name}'")
    return getattr(import_module(home), name)
