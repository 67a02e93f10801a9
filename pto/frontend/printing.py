"""Printing: xDSL's printer, with the canonical spellings of pto types."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.printer import Printer

from pto.dialect.type_records import type_text
from pto.dialect.types import TileBufType, TileType


class PtoPrinter(Printer):
    """Prints types from memory: a tile type is most of a kernel's text, and repeats."""

    long_types: bool = False

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, TileBufType | TileType):
            if self.long_types:
                self.print_string(f"!{attribute.name}{attribute.long_body()}")
            else:
                self.print_string(type_text(attribute))
            return
        super().print_attribute(attribute)


def module_text(module: ModuleOp, *, generic: bool, long_types: bool) -> str:
    """The module as text, ending in a newline."""
    stream = StringIO()
    printer = PtoPrinter(stream, print_generic_format=generic)
    printer.long_types = long_types
    printer.print_op(module)
    return stream.getvalue() + "\n"
