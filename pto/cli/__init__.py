"""The `pto-opt` command line: a verb, or a file and a pipeline of passes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

# Verbs, each a module of this package with `add_arguments(parser)` and `run(args)`.
VERBS = {
    "verify": "check the tile conversions of files and folders",
    "tmp": "size the scratch tiles of conversions",
    "run": "execute a function on arrays",
    "convert": "convert an array from one element format to another",
    "table": "print which conversions a target has",
    "explain": "how each mode rounds a value, or what a diagnostic means",
}

_USAGE = """\
usage: pto-opt FILE [-p PASSES] [options]    parse, run passes, print
       pto-opt VERB ...                      one of:

{verbs}

`pto-opt VERB --help` lists a verb's options, `pto-opt --help-passes` those of the first form.
Exit status: 0 clean, 1 errors in the input, 2 wrong use or unreadable input."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _replace_closed_streams()
    try:
        status = _dispatch(arguments)
        sys.stdout.flush()  # here, where an error can be reported
        return status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of a pipe went away
        _abandon_output()
        return 128 + 13  # as for SIGPIPE: it says nothing about the input
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        print(f"pto-opt: {place}{error.strerror}", file=sys.stderr)
        if error.filename is None:
            _abandon_output()
        return 2


def _replace_closed_streams() -> None:
    """A caller that closes an output stream wants the exit status alone."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))


def _abandon_output() -> None:
    """Lets the interpreter's own flush at exit succeed, whatever is left to write."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        width = max(map(len, VERBS))
        verbs = "\n".join(f"  {verb:{width}}  {text}" for verb, text in VERBS.items())
        print(_USAGE.format(verbs=verbs), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] in VERBS:
        return _run_verb(arguments[0], arguments[1:])
    from pto.cli.opt import run

    return run(["--help"] if arguments[0] == "--help-passes" else arguments)


def _run_verb(verb: str, arguments: list[str]) -> int:
    module = import_module(f"pto.cli.{_module_of(verb, arguments)}")
    parser = argparse.ArgumentParser(prog=f"pto-opt {verb}", description=VERBS[verb])
    module.add_arguments(parser)
    status: int = module.run(parser.parse_args(arguments))
    return status


def _module_of(verb: str, arguments: list[str]) -> str:
    """`explain ID` and `explain SRC DST VALUE...` are two modules."""
    words = [argument for argument in arguments if not argument.startswith("-")]
    return "explain_id" if verb == "explain" and len(words) <= 1 else verb
