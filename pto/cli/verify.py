"""`pto-opt verify`: checks the tile conversions of files and folders."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pto.cli import terminal
from pto.cli.check import SPLIT_MARK, check_file, check_text, settings_of
from pto.cli.files import InputError, find_files, in_parallel
from pto.cli.terminal import UsageError, plural
from pto.diagnostics import FileReport
from pto.diagnostics.render import FORMATS, render
from pto.diagnostics.report import summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `pto-opt verify`."""
    parser.description = "Check tile conversions against their target."
    parser.epilog = "Exit status: 0 no errors, 1 errors, 2 wrong use or unreadable input."
    terminal.add_paths(parser)
    terminal.add_target(parser)
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    terminal.add_default_saturation(parser)
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
    terminal.add_jobs(parser)
    terminal.add_colour(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no summary line")
    parser.add_argument(
        "--split-input-file", action="store_true", help=f"check the parts between {SPLIT_MARK!r}"
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
        results = in_parallel(partial(check_file, settings=settings), files, args.jobs)
        outcomes = list(terminal.follow(results, len(files)))
    except (InputError, UnknownTarget, UsageError) as error:
        terminal.complain("verify", error)
        return 2
    unreadable = [o for o in outcomes if isinstance(o, InputError)]
    for problem in unreadable:
        terminal.complain("verify", problem)
    reports = [o for o in outcomes if isinstance(o, FileReport)]
    failed = _output(reports, args)
    return 2 if unreadable else int(failed)


def _output(reports: Sequence[FileReport], args: argparse.Namespace) -> bool:
    """Writes the reports; whether any of them fails."""
    if args.verify_diagnostics:
        failed = [problem for r in reports for problem in r.problems]
        sys.stdout.write("".join(f"{problem}\n" for problem in failed))
        return bool(failed)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100
    all_remarks = args.remarks or args.format == "json"
    shown = reports if all_remarks else [_without_quiet(r) for r in reports]
    colour = terminal.use_colour(args.color)
    terminal.write_out(render(shown, args.format, colour=colour, width=width))
    if args.format == "text" and not args.quiet:
        print(_summary_line(reports, shown))
    return any(r.count("error") for r in reports)


def _without_quiet(report: FileReport) -> FileReport:
    return replace(report, diagnostics=[d for d in report.diagnostics if not d.quiet])


def _summary_line(reports: Sequence[FileReport], shown: Sequence[FileReport]) -> str:
    total = summary(shown)
    counts = [
        plural(total[key], noun)
        for key, noun in (("errors", "error"), ("warnings", "warning"), ("remarks", "remark"))
    ]
    line = (
        f"{plural(total['files'], 'file')}, {plural(total['tcvt'], 'conversion')}:"
        f" {', '.join(counts)}"
    )
    if hidden := summary(reports)["remarks"] - total["remarks"]:
        line += f"; --remarks shows {hidden} more"
    if unknown := sum(r.tcvt > 0 and r.target is None for r in reports):
        line += (
            f"\n{plural(unknown, 'file')} without a known target:"
            " only what holds on every target was checked (--arch A names one)"
        )
    return line
