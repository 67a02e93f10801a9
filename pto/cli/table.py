"""`pto-opt table`: the legality tables, as text, JSON or Markdown."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pto.cli import terminal
from pto.numerics.formats import Format, format_of
from pto.targets import INSTRUCTIONS, TARGETS, Pair, Table, product_of, tables

_KIND_TEXT = {
    "exact": "exact",
    "int": "integer narrowing",
    "s12": "negative becomes 0",
    "s13": "dequantisation: RINT",
    "s6": "exponent field",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `pto-opt table`."""
    parser.description = "Print which conversions each instruction offers on each product."
    parser.epilog = f"Targets: {', '.join(TARGETS)}."
    terminal.add_target(parser, "target or alias (default: all)")
    parser.add_argument(
        "--instruction",
        type=_instruction,
        metavar="I",
        help=f"one of {', '.join(INSTRUCTIONS)} (default: all)",
    )
    parser.add_argument("--src", metavar="F", help="only conversions from this format")
    parser.add_argument("--dst", metavar="F", help="only conversions to this format")
    parser.add_argument("--format", choices=("text", "json", "md"), default="text")


def run(args: argparse.Namespace) -> int:
    """Prints the tables and returns the exit status."""
    try:
        src, dst = (None if name is None else format_of(name) for name in (args.src, args.dst))
        found = select(args.arch, args.instruction, src, dst)
    except ValueError as error:
        terminal.complain("table", error)
        return 2
    if args.format == "json":
        print(json.dumps([_as_json(table) for table in found], indent=2))
    else:
        print((as_markdown if args.format == "md" else _as_text)(found))
    return 0


def select(
    arch: str | None = None,
    instruction: str | None = None,
    src: Format | None = None,
    dst: Format | None = None,
) -> list[Table]:
    """The tables of a target with the rows asked for; tables without such rows are left out.

    Raises UnknownTarget.
    """
    chosen = [t for t in tables(arch) if instruction in (None, t.instruction)]
    filtered = [
        replace(t, rows=tuple(r for r in t.rows if src in (None, r.src) and dst in (None, r.dst)))
        for t in chosen
    ]
    return [t for t in filtered if t.rows]


def _instruction(text: str) -> str:
    for name in INSTRUCTIONS:
        if name.lower() == text.lower():
            return name
    raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(INSTRUCTIONS)}")


def _cells(row: Pair) -> tuple[str, str, str, str]:
    """Source, destination, modes or rule, saturation."""
    modes = " ".join(row.modes)
    rule = modes if row.rounds else " ".join((*row.modes, f"({_KIND_TEXT[row.kind]})"))
    saturation = f"default {row.default_saturation}" if row.has_saturation else "-"
    if row.through_i32:
        saturation += ", OFF as PyTorch"
    return row.src.name, row.dst.name, rule, saturation


def _columns(table: Table) -> tuple[str, ...]:
    columns = ("from", "to", "rounding", "saturation")
    return (*columns, "layouts") if table.instruction == "astype" else columns


def _row(table: Table, row: Pair) -> tuple[str, ...]:
    cells = _cells(row)
    return (*cells, " ".join(row.layouts) or "-") if table.instruction == "astype" else cells


def _heading(table: Table) -> str:
    return f"{table.instruction} on {table.product} ({product_of(table.product).title})"


def _as_text(found: Sequence[Table]) -> str:
    if not found:
        return "no such conversion"
    return "\n\n".join(_one_as_text(table) for table in found)


def _one_as_text(table: Table) -> str:
    rows = [_columns(table), *(_row(table, r) for r in table.rows)]
    return "\n".join([_heading(table), *(f"  {line}" for line in terminal.columns(rows))])


def as_markdown(found: Sequence[Table]) -> str:
    """The tables as Markdown, a heading and the document of each."""
    return "\n\n".join(_one_as_markdown(table) for table in found)


def _one_as_markdown(table: Table) -> str:
    columns = _columns(table)
    rows = [columns, ("---",) * len(columns), *(_row(table, r) for r in table.rows)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([f"## {_heading(table)}", "", f"Source: {table.document}.", "", *lines])


def _as_json(table: Table) -> dict[str, Any]:
    return {
        "instruction": table.instruction,
        "product": table.product,
        "document": table.document,
        "rows": [
            {
                "src": row.src.name,
                "dst": row.dst.name,
                "kind": row.kind,
                "modes": list(row.modes),
                "default_saturation": row.default_saturation if row.has_saturation else None,
                "pytorch": row.through_i32,
                "layouts": list(row.layouts),
            }
            for row in table.rows
        ],
    }


DOCUMENT_PREFACE = """\
# Legality tables

Which conversions each instruction offers on each product, one row per pair, from the documents
named. This page is generated (`pto-opt table --format md`); the data are the files
`pto/targets/*.toml`.

- *rounding*: the modes that may be written. On TCVT, NONE is accepted wherever RINT is and means
  the same. A pair that loses nothing, or narrows an integer, takes any mode and ignores it.
- *saturation*: what an absent saturation mode means, `-` where the pair has no choice. "OFF as
  PyTorch": without saturation the result is PyTorch's, on a2a3 only if a tmp tile is given.
- *layouts* (astype): where the narrow elements may lie in the register, `-` for equal widths.
"""


def document() -> str:
    """The docs' page of all tables."""
    return f"{DOCUMENT_PREFACE}\n{as_markdown(tables())}\n"
