"""Builds the operations of lowered programs: scalars that fold, loops, pointers, instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from xdsl.builder import Builder
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from pto.dialect.attributes import RoundModeAttr, enum_class
from pto.dialect.buffer_ops import BufferOp
from pto.dialect.ops import SEGMENTS, segments
from pto.dialect.register_ops import (
    PLT,
    PSET,
    AddPtrOp,
    CastPtrOp,
    ClearBitOp,
    GetCtrlOp,
    GetDeqScaleOp,
    SetBitOp,
    SetCtrlOp,
    SetDeqScaleOp,
    TileBufAddrOp,
    TileValidColsOp,
    TileValidRowsOp,
    VcvtOp,
    VecScopeOp,
    VldsOp,
    VstsOp,
    VtrcOp,
)
from pto.dialect.sync_ops import BarrierOp
from pto.dialect.type_records import Pointer, type_text
from pto.dialect.types import AnyTile, MaskType, PtrType, vreg_type

Index = int | SSAValue
"""An extent or offset: a number where it is known, else a value of type index."""

INDEX = IndexType()


def ub_pointer(dtype: Attribute) -> PtrType:
    """`!pto.ptr<T, ub>`."""
    return PtrType(Pointer(dtype, "ub"))


class Emitter:
    """Inserts operations before `anchor`.

    Arithmetic on numbers that are known is done here, so that a static shape leaves no trace of it,
    and equal arithmetic is done once. Constants are those that the function has, or new ones in
    front of the first operation.
    """

    def __init__(self, anchor: Operation) -> None:
        self._location = anchor.location
        self._anchor = anchor
        self._first: Operation | None = None
        self._builder = Builder(InsertPoint.before(anchor))
        self._constants = _constants_before(anchor)
        self._scopes: list[dict[tuple[object, ...], SSAValue]] = [{}]

    def insert(self, op: Operation, hint: str | None = None) -> Operation:
        """Inserts an operation at the current place; `hint` names its first result."""
        op.location = self._location
        self._builder.insert(op)
        if self._first is None:
            self._first = op
        if hint is not None and op.results:
            op.results[0].name_hint = hint
        return op

    # ---- Scalars

    def constant(self, value: int, type_: Attribute = INDEX) -> SSAValue:
        """A constant."""
        key = (value, type_)
        if key not in self._constants:
            assert isinstance(type_, IndexType | IntegerType)
            op = arith.ConstantOp(IntegerAttr(value, type_))
            op.location = self._location
            Builder(InsertPoint.before(self._first or self._anchor)).insert(op)
            suffix = "" if isinstance(type_, IndexType) else f"_{type_text(type_)}"
            op.result.name_hint = f"c{value}{suffix}" if value >= 0 else f"cn{-value}{suffix}"
            self._constants[key] = op.result
        return self._constants[key]

    def value(self, index: Index) -> SSAValue:
        """The index as a value."""
        return self.constant(index) if isinstance(index, int) else index

    def _binary(
        self, cls: type[arith.SignlessIntegerBinaryOperation], a: Index, b: Index, hint: str | None
    ) -> SSAValue:
        left, right = self.value(a), self.value(b)
        return self._once((cls, left, right), lambda: cls(left, right), hint)

    def _once(
        self, key: tuple[object, ...], make: Callable[[], Operation], hint: str | None
    ) -> SSAValue:
        """The result of a pure operation, which is not repeated where it is already at hand."""
        for scope in self._scopes:
            if key in scope:
                return scope[key]
        result = self.insert(make(), hint).results[0]
        self._scopes[-1][key] = result
        return result

    def add(self, a: Index, b: Index, hint: str | None = None) -> Index:
        """a + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self._binary(arith.AddiOp, a, b, hint)

    def sub(self, a: Index, b: Index, hint: str | None = None) -> Index:
        """a - b."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self._binary(arith.SubiOp, a, b, hint)

    def mul(self, a: Index, b: Index, hint: str | None = None) -> Index:
        """a * b."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self._binary(arith.MuliOp, a, b, hint)

    def div(self, a: Index, b: int, hint: str | None = None) -> Index:
        """a / b, rounded down; a is not negative."""
        if isinstance(a, int):
            return a // b
        return a if b == 1 else self._binary(arith.DivUIOp, a, b, hint)

    def rem(self, a: Index, b: int, hint: str | None = None) -> Index:
        """a mod b; a is not negative."""
        return a % b if isinstance(a, int) else self._binary(arith.RemUIOp, a, b, hint)

    def least(self, a: Index, b: Index, hint: str | None = None) -> Index:
        """The smaller one."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self._binary(arith.MinSIOp, a, b, hint)

    def to_i64(self, index: Index) -> SSAValue:
        """The index as an i64."""
        if isinstance(index, int):
            return self.constant(index, i64)
        return self._once((i64, index), lambda: arith.IndexCastOp(index, i64), None)

    def to_i32(self, index: Index) -> SSAValue:
        """The index as an i32."""
        if isinstance(index, int):
            return self.constant(index, i32)
        return self._once((i32, index), lambda: arith.IndexCastOp(index, i32), None)

    # ---- Control flow

    @contextmanager
    def _inside(self, block: Block) -> Iterator[None]:
        outer, self._builder = self._builder, Builder(InsertPoint.at_end(block))
        self._scopes.append({})
        yield
        self._scopes.pop()
        self._builder = outer

    def loop(self, end: Index, step: int, body: Callable[[Index], None], hint: str) -> None:
        """`for hint = 0 to end step step`, without a loop where there is one iteration or none."""
        if isinstance(end, int) and end <= step:
            if end > 0:
                body(0)
            return
        block = Block(arg_types=[INDEX])
        block.args[0].name_hint = hint
        start, stop, by = self.value(0), self.value(end), self.value(step)
        self.insert(scf.ForOp(start, stop, by, [], Region(block)))
        with self._inside(block):
            body(block.args[0])
            self.insert(scf.YieldOp())

    def if_positive(self, index: Index, body: Callable[[], None]) -> None:
        """Runs the body where the index is positive."""
        if isinstance(index, int):
            if index > 0:
                body()
            return
        condition = self.insert(arith.CmpiOp(index, self.value(0), "sgt")).results[0]
        block = Block()
        self.insert(scf.IfOp(condition, [], Region(block)))
        with self._inside(block):
            body()
            self.insert(scf.YieldOp())

    def pieces(
        self, total: Index, size: int, most: int, body: Callable[[Index, Index], None], hint: str
    ) -> None:
        """Calls `body(first, count)` for pieces of at most `size` of `total`, which is at most
        `most`: written out where the total is known, else in a loop where it may need one."""
        if isinstance(total, int):
            for first in range(0, total, size):
                body(first, min(size, total - first))
        elif most <= size:
            body(0, total)
        else:
            self.loop(
                total,
                size,
                lambda first: body(first, self.least(self.sub(total, first), size)),
                hint,
            )

    # ---- Addresses

    def address(self, tile: SSAValue) -> SSAValue:
        """`pto.tile_buf_addr`."""
        type_ = tile.type
        assert isinstance(type_, AnyTile)
        hint = f"{tile.name_hint}_p" if tile.name_hint else None
        return self._value(TileBufAddrOp, [tile], ub_pointer(type_.dtype), hint)

    def valid_extent(self, tile: SSAValue, axis: str) -> SSAValue:
        """`pto.tile_valid_rows` or `pto.tile_valid_cols`, `axis` being rows or cols."""
        op = TileValidRowsOp if axis == "rows" else TileValidColsOp
        return self._value(op, [tile], INDEX, axis)

    def advance(self, pointer: SSAValue, count: Index) -> SSAValue:
        """`pto.addptr`, `count` in elements."""
        if count == 0:
            return pointer
        operands = [pointer, self.value(count)]
        return self._value(AddPtrOp, operands, pointer.type, pointer.name_hint)

    def reinterpret(self, pointer: SSAValue, dtype: Attribute) -> SSAValue:
        """`pto.castptr` to elements of another type."""
        type_ = ub_pointer(dtype)
        if pointer.type == type_:
            return pointer
        return self._value(CastPtrOp, [pointer], type_, pointer.name_hint)

    def _value(
        self,
        op: type[Operation],
        operands: Sequence[SSAValue],
        type_: Attribute,
        hint: str | None,
        properties: Mapping[str, Attribute] = MappingProxyType({}),
    ) -> SSAValue:
        """The result of a new operation that has one."""
        made = op.create(operands=operands, result_types=[type_], properties=properties)
        return self.insert(made, hint).results[0]

    def _effect(self, op: type[Operation], operands: Sequence[SSAValue]) -> None:
        """A new operation without results."""
        self.insert(op.create(operands=operands))

    # ---- Vector instructions

    def barrier(self) -> None:
        """Waits for the vector instructions before it: the next one reads what they wrote."""
        self.insert(BarrierOp.create(properties={"pipe": enum_class("pipe")("PIPE_V")}))

    def vector(
        self,
        op: type[BufferOp],
        dst: SSAValue,
        sources: Sequence[SSAValue],
        *,
        mask: Index,
        repeat: Index,
        strides: Sequence[int],
        mode: str | None = None,
    ) -> None:
        """A repeat-based instruction; `strides` as in its operation."""
        ins = list(sources)
        named: dict[str, Attribute] = {} if mode is None else {"rmode": RoundModeAttr(mode)}
        if isinstance(mask, int) and isinstance(repeat, int):
            named |= {"mask": IntegerAttr(mask, i64), "repeat": IntegerAttr(repeat, i64)}
        else:
            ins += [self.to_i64(mask), self.to_i64(repeat)]
        named["strides"] = DenseArrayBase.from_list(i64, list(strides))
        sizes = {SEGMENTS: segments(len(ins), 1)}
        self.insert(op.create(operands=[*ins, dst], properties=sizes, attributes=named))

    # ---- The state of the machine

    def control(self) -> SSAValue:
        """`pto.get_ctrl`."""
        return self._value(GetCtrlOp, [], i64, "ctrl")

    def with_bit(self, control: SSAValue, bit: int, value: int, hint: str) -> SSAValue:
        """The control word with a bit cleared or set."""
        op = SetBitOp if value else ClearBitOp
        return self._value(op, [control, self.constant(bit, i64)], i64, hint)

    def set_control(self, control: SSAValue) -> None:
        """`pto.set_ctrl`."""
        self._effect(SetCtrlOp, [control])

    def half(self, value: float) -> SSAValue:
        """A constant of f16."""
        return self.insert(arith.ConstantOp(FloatAttr(value, f16)), "scale").results[0]

    def deq_scale(self) -> SSAValue:
        """`pto.get_deqscale`."""
        return self._value(GetDeqScaleOp, [], f16, "scale")

    def set_deq_scale(self, scale: SSAValue) -> None:
        """`pto.set_deqscale`: what an i32 is multiplied with on its way to f16 (spec S13)."""
        self._effect(SetDeqScaleOp, [scale])

    # ---- Registers

    def vecscope(self, body: Callable[[], None]) -> None:
        """`pto.vecscope { .. }`: the part of a program that the vector core's registers run."""
        block = Block()
        self.insert(VecScopeOp.create(regions=[Region(block)]))
        with self._inside(block):
            body()

    def all_lanes(self, bits: int) -> SSAValue:
        """`pto.pset_bN "PAT_ALL"`."""
        pattern = {"pattern": StringAttr("PAT_ALL")}
        return self._value(PSET[bits], [], MaskType(bits), "all", pattern)

    def first_lanes(self, count: Index, bits: int) -> SSAValue:
        """`pto.plt_bN`: the first `count` lanes, or all."""
        made = PLT[bits].create(operands=[self.to_i32(count)], result_types=[MaskType(bits), i32])
        made.results[1].name_hint = "rest"
        return self.insert(made, "mask").results[0]

    def load(self, pointer: SSAValue, offset: Index, dist: str) -> SSAValue:
        """`pto.vlds`."""
        type_ = pointer.type
        assert isinstance(type_, PtrType)
        operands = [pointer, self.value(offset)]
        return self._value(
            VldsOp, operands, vreg_type(type_.dtype), "v", {"dist": StringAttr(dist)}
        )

    def register_cast(
        self, value: SSAValue, mask: SSAValue, dtype: Attribute, attributes: dict[str, str]
    ) -> SSAValue:
        """`pto.vcvt` (astype)."""
        properties = {key: StringAttr(text) for key, text in attributes.items()}
        return self._value(VcvtOp, [value, mask], vreg_type(dtype), "r", properties)

    def round_register(self, value: SSAValue, mask: SSAValue, letter: str) -> SSAValue:
        """`pto.vtrc`: rounds to integral values, of the same type."""
        mode = {"round_mode": StringAttr(letter)}
        return self._value(VtrcOp, [value, mask], value.type, "r", mode)

    def store(
        self, value: SSAValue, pointer: SSAValue, offset: Index, mask: SSAValue, dist: str
    ) -> None:
        """`pto.vsts`."""
        operands = [value, pointer, self.value(offset), mask]
        self.insert(VstsOp.create(operands=operands, properties={"dist": StringAttr(dist)}))


def _constants_before(anchor: Operation) -> dict[tuple[int, Attribute], SSAValue]:
    """The integer constants of the function's first block in front of `anchor`, or around it."""
    found: dict[tuple[int, Attribute], SSAValue] = {}
    outermost = anchor
    while (parent := outermost.parent_op()) is not None and not isinstance(parent, func.FuncOp):
        outermost = parent
    block = outermost.parent_block()
    if parent is None or block is None or block is not block.parent_region().blocks[0]:  # type: ignore[union-attr]
        return found
    for op in block.ops:
        if op is outermost:
            break
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            found.setdefault((op.value.value.data, op.result.type), op.result)
    return found
