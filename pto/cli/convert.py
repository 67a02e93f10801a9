"""`pto-opt convert IN.npy OUT.npy --to F`: an array from one element format to another."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pto.cli.files import is_stream, read_input, replacing
from pto.numerics.formats import FORMATS, Format, format_of

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
    parser.add_argument(
        "--arch", default="a5", metavar="A", help="target (default: a5); none allows any pair"
    )
    parser.add_argument(
        "--tmp", action="store_true", help="with a tmp tile: PyTorch-compatible path on a2a3"
    )
    parser.add_argument(
        "--deq-scale", type=float, default=1.0, metavar="X", help="scale of i32 to f16"
    )


def run(args: argparse.Namespace) -> int:
    """Converts the file; 2 for wrong use or a file that cannot be read or written."""
    try:
        target = format_of(args.to)
        array = _load(args.input, args.src)
        output = Path(args.output)
        if args.output == "-":
            sys.stdout.buffer.write(_bytes(_converted(array, target, args)))
            sys.stdout.buffer.flush()
        elif is_stream(output):
            output.write_bytes(_bytes(_converted(array, target, args)))
        else:
            _save(output, array, target, args)
    except (OSError, ValueError, EOFError) as error:
        print(f"pto-opt convert: error: {_message(error)}", file=sys.stderr)
        return 2
    return 0


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = str(error)
    for parameter, option in (("arch=None", "--arch none"), ("with src=", "with --from")):
        text = text.replace(parameter, option)
    return text


def _load(name: str, src: str | None) -> Array:
    """The array of a .npy file, mapped rather than read where it is a file.

    numpy writes the dtypes of ml_dtypes as bytes without a type: with a source format, its codes.
    """
    import io

    import numpy as np

    try:
        if name == "-":
            array = np.load(io.BytesIO(read_input()), allow_pickle=False)
        else:
            array = np.load(name, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{name} is no .npy file with an array of numbers") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} is an archive of arrays, not one .npy array")
    if array.dtype.kind == "V" and array.dtype.names is None:
        if src is None:
            raise ValueError(
                f"{name} holds bytes of a type that numpy does not know, such as bfloat16;"
                " name its format with --from"
            )
        codes = format_of(src).code_dtype
        return array.view(codes) if codes.itemsize == array.dtype.itemsize else array
    return array


def _converted(array: Array, target: Format, args: argparse.Namespace, out: Any = None) -> Array:
    """The converted array as it is stored: codes where numpy lacks the format."""
    from pto.conversion import convert

    result = convert(
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
    return result.view(_stored(target))


def _stored(target: Format) -> Any:
    """The dtype in the file: numpy's own, or the codes'."""
    import numpy as np

    own = hasattr(np, target.carrier_name)
    return target.carrier if own else target.code_dtype


def _save(path: Path, array: Array, target: Format, args: argparse.Namespace) -> None:
    """Replaces `path` by the converted array in one step: no half-written result remains."""
    from numpy.lib.format import open_memmap

    with replacing(path) as part:
        if array.size and array.ndim:
            out = open_memmap(part, mode="w+", dtype=_stored(target), shape=array.shape)
            _converted(array, target, args, out)
            out.flush()
            del out
        else:
            part.write_bytes(_bytes(_converted(array, target, args)))


def _bytes(array: Array) -> bytes:
    """The array as a .npy file."""
    import io

    import numpy as np

    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
