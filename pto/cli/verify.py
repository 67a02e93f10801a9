"""`pto-opt verify`: checks the tile conversions of files and folders."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pto.cli.check import SPLIT_MARK, UsageError, check_file, check_text, settings_of
from pto.cli.files import InputError, Progress, find_files, in_parallel, process_count
from pto.diagnostics import FORMATS, FileReport, render, summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `pto-opt verify`."""
    parser.description = "Check tile conversions against their target."
    parser.epilog = "Exit status: 0 no errors, 1 errors, 2 wrong use or unreadable input."
    parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder, or - for stdin")
    parser.add_argument("--arch", metavar="A", help="target; wins over the one the module names")
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument(
        "--default-sat",
        type=str.lower,
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
    parser.add_argument(
        "-j",
        "--jobs",
        type=process_count,
        default=1,
        metavar="N",
        help="processes, 0 for one a core",
    )
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
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
        outcomes = list(Progress(len(files)).follow(results))
    except (InputError, UnknownTarget, UsageError) as error:
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
    all_remarks = args.remarks or args.format == "json"
    shown = reports if all_remarks else [_without_quiet(r) for r in reports]
    _write(render(shown, args.format, colour=colour, width=width))
    if args.format == "text" and not args.quiet:
        print(_summary_line(reports, shown))
    return any(r.count("error") for r in reports)


def _write(text: str) -> None:
    """Writes text that may quote any source line to a terminal of any encoding."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, errors="replace").decode(encoding))


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
