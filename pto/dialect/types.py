"""Types of the pto dialect.

A type is a frozen record (`xdsl.ir.Data`). The text form of every type is defined once, in
`grammar/types.lark`; `type_syntax` reads it, for xDSL's own parser too.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, TypeVar

from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from pto.dialect import type_syntax
from pto.dialect.type_records import (
    Extent,
    MultiTileBuf,
    Pointer,
    Tile,
    VectorRegister,
    View,
    dims,
    type_text,
)
from pto.numerics.formats import BY_MLIR, Format
from pto.targets.vector_unit import REGISTER_BYTES

T = TypeVar("T")


class PtoType(Data[T], TypeAttribute):
    """A pto type whose text is `!` name body, the body as `body()` gives it."""

    def body(self) -> str:
        """The text after the type's name, brackets included."""
        raise NotImplementedError

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> T:
        parsed: T = type_syntax.parse_rest_of_type(cls.name, parser)
        return parsed

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.body())


class _TileLike(PtoType[Tile]):
    """The fields of `Tile` as properties, for the types that describe one."""

    @property
    def loc(self) -> str:
        return self.data.loc

    @property
    def dtype(self) -> Attribute:
        return self.data.dtype

    @property
    def rows(self) -> int:
        return self.data.rows

    @property
    def cols(self) -> int:
        return self.data.cols

    @property
    def valid_rows(self) -> Extent:
        return self.data.valid_rows

    @property
    def valid_cols(self) -> Extent:
        return self.data.valid_cols

    @property
    def blayout(self) -> str:
        return self.data.blayout

    @property
    def slayout(self) -> str:
        return self.data.slayout

    def body(self) -> str:
        return f"<{self.data.compact_text()}>"

    def long_body(self) -> str:
        """The body in the long form, every field named."""
        return f"<{self.data.long_text()}>"


class TileBufType(_TileLike):
    """`!pto.tile_buf<vec, 16x64xf32>`: a tile buffer."""

    name: ClassVar[str] = "pto.tile_buf"


class TileType(_TileLike):
    """`!pto.tile<16x64xf32>`: a tile as a value (SSA and PTO-AS forms)."""

    name: ClassVar[str] = "pto.tile"

    def body(self) -> str:
        text = self.data.compact_text()
        return f"<{text.removeprefix('vec, ')}>"


AnyTile = TileBufType | TileType
"""A tile in either form; of use in `isinstance`."""


class MultiTileBufType(PtoType[MultiTileBuf]):
    """`!pto.multi_tile_buf<!pto.tile_buf<...>, count=2>`."""

    name: ClassVar[str] = "pto.multi_tile_buf"

    def body(self) -> str:
        return f"<{type_text(self.data.tile)}, count={self.data.count}>"


class PtrType(PtoType[Pointer]):
    """`!pto.ptr<f32>`, `!pto.ptr<f32, gm>`: a pointer to elements."""

    name: ClassVar[str] = "pto.ptr"

    @property
    def dtype(self) -> Attribute:
        """Element type."""
        return self.data.dtype

    @property
    def space(self) -> str | None:
        """Memory space, where written (`gm`, `ub`, ...)."""
        return self.data.space

    def body(self) -> str:
        space = f", {self.data.space}" if self.data.space else ""
        return f"<{type_text(self.data.dtype)}{space}>"


class _ViewLike(PtoType[View]):
    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extents, outermost first; None is dynamic."""
        return self.data.shape

    @property
    def dtype(self) -> Attribute:
        """Element type."""
        return self.data.dtype

    def body(self) -> str:
        prefix = f"{dims(self.data.shape)}x" if self.data.shape else ""
        return f"<{prefix}{type_text(self.data.dtype)}>"


class TensorViewType(_ViewLike):
    """`!pto.tensor_view<?x?xf32>`: a strided view on global memory."""

    name: ClassVar[str] = "pto.tensor_view"


class PartitionTensorViewType(_ViewLike):
    """`!pto.partition_tensor_view<16x64xf32>`: a window of a tensor view."""

    name: ClassVar[str] = "pto.partition_tensor_view"


class VRegType(PtoType[VectorRegister]):
    """`!pto.vreg<64xf32>`: a vector register."""

    name: ClassVar[str] = "pto.vreg"

    @property
    def dtype(self) -> Attribute:
        """Element type."""
        return self.data.dtype

    @property
    def lanes(self) -> int:
        """Elements; pairs for the `x2` types."""
        return self.data.lanes

    def body(self) -> str:
        return f"<{self.data.lanes}x{type_text(self.data.dtype)}>"


class MaskType(PtoType[int]):
    """`!pto.mask<b32>`: a predicate of lanes of 8, 16 or 32 bits, which `data` is."""

    name: ClassVar[str] = "pto.mask"

    def body(self) -> str:
        return f"<b{self.data}>"


class ElementType(PtoType[None]):
    """An element type that MLIR's builtin types lack."""

    def __init__(self, data: None = None) -> None:
        super().__init__(data)

    def body(self) -> str:
        return ""


class HiF8Type(ElementType):
    """`!pto.hif8` (spec F1)."""

    name: ClassVar[str] = "pto.hif8"


class F8E8M0Type(ElementType):
    """`!pto.f8E8M0`: a power of two."""

    name: ClassVar[str] = "pto.f8E8M0"


class F4E2M1x2Type(ElementType):
    """`!pto.f4E2M1x2`: two f4e2m1 in a byte (spec F2)."""

    name: ClassVar[str] = "pto.f4E2M1x2"


class F4E1M2x2Type(ElementType):
    """`!pto.f4E1M2x2`: two f4e1m2 in a byte (spec F2)."""

    name: ClassVar[str] = "pto.f4E1M2x2"


class BF16x2Type(ElementType):
    """`!pto.bf16x2`: two bf16 in 32 bits."""

    name: ClassVar[str] = "pto.bf16x2"


class HiF8x2Type(ElementType):
    """`!pto.hif8x2`: two hif8 in 16 bits."""

    name: ClassVar[str] = "pto.hif8x2"


class OpaqueType(PtoType[str]):
    """A pto type that this project does not interpret, kept as written.

    Each name has its own subclass, made by `opaque_type_class`; `data` is the text between the
    angle brackets with white space folded, empty where there are none.
    """

    def body(self) -> str:
        return f"<{self.data}>" if self.data else ""


@cache
def opaque_type_class(name: str) -> type[OpaqueType]:
    """The class of the opaque type `!pto.x` (`name` is `pto.x`)."""
    return type("OpaqueType", (OpaqueType,), {"name": name})


ELEMENT_TYPES: tuple[type[ElementType], ...] = (
    HiF8Type,
    F8E8M0Type,
    F4E2M1x2Type,
    F4E1M2x2Type,
    BF16x2Type,
    HiF8x2Type,
)

ALL_TYPES: tuple[type[PtoType[Any]], ...] = (
    TileBufType,
    TileType,
    MultiTileBufType,
    PtrType,
    TensorViewType,
    PartitionTensorViewType,
    VRegType,
    MaskType,
    *ELEMENT_TYPES,
    *(opaque_type_class(f"pto.{name}") for name in type_syntax.OPAQUE_TYPES),
)

type_syntax.register(ALL_TYPES, ELEMENT_TYPES, opaque_type_class)


# ---- Element types


@cache
def element_format(dtype: Attribute) -> Format | None:
    """The format of an element type (spec F), None for one that is no format.

    A signless integer is signed, as PTO reads it.
    """
    return BY_MLIR.get(type_text(dtype))


def elements_per_column(dtype: Attribute) -> int:
    """Logical elements that one column of a tile of `dtype` holds: 2 for packed pairs (spec F2)."""
    fmt = element_format(dtype)
    packed = fmt is not None and fmt.per_byte == 2
    return 2 if packed and isinstance(dtype, ElementType) else 1


@cache
def vreg_type(dtype: Attribute) -> VRegType:
    """`!pto.vreg<64xf32>`: the type of a whole register of elements of a format."""
    fmt = element_format(dtype)
    assert fmt is not None
    per_lane = elements_per_column(dtype)
    return VRegType(VectorRegister(REGISTER_BYTES * 8 // (fmt.memory_bits * per_lane), dtype))
