"""`pto-opt tmp`: how large the tmp tiles of the conversions must be, and are."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pto.cli import terminal
from pto.cli.files import (
    InputError,
    SyntaxFailure,
    find_files,
    in_parallel,
    read_text,
    write_whole,
)

if TYPE_CHECKING:
    from pto.cli.tmp_uses import TmpUse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `pto-opt tmp`."""
    parser.description = (
        "Show the bytes that each conversion's tmp tile needs and has. Only a2a3 uses them;"
        " files that name no target are read as for it."
    )
    parser.epilog = (
        "Exit status: 0 all large enough, 1 one too small, 2 wrong use or unreadable input."
    )
    terminal.add_paths(parser)
    terminal.add_target(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    terminal.add_default_saturation(parser)
    terminal.add_jobs(parser)
    parser.add_argument("--fix", action="store_true", help="rewrite types that are too small")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-i", "--in-place", action="store_true", help="--fix: replace the files")
    where.add_argument("-o", "--output", metavar="FILE", help="--fix: write there, - is stdout")


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit status."""
    from pto.targets import UnknownTarget, product_of

    try:
        arch = None if args.arch is None else product_of(args.arch).name
        files = find_files(args.paths)
        if not args.fix and (args.in_place or args.output):
            raise InputError("-i and -o say where --fix writes; give --fix too")
        if args.fix and not (args.in_place or (args.output and len(files) == 1)):
            raise InputError("--fix wants -i, or -o FILE with a single input")
        if args.fix:
            return max(_fix(path, arch, args) for path in files)
    except (InputError, UnknownTarget) as error:
        terminal.complain("tmp", error)
        return getattr(error, "status", 2)
    work = partial(_rows_of_file, arch=arch, default_sat=args.default_sat)
    outcomes = list(in_parallel(work, files, args.jobs))
    problems = [o for o in outcomes if isinstance(o, InputError)]
    rows = [row for o in outcomes if isinstance(o, list) for row in o]
    as_json = args.format == "json"
    if as_json or rows or not problems:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n" if as_json else _text(rows))
    for problem in problems:
        terminal.complain("tmp", problem)
    statuses = [problem.status for problem in problems]
    return max([*statuses, int(any(_is_short(row) for row in rows))])


def _uses(path: str, arch: str | None, default_sat: str) -> tuple[Any, list[TmpUse]]:
    import pto
    from pto.cli.tmp_uses import tmp_uses

    try:
        module = pto.parse(read_text(path), filename=path)
    except pto.ParseError as error:
        raise SyntaxFailure(str(error)) from error
    return module, list(tmp_uses(module, arch=arch, default_sat=default_sat))


def _rows_of_file(
    path: str, arch: str | None, default_sat: str
) -> list[dict[str, Any]] | InputError:
    """One record a conversion, or what is wrong with the file."""
    try:
        _, uses = _uses(path, arch, default_sat)
    except InputError as error:
        return error
    return [_record(path, use) for use in uses]


def _record(path: str, use: TmpUse) -> dict[str, Any]:
    need = use.need
    return {
        "path": path,
        "func": use.func,
        "line": use.line,
        "column": use.column,
        "src": use.src,
        "dst": use.dst,
        "rows": need.rows,
        "cols": need.cols,
        "row_stride": need.row_stride,
        "required": need.terms.required,
        "worst": need.bytes,
        "provided": use.provided,
        "bound": "upper" if need.is_bound else "exact",
        "head": need.terms.head,
        "tail": need.terms.tail,
        "H": need.terms.h,
    }


def _is_short(row: dict[str, Any]) -> bool:
    """Certainly too small: an upper bound that is not met may still be enough."""
    provided = row["provided"]
    return provided is not None and row["bound"] == "exact" and provided < row["required"]


# Text --------------------------------------------------------------------------------------------

_HEADER = ("", "function", "conversion", "valid", "stride", "head", "tail", "H", "needs", "has", "")


def _text(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return "no conversion needs or has a tmp tile\n"
    lines = terminal.columns([_HEADER, *map(_cells, rows)], right=range(4, len(_HEADER) - 1))
    return "".join(f"{line}\n" for line in lines)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    is_float = row["src"] == "f32"
    bound = "<=" if row["bound"] == "upper" else ""
    return (
        f"{row['path']}:{row['line']}:{row['column']}",
        f"@{row['func']}",
        f"{row['src']} -> {row['dst']}",
        f"{row['rows']}x{row['cols']}",
        str(row["row_stride"]),
        str(row["head"]) if is_float else "-",
        str(row["tail"]) if is_float else "-",
        str(row["H"]) if not is_float else "-",
        f"{bound}{row['worst']}",
        "none" if row["provided"] is None else str(row["provided"]),
        _state(row),
    )


def _state(row: dict[str, Any]) -> str:
    required, provided = row["worst"], row["provided"]
    if provided is None:
        return "no tmp: native path"
    if provided < required:
        short = f"short by {required - provided}"
        return f"may be {short}" if row["bound"] == "upper" else short
    if required == 0:
        return f"unused, {provided} wasted"
    return f"{provided - required} wasted" if provided > required else "exact"


# Fix ---------------------------------------------------------------------------------------------


def _fix(path: str, arch: str | None, args: argparse.Namespace) -> int:
    from pto.cli.grow_tmp import grow_tmp_tiles
    from pto.frontend.source import source_of

    module, uses = _uses(path, arch, args.default_sat)
    source = source_of(module)
    assert source is not None
    growth = grow_tmp_tiles(source, uses)
    for line in growth.grown:
        print(f"{path}: {line}", file=sys.stderr)
    for line in growth.refused:
        print(f"{path}: left as it is: {line}", file=sys.stderr)
    target = path if args.in_place else args.output
    if target == "-":
        sys.stdout.write(growth.text)
    elif not args.in_place or growth.grown:
        write_whole(Path(target), growth.text.encode("utf-8"))
    return 1 if growth.refused else 0
