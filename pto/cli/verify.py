"""`pto-opt verify`: checks the tile conversions of files and folders."""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pto.cli.files import InputError, Progress, find_files, in_parallel, read_text
from pto.diagnostics import (
    FORMATS,
    Diagnostic,
    FileReport,
    keep_lines,
    promote,
    render,
    rules,
    summary,
)

_SPLIT_MARK = "// -----"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `pto-opt verify`."""
    parser.description = "Check tile conversions against their target."
    parser.epilog = "Exit status: 0 no errors, 1 errors, 2 wrong use or unreadable input."
    parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder, or - for stdin")
    parser.add_argument("--arch", metavar="A", help="target; wins over the one the module names")
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument(
        "--default-sat",
        choices=("target", "on", "off"),
        default="target",
        help="what an absent satmode means (default: each pair's own default)",
    )
    parser.add_argument("--require-tmp", action="store_true", help="a missing tmp is an error")
    parser.add_argument(
        "-W",
        dest="warn",
        action="append",
        default=[],
        metavar="ID",
        help="turn on a warning; -W no-ID turns one off, -Werror and -W error=ID make errors of"
        " all or of one",
    )
    parser.add_argument(
        "--no-warn", action="append", default=[], metavar="ID", help="turn off a warning or remark"
    )
    parser.add_argument(
        "--remarks", action="store_true", help="also remarks about what changes no result"
    )
    parser.add_argument("-j", "--jobs", type=_jobs, default=1, metavar="N", help="processes")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary line")
    parser.add_argument(
        "--split-input-file", action="store_true", help=f"check the parts between {_SPLIT_MARK!r}"
    )
    parser.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="compare with the expected-error comments of the files",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit status."""
    from pto.targets import UnknownTarget

    try:
        settings = settings_of(args)
        files = find_files(args.paths)
        if args.jobs > 1 and len(files) > 1:
            check_text("module {}", "", settings)  # load the parser once, before processes part
        results = in_parallel(partial(_check_file, settings=settings), files, args.jobs)
        outcomes = list(Progress(len(files)).follow(results))
    except (InputError, UnknownTarget, _UsageError) as error:
        print(f"pto-opt verify: {error}", file=sys.stderr)
        return 2
    unreadable = [o for o in outcomes if isinstance(o, InputError)]
    for problem in unreadable:
        print(f"pto-opt verify: {problem}", file=sys.stderr)
    reports = [o for o in outcomes if isinstance(o, FileReport)]
    failed = _output(reports, args)
    return 2 if unreadable else int(failed)


def _output(reports: Sequence[FileReport], args: argparse.Namespace) -> bool:
    """Writes the reports; whether any of them fails."""
    if args.verify_diagnostics:
        failed = [problem for r in reports for problem in r.problems]
        sys.stdout.write("".join(f"{problem}\n" for problem in failed))
        return bool(failed)
    terminal = sys.stdout.isatty()
    colour = args.color == "always" or (
        args.color == "auto" and terminal and not os.environ.get("NO_COLOR")
    )
    width = shutil.get_terminal_size().columns if terminal else 100
    shown = (
        reports if args.remarks or args.format == "json" else [_without_quiet(r) for r in reports]
    )
    sys.stdout.write(render(shown, args.format, colour=colour, width=width))
    if args.format == "text" and not args.quiet:
        print(_summary_line(reports, shown))
    return any(r.count("error") for r in reports)


def _without_quiet(report: FileReport) -> FileReport:
    return replace(report, diagnostics=[d for d in report.diagnostics if not d.quiet])


def _summary_line(reports: Sequence[FileReport], shown: Sequence[FileReport]) -> str:
    total = summary(shown)
    counts = [
        _plural(total[key], noun)
        for key, noun in (("errors", "error"), ("warnings", "warning"), ("remarks", "remark"))
    ]
    line = (
        f"{_plural(total['files'], 'file')}, {_plural(total['tcvt'], 'conversion')}:"
        f" {', '.join(counts)}"
    )
    if hidden := summary(reports)["remarks"] - total["remarks"]:
        line += f"; --remarks shows {hidden} more"
    if unknown := sum(r.tcvt > 0 and r.target is None for r in reports):
        line += (
            f"\n{_plural(unknown, 'file')} without a known target:"
            " only what holds on every target was checked (--arch A names one)"
        )
    return line


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _jobs(text: str) -> int:
    jobs = int(text)
    if jobs < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return jobs or os.cpu_count() or 1


# Settings ----------------------------------------------------------------------------------------


class _UsageError(Exception):
    """Wrong use of an option."""


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
    """What the options ask for. Raises _UsageError and UnknownTarget."""
    from pto.targets import resolve

    enabled, disabled, errors = set[str](), set[str](), set[str]()
    every = False
    for word in (w for option in args.warn for w in option.split(",")):
        if word == "error":
            every = True
        elif word.startswith("error="):
            id_ = _known(word.removeprefix("error="))
            errors.add(id_)
            enabled.add(id_)
        elif word.startswith("no-") and word not in rules():
            disabled.add(_can_be_off(word.removeprefix("no-")))
        else:
            enabled.add(_known(word))
    for word in (w for option in args.no_warn for w in option.split(",")):
        disabled.add(_can_be_off(word))
    return Settings(
        arch=None if args.arch is None else resolve(args.arch),
        default_sat=args.default_sat,
        require_tmp=args.require_tmp,
        enabled=frozenset(enabled),
        disabled=frozenset(disabled),
        errors=frozenset(rules()) if every else frozenset(errors),
        split=args.split_input_file,
        expected=args.verify_diagnostics,
    )


def _known(id_: str) -> str:
    if id_ in rules():
        return id_
    near = difflib.get_close_matches(id_, rules(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise _UsageError(f"unknown id {id_!r}{hint} (ids: {', '.join(rules())})")


def _can_be_off(id_: str) -> str:
    if rules()[_known(id_)].severity == "error":
        raise _UsageError(
            f"{id_} is an error and stays on; at a line that is right as it is,"
            f" write // pto: allow({id_})"
        )
    return id_


# One file ----------------------------------------------------------------------------------------


def _check_file(path: str, settings: Settings) -> FileReport | InputError:
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
        if line.startswith(_SPLIT_MARK):
            yield "\n".join(part)
            part = [""] * number
        else:
            part.append(line)
    yield "\n".join(part)


def _check_part(text: str, report: FileReport, settings: Settings) -> None:
    import pto
    from pto.dialect.ops import TCvtOp
    from pto.passes.module_target import named_target
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
    conversions = [op for op in module.walk() if isinstance(op, TCvtOp)]
    report.tcvt += len(conversions)
    report.target = settings.arch
    if report.target is None and conversions and (named := named_target(conversions[0])):
        report.target = named.resolved


def _syntax_error(error: Exception, path: str) -> Diagnostic:
    import pto

    assert isinstance(error, pto.ParseError)
    return Diagnostic(
        severity="error",
        id=error.id,
        message=error.message,
        line=error.line,
        column=error.column,
        length=error.width,
        filename=path,
    )
