"""Checking one file: what `pto-opt verify` does in each of its processes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pto.cli.files import InputError, read_text
from pto.cli.terminal import UsageError, unknown
from pto.diagnostics import Diagnostic, FileReport, registry
from pto.diagnostics.report import keep_lines, promote

if TYPE_CHECKING:
    from pto.frontend import ParseError

SPLIT_MARK = "// -----"


@dataclass(frozen=True)
class Settings:
    """What a worker process needs to know."""

    arch: str | None
    default_sat: str
    require_tmp: bool
    enabled: frozenset[str]
    disabled: frozenset[str]
    errors: frozenset[str]
    """Warnings that count as errors."""
    split: bool
    expected: bool
    """Compare with expected-error comments."""


def settings_of(args: argparse.Namespace) -> Settings:
    """What the options ask for. Raises UsageError and UnknownTarget."""
    from pto.targets import product_of

    enabled, disabled, errors = set[str](), set[str](), set[str]()
    every = False
    for word in (w for option in args.warn for w in option.split(",")):
        if word == "error":
            every = True
        elif word.startswith("error="):
            id_ = _known(word.removeprefix("error="))
            errors.add(id_)
            enabled.add(id_)
        elif word.startswith("no-") and word not in registry():
            disabled.add(_can_be_off(word.removeprefix("no-")))
        else:
            enabled.add(_known(word))
    for word in (w for option in args.no_warn for w in option.split(",")):
        disabled.add(_can_be_off(word))
    return Settings(
        arch=None if args.arch is None else product_of(args.arch).name,
        default_sat=args.default_sat,
        require_tmp=args.require_tmp,
        enabled=frozenset(enabled),
        disabled=frozenset(disabled),
        errors=frozenset(registry()) if every else frozenset(errors),
        split=args.split_input_file,
        expected=args.verify_diagnostics,
    )


def _known(id_: str) -> str:
    if id_ in registry():
        return id_
    raise UsageError(f"{unknown('id', id_, registry())} (ids: {', '.join(registry())})")


def _can_be_off(id_: str) -> str:
    if registry()[_known(id_)].severity == "error":
        raise UsageError(
            f"{id_} is an error and stays on; at a line that is right as it is,"
            f" write // pto: allow({id_})"
        )
    return id_


def check_file(path: str, settings: Settings) -> FileReport | InputError:
    """The report of a file, or why there is none."""
    try:
        return check_text(read_text(path), path, settings)
    except InputError as error:
        return error
    except Exception as error:  # a defect of this program must not hide the other files' results
        return InputError(f"{path}: internal error, please report it: {error!r}")


def check_text(text: str, path: str, settings: Settings) -> FileReport:
    """Parses and verifies the text of one file."""
    report = FileReport(path, [])
    for part in _parts(text) if settings.split else [text]:
        _check_part(part, report, settings)
    if settings.expected:
        from pto.cli.expected import compare

        report.problems = compare(text, report)
    report.lines = keep_lines(text, report.diagnostics)
    return report


def _parts(text: str) -> Iterator[str]:
    """The parts of a split input file, each with the lines before it empty, so that line numbers
    stay those of the file."""
    part: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith(SPLIT_MARK):
            yield "\n".join(part)
            part = [""] * number
        else:
            part.append(line)
    yield "\n".join(part)


def _check_part(text: str, report: FileReport, settings: Settings) -> None:
    import pto
    from pto.dialect.target import target_of
    from pto.passes.common import conversions
    from pto.passes.verify_tcvt import verify

    try:
        module = pto.parse(text, filename=report.path)
    except pto.ParseError as error:
        report.diagnostics.append(_syntax_error(error, report.path))
        return
    found = verify(
        module,
        arch=settings.arch,
        default_sat=settings.default_sat,
        require_tmp=settings.require_tmp,
        warn=settings.enabled,
    )
    report.diagnostics += (
        promote(d) if d.id in settings.errors else d for d in found if d.id not in settings.disabled
    )
    checked = conversions(module)
    report.tcvt += len(checked)
    report.target = settings.arch
    if report.target is None and checked and (named := target_of(checked[0])) is not None:
        report.target = None if named.product is None else named.product.name


def _syntax_error(error: ParseError, path: str) -> Diagnostic:
    return Diagnostic(
        severity="error",
        id=error.id,
        message=error.message,
        line=error.line,
        column=error.column,
        length=error.width,
        filename=path,
    )
