"""What the rules of `verify-tcvt` work on, and what they yield."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pto.diagnostics import Severity
from pto.dialect.ops import TCvtOp
from pto.dialect.types import element_format, type_text
from pto.passes.analysis.placement import AnyTile, row_stride
from pto.targets import TCVT_TARGETS, Pair, lookup, product
from pto.tmp import TmpTerms, tmp_bytes, tmp_bytes_up_to, tmp_terms


@dataclass(frozen=True, slots=True)
class Where:
    """A part of a statement: what the caret will point at."""

    role: str = "name"
    """"name" | "src" | "tmp" | "dst" (the operand or its type) | "attribute"."""
    part: str = ""
    """Of an operand's type: "dtype", "loc", "shape", "valid", or "" for the operand itself.
    Of an attribute: its key; with a leading "=" its value."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule has to say, before it has a place in the text."""

    id: str
    message: str
    where: Where
    notes: tuple[str, ...] = ()
    severity: Severity | None = None
    """Only where it differs from the registry's."""
    quiet: bool = False


@dataclass(frozen=True)
class Conversion:
    """A tcvt with what the rules ask of it."""

    op: TCvtOp
    src: AnyTile
    dst: AnyTile
    tmp: AnyTile | None
    arch: str | None
    """Target, or None to check what holds on every target."""
    default_sat: str
    """"target" | "ON" | "OFF": what an absent satmode means (spec S14)."""
    require_tmp: bool

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets whose tables are asked: one, or all of them."""
        return TCVT_TARGETS if self.arch is None else (self.arch,)

    @property
    def needs_tmp(self) -> bool:
        """The target is known, and takes the PyTorch-compatible path only with a tmp operand."""
        return self.arch is not None and product(self.arch).pytorch_needs_tmp

    @property
    def on(self) -> str:
        """`on a5`, or `on any target`, to end a sentence."""
        return "on any target" if self.arch is None else f"on {self.arch}"

    @cached_property
    def src_name(self) -> str:
        """The source's element format as the spec names it, else its type's text."""
        return element_format(self.src.dtype) or type_text(self.src.dtype)

    @cached_property
    def dst_name(self) -> str:
        """The destination's element format."""
        return element_format(self.dst.dtype) or type_text(self.dst.dtype)

    @property
    def names(self) -> str:
        """`f32 to bf16`."""
        return f"{self.src_name} to {self.dst_name}"

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The table rows of this pair, at most one a target; none if it is illegal."""
        found = (lookup(target, self.src_name, self.dst_name) for target in self.targets)
        return tuple(pair for pair in found if pair is not None)

    @cached_property
    def pair(self) -> Pair | None:
        """The table row, where the target is known and has the pair."""
        return self.pairs[0] if self.arch is not None and self.pairs else None

    @property
    def mode(self) -> str | None:
        """The rounding mode as written, without `CAST_`."""
        return self.op.rmode.data if self.op.rmode is not None else None

    @property
    def satmode(self) -> str | None:
        """The saturation mode as written."""
        return self.op.satmode.data if self.op.satmode is not None else None

    def saturation(self, pair: Pair) -> str:
        """The saturation mode that applies: written, selected, or the pair's own default."""
        if self.satmode is not None:
            return self.satmode
        return pair.default_saturation if self.default_sat == "target" else self.default_sat

    @property
    def goes_through_i32(self) -> bool:
        """Whether the conversion narrows in two steps, as PyTorch does (spec S10)."""
        pair = self.pair
        if pair is None or not pair.pytorch_pair or self.saturation(pair) != "OFF":
            return False
        return self.arch == "a5" or self.op.tmp is not None

    def saturation_notes(self, pair: Pair) -> tuple[str, ...]:
        """Which default was used, where the mode is not written (spec S14)."""
        if self.satmode is not None:
            return ()
        mode = self.saturation(pair)
        if self.default_sat != "target":
            return (f"satmode is not written; {mode} is selected by --default-sat",)
        other = "; the public assembler takes ON from 0.63 on: --default-sat=on"
        return (f"satmode is not written; {mode} is its default{other if mode == 'OFF' else ''}",)

    @cached_property
    def tmp_terms(self) -> TmpTerms | None:
        """The terms of the tmp tile's size, where this conversion takes the path that uses one
        (spec S10, T). With a dynamic valid region, the terms at the declared shape.
        """
        if (arguments := self._tmp_arguments) is None:
            return None
        return tmp_terms(*arguments, row_stride=row_stride(self.op.src))

    @cached_property
    def tmp_needed(self) -> int | None:
        """Bytes of a tmp tile that certainly serves, None where the path is not taken: with dynamic
        valid columns, the most that any region within the declared shape needs.
        """
        if (arguments := self._tmp_arguments) is None:
            return None
        size = tmp_bytes if self.dst.valid_cols is not None else tmp_bytes_up_to
        return size(*arguments, row_stride=row_stride(self.op.src))

    @property
    def _tmp_arguments(self) -> tuple[str, str, int, int] | None:
        """Formats and extents for the size of the tmp tile."""
        pair = self.pair
        if pair is None or not pair.pytorch_pair or not self.needs_tmp:
            return None
        stride = row_stride(self.op.src)
        if self.saturation(pair) != "OFF" or (pair.src == "f32" and stride % 8):
            return None  # `row-align` reports such a stride
        rows = static(self.dst.valid_rows, self.dst.rows)
        return pair.src, pair.dst, rows, min(static(self.dst.valid_cols, self.dst.cols), stride)

    @property
    def tmp_is_bound(self) -> bool:
        """The size is an upper bound, because the valid region is dynamic."""
        return self.dst.valid_rows is None or self.dst.valid_cols is None

    def value_name(self, role: str) -> str:
        """`%x`, the name of the operand `role` in the text, as far as it is known."""
        value = getattr(self.op, role)
        hint = value.name_hint if value is not None else None
        return f"%{hint or role}"


def static(extent: int | None, declared: int) -> int:
    """A valid extent, or the declared one where it is dynamic."""
    return declared if extent is None else extent
