"""`pto-opt run`: executes a function of a `.pto` file on arrays."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pto.cli import terminal
from pto.cli.files import InputError, read_text
from pto.cli.terminal import StatusLine, UsageError, complain, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from pto.cli.compare import Comparison
    from pto.runtime.arguments import Argument
    from pto.runtime.elements import Element
    from pto.runtime.launch import Kernel
    from pto.runtime.machine.launch import MachineKernel
    from pto.runtime.trace import Trace
    from pto.runtime.vector_core import GridPosition

    Array = NDArray[Any]

_RESULT = "result"
"""The name of a function's result in --out and --check."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `pto-opt run`."""
    parser.description = "Execute a function on one vector core after the other."
    parser.epilog = (
        "A file of a format that numpy lacks (bf16, fp8, hif8, ...) holds bit patterns. An array"
        " argument that is not given is made by the function, as large as its views say."
        " Exit status: 0 done, 1 an error in the program or a failed check, 2 wrong use."
    )
    parser.add_argument("file", metavar="FILE", help="a .pto file, or - for standard input")
    parser.add_argument("--func", metavar="F", help="needed where the file has several functions")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="[NAME=]VALUE",
        help="FILE.npy, FILE.bin, zeros:16x64 or a number; without NAME, the next argument",
    )
    parser.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="write an argument's array afterwards (.npy or .bin); NAME is 'result' for a result",
    )
    parser.add_argument(
        "--check",
        action="append",
        default=[],
        metavar="[NAME=]FILE.npy",
        help="compare with the expected array; NAME may be left out if one array is written",
    )
    parser.add_argument(
        "--tolerance", type=int, default=0, metavar="ULPS", help="that --check allows (default 0)"
    )
    terminal.add_target(parser)
    terminal.add_default_saturation(parser)
    parser.add_argument("--block-idx", type=int, metavar="I", help="run one block (default: all)")
    parser.add_argument("--block-num", type=int, default=1, metavar="N", help="blocks (default 1)")
    parser.add_argument("--subblock-idx", type=int, metavar="I", help="(default: all)")
    parser.add_argument("--subblock-num", type=int, default=1, metavar="N", help="(default 1)")
    parser.add_argument(
        "--trace", action="store_true", help="print what each tile operation produces"
    )
    parser.add_argument(
        "--machine",
        action="store_true",
        help="lower the conversions to the target's own steps first, and report those",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit status."""
    from xdsl.utils.exceptions import PassFailedException

    import pto
    from pto.runtime.errors import ExecutionError, RuntimeFault

    try:
        return _run(args)
    except pto.ParseError as error:
        print(error, file=sys.stderr)
        return 1
    except PassFailedException as error:
        complain("run", f"error: {error}")
        return 1
    except ExecutionError as error:
        print(error, file=sys.stderr)
        return 2 if error.is_argument else 1
    except MemoryError:
        complain("run", "the arrays do not fit into memory")
        return 2
    except (InputError, UsageError, RuntimeFault) as error:
        complain("run", error, getattr(error, "notes", ()))
        return 2


def _run(args: argparse.Namespace) -> int:
    import pto
    from pto.runtime.trace import Trace

    name = "<stdin>" if args.file == "-" else args.file
    module = pto.parse(read_text(args.file), filename=name)
    trace = Trace(print) if args.trace else None
    session = _Session(module, args, trace)
    for remark in session.assumptions:
        complain("run", remark)
    session.launch()
    if report := session.machine_report():
        print(report)
    if trace is not None and (conversions := trace.summary()):
        print("conversions:", *conversions, sep="\n  ")
    session.report()
    return int(session.check_failed())


class _Session:
    """One run from the command line: the kernel, its arguments and what becomes of them."""

    def __init__(self, module: ModuleOp, args: argparse.Namespace, trace: Trace | None) -> None:
        self._options = args
        try:
            self.kernel = _kernel(module, args, trace)
            self.assumptions = _assumptions(module, self.kernel, args)
            if args.machine:
                self.kernel = _lowered(module, args)
        except ValueError as error:
            raise UsageError(str(error)) from None
        self._names = list(self.kernel.arguments)
        self._positions = _positions(args)
        self._out = self._named_outputs()
        self._check = self._named_checks()
        self._given = self._read_arguments()
        self._bound = self._bind()
        self._results: tuple[Any, ...] = ()

    # Arguments ---------------------------------------------------------------------------------

    def _named(self, text: str, option: str) -> tuple[str, str]:
        """NAME=FILE with a known name; a position stands for a name."""
        name, equals, rest = text.partition("=")
        if not equals or not rest:
            raise UsageError(f"{option} {text}: write NAME=FILE")
        return self._known(name, option), rest

    def _known(self, name: str, option: str) -> str:
        name = name.removeprefix("%")
        if name in self._names or name.rstrip("0123456789") == _RESULT:
            return name
        if name.isdecimal() and int(name) < len(self._names):
            return self._names[int(name)]
        raise UsageError(f"{option}: no argument {name!r}; arguments: {', '.join(self._names)}")

    def _read_arguments(self) -> dict[str, Any]:
        from pto.cli.run_values import read_value

        given: dict[str, Any] = {}
        position = 0
        for text in self._options.arg:
            name, equals, value = text.partition("=")
            if not equals or Path(text).exists():
                if position >= len(self._names):
                    raise UsageError(f"--arg {text}: the function takes {len(self._names)}")
                name, value = self._names[position], text
                position += 1
            name = self._known(name, "--arg")
            if name in given:
                raise UsageError(f"--arg {text}: {name} has a value already")
            given[name] = read_value(name, self.kernel.arguments[name], value)
        return given

    def _bind(self) -> dict[str, Argument]:
        from pto.runtime.arguments import bind

        return {
            name: bind(
                name, type_, self._given.get(name, self._from_grid(name, self._positions[0]))
            )
            for name, type_ in self.kernel.arguments.items()
        }

    def _from_grid(self, name: str, position: GridPosition) -> int | None:
        """What the position says, for the scalar arguments that are called so."""
        for field in ("subblock_idx", "subblock_num", "block_idx", "block_num"):
            if name.endswith(field):
                return int(getattr(position, field))
        return None

    # Running -----------------------------------------------------------------------------------

    def launch(self) -> None:
        """Runs every position of the grid that was asked for."""
        from pto.runtime.arguments import bind

        progress = _Progress(len(self._positions))
        for number, position in enumerate(self._positions):
            for name, type_ in self.kernel.arguments.items():
                on_grid = self._from_grid(name, position)
                if name not in self._given and on_grid is not None:
                    self._bound[name] = bind(name, type_, on_grid)
            self._results = self.kernel.launch(
                list(self._bound.values()), position, progress.of_block(number)
            )
        progress.finish()
        self.kernel.finish(self._bound.values())

    # Afterwards --------------------------------------------------------------------------------

    def machine_report(self) -> str:
        """What the machine did, empty where the program did not run on it."""
        report = getattr(self.kernel, "report", None)
        return "" if report is None else str(report.text())

    def report(self) -> None:
        """Writes the outputs and says what was written."""
        from pto.cli.arrays import write_array

        for name, path in self._out.items():
            array, element = self._array(name)
            try:
                write_array(path, array)
            except OSError as error:
                raise InputError(f"{path}: {error.strerror}") from error
            print(f"{name}: {_shape(array)} {element.text} -> {path}")
        for name in self._unsaved():
            array, element = self._array(name)
            print(f"{name}: {_shape(array)} {element.text}, written but not saved (--out {name}=)")
        for number, value in enumerate(self._results):
            if _result_name(number, len(self._results)) not in self._out:
                print(f"{_result_name(number, len(self._results))}: {value}")

    def _unsaved(self) -> list[str]:
        """Arguments that were not given, were written, and go nowhere."""
        from pto.runtime.memory import Pointer

        return [
            name
            for name, argument in self._bound.items()
            if name not in self._out
            and name not in self._check
            and isinstance(argument.value, Pointer)
            and not argument.value.buffer.given
            and argument.value.buffer.written.any()
        ]

    def _array(self, name: str) -> tuple[Array, Element]:
        """An argument's array as it is now, or a result, and its element type."""
        import numpy as np

        from pto.cli.run_values import element_behind
        from pto.runtime.memory import Pointer

        if name.rstrip("0123456789") == _RESULT and name not in self._bound:
            return self._result(name)
        element = element_behind(self.kernel.arguments[name])
        if element is None:
            raise UsageError(f"{name} is a scalar; only arrays are written")
        if name in self._given:
            return np.asarray(self._given[name]), element
        value = self._bound[name].value
        if not isinstance(value, Pointer):
            raise UsageError(f"{name} was not given: --arg {name}=zeros:SHAPE makes one")
        items = value.buffer.data.view(element.storage)
        shape = value.buffer.extent
        if shape is None or int(np.prod(shape)) != items.size:
            return items, element
        return items.reshape(shape), element

    def _result(self, name: str) -> tuple[Array, Element]:
        import numpy as np

        from pto.runtime.elements import element_of

        names = [_result_name(n, len(self._results)) for n in range(len(self._results))]
        if name not in names:
            raise UsageError(f"no {name}; results: {', '.join(names) or 'none'}")
        number = names.index(name)
        type_ = self.kernel.op.function_type.outputs.data[number]
        return np.asarray(self._results[number]), element_of(getattr(type_, "dtype", type_))

    def _named_outputs(self) -> dict[str, str]:
        """Where arrays go. What cannot be written is said before the run, not after it."""
        from pto.cli.arrays import check_output_name
        from pto.cli.run_values import element_behind

        out: dict[str, str] = {}
        for text in self._options.out:
            name, path = self._named(text, "--out")
            if name in out:
                raise UsageError(f"--out {text}: {name} goes to {out[name]} already")
            out[name] = path
            check_output_name(path)
            if name in self._names and element_behind(self.kernel.arguments[name]) is None:
                raise UsageError(f"{name} is a scalar; only arrays are written")
        return out

    def _named_checks(self) -> dict[str, str]:
        if self._options.tolerance < 0:
            raise UsageError(f"--tolerance {self._options.tolerance}: at least 0")
        checks = {}
        for text in self._options.check:
            if "=" in text:
                name, path = self._named(text, "--check")
            elif len(self._out) == 1:
                name, path = next(iter(self._out)), text
            else:
                raise UsageError("--check: name the array, NAME=FILE.npy")
            checks[name] = path
        return checks

    def check_failed(self) -> bool:
        """Compares with the expected arrays; whether any differs."""
        from pto.cli.arrays import read_npy
        from pto.cli.compare import compare

        failed = False
        for name, path in self._check.items():
            array, element = self._array(name)
            expected = read_npy(path, element.format)
            if expected.size != array.size or expected.dtype.itemsize != array.dtype.itemsize:
                raise UsageError(
                    f"{path}: {_shape(expected)} of {expected.dtype}, {name} is {_shape(array)}"
                    f" of {array.dtype}"
                )
            result = compare(
                _codes(array, element),
                _codes(expected.reshape(array.shape), element),
                element.format,
                tolerance=self._options.tolerance,
            )
            failed |= result.count > 0
            print(_comparison_text(name, path, result, self._options.tolerance))
        return failed


def _kernel(module: ModuleOp, args: argparse.Namespace, trace: Trace | None) -> Kernel:
    """The function to run. Raises ValueError for an unknown one or an unknown target."""
    from pto.runtime.launch import Kernel

    if args.machine and trace is not None:
        raise UsageError("--trace and --machine exclude each other")
    observe = None if trace is None else trace.observe
    return Kernel(module, args.func, arch=args.arch, default_sat=args.default_sat, observe=observe)


def _lowered(module: ModuleOp, args: argparse.Namespace) -> MachineKernel:
    """The function with its conversions as the target's own steps."""
    from xdsl.context import Context
    from xdsl.dialects.builtin import StringAttr

    from pto.dialect.target import TARGET_KEYS, target_of
    from pto.passes.lower_tcvt import LowerTcvtPass
    from pto.passes.tile_to_buf import TileToBufPass
    from pto.runtime.machine.launch import MachineKernel
    from pto.targets import DEFAULT_TARGET

    if target_of(module) is None:
        module.attributes[TARGET_KEYS[0]] = StringAttr(DEFAULT_TARGET)
    context = Context()
    TileToBufPass().apply(context, module)
    LowerTcvtPass(arch=args.arch, default_sat=args.default_sat).apply(context, module)
    return MachineKernel(module, args.func, arch=args.arch)


def _assumptions(module: ModuleOp, kernel: Kernel, args: argparse.Namespace) -> list[str]:
    """What the run takes for granted because neither the file nor an option says it."""
    from pto.dialect.target import target_of

    found = []
    if args.arch is None and target_of(kernel.op) is None:
        found.append(f"the file names no target; runs as {kernel.product} (--arch)")
    if without := sum(_default_decides(op, kernel) for op in module.walk()):
        default = args.default_sat
        meaning = "the default of each pair" if default == "target" else default.upper()
        found.append(
            f"{plural(without, 'conversion')} without satmode: {meaning} on {kernel.product}"
            " (--default-sat)"
        )
    return found


def _default_decides(op: Operation, kernel: Kernel) -> bool:
    """Whether a conversion leaves out a saturation mode that makes a difference (spec S14)."""
    from pto.dialect.ops import TCvtOp

    if not isinstance(op, TCvtOp) or kernel.product_of(op) is not kernel.product:
        return False
    resolved = op.resolve(kernel.product)
    return resolved is not None and resolved.is_default_saturation


def _codes(array: Array, element: Element) -> Array:
    import numpy as np

    from pto.runtime.elements import unpack

    array = np.ascontiguousarray(array)
    if element.per_byte == 2 and array.dtype.itemsize == element.size:
        return unpack(array, element)
    return array.view(element.bits)


def _comparison_text(name: str, path: str, result: Comparison, tolerance: int) -> str:
    allowed = f" within {tolerance} ulp" if tolerance else ""
    if not result.count:
        far = f", the largest distance {result.largest} ulp" if result.largest else ""
        return f"{name}: all {result.compared:,} elements equal {path}{allowed}{far}"
    lines = [
        f"{name}: {result.count:,} of {result.compared:,} elements differ from {path}{allowed}"
    ]
    for mismatch in result.worst:
        distance = "NaN" if mismatch.ulps is None else f"{mismatch.ulps:,} ulp"
        index = ", ".join(map(str, mismatch.index))
        lines.append(
            f"  [{index}]: {mismatch.actual!r}, expected {mismatch.expected!r} ({distance})"
        )
    if result.count > len(result.worst):
        lines.append(f"  ... and {result.count - len(result.worst):,} more, none farther off")
    return "\n".join(lines)


def _result_name(number: int, count: int) -> str:
    return _RESULT if count == 1 else f"{_RESULT}{number}"


def _shape(array: Array) -> str:
    return "x".join(map(str, array.shape)) or "1"


def _positions(args: argparse.Namespace) -> list[GridPosition]:
    """The cores to run, in turn: one block or all of them, and their sub-blocks."""
    from pto.runtime.vector_core import GridPosition

    def chosen(index: int | None, count: int, option: str) -> Sequence[int]:
        if count < 1:
            raise UsageError(f"--{option}-num {count}: at least 1")
        if index is not None and not 0 <= index < count:
            raise UsageError(f"--{option}-idx {index} of --{option}-num {count}")
        return range(count) if index is None else (index,)

    return [
        GridPosition(block, args.block_num, subblock, args.subblock_num)
        for block in chosen(args.block_idx, args.block_num, "block")
        for subblock in chosen(args.subblock_idx, args.subblock_num, "subblock")
    ]


class _Progress:
    """What a run is at, on the terminal."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self._line = StatusLine(delay=1.0)
        self.finish = self._line.clear

    def of_block(self, number: int) -> Callable[[int, int], None] | None:
        """What an outermost loop of the block calls with its iteration and their count."""
        if not self._line.is_on:
            return None
        block = f"block {number + 1} of {self._blocks}, " if self._blocks > 1 else ""

        def at(iteration: int, iterations: int) -> None:
            self._line.show(lambda: f"{block}iteration {iteration + 1} of {iterations}")

        return at
