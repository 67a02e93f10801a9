"""Runs a tile conversion twice, lowered on the machine and directly, and compares every byte.

The direct side is `convert_bits` on the whole tile; it knows nothing of repeats, registers or tmp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import pto
from pto.dialect.attributes import RoundModeAttr, SaturationModeAttr
from pto.dialect.ops import TCvtOp
from pto.numerics import FORMATS, convert_bits, pack4, unpack4
from pto.passes.lower_tcvt import LowerTcvtPass
from pto.runtime.machine import MachineKernel
from pto.runtime.machine.report import Report
from pto.targets import Pair, product_of, table_of
from pto.tiles.tmp import tmp_bytes

Array = NDArray[Any]

PADDING = 512
"""Bytes behind the tiles that must stay as they are."""
PACKED_FLOATS = ("f4e2m1", "f4e1m2")


@dataclass(frozen=True)
class Shape:
    """Valid rows and elements of a row, and what either tile's row has beyond them."""

    rows: int
    cols: int
    src_extra: int = 0
    """Elements added to the source's row, before it is rounded up to whole blocks."""
    dst_extra: int = 0
    dynamic: bool = False


@dataclass(frozen=True)
class Form:
    """A shape in terms of what a pair converts at a time, so that it is the same walk for each."""

    rows: int
    repeats: int
    """Whole repeats (a2a3) or registers (a5) in a row: the head."""
    tail: int = 0
    """Elements of a row beyond them."""
    src_extra: int = 0
    dst_extra: int = 0
    dynamic: bool = False

    def shape(self, src: str, dst: str) -> Shape:
        """The shape for a pair."""
        widest = max(FORMATS[src].bits, FORMATS[dst].bits)
        lanes = 2048 // max(16 if 4 in (FORMATS[src].bits, FORMATS[dst].bits) else 8, widest)
        cols = self.repeats * lanes + min(self.tail, lanes - 1)
        return Shape(self.rows, cols, self.src_extra, self.dst_extra, self.dynamic)


@dataclass(frozen=True)
class Case:
    """One conversion of one shape."""

    arch: str
    src: str
    dst: str
    mode: str | None
    saturation: str | None
    tmp: bool
    shape: Shape


def row_elements(name: str, cols: int) -> int:
    """Elements of a row that fills whole blocks of 32 bytes."""
    per_block = 256 // FORMATS[name].bits
    return -(-max(cols, 1) // per_block) * per_block


def strides(case: Case) -> tuple[int, int]:
    """Row strides in elements, of source and destination."""
    shape = case.shape
    return (
        row_elements(case.src, shape.cols + shape.src_extra),
        row_elements(case.dst, shape.cols + shape.dst_extra),
    )


def _tile(name: str, shape: Shape, stride: int) -> str:
    pairs = 2 if name in PACKED_FLOATS else 1
    valid = "?x?" if shape.dynamic else f"{shape.rows}x{shape.cols // pairs}"
    return (
        f"!pto.tile_buf<vec, {shape.rows}x{stride // pairs}x{FORMATS[name].mlir[0]}, valid={valid}>"
    )


def places(case: Case) -> tuple[int, int, int, int]:
    """Byte addresses of source, destination and tmp, and the bytes of tmp."""
    src_stride, dst_stride = strides(case)
    rows = case.shape.rows
    src_bytes = rows * src_stride * FORMATS[case.src].bits // 8
    dst_bytes = rows * dst_stride * FORMATS[case.dst].bits // 8
    tmp = 0
    if case.tmp:
        tmp = tmp_bytes(case.src, case.dst, rows, case.shape.cols, row_stride=src_stride)
    return 32, 32 + src_bytes, 32 + src_bytes + dst_bytes, tmp


@lru_cache(maxsize=256)
def module_of(case: Case, tmp_size: int | None = None) -> ModuleOp:
    """A function that converts the tile; `tmp_size` replaces the size of tmp."""
    src_stride, dst_stride = strides(case)
    src_at, dst_at, tmp_at, needed = places(case)
    size = needed if tmp_size is None else tmp_size
    src, dst = (
        _tile(case.src, case.shape, src_stride),
        _tile(case.dst, case.shape, dst_stride),
    )
    tmp = f"!pto.tile_buf<vec, 1x{size}xi8>"
    pairs = [2 if name in PACKED_FLOATS else 1 for name in (case.src, case.dst)]
    extents = [
        f"valid_row = %rows valid_col = %cols{n} " if case.shape.dynamic else "" for n in pairs
    ]
    has_tmp = case.tmp and size > 0
    text = f"""
    func.func @f() attributes {{pto.target_arch = "{case.arch}"}} {{
      %rows = arith.constant {case.shape.rows} : index
      %cols1 = arith.constant {case.shape.cols} : index
      %cols2 = arith.constant {case.shape.cols // 2} : index
      %src_at = arith.constant {src_at} : i64
      %dst_at = arith.constant {dst_at} : i64
      %tmp_at = arith.constant {tmp_at} : i64
      %src = pto.alloc_tile addr = %src_at {extents[0]}: {src}
      %dst = pto.alloc_tile addr = %dst_at {extents[1]}: {dst}
      {f"%tmp = pto.alloc_tile addr = %tmp_at : {tmp}" if has_tmp else ""}
      pto.tcvt ins(%src{", %tmp" if has_tmp else ""} : {src}{f", {tmp}" if has_tmp else ""}) outs(%dst : {dst})
      return
    }}"""
    return pto.parse(text)


def lowered(case: Case, tmp_size: int | None = None) -> ModuleOp:
    """The lowered function."""
    module = module_of(replace(case, mode=None, saturation=None), tmp_size).clone()
    (tcvt,) = [op for op in module.walk() if isinstance(op, TCvtOp)]
    if case.mode is not None:
        tcvt.properties["rmode"] = RoundModeAttr(case.mode)
    if case.saturation is not None:
        tcvt.properties["satmode"] = SaturationModeAttr(case.saturation)
    LowerTcvtPass(arch=case.arch).apply(Context(), module)
    return module


def run_lowered_case(case: Case, memory: Array, module: ModuleOp | None = None) -> Report:
    """Executes the lowered function on the bytes of `memory`, in place."""
    kernel = MachineKernel(module or lowered(case), "f")
    core = kernel.core()
    buffer = core.unified_buffer
    buffer.data[: memory.size] = memory
    buffer.written[: memory.size] = True
    kernel.launch_on(core)
    memory[:] = buffer.data[: memory.size]
    return kernel.report


def pair_of(case: Case) -> Pair:
    """The row of the target's table."""
    table = table_of("TCVT", product_of(case.arch))
    assert table is not None
    pair = table.pair(FORMATS[case.src], FORMATS[case.dst])
    assert pair is not None
    return pair


def _rows(memory: Array, at: int, name: str, rows: int, stride: int) -> Array:
    row_bytes = stride * FORMATS[name].bits // 8
    return memory[at : at + rows * row_bytes].reshape(rows, row_bytes)


def convert_directly(case: Case, memory: Array) -> None:
    """Writes what the conversion gives into the destination's valid region."""
    src_stride, dst_stride = strides(case)
    src_at, dst_at, _, _ = places(case)
    rows, cols = case.shape.rows, case.shape.cols
    pair = pair_of(case)
    saturation = case.saturation or pair.default_saturation
    through_i32 = saturation == "OFF" and pair.through_i32 and (case.arch == "a5" or case.tmp)
    source = _rows(memory, src_at, case.src, rows, src_stride)
    fmt, out = FORMATS[case.src], FORMATS[case.dst]
    codes = unpack4(source) if fmt.bits == 4 else source.view(fmt.code_dtype)
    result = convert_bits(
        np.ascontiguousarray(codes[:, :cols]),
        case.src,
        case.dst,
        case.mode if pair.rounds else None,
        saturation,
        pytorch_path=through_i32,
    )
    target = _rows(memory, dst_at, case.dst, rows, dst_stride)
    if out.bits == 4:
        target[:, : cols // 2] = pack4(result)
    else:
        target.view(out.code_dtype)[:, :cols] = result


def sample(case: Case, rng: np.random.Generator) -> Array:
    """Bytes of the unified buffer up to the end of tmp: every bit pattern, and the values at which
    conversions turn."""
    src_at, dst_at, tmp_at, tmp = places(case)
    memory = rng.integers(0, 256, tmp_at + tmp + PADDING, np.uint8)
    source = memory[src_at:dst_at]
    if case.src == "f32":
        values = source.view(np.float32)
        values[::3] = rng.integers(-70_000, 70_000, values[::3].size) / np.float32(4)
        values[1::7] = rng.choice(_TURNING, values[1::7].size)
    elif case.src in ("i32", "i64"):
        values = source.view(f"i{FORMATS[case.src].bits // 8}")
        values[::3] = rng.integers(-70_000, 70_000, values[::3].size)
    return memory


_TURNING = np.array(
    [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, 65519.0, 65520.0, -65520.0, 448.0,
     464.0, 57344.0, 61440.0, 32767.5, -32768.5, 32768.0, 2.0**31, -(2.0**31), 2.0**63, 1e-45,
     2.0**-24, 3e38, -3e38, 40960.0, 2.0**-22, 2.0**-23],
    np.float32,
)  # fmt: skip


def differences(
    case: Case, rng: np.random.Generator, *, expected: Case | None = None
) -> str | None:
    """What the lowered program did differently, None if nothing: all bytes are compared, those of
    tmp excepted. `expected` is another conversion to compare with."""
    memory = sample(case, rng)
    wanted = memory.copy()
    convert_directly(expected or case, wanted)
    run_lowered_case(case, memory)
    _, _, tmp_at, tmp = places(case)
    wrong = np.flatnonzero(memory != wanted)
    wrong = wrong[(wrong < tmp_at) | (wrong >= tmp_at + tmp)]
    if not wrong.size:
        return None
    at = wrong[0]
    return f"{case}: {wrong.size} bytes, first {at}: {memory[at]:#x}, not {wanted[at]:#x}"


def modes_of(pair: Pair) -> list[str | None]:
    """Every mode that may be written, and none."""
    if not pair.rounds:
        return [None, "RINT"]
    more = ["NONE"] if "RINT" in pair.modes else []
    return [None, *pair.modes, *more]


def fits(case: Case) -> bool:
    """Whether the tiles fit the unified buffer, and 4-bit rows have whole bytes."""
    if case.shape.cols % 2 and 4 in (FORMATS[case.src].bits, FORMATS[case.dst].bits):
        return False
    _, _, tmp_at, tmp = places(case)
    return tmp_at + tmp + PADDING <= product_of(case.arch).unified_buffer_bytes


def cases(arch: str, forms: list[Form]) -> Iterator[Case]:
    """All pairs of the target, modes, saturations (written ON, OFF, or not), with and without tmp
    where it matters, for every shape that the pair can have."""
    table = table_of("TCVT", product_of(arch))
    assert table is not None
    for form, pair in product(forms, table.rows):
        shape = form.shape(pair.src.name, pair.dst.name)
        tmps = (False, True) if arch == "a2a3" and pair.through_i32 else (False,)
        for mode, saturation, tmp in product(modes_of(pair), (None, "ON", "OFF"), tmps):
            case = Case(arch, pair.src.name, pair.dst.name, mode, saturation, tmp, shape)
            if fits(case):
                yield case
