"""Element formats and conversions between them. Knows nothing of tiles, IR or targets.

`convert` is the array entry point, `convert_bits` the one for raw bit patterns; `formats` holds the
element formats as data. Names load on first use, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pto.numerics.arrays import convert, convert_bits, encode
    from pto.numerics.formats import FORMATS, Format, decode, format_of, pack4, unpack4, value_of

_HOME = {
    **dict.fromkeys(("convert", "convert_bits", "encode"), "pto.numerics.arrays"),
    **dict.fromkeys(
        ("FORMATS", "Format", "decode", "format_of", "pack4", "unpack4", "value_of"),
        "pto.numerics.formats",
    ),
}

__all__ = [
    "FORMATS",
    "Format",
    "convert",
    "convert_bits",
    "decode",
    "encode",
    "format_of",
    "pack4",
    "unpack4",
    "value_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
