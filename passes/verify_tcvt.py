"""Pass `verify-tcvt`: every tile conversion is legal on its target and does what it seems to do.

The module is not changed. `verify` returns what was found; the pass prints it and fails on errors.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from pto.diagnostics import Diagnostic, FileReport, registry
from pto.diagnostics.report import keep_lines
from pto.diagnostics.text import render_text
from pto.dialect.location import location_of
from pto.dialect.ops import TCvtOp
from pto.dialect.target import NamedTarget, target_of
from pto.dialect.types import AnyTile
from pto.frontend.source import Source, source_of
from pto.numerics.double_rounding import Rounding
from pto.passes.rules import tcvt_saturation, tcvt_tiles, tcvt_tmp, tcvt_types
from pto.passes.rules.checked_conversion import CheckedConversion
from pto.passes.rules.double_rounding import Found, find_double_rounding
from pto.passes.rules.finding import Anchor, Finding, value_of
from pto.passes.rules.locate import Locator
from pto.passes.rules.routes import ChainPreview
from pto.targets import (
    DEFAULT_SATURATIONS,
    Product,
    UnknownTarget,
    pair_of,
    product_of,
    tile_products,
)

RULES: tuple[Callable[[CheckedConversion], Iterator[Finding]], ...] = (
    tcvt_types.round_mode,
    tcvt_tiles.shape,
    tcvt_tiles.valid_region,
    tcvt_tiles.location,
    tcvt_tiles.row_align,
    tcvt_tiles.capacity,
    tcvt_tiles.overlap,
    tcvt_tmp.tmp_tile,
    tcvt_types.ambiguous_none,
    tcvt_types.unknown_attribute,
    tcvt_saturation.nan_to_zero,
    tcvt_saturation.negative_to_unsigned,
    tcvt_types.rmode_ignored,
    tcvt_saturation.satmode_ignored,
    tcvt_saturation.float_saturation,
)
"""The rules of one tile conversion behind `type_pair`, in the order in which they report."""

_RUN_ARCH = re.compile(r"RUN:.*--pto-arch[= ](\w+)")


def verify(
    module: ModuleOp,
    *,
    arch: str | None = None,
    default_sat: str = "target",
    require_tmp: bool = False,
    warn: Collection[str] = (),
) -> list[Diagnostic]:
    """Checks every tile conversion of a module (spec V) and returns what it finds, in text order.

    `arch` is a target or an alias of one; None takes the module's own (`pto.target_arch`, else
    `pto.device-spec`), and where there is none, checks what holds on every target. `default_sat` is
    what an absent satmode means: "target" (the pair's default, spec S14), "on" or "off".
    `require_tmp` makes a missing tmp tile an error. `warn` turns on ids that are off by default.
    Findings that a `// pto: allow(id)` comment on a line of their statement names are left out.

    Raises UnknownTarget for an unknown `arch`, ValueError for another `default_sat` or an unknown
    id in `warn`, and TypeError for what is no module.
    """
    if not isinstance(module, ModuleOp):
        raise TypeError(f"verify takes a module, as parse returns it, not {type(module).__name__}")
    known = registry()
    if unknown := set(warn) - set(known):
        raise ValueError(f"unknown ids: {', '.join(sorted(unknown))}; ids: {', '.join(known)}")
    product, saturation = _options(arch, default_sat)
    check = _Check(
        module=module,
        asked=product,
        default_sat=saturation,
        require_tmp=require_tmp,
        enabled=frozenset(id_ for id_, info in known.items() if info.default) | set(warn),
    )
    found = [d for d in check.run() if not check.locator.is_allowed(d)]
    return sorted(found, key=lambda d: (d.line, d.column))


def _options(arch: str | None, default_sat: str) -> tuple[Product | None, str]:
    """The target and the saturation that the options name. Raises ValueError."""
    saturation = str(default_sat).lower()
    if saturation not in DEFAULT_SATURATIONS:
        raise ValueError(f"default_sat must be 'target', 'on' or 'off', not {default_sat!r}")
    return None if arch is None else product_of(arch), saturation


@dataclass
class _Check:
    """One run over one module."""

    module: ModuleOp
    asked: Product | None
    """The target asked for, None to take each module's own."""
    default_sat: str
    require_tmp: bool
    enabled: frozenset[str]
    _noted: set[Operation | None] = field(default_factory=set)
    """Modules whose target has been remarked upon."""

    @cached_property
    def source(self) -> Source | None:
        return source_of(self.module)

    @cached_property
    def locator(self) -> Locator:
        return Locator(self.source)

    @cached_property
    def preview(self) -> ChainPreview:
        return ChainPreview(self.locator)

    def run(self) -> Iterator[Diagnostic]:
        for op, finding in self._findings():
            if finding.id in self.enabled:
                yield self.locator.diagnostic(op, finding)

    def _findings(self) -> Iterator[tuple[Operation, Finding]]:
        for op in self.module.walk():
            if isinstance(op, TCvtOp):
                yield from self._about_target(op)
                yield from ((op, finding) for finding in self._conversion(op))
            elif op.name == "pto.vcvt":
                yield from _register_conversion(op)
            elif isinstance(op, FuncOp):
                yield from self._chains(op)

    def _product(self, op: Operation) -> Product | None:
        """The target that an operation is checked against."""
        if self.asked is not None:
            return self.asked
        named = target_of(op)
        return None if named is None else named.product

    def _conversion(self, op: TCvtOp) -> Iterator[Finding]:
        src, dst = op.src.type, op.dst_type
        tmp = op.tmp.type if op.tmp is not None else None
        if not isinstance(src, AnyTile):
            yield _not_a_tile(src)
        elif not isinstance(dst, AnyTile):
            yield _not_a_tile(dst)
        elif tmp is not None and not isinstance(tmp, AnyTile):
            yield _not_a_tile(tmp)
        else:
            product = self._product(op)
            checked = CheckedConversion(
                op, src, dst, tmp, product, self.default_sat, self.require_tmp
            )
            yield from tcvt_types.type_pair(checked, self.preview)
            for rule in RULES:
                yield from rule(checked)

    # What there is to say about a module's target, at its first conversion

    def _about_target(self, op: TCvtOp) -> Iterator[tuple[Operation, Finding]]:
        named = target_of(op)
        owner = named.owner if named is not None else None
        if owner in self._noted:
            return
        self._noted.add(owner)
        if named is None:
            if self.asked is None:
                yield op, self._no_target()
        elif self.asked is None:
            yield from _unknown_target(named)
        elif named.product not in (None, self.asked):
            message = f"checked for {self.asked}, as asked for; the module names {named.product}"
            yield named.owner, Finding("target-override", message, value_of(named.key))

    def _no_target(self) -> Finding:
        notes = ["name the target with --arch, or in the module with pto.target_arch"]
        text = self.source.text if self.source is not None else ""
        if (run := _RUN_ARCH.search(text)) is not None:
            notes.insert(0, f"the file's RUN line says --pto-arch={run.group(1)}")
        message = "no target is known: only what holds on every target is checked"
        return Finding("no-target", message, notes=tuple(notes), quiet=True)

    # Chains of conversions

    def _chains(self, function: FuncOp) -> Iterator[tuple[Operation, Finding]]:
        for block in function.body.blocks:
            for found in find_double_rounding(block, self._rounding):
                yield found.second, self._double_rounding(found)

    def _rounding(self, op: TCvtOp) -> Rounding | None:
        """How a conversion rounds on the first product that has it."""
        product = self._product(op)
        for asked in tile_products(None) if product is None else (product,):
            resolved = op.resolve(asked, self.default_sat)
            if resolved is not None and resolved.illegal is None and resolved.pair is not None:
                mode = resolved.mode or resolved.pair.natural_mode
                return Rounding(resolved.src, resolved.dst, mode)
        return None

    def _double_rounding(self, found: Found) -> Finding:
        first, second = found.rounding.first, found.rounding.second
        return Finding(
            "double-rounding",
            f"{second.src} to {second.dst} rounds what {first.src} to {first.dst} has already"
            f" rounded on line {location_of(found.first, in_text=True).line}: the result can differ"
            " from rounding once",
            Anchor("src"),
            tuple(_single_rounding_notes(found, self._product(found.second))),
        )


def _register_conversion(op: Operation) -> Iterator[tuple[Operation, Finding]]:
    from pto.passes.rules.vcvt import register_conversion  # registers are rare: loads when met

    yield from ((op, finding) for finding in register_conversion(op))


def _not_a_tile(type_: Attribute) -> Finding:
    return Finding("type-pair", f"tcvt converts tiles, not {type_}")


def _unknown_target(named: NamedTarget) -> Iterator[tuple[Operation, Finding]]:
    try:
        product_of(named.name)
    except UnknownTarget as unknown:
        message = f"{named.key}: {unknown}"
        yield named.owner, Finding("unknown-target", message, value_of(named.key))


def _single_rounding_notes(found: Found, product: Product | None) -> Iterator[str]:
    src, dst = found.rounding.first.src, found.rounding.second.dst
    if product is not None and src is not dst:
        if pair_of("TCVT", product, src, dst) is not None:
            yield f"convert from the original tile: {product} has {src} to {dst}"
        else:
            yield f"{product} has no direct {src} to {dst}"
    if found.rounding.odd_helps:
        yield "or round the first step by ODD: the second one is then right"


@dataclass(frozen=True)
class VerifyTcvtPass(ModulePass):
    """Checks every tile conversion (spec V); prints warnings and remarks, fails on errors."""

    name = "verify-tcvt"

    arch: str | None = None
    default_sat: str = "target"
    require_tmp: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError for options that `verify` would refuse."""
        _options(self.arch, self.default_sat)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = verify(
            op, arch=self.arch, default_sat=self.default_sat, require_tmp=self.require_tmp
        )
        shown = [d for d in found if not d.quiet]
        source = source_of(op)
        lines = keep_lines(source.text, shown) if source is not None else {}
        text = render_text(FileReport("", shown, lines=lines))
        if any(d.severity == "error" for d in shown):
            raise PassFailedException(f"verify-tcvt found errors\n{text}")
        sys.stderr.write(text)
