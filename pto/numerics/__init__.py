"""Element formats and conversions between them. Knows nothing of tiles, IR or targets.

`convert` is the array entry point, `convert_bits` the one for raw bit patterns; `formats` holds the
element formats as data. Names load on first use, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pto.numerics.conversion import convert, convert_bits
    from pto.numerics.formats import (
        FORMATS,
        Format,
        decode,
        encode,
        pack4,
        unpack4,
    )

__all__ = [
    "FORMATS",
    "Format",
    "convert",
    "convert_bits",
    "decode",
    "encode",
    "pack4",
    "unpack4",
]

_HOME = {
    "convert": "pto.numerics.conversion",
    "convert_bits": "pto.numerics.conversion",
} | dict.fromkeys(
    ("FORMATS", "Format", "decode", "encode", "pack4", "unpack4"), "pto.numerics.formats"
)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
