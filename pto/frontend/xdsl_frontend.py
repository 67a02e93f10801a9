"""The frontend under the name that xDSL's tools know it by: files that end in `.pto`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.frontend import Frontend

from pto.frontend import decode_text, parse


@dataclass(frozen=True)
class PtoFrontend(Frontend):
    """PTO assembly."""

    name: ClassVar[str] = "pto"

    def parse(self, ctx: Context, input: IO[bytes], input_name: str = "input") -> ModuleOp:
        """Parses a file. Raises `pto.ParseError`."""
        return parse(decode_text(input.read(), input_name), filename=input_name)
