"""`pto-opt convert IN.npy OUT.npy --to F`: an array from one element format to another."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    parser.add_argument("--sat", choices=("on", "off"), help="saturation (default: the pair's)")
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
        array = _load(args.input)
        if args.output == "-":
            _save_to_stdout(_converted(array, target, args))
        else:
            _save(Path(args.output), array, target, args)
    except (OSError, ValueError, EOFError) as error:
        print(f"pto-opt convert: error: {_message(error)}", file=sys.stderr)
        return 2
    return 0


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error).replace("arch=None", "--arch none")


def _load(name: str) -> Array:
    """The array of a .npy file, mapped rather than read where it is a file."""
    import io

    import numpy as np

    try:
        if name == "-":
            array = np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
        else:
            array = np.load(name, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{name} is no .npy file with an array of numbers") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} is an archive of arrays, not one .npy array")
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
    """Writes a temporary file beside `path` and renames it: no half-written result remains."""
    from numpy.lib.format import open_memmap

    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    try:
        if array.size and array.ndim:
            out = open_memmap(name, mode="w+", dtype=_stored(target), shape=array.shape)
            _converted(array, target, args, out)
            out.flush()
            del out
        else:
            _save_plain(name, _converted(array, target, args))
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _save_plain(name: str, array: Array) -> None:
    import numpy as np

    with open(name, "wb") as file:
        np.save(file, array, allow_pickle=False)


def _save_to_stdout(array: Array) -> None:
    import io

    import numpy as np

    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    sys.stdout.buffer.write(buffer.getvalue())
    sys.stdout.buffer.flush()
