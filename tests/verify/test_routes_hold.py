"""The routes that `type-pair` proposes: exact iff they give the bits of a direct conversion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from samples import Array, samples

import pto
from pto.targets import lookup
from pto.targets.routes import Route, find_route

SMALL: dict[str, type[np.integer[Any]]] = {
    "i8": np.int8,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
}
SOURCES = ("f32", "f16", "bf16", "i8", "i16", "i32", "i64", "ui8", "ui32")
DESTINATIONS = ("f32", "f16", "bf16", "f8e4m3fn", "f8e5m2", "hif8")
INTEGERS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32")


def values(src: str) -> Array:
    """Samples, with the infinities and NaN of a float source."""
    if src in SMALL:
        info = np.iinfo(SMALL[src])
        x = np.linspace(info.min, info.max, 5001).astype(SMALL[src])
        return np.concatenate([x, np.arange(256).astype(SMALL[src])])
    x = samples(src)
    if src[0] in "iu":
        return x
    specials = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0]).astype(x.dtype)
    return np.concatenate([x, specials])


def convert(x: Array, src: str, dst: str, mode: str | None, saturation: str | None) -> Array:
    try:
        return pto.convert(x, dst, src=src, mode=mode, saturation=saturation, arch=None)
    except ValueError as error:
        if "no choice of saturation" not in str(error):
            raise
        return pto.convert(x, dst, src=src, mode=mode, arch=None)


def along(route: Route, x: Array, mode: str | None, saturation: str) -> Array:
    """The steps as the note writes them; mode and saturation of the last one as asked."""
    *steps, (src, dst) = zip(route.formats, route.formats[1:], strict=False)
    for step in steps:
        x = convert(x, *step, None, None)
    return convert(x, src, dst, mode, saturation)


def cases() -> list[tuple[str, str, str]]:
    return [
        (arch, src, dst)
        for arch in ("a2a3", "a5")
        for src in SOURCES
        for dst in (*DESTINATIONS, *INTEGERS)
        if src != dst and lookup(arch, src, dst) is None and find_route(arch, src, dst) is not None
    ]


CAUTIOUS = {("a5", "f16", "ui16")}
"""Equal as well, but not claimed: the first step rounds, and the second keeps the low bits."""


@pytest.mark.parametrize(("arch", "src", "dst"), cases())
def test_exact_iff_equal_to_the_direct_conversion(arch: str, src: str, dst: str) -> None:
    route = find_route(arch, src, dst)
    assert route is not None
    last = lookup(arch, *route.formats[-2:])
    assert last is not None
    x = values(src)
    equal = True
    for mode in tuple(m for m in last.modes if m not in ("HYBRID", "ODD")) or (None,):
        for saturation in ("ON", "OFF"):
            if src[0] in "iu" and dst[0] not in "iu":  # i32 to f16 has a rule of its own (S13)
                direct = convert(x.astype(np.float64), "f64", dst, mode, saturation)
            else:
                direct = convert(x, src, dst, mode, saturation)
            twice = along(route, x, mode, saturation)
            width = f"u{direct.dtype.itemsize}"
            equal &= bool(np.array_equal(twice.view(width), direct.view(width)))
    assert equal == (route.exact or (arch, src, dst) in CAUTIOUS)
