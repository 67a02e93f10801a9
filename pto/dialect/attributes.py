"""Attributes of the pto dialect: enumerations, and the ones kept as written.

`#pto<round_mode RINT>` and `#pto.round_mode<RINT>` are one attribute; each kind prints in the
spelling that the public tools print.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from xdsl.ir import Attribute, Data, SpacedOpaqueSyntaxAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from pto.numerics.rules import MODES, SATURATIONS

LOCS = ("vec", "mat", "left", "right", "acc", "bias", "scaling")
"""Memory spaces of a tile."""
BLAYOUTS = ("row_major", "col_major")
SLAYOUTS = ("none_box", "row_major", "col_major")
PADS = ("null", "zero", "max", "min")
FRACTALS = (32, 512, 1024)
ADDRESS_SPACES = ("zero", "gm", *LOCS)

ENUM_VALUES: dict[str, tuple[str, ...]] = {
    "round_mode": MODES,
    "saturation_mode": SATURATIONS,
    "address_space": ADDRESS_SPACES,
    "layout": ("nd", "dn", "nz"),
    "kernel_kind": ("vector", "cube"),
    "cmp": ("eq", "ne", "lt", "le", "gt", "ge"),
    "blayout": BLAYOUTS,
    "slayout": SLAYOUTS,
    "pad_value": PADS,
}
"""Kinds whose values are fixed; a value that is not listed is an error."""


class EnumAttr(Data[str]):
    """An enumeration, printed `#pto.kind<VALUE>`; `data` is the value, without `CAST_`."""

    kind: ClassVar[str]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        pretty = parser.parse_optional_punctuation("<") is not None
        value = parser.parse_identifier()
        if pretty:
            parser.parse_punctuation(">")
        return normalise_enum_value(cls.kind, value)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


class SpacedEnumAttr(EnumAttr, SpacedOpaqueSyntaxAttribute):
    """An enumeration printed `#pto<kind VALUE>`."""

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.data)


def normalise_enum_value(kind: str, value: str) -> str:
    """`CAST_RINT` is `RINT` (spec R); every other value is itself."""
    return value.removeprefix("CAST_") if kind == "round_mode" else value


class RoundModeAttr(SpacedEnumAttr):
    """`#pto<round_mode RINT>` (spec R)."""

    name: ClassVar[str] = "pto.round_mode"
    kind: ClassVar[str] = "round_mode"


class SaturationModeAttr(SpacedEnumAttr):
    """`#pto<saturation_mode ON>` (spec S)."""

    name: ClassVar[str] = "pto.saturation_mode"
    kind: ClassVar[str] = "saturation_mode"


def take_bracketed_text(parser: AttrParser) -> str:
    """The text between the angle brackets that come next, `` where none do."""
    start = parser.pos
    content = parser.lexer.input.content
    if not content.startswith("<", start):
        return ""
    depth = 0
    for index in range(start, len(content)):
        if content[index] == "<":
            depth += 1
        elif content[index] == ">" and content[index - 1] != "-":
            depth -= 1
            if depth == 0:
                parser._resume_from(index + 1)
                return " ".join(content[start + 1 : index].split())
    return parser.raise_error("unbalanced angle brackets")


class OpaqueAttr(Data[str]):
    """A pto attribute that this project does not interpret, kept as written: `#pto.x<...>`."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return take_bracketed_text(parser)

    def print_parameter(self, printer: Printer) -> None:
        if self.data:
            printer.print_string(f"<{self.data}>")


# Kinds that the public tools print as `#pto.kind<VALUE>`; every other one-word value is spaced.
_PRETTY_KINDS = (
    "acc_to_vec_mode",
    "address_space",
    "event",
    "fence_scope",
    "kernel_kind",
    "l1cache",
    "layout",
    "mask_pattern",
    "pipe",
    "pipe_event_type",
    "sync_all_mode",
    "sync_core_type",
    "sync_op_type",
    "tinsert_mode",
)
_SPACED_KINDS = (
    "acc_phase",
    "atomic_type",
    "blayout",
    "cmp",
    "coalesce",
    "div_precision",
    "exp_precision",
    "fmod_precision",
    "gather_oob",
    "log_precision",
    "mx_group_axis",
    "notify_op",
    "pad_value",
    "pow_precision",
    "print_format",
    "quant_scale_alg",
    "quant_type",
    "recip_precision",
    "reduce_op",
    "relu_pre_mode",
    "rem_precision",
    "rsqrt_precision",
    "scatter_atomic_op",
    "scatter_conflict",
    "scatter_oob",
    "slayout",
    "sqrt_precision",
    "st_phase",
    "vec_store_mode",
    "wait_cmp",
)
ENUM_KINDS = ("round_mode", "saturation_mode", *_PRETTY_KINDS, *_SPACED_KINDS)
"""Every kind that the public sources use."""
OPAQUE_ATTR_NAMES = ("acc_push_epilogue", "vmi.layout")


@cache
def enum_class(kind: str) -> type[EnumAttr]:
    """The class of `#pto<kind ...>`, made on demand: unknown kinds are kept too."""
    if kind == "round_mode":
        return RoundModeAttr
    if kind == "saturation_mode":
        return SaturationModeAttr
    base = EnumAttr if kind in _PRETTY_KINDS else SpacedEnumAttr
    fields = {"name": f"pto.{kind}", "kind": kind}
    return type(base.__name__, (base,), fields)


@cache
def opaque_attr_class(name: str) -> type[OpaqueAttr]:
    """The class of the opaque attribute `#pto.x<...>` (`name` is `pto.x`)."""
    return type("OpaqueAttr", (OpaqueAttr,), {"name": name})


def all_attributes() -> list[type[Attribute]]:
    """The classes of every attribute that the public sources use."""
    return [
        *(enum_class(kind) for kind in ENUM_KINDS),
        *(opaque_attr_class(f"pto.{name}") for name in OPAQUE_ATTR_NAMES),
    ]
