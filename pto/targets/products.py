"""Product names: canonical targets, their aliases, and the size of their unified buffer."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TARGETS = (
    "a2a3",
    "a5",
    "atlas-200i-500-a2",
    "atlas-inference",
    "atlas-training",
    "kirin-x90",
    "kirin-9030",
)
"""Every canonical target (spec V); all of them have a Cast table."""

TCVT_TARGETS = ("a2a3", "a5")
"""The targets that have the TCVT tile instruction."""

TMP_TARGET = "a2a3"
"""The target whose TCVT uses a tmp operand (`Product.pytorch_needs_tmp`)."""


class UnknownTarget(ValueError):
    """A name that is no target and no alias of one; the message lists the targets that exist."""


@cache
def load(file: str) -> dict[str, Any]:
    """Parse one of the TOML files of this package."""
    return tomllib.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))


def _products() -> dict[str, Any]:
    return load("products.toml")


def _fold(name: str) -> str:
    return "".join(c for c in name.lower() if c not in " -_")


@cache
def _aliases() -> list[tuple[str, bool, str]]:
    """(folded alias, matches any suffix, target), the longest alias first."""
    found = [
        (_fold(alias.removesuffix("*")), alias.endswith("*"), target)
        for target, product in _products().items()
        for alias in product["aliases"]
    ]
    return sorted(found, key=lambda a: -len(a[0]))


@cache
def resolve(name: str) -> str:
    """The canonical target that `name` (a target or an alias, in any case) stands for (spec V).

    Raises UnknownTarget, which names the nearest target or alias and lists all targets.
    """
    if not isinstance(name, str):
        raise TypeError(f"a target is a name such as 'a5', not {name!r}")
    folded = _fold(name)
    for alias, any_suffix, target in _aliases():
        if folded == alias or (any_suffix and folded.startswith(alias)):
            return target
    spellings = {_fold(s): s for s in TARGETS} | {
        _fold(s): s.removesuffix("*") for p in _products().values() for s in p["aliases"]
    }
    near = difflib.get_close_matches(folded, spellings, n=1, cutoff=0.5)
    hint = f" (did you mean {spellings[near[0]]!r}?)" if near else ""
    raise UnknownTarget(f"unknown target {name!r}{hint}; known targets: {', '.join(TARGETS)}")


@dataclass(frozen=True, slots=True)
class Product:
    """What is known of one target besides its tables."""

    name: str
    title: str
    """The vendor's name, for tables and messages."""
    unified_buffer_bytes: int | None
    """Where vec tiles live; None where the documents do not say."""
    pytorch_needs_tmp: bool
    """TCVT takes the PyTorch-compatible path only with a tmp operand (spec S10)."""
    none_may_truncate: bool
    """Its public header sends NONE on float to integer to TRUNC (spec R7)."""
    float_saturation_control: str | None
    """The control register bit that decides how floats saturate, instead of the instruction."""


@cache
def product(name: str) -> Product:
    """What is known of a target, by its name or an alias. Raises UnknownTarget."""
    target = resolve(name)
    entry = _products()[target]
    kib = entry.get("unified_buffer_kib")
    return Product(
        name=target,
        title=entry["title"],
        unified_buffer_bytes=None if kib is None else kib * 1024,
        pytorch_needs_tmp=entry.get("pytorch_needs_tmp", False),
        none_may_truncate=entry.get("none_may_truncate", False),
        float_saturation_control=entry.get("float_saturation_control"),
    )


def unified_buffer_bytes(arch: str) -> int:
    """Bytes of the unified buffer, where vec tiles live: 192 KiB on a2a3, 256 KiB on a5 (spec V).

    Raises UnknownTarget for a target whose documents do not give the size.
    """
    size = product(arch).unified_buffer_bytes
    if size is None:
        raise UnknownTarget(f"the unified buffer size of {resolve(arch)} is not documented")
    return size
