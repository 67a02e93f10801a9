"""Types of the pto dialect.

A type is a frozen record (`xdsl.ir.Data`), so that two spellings of one type are one value.
The text form of every type is defined once, in `grammar/types.lark`; xDSL's own parser is handed
to that grammar by `parse_parameter`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar, TypeVar

from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float4E2M1FNType,
    Float8E4M3FNType,
    Float8E4M3Type,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

DEFAULT_FRACTAL = 512

Extent = int | None
"""A static extent, or None for one that is known only at run time (written `?`)."""

T = TypeVar("T")


def _extent(extent: Extent) -> str:
    return "?" if extent is None else str(extent)


def dims(shape: tuple[Extent, ...]) -> str:
    """The shape as PTO writes it: `16x?x64`."""
    return "x".join(map(_extent, shape))


@lru_cache(maxsize=4096)
def type_text(attr: Attribute) -> str:
    """The canonical text of a type or attribute."""
    return str(attr)


@dataclass(frozen=True)
class Tile:
    """What `!pto.tile_buf` says: a two-dimensional tile in a local memory.

    `rows` and `cols` are in elements; tiles of packed 4-bit floats count pairs (spec F2).
    `valid_rows` and `valid_cols` bound the elements that hold data; None is dynamic.
    """

    loc: str
    dtype: Attribute
    rows: int
    cols: int
    valid_rows: Extent
    valid_cols: Extent
    blayout: str = "row_major"
    slayout: str = "none_box"
    fractal: int = DEFAULT_FRACTAL
    pad: int = 0
    compact: int = 0

    def compact_text(self) -> str:
        """`vec, 16x64xf32, valid=?x?, pad=1`: what differs from the default is named."""
        parts = [self.loc, f"{self.rows}x{self.cols}x{type_text(self.dtype)}"]
        if (self.valid_rows, self.valid_cols) != (self.rows, self.cols):
            parts.append(f"valid={dims((self.valid_rows, self.valid_cols))}")
        if self.blayout != "row_major":
            parts.append(f"blayout={self.blayout}")
        if self.slayout != "none_box":
            parts.append(f"slayout={self.slayout}")
        if self.fractal != DEFAULT_FRACTAL:
            parts.append(f"fractal={self.fractal}")
        if self.pad:
            parts.append(f"pad={self.pad}")
        if self.compact:
            parts.append(f"compact={self.compact}")
        return ", ".join(parts)

    def long_text(self) -> str:
        """`loc=vec, dtype=f32, rows=16, ...`: every field named."""
        text = (
            f"loc={self.loc}, dtype={type_text(self.dtype)}, rows={self.rows}, cols={self.cols}, "
            f"v_row={_extent(self.valid_rows)}, v_col={_extent(self.valid_cols)}, "
            f"blayout={self.blayout}, slayout={self.slayout}, "
            f"fractal={self.fractal}, pad={self.pad}"
        )
        return f"{text}, compact={self.compact}" if self.compact else text


class PtoType(Data[T], TypeAttribute):
    """A pto type whose text is `!` name body, the body as `body()` gives it."""

    def body(self) -> str:
        """The text after the type's name, brackets included."""
        raise NotImplementedError

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> T:
        from pto.frontend.types import parse_rest_of_type

        parsed: T = parse_rest_of_type(cls.name, parser)
        return parsed

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.body())


class _TileLike(PtoType[Tile]):
    """Accessors shared by the types that describe a tile."""

    @property
    def loc(self) -> str:
        """Memory space: vec, mat, left, right, acc, bias or scaling."""
        return self.data.loc

    @property
    def dtype(self) -> Attribute:
        """Element type."""
        return self.data.dtype

    @property
    def rows(self) -> int:
        """Declared rows."""
        return self.data.rows

    @property
    def cols(self) -> int:
        """Declared columns, in elements (in pairs for packed 4-bit floats)."""
        return self.data.cols

    @property
    def valid_rows(self) -> Extent:
        """Valid rows; None is dynamic."""
        return self.data.valid_rows

    @property
    def valid_cols(self) -> Extent:
        """Valid columns; None is dynamic."""
        return self.data.valid_cols

    @property
    def blayout(self) -> str:
        """Block layout: row_major or col_major."""
        return self.data.blayout

    @property
    def slayout(self) -> str:
        """Layout inside a fractal: none_box, row_major or col_major."""
        return self.data.slayout

    @property
    def fractal(self) -> int:
        """Fractal size in bytes."""
        return self.data.fractal

    @property
    def pad(self) -> int:
        """Padding value: 0 none, 1 zero, 2 largest, 3 smallest."""
        return self.data.pad

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


@dataclass(frozen=True)
class MultiTileBuf:
    """`count` tile buffers of one type, one of which is selected at a time."""

    tile: TileBufType
    count: int


class MultiTileBufType(PtoType[MultiTileBuf]):
    """`!pto.multi_tile_buf<!pto.tile_buf<...>, count=2>`."""

    name: ClassVar[str] = "pto.multi_tile_buf"

    def body(self) -> str:
        return f"<{type_text(self.data.tile)}, count={self.data.count}>"


@dataclass(frozen=True)
class Pointer:
    """What `!pto.ptr` says: the element type and, where written, the memory space."""

    dtype: Attribute
    space: str | None = None


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


@dataclass(frozen=True)
class View:
    """Shape (None is dynamic) and element type of a view on global memory."""

    shape: tuple[Extent, ...]
    dtype: Attribute


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


OPAQUE_TYPE_NAMES = (
    "align",
    "async_event",
    "async_session",
    "eventid_array",
    "local_array",
    "mask",
    "pipe",
    "prefetch_async_context",
    "struct",
    "tile_view",
    "vmi.mask",
    "vmi.vreg",
    "vreg",
)
"""Names of the opaque types that the public sources use."""

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
    *ELEMENT_TYPES,
    *(opaque_type_class(f"pto.{name}") for name in OPAQUE_TYPE_NAMES),
)

_FORMAT_OF_CLASS: dict[type[Attribute], str] = {
    Float64Type: "f64",
    Float32Type: "f32",
    Float16Type: "f16",
    BFloat16Type: "bf16",
    Float8E4M3FNType: "f8e4m3fn",
    Float8E4M3Type: "f8e4m3fn",
    Float8E5M2Type: "f8e5m2",
    Float8E8M0FNUType: "f8e8m0",
    F8E8M0Type: "f8e8m0",
    HiF8Type: "hif8",
    Float4E2M1FNType: "f4e2m1",
    F4E2M1x2Type: "f4e2m1",
    F4E1M2x2Type: "f4e1m2",
}
_INTEGER_WIDTHS = (4, 8, 16, 32, 64)


@cache
def element_format(dtype: Attribute) -> str | None:
    """The format's name in spec F (`f32`, `ui8`, `hif8`, ...), or None for another type.

    A signless integer is signed, as PTO reads it.
    """
    if name := _FORMAT_OF_CLASS.get(type(dtype)):
        return name
    if isinstance(dtype, IntegerType) and dtype.width.data in _INTEGER_WIDTHS:
        unsigned = dtype.signedness.data is Signedness.UNSIGNED
        if unsigned and dtype.width.data == 4:
            return None
        return f"{'ui' if unsigned else 'i'}{dtype.width.data}"
    if isinstance(dtype, ComplexType):
        return {Float16Type: "c32", Float32Type: "c64"}.get(type(dtype.element_type))
    return None


def elements_per_column(dtype: Attribute) -> int:
    """Logical elements that one column of a tile of `dtype` holds: 2 for packed pairs (spec F2)."""
    return 2 if isinstance(dtype, F4E2M1x2Type | F4E1M2x2Type) else 1
