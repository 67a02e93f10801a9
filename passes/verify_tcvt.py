"""Pass `verify-tcvt`: every tile conversion is legal on its target and does what it seems to do.

The module is not changed. `verify` returns what was found; the pass prints it and fails on errors.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from pto.diagnostics import Diagnostic, FileReport, keep_lines, render_text, rules
from pto.dialect.ops import TCvtOp
from pto.dialect.types import TileBufType, TileType, element_format
from pto.frontend.source import Source, source_of
from pto.passes.analysis.locate import Locator, position
from pto.passes.analysis.module_target import NamedTarget, named_target
from pto.passes.rules.tcvt_chains import DoubleRounding, Step, find_double_rounding
from pto.passes.rules.tcvt_findings import Conversion, Finding, Where
from pto.passes.rules.tcvt_rules import RULES
from pto.passes.rules.vcvt_rules import VCVT, register_conversion
from pto.targets import TCVT_TARGETS, UnknownTarget, lookup, resolve

_RUN_ARCH = re.compile(r"RUN:.*--pto-arch[= ](\w+)")
_SATURATION = {"target": "target", "on": "ON", "off": "OFF"}


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
    if unknown := set(warn) - set(rules()):
        raise ValueError(f"unknown ids: {', '.join(sorted(unknown))}; ids: {', '.join(rules())}")
    target, saturation = _options(arch, default_sat)
    check = _Check(
        module=module,
        arch=target,
        default_sat=saturation,
        require_tmp=require_tmp,
        enabled=frozenset(id_ for id_, rule in rules().items() if rule.default) | set(warn),
    )
    found = [d for d in check.run() if not check.locator.is_allowed(d)]
    return sorted(found, key=lambda d: (d.line, d.column))


def _options(arch: str | None, default_sat: str) -> tuple[str | None, str]:
    """The target and the saturation that the options name. Raises ValueError."""
    saturation = _SATURATION.get(str(default_sat).lower())
    if saturation is None:
        raise ValueError(f"default_sat must be 'target', 'on' or 'off', not {default_sat!r}")
    return None if arch is None else resolve(arch), saturation


@dataclass
class _Check:
    """One run over one module."""

    module: ModuleOp
    arch: str | None
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

    def run(self) -> Iterator[Diagnostic]:
        for op, finding in self._findings():
            if finding.id in self.enabled:
                yield self.locator.diagnostic(op, finding)

    def _findings(self) -> Iterator[tuple[Operation, Finding]]:
        for op in self.module.walk():
            if isinstance(op, TCvtOp):
                yield from self._about_target(op)
                yield from ((op, finding) for finding in self._conversion(op))
            elif op.name == VCVT:
                yield from ((op, finding) for finding in register_conversion(op))
            elif isinstance(op, FuncOp):
                yield from self._chains(op)

    def _target(self, op: Operation) -> str | None:
        """The target that an operation is checked against."""
        if self.arch is not None:
            return self.arch
        named = named_target(op)
        return named.resolved if named is not None else None

    def _conversion(self, op: TCvtOp) -> Iterator[Finding]:
        src, dst = op.src.type, op.dst_type
        tmp = op.tmp.type if op.tmp is not None else None
        if not isinstance(src, TileBufType | TileType):
            yield _not_a_tile(src)
        elif not isinstance(dst, TileBufType | TileType):
            yield _not_a_tile(dst)
        elif tmp is not None and not isinstance(tmp, TileBufType | TileType):
            yield _not_a_tile(tmp)
        else:
            conversion = Conversion(
                op, src, dst, tmp, self._target(op), self.default_sat, self.require_tmp
            )
            for rule in RULES:
                yield from rule(conversion)

    # What there is to say about a module's target, at its first conversion

    def _about_target(self, op: TCvtOp) -> Iterator[tuple[Operation, Finding]]:
        named = named_target(op)
        owner = named.owner if named is not None else None
        if owner in self._noted:
            return
        self._noted.add(owner)
        if named is None:
            if self.arch is None:
                yield op, self._no_target()
        elif self.arch is None:
            yield from _unknown_target(named)
        elif named.resolved not in (None, self.arch):
            message = f"checked for {self.arch}, as asked for; the module names {named.resolved}"
            where = Where("attribute", f"={named.key}")
            yield named.owner, Finding("target-override", message, where)

    def _no_target(self) -> Finding:
        notes = ["name the target with --arch, or in the module with pto.target_arch"]
        text = self.source.text if self.source is not None else ""
        if (run := _RUN_ARCH.search(text)) is not None:
            notes.insert(0, f"the file's RUN line says --pto-arch={run.group(1)}")
        message = "no target is known: only what holds on every target is checked"
        return Finding("no-target", message, Where(), tuple(notes), quiet=True)

    # Chains of conversions

    def _chains(self, function: FuncOp) -> Iterator[tuple[Operation, Finding]]:
        for block in function.body.blocks:
            for found in find_double_rounding(block, self._step):
                yield found.second.op, self._double_rounding(found)

    def _step(self, op: TCvtOp) -> Step | None:
        src, dst = _format(op.src.type), _format(op.dst_type)
        if src is None or dst is None:
            return None
        arch = self._target(op)
        mode = op.rmode.data if op.rmode is not None else None
        for target in TCVT_TARGETS if arch is None else (arch,):
            pair = lookup(target, src, dst)
            if pair is not None and pair.accepts(mode):
                written = mode if pair.rounds and mode != "NONE" else None
                return Step(op, src, dst, written or pair.natural_mode)
        return None

    def _double_rounding(self, found: DoubleRounding) -> Finding:
        first, second = found.first, found.second
        return Finding(
            "double-rounding",
            f"{second.src} to {second.dst} rounds what {first.src} to {first.dst} has already"
            f" rounded on line {position(first.op)[0]}: the result can differ from rounding once",
            Where("src"),
            tuple(_single_rounding_notes(found, self._target(second.op))),
        )


def _format(type_: Attribute) -> str | None:
    return element_format(type_.dtype) if isinstance(type_, TileBufType | TileType) else None


def _not_a_tile(type_: Attribute) -> Finding:
    return Finding("type-pair", f"tcvt converts tiles, not {type_}", Where())


def _unknown_target(named: NamedTarget) -> Iterator[tuple[Operation, Finding]]:
    try:
        resolve(named.name)
    except UnknownTarget as unknown:
        where = Where("attribute", f"={named.key}")
        yield named.owner, Finding("unknown-target", f"{named.key}: {unknown}", where)


def _single_rounding_notes(found: DoubleRounding, arch: str | None) -> Iterator[str]:
    first, second = found.first, found.second
    if arch is not None and first.src != second.dst:
        if lookup(arch, first.src, second.dst) is not None:
            yield f"convert from the original tile: {arch} has {first.src} to {second.dst}"
        else:
            yield f"{arch} has no direct {first.src} to {second.dst}"
    if found.odd_helps:
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
