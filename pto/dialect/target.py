"""Which target an operation is for."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from pto.targets import Product, UnknownTarget, product_of

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
    def product(self) -> Product | None:
        """The product, None if the name is not known."""
        try:
            return product_of(self.name)
        except UnknownTarget:
            return None


def target_of(op: Operation) -> NamedTarget | None:
    """The target that the innermost operation around `op` (or `op` itself) names."""
    current: Operation | None = op
    while current is not None:
        for key in TARGET_KEYS:
            attr = current.attributes.get(key)
            if isinstance(attr, StringAttr):
                return NamedTarget(attr.data, current, key)
        current = current.parent_op()
    return None
