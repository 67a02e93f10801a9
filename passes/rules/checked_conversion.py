"""The conversion that the rules of tcvt look at, with what they ask of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pto.dialect.ops import TCvtOp
from pto.dialect.type_records import type_text
from pto.dialect.types import AnyTile, element_format
from pto.numerics.formats import Format
from pto.targets import Pair, Product, ResolvedConversion, tile_products
from pto.tiles.tmp_need import TmpNeed, tmp_need


@dataclass(frozen=True)
class CheckedConversion:
    """A tcvt of tiles, on the target or on all of them."""

    op: TCvtOp
    src: AnyTile
    dst: AnyTile
    tmp: AnyTile | None
    product: Product | None
    """The target, or None to check what holds on every target."""
    default_sat: str
    """What an absent satmode means, one of `targets.DEFAULT_SATURATIONS` (spec S14)."""
    require_tmp: bool

    @cached_property
    def products(self) -> tuple[Product, ...]:
        """The products whose tables are asked: one, or all of them."""
        return tile_products(None) if self.product is None else (self.product,)

    @cached_property
    def resolved(self) -> tuple[ResolvedConversion, ...]:
        """What the conversion means on those of the products that have its pair."""
        found = (self.op.resolve(product, self.default_sat) for product in self.products)
        return tuple(r for r in found if r is not None and r.pair is not None)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The table rows of this pair, at most one a product; none if it is illegal."""
        return tuple(r.pair for r in self.resolved if r.pair is not None)

    @property
    def on_target(self) -> ResolvedConversion | None:
        """What the conversion means, where the target is known and has the pair."""
        return self.resolved[0] if self.product is not None and self.resolved else None

    @property
    def on(self) -> str:
        """`on a5`, or `on any target`, to end a sentence."""
        return "on any target" if self.product is None else f"on {self.product}"

    @cached_property
    def src_format(self) -> Format | None:
        """The source's element format."""
        return element_format(self.src.dtype)

    @cached_property
    def dst_format(self) -> Format | None:
        """The destination's element format."""
        return element_format(self.dst.dtype)

    @property
    def names(self) -> str:
        """`f32 to bf16`: formats as the spec names them, else the types' texts."""
        return f"{format_text(self.src)} to {format_text(self.dst)}"

    @property
    def mode(self) -> str | None:
        """The rounding mode as written, without `CAST_`."""
        return self.op.mode

    def saturation_notes(self, resolved: ResolvedConversion) -> tuple[str, ...]:
        """Which default was used, where the mode is not written (spec S14)."""
        if self.op.saturation is not None:
            return ()
        mode = resolved.saturation
        if self.default_sat != "target":
            return (f"satmode is not written; {mode} is selected by --default-sat",)
        other = "; the public assembler takes ON from 0.63 on: --default-sat=on"
        return (f"satmode is not written; {mode} is its default{other if mode == 'OFF' else ''}",)

    @cached_property
    def tmp_need(self) -> TmpNeed | None:
        """What the tmp tile must hold, where this conversion takes the path that uses one."""
        resolved = self.on_target
        return None if resolved is None else tmp_need(resolved, self.op.src, self.dst)

    def value_name(self, operand: str) -> str:
        """`%x`, the name of an operand in the text, as far as it is known."""
        value = getattr(self.op, operand)
        hint = value.name_hint if value is not None else None
        return f"%{hint or operand}"


def format_text(tile: AnyTile) -> str:
    """The element format of a tile as the spec names it, else its type's text."""
    fmt = element_format(tile.dtype)
    return type_text(tile.dtype) if fmt is None else fmt.name


def static(extent: int | None, declared: int) -> int:
    """A valid extent, or the declared one where it is dynamic."""
    return declared if extent is None else extent
