"""`pto-opt convert IN.npy OUT.npy --to F`: an array from one element format to another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pto.cli import terminal
from pto.cli.files import InputError, is_stream, replacing
from pto.numerics.formats import FORMATS, Format, format_of
from pto.targets import DEFAULT_TARGET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `pto-opt convert`."""
    parser.description = (
        "Convert a .npy array to another element format, bit for bit as a target does. "
        "Formats that numpy lacks are read and written as unsigned bit patterns, one element each."
    )
    parser.epilog = f"Formats: {', '.join(FORMATS)}."
    parser.add_argument("input", metavar="IN.npy", help="- is standard input")
    parser.add_argument("output", metavar="OUT.npy", help="- is standard output")
    parser.add_argument("--to", required=True, metavar="F", help="destination format")
    parser.add_argument("--from", dest="src", metavar="F", help="source format (default: by dtype)")
    parser.add_argument("--mode", metavar="M", help="rounding mode (default: the pair's own)")
    parser.add_argument(
        "--sat", type=str.lower, choices=("on", "off"), help="saturation (default: the pair's)"
    )
    terminal.add_target(parser, f"target (default: {DEFAULT_TARGET}); none allows any pair")
    parser.set_defaults(arch=DEFAULT_TARGET)
    parser.add_argument(
        "--tmp", action="store_true", help="with a tmp tile: PyTorch-compatible path on a2a3"
    )
    parser.add_argument(
        "--deq-scale", type=float, default=1.0, metavar="X", help="scale of i32 to f16"
    )


def run(args: argparse.Namespace) -> int:
    """Converts the file; 2 for wrong use or a file that cannot be read or written."""
    from pto.cli.arrays import read_npy, write_array

    try:
        target = format_of(args.to)
        source = None if args.src is None else format_of(args.src)
        array = read_npy(args.input, source, mapped=True)
        output = Path(args.output)
        if args.output == "-" or is_stream(output) or not (array.size and array.ndim):
            write_array(args.output, _converted(array, target, args))
        else:
            _convert_into(output, array, target, args)
    except (OSError, ValueError, InputError) as error:
        terminal.complain("convert", f"error: {_message(error)}")
        return 2
    return 0


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = str(error)
    for parameter, option in (("arch=None", "--arch none"), ("with src=", "with --from")):
        text = text.replace(parameter, option)
    return text


def _converted(array: Array, target: Format, args: argparse.Namespace, out: Any = None) -> Array:
    from pto.targets.convert import convert

    return convert(
        array,
        target.name,
        src=args.src,
        mode=args.mode,
        saturation=args.sat,
        arch=None if args.arch.lower() == "none" else args.arch,
        tmp=args.tmp,
        deq_scale=args.deq_scale,
        out=out,
    )


def _convert_into(path: Path, array: Array, target: Format, args: argparse.Namespace) -> None:
    """Replaces `path` by the converted array, which never is in memory as a whole."""
    from numpy.lib.format import open_memmap

    from pto.cli.arrays import stored

    with replacing(path) as part:
        out = open_memmap(part, mode="w+", dtype=stored(target.carrier), shape=array.shape)
        _converted(array, target, args, out)
        out.flush()
        del out
