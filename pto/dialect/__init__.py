"""The pto dialect for xDSL: types, attributes and operations."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    # `PTO` holds a class for every known operation; a program that only parses needs few of them.
    if name != "PTO":
        raise AttributeError(f"module 'pto.dialect' has no attribute '{name}'")
    from pto.dialect.dialect import PTO

    return PTO
