"""Which target the module around an operation names."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from pto.targets import UnknownTarget, resolve

TARGET_KEYS = ("pto.target_arch", "pto.device-spec")
"""Module attributes that name a target; the first one that is there counts."""


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """A target as a module names it."""

    name: str
    owner: Operation
    """The operation that has the attribute."""
    key: str

    @property
    def resolved(self) -> str | None:
        """The canonical target, None if the name is not known."""
        try:
            return resolve(self.name)
        except UnknownTarget:
            return None


def named_target(op: Operation) -> NamedTarget | None:
    """The target that the innermost operation around `op` (or `op` itself) names."""
    current: Operation | None = op
    while current is not None:
        for key in TARGET_KEYS:
            attr = current.attributes.get(key)
            if isinstance(attr, StringAttr):
                return NamedTarget(attr.data, current, key)
        current = current.parent_op()
    return None
