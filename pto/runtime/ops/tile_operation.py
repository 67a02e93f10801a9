"""A tile operation as its implementation sees it: operands by name, in the DPS and SSA form alike.

An implementation is a function of a `TileOperation`. It checks what the types say, and returns the
function that computes: its parameters are the names of operands, as `tile_operations` lists them,
and it is called with their tiles and scalars. An operand that is absent is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from pto.dialect.attributes import EnumAttr
from pto.dialect.location import Location, location_of
from pto.dialect.ops import GroupedOp, TCvtOp
from pto.dialect.tile_operations import Signature, named
from pto.dialect.type_records import type_text
from pto.dialect.types import AnyTile
from pto.runtime.compiler import Compiler, Implement
from pto.runtime.elements import Element
from pto.runtime.errors import RuntimeFault, unsupported
from pto.runtime.frame import Frame, Slots, Step
from pto.runtime.tile import Layout, layout_of
from pto.runtime.vector_core import check_space, fresh_tile

Compute = Callable[..., None]
"""Computes an operation; its parameters are names of operands."""


def is_tile(value: SSAValue) -> bool:
    """Whether the value is a tile."""
    return isinstance(value.type, AnyTile)


def tile_layout(value: SSAValue) -> Layout:
    """The layout of a tile operand. Raises RuntimeFault where it is no tile of the vector side."""
    type_ = value.type
    if not isinstance(type_, AnyTile):
        raise unsupported(f"an operand of type {type_text(type_)}")
    check_space(type_.loc)
    return layout_of(type_)


class TileOperation:
    """A tile operation that is being compiled.

    Raises RuntimeFault where its operands are not those of its row.
    """

    def __init__(self, op: Operation, compiler: Compiler) -> None:
        self.op = op
        self.compiler = compiler
        self.kind = op.name.removeprefix("pto.")
        """The name without its dialect."""
        signature, sources, targets = _groups(op)
        ins, outs = named(signature.ins, sources), named(signature.outs, targets)
        if ins is None or outs is None:
            raise unsupported("this form of it")
        self.outs: list[SSAValue] = list(outs.values())
        """The destinations; they are results in the SSA form."""
        self._operands: dict[str, SSAValue] = ins | outs
        self._known = {name.removesuffix("?") for name in (*signature.ins, *signature.outs)}

    def __contains__(self, name: str) -> bool:
        """Whether the operand of that name is there."""
        return name in self._operands

    def operand(self, name: str) -> SSAValue:
        """The operand of that name. Raises RuntimeFault where it is absent."""
        if name not in self._operands:
            raise unsupported(f"the form without {name}")
        return self._operands[name]

    def is_tile(self, name: str) -> bool:
        """Whether the operand of that name is a tile."""
        return is_tile(self.operand(name))

    def layout(self, name: str) -> Layout:
        """The layout of a tile operand. Raises RuntimeFault for one that is not supported."""
        return tile_layout(self.operand(name))

    def element(self, name: str) -> Element:
        """The element type of a tile operand. Raises RuntimeFault for one that is not supported."""
        return self.layout(name).element

    def location(self) -> Location:
        """Where the operation stands."""
        return location_of(self.op)

    # Checks ------------------------------------------------------------------

    def same_format(self, *sources: str, dst: str = "dst") -> Element:
        """The destination's element type, which is that of the sources. Raises RuntimeFault."""
        target = self.element(dst)
        for name in sources:
            if self.element(name).format is not target.format:
                raise _differ(self.element(name), target)
        return target

    def same_width(self, src: str = "src", dst: str = "dst") -> Element:
        """The destination's element type, as wide as the source's. Raises RuntimeFault."""
        source, target = self.element(src), self.element(dst)
        if source.size != target.size or source.per_byte != target.per_byte:
            raise _differ(source, target)
        return target

    def refuse_quantisation(self) -> None:
        """Raises RuntimeFault where the operation quantises, which the cube side does."""
        if "quant" in self:
            raise unsupported("quantisation on the way, which the cube side does,")
        self.choice("reluPreMode", choices=("no_relu",))

    # Attributes --------------------------------------------------------------

    def attribute(self, name: str) -> Attribute | None:
        """An attribute or a property."""
        return self.op.attributes.get(name) or self.op.properties.get(name)

    def choice(self, *names: str, choices: Iterable[str]) -> str | None:
        """The value of the first of these enumeration attributes that is there, in lower case.

        Raises RuntimeFault for an attribute of another kind, and for a value that is none of
        `choices`.
        """
        for name in names:
            attr = self.attribute(name)
            if attr is None:
                continue
            if not isinstance(attr, EnumAttr):
                raise RuntimeFault(f"the attribute {name} is an enumeration, not {type_text(attr)}")
            value = attr.data.lower()
            if value not in choices:
                raise unsupported(f"{name} = {attr.data}", f"supported: {', '.join(choices)}")
            return value
        return None

    def flag(self, name: str) -> bool:
        """A boolean attribute; absent is false. Raises RuntimeFault for another kind."""
        attr = self.attribute(name)
        if attr is not None and not isinstance(attr, IntegerAttr):
            raise RuntimeFault(f"the attribute {name} is a boolean, not {type_text(attr)}")
        return attr is not None and attr.value.data != 0

    def string(self, name: str, choices: Iterable[str]) -> str | None:
        """A string attribute, one of `choices`. Raises RuntimeFault for another one."""
        attr = self.attribute(name)
        if attr is None:
            return None
        if isinstance(attr, StringAttr) and attr.data in choices:
            return attr.data
        raise RuntimeFault(f"{name} is one of {', '.join(choices)}, not {type_text(attr)}")

    # Wiring ------------------------------------------------------------------

    def step(self, compute: Compute) -> Step:
        """Calls a function with the operands that its parameters name."""
        code = compute.__code__
        names = code.co_varnames[: code.co_argcount]
        assert self._known.issuperset(names), f"{self.kind} has no operand {names}"
        slots = [self.compiler.optional(self._operands.get(name)) for name in names]
        call = _call(compute, slots)
        makers = [self._maker(value) for value in self.outs if value in self.op.results]
        if not makers:
            return call

        def step(frame: Frame) -> None:
            for make in makers:
                make(frame)
            call(frame)

        return step

    def _maker(self, value: SSAValue) -> Step:
        """Makes a result: its dynamic valid extents are those of the first tile operand."""
        layout, slot = tile_layout(value), self.compiler.slot(value)
        rows, cols = layout.description.valid_rows, layout.description.valid_cols
        models = [self.compiler.slot(source) for source in self.op.operands if is_tile(source)]
        if not models and (rows is None or cols is None):
            raise RuntimeFault("nothing gives the valid extents of its result")
        model, per_column = (models[0] if models else Slots.ABSENT), layout.element.logical(1)

        def make(frame: Frame) -> None:
            valid_rows, valid_cols = rows, cols
            if valid_rows is None or valid_cols is None:
                like_rows, like_cols = frame[model].logical
                valid_rows = like_rows if rows is None else rows
                valid_cols = like_cols // per_column if cols is None else cols
            frame[slot] = fresh_tile(layout, valid_rows, valid_cols)

        return make


def _groups(op: Operation) -> tuple[Signature, list[SSAValue], list[SSAValue]]:
    """The names of an operation's operands, its sources and its destinations."""
    if isinstance(op, TCvtOp):
        sources = [op.src] if op.tmp is None else [op.src, op.tmp]
        return op.SIGNATURE, sources, list(op.results or op.operands[-1:])
    if not isinstance(op, GroupedOp):
        raise unsupported("its generic form")
    if op.results:
        return op.SIGNATURE, list(op.operands), list(op.results)
    return op.SIGNATURE, list(op.ins), list(op.outs)


def _differ(source: Element, target: Element) -> RuntimeFault:
    return RuntimeFault(f"a source of {source.text}, a destination of {target.text}")


def _call(compute: Compute, slots: list[int]) -> Step:
    if len(slots) == 1:
        only = slots[0]
        return lambda frame: compute(frame[only])
    operands: Callable[[Any], tuple[Any, ...]] = itemgetter(*slots)
    return lambda frame: compute(*operands(frame))


def tile_operation(build: Callable[[TileOperation], Compute]) -> Implement:
    """The implementation of tile operations that a function of `TileOperation` gives."""

    def implement(op: Operation, compiler: Compiler) -> Step:
        tile_op = TileOperation(op, compiler)
        return tile_op.step(build(tile_op))

    return implement
