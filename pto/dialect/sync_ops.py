"""Operations that order the pipes of a core."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation
from xdsl.irdl import BaseAttr, IRDLOperation, irdl_op_definition, prop_def
from xdsl.printer import Printer

from pto.dialect.attributes import EnumAttr
from pto.dialect.ops import PtoOp, parsed_by_grammar

FLAG_PART = BaseAttr(EnumAttr) | BaseAttr(StringAttr)


class FlagOp(IRDLOperation, PtoOp):
    """A flag between two pipes: `pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]`.

    Each part is an enumeration or a string.
    """

    src_pipe = prop_def(FLAG_PART)
    dst_pipe = prop_def(FLAG_PART)
    event_id = prop_def(FLAG_PART)

    KINDS: ClassVar = {"src_pipe": "pipe", "dst_pipe": "pipe", "event_id": "event"}
    """Which enumeration each part is of."""

    @property
    def parts(self) -> tuple[EnumAttr | StringAttr, ...]:
        """The three parts of the flag's name."""
        return (self.src_pipe, self.dst_pipe, self.event_id)

    def event(self) -> str:
        """The flag's name, however its parts are spelt."""
        return ", ".join(part.data for part in self.parts)

    def print(self, printer: Printer) -> None:
        printer.print_string("[")
        printer.print_list(self.parts, lambda part: _print_part(printer, part))
        printer.print_string("]")
        printer.print_op_attributes(self.attributes)


def _print_part(printer: Printer, part: EnumAttr | StringAttr) -> None:
    if isinstance(part, StringAttr):
        printer.print_attribute(part)
    else:
        printer.print_string(f"<{part.data}>")


@irdl_op_definition
class SetFlagOp(FlagOp):
    """The source pipe sets the flag once it is done with what is before."""

    name = "pto.set_flag"


@irdl_op_definition
class WaitFlagOp(FlagOp):
    """The destination pipe waits until the flag is set."""

    name = "pto.wait_flag"


@parsed_by_grammar
@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Waits for what a pipe has still to do: `pto.barrier #pto.pipe<PIPE_ALL>`."""

    name = "pto.barrier"
    pipe = prop_def()
    assembly_format = "$pipe attr-dict"


OPERATIONS: dict[str, type[Operation]] = {op.name: op for op in (SetFlagOp, WaitFlagOp, BarrierOp)}
"""The operations of this module by name."""
