"""Executes a program as machine code: one vectorised loop, split over the cores.

The program is written out as LLVM IR and compiled for this machine by llvmlite, numba's LLVM. Lanes
have exact widths, and no overflow or aliasing rules of a higher language stand in the way, so LLVM
vectorises every conversion. Compiling takes tens of milliseconds, and nothing is written to disk.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from numpy.typing import NDArray

from pto.numerics.kernel_ir import Instruction, Program

Array = NDArray[Any]

#: Arrays below this many elements stay on the calling thread: waking another costs more.
PARALLEL_ELEMENTS = 1 << 18

_LOCK = threading.Lock()
_OPCODES = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor"}
_SHIFTS = {"shl": "shl", "shr": "lshr", "sar": "ashr"}
_INTRINSICS = {"min": "umin", "max": "umax"}

#: Bytes of source that are converted between two rounds of prefetching, and how far ahead of them
#: those read: a program is too long for the processor to run into the next page by itself.
PREFETCH_BLOCK = 1024
PREFETCH_AHEAD = 4096

_LOOP = """\
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i32 @llvm.umin.i32(i32, i32)
declare i32 @llvm.umax.i32(i32, i32)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

define void @convert(ptr noalias readonly %source, ptr noalias writeonly %target, i64 %count) {{
entry:
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %exit, label %block

block:
  %start = phi i64 [ 0, %entry ], [ %stop, %last ]
  %full = add i64 %start, {block}
  %stop = call i64 @llvm.umin.i64(i64 %full, i64 %count)
  %here = getelementptr i{load}, ptr %source, i64 %start
  br label %prefetch

prefetch:
  %line = phi i64 [ {ahead}, %block ], [ %line.next, %prefetch ]
  %there = getelementptr i8, ptr %here, i64 %line
  call void @llvm.prefetch.p0(ptr %there, i32 0, i32 3, i32 1)
  %line.next = add i64 %line, 64
  %fetched = icmp eq i64 %line.next, {fetch_end}
  br i1 %fetched, label %body, label %prefetch

body:
  %i = phi i64 [ %start, %prefetch ], [ %next, %body ]
  %source.at = getelementptr inbounds i{load}, ptr %source, i64 %i
  %code = load i{load}, ptr %source.at
{instructions}
  %target.at = getelementptr inbounds i{store}, ptr %target, i64 %i
  store i{store} %narrow, ptr %target.at
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, %stop
  br i1 %done, label %last, label %body, !llvm.loop !0

last:
  %finished = icmp eq i64 %stop, %count
  br i1 %finished, label %exit, label %block

exit:
  ret void
}}

!0 = distinct !{{!0, !1}}
!1 = !{{!"llvm.loop.interleave.count", i32 {interleave}}}
"""

#: Instructions from which a program is one long chain, and more vectors in flight hide its latency.
LONG_PROGRAM = 64


def is_available() -> bool:
    """Whether llvmlite 0.45 or newer is installed (the extra `jit`)."""
    return _llvm() is not None


@cache
def _llvm() -> Any:
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return None
    if llvm.llvm_version_info < (16,):  # llvmlite before 0.45 reads typed pointers only
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def _threads() -> int:
    """How many threads convert a large array: the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_threads(), thread_name_prefix="pto-convert")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)


class JitProgram:
    """A program compiled for this machine, ready to run on contiguous arrays of codes."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._owner, self._loop = _compile(llvm_ir(program))

    def run(self, source: Array, target: Array) -> None:
        """Converts `source` into `target`: 1-D, contiguous, of equal length, not overlapping.

        Their dtypes are the unsigned integers of the program's load and store widths.
        """
        count = len(source)
        read, write = source.ctypes.data, target.ctypes.data
        threads = _threads()
        if count < PARALLEL_ELEMENTS or threads == 1:
            self._loop(read, write, count)
            return
        # Several chunks a thread: one that is held up does not hold up the others.
        chunk = max(-(-count // (8 * threads)), PARALLEL_ELEMENTS // 4)
        chunk += -chunk % 64  # whole cache lines of any element width
        starts = iter(range(0, count, chunk))

        def work() -> None:
            for i in starts:
                length = min(chunk, count - i)
                self._loop(read + i * source.itemsize, write + i * target.itemsize, length)

        others = [_pool().submit(work) for _ in range(threads - 1)]
        work()
        for other in others:
            if not other.cancel():
                other.result()


def llvm_ir(program: Program) -> str:
    """The program as an LLVM module that exports `convert(source, target, count)`."""
    lines = [_instruction(program, i, item) for i, item in enumerate(program.instructions)]
    lane, store = program.lane_bits, program.store_bits
    result = _name(program, program.result)
    cast = f"trunc i{lane} {result} to i{store}" if store < lane else f"or i{lane} {result}, 0"
    lines.append(f"  %narrow = {cast}")
    body = "\n".join(line for line in lines if line)
    tables = "".join(_table(index, table) for index, table in enumerate(program.tables))
    interleave = 4 if len(program.instructions) > LONG_PROGRAM else 2
    return tables + _LOOP.format(
        load=program.load_bits,
        store=store,
        instructions=body,
        interleave=interleave,
        block=PREFETCH_BLOCK * 8 // program.load_bits,
        ahead=PREFETCH_AHEAD,
        fetch_end=PREFETCH_AHEAD + PREFETCH_BLOCK,
    )


def _name(program: Program, index: int) -> str:
    instruction = program.instructions[index]
    return str(instruction.value) if instruction.op == "const" else f"%v{index}"


def _table(index: int, table: Array) -> str:
    entry = f"i{table.itemsize * 8}"
    entries = ", ".join(f"{entry} {int(value)}" for value in table)
    return f"@table{index} = private constant [{len(table)} x {entry}] [{entries}]\n"


def _instruction(program: Program, index: int, instruction: Instruction) -> str:
    lane = f"i{program.lane_bits}"
    names = [_name(program, i) for i in instruction.operands]
    out = f"  %v{index} ="
    match instruction.op:
        case "const":
            return ""
        case "load" if program.load_bits < program.lane_bits:
            return f"{out} zext i{program.load_bits} %code to {lane}"
        case "load":
            return f"{out} or {lane} %code, 0"
        case "float":
            real = "float" if program.lane_bits == 32 else "double"
            return (
                f"  %f{index} = uitofp {lane} {names[0]} to {real}\n"
                f"{out} bitcast {real} %f{index} to {lane}"
            )
        case "table":
            return _lookup(program, index, instruction, names[0])
        case "min" | "max":
            intrinsic = f"@llvm.{_INTRINSICS[instruction.op]}.{lane}"
            return f"{out} call {lane} {intrinsic}({lane} {names[0]}, {lane} {names[1]})"
        case "less":
            return (
                f"  %c{index} = icmp ult {lane} {names[0]}, {names[1]}\n"
                f"{out} sext i1 %c{index} to {lane}"
            )
        case "shl" | "shr" | "sar":
            return _shift(program, index, instruction, names)
        case op:
            return f"{out} {_OPCODES[op]} {lane} {names[0]}, {names[1]}"


def _lookup(program: Program, index: int, instruction: Instruction, at: str) -> str:
    table = program.tables[instruction.value]
    lane, entry = f"i{program.lane_bits}", f"i{table.itemsize * 8}"
    widen = f"zext {entry} %e{index} to {lane}" if entry != lane else f"or {lane} %e{index}, 0"
    return (
        f"  %p{index} = getelementptr inbounds [{len(table)} x {entry}], "
        f"ptr @table{instruction.value}, i32 0, {lane} {at}\n"
        f"  %e{index} = load {entry}, ptr %p{index}\n"
        f"  %v{index} = {widen}"
    )


def _shift(program: Program, index: int, instruction: Instruction, names: list[str]) -> str:
    """LLVM leaves a shift by the width undefined; here it gives 0."""
    lane, opcode = f"i{program.lane_bits}", _SHIFTS[instruction.op]
    amount = program.instructions[instruction.operands[1]]
    if amount.bound < program.lane_bits:
        return f"  %v{index} = {opcode} {lane} {names[0]}, {names[1]}"
    return (
        f"  %s{index} = {opcode} {lane} {names[0]}, {names[1]}\n"
        f"  %t{index} = icmp ult {lane} {names[1]}, {program.lane_bits}\n"
        f"  %v{index} = select i1 %t{index}, {lane} %s{index}, {lane} 0"
    )


def _compile(ir: str) -> tuple[Any, Callable[[int, int, int], None]]:
    """(the execution engine, which owns the code; the loop)."""
    llvm = _llvm()
    with _LOCK:
        module = llvm.parse_assembly(ir)
        machine = _target_machine()
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        options.loop_interleaving = True
        options.loop_unrolling = True
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        engine = llvm.create_mcjit_compiler(module, _target_machine())
        engine.finalize_object()
        address = engine.get_function_address("convert")
    signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    return engine, signature(address)


def _target_machine() -> Any:
    llvm = _llvm()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )
