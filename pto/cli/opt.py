"""`pto-opt FILE -p PASSES`: xDSL's optimiser driver with this package's frontend and errors."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from io import BytesIO, StringIO
from pathlib import Path
from time import perf_counter
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import (
    ArgSpecParseError,
    DiagnosticException,
    PassFailedException,
    VerifyException,
)
from xdsl.utils.exceptions import (
    ParseError as XdslParseError,
)
from xdsl.xdsl_opt_main import xDSLOptMain

from pto.cli.files import read_input, write_whole
from pto.cli.terminal import complain
from pto.dialect.location import location_of
from pto.frontend import NotText, ParseError, print_module
from pto.passes import ALL_PASSES
from pto.spelling import close_match, did_you_mean
from pto.targets import UnknownTarget


class _Placed(Exception):
    """An error whose message says where it is."""


class PtoOptMain(xDSLOptMain):
    """xDSL's driver: `.pto` is the default input, and printing is this package's."""

    version_format = f"pto-opt {version('pto-opt')} (xdsl {{xdsl_version}})"

    def __init__(self, args: Sequence[str]) -> None:
        super().__init__(description="Parse PTO assembly, run passes, print.", args=args)

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.prog = "pto-opt"
        arg_parser.add_argument(
            "--long-types", action="store_true", help="print tile types with every field named"
        )

    def setup_pipeline(self) -> None:
        """Sets up the passes; between them the module is verified and, on request, shown."""

        started = perf_counter()

        def between(
            previous: ModulePass | None, module: ModuleOp, following: ModulePass | None
        ) -> None:
            nonlocal started
            if previous and self.args.time_passes:
                print(f"{perf_counter() - started:9.4f} s  {previous.name}", file=sys.stderr)
            if not self.args.disable_verify:
                self._verify(module)
            if previous and following and self.args.print_between_passes:
                print(f"// ----- after {previous.name}", file=sys.stderr)
                print(print_module(module), file=sys.stderr)
            started = perf_counter()

        self.pipeline = PassPipeline.parse_spec(self.available_passes, self.args.passes, between)

    def _verify(self, module: ModuleOp) -> None:
        """Verifies the module; an error names the place of its operation."""
        try:
            module.verify()
        except (VerifyException, DiagnosticException) as error:
            if (culprit := _culprit(module)) is None:
                raise
            place = location_of(culprit, in_text=True)
            message = str(error).strip().splitlines()[-1].strip()
            place = place._replace(filename=self.get_input_name())
            raise _Placed(f"{place}: error: {message}") from error

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        if self.args.input_file in (None, "-"):
            return BytesIO(read_input()), "pto"
        stream, extension = super().get_input_stream()
        return stream, extension if extension in self.available_frontends else "pto"

    def get_input_name(self) -> str:
        """How locations name the input."""
        return "<stdin>" if self.args.input_file in (None, "-") else str(self.args.input_file)

    def output_resulting_program(self, prog: ModuleOp) -> str:
        if self.args.target != "mlir" or self.args.print_debuginfo or self.args.syntax_highlight:
            return super().output_resulting_program(prog)
        return print_module(
            prog, generic=self.args.print_op_generic, long_types=self.args.long_types
        )

    def prepare_output(self) -> IO[str]:
        if self.args.output_file is None:
            return sys.stdout
        self._output = _Output()
        return self._output

    def run(self) -> None:  # xDSL's own is untyped
        """Runs the driver; an output file is written when everything has succeeded."""
        super().run()  # type: ignore[no-untyped-call]
        if self.args.output_file is not None:
            write_whole(Path(self.args.output_file), self._output.getvalue().encode("utf-8"))


class _Output(StringIO):
    """Collects an output file's text; the driver closes its streams, whatever happened."""

    def close(self) -> None:
        pass


def _culprit(module: ModuleOp) -> Operation | None:
    """The innermost operation that does not verify."""
    found = None
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except (VerifyException, DiagnosticException):
            found = op
    return found


def run(arguments: Sequence[str]) -> int:
    """Runs the driver and returns the exit status."""
    try:
        driver = PtoOptMain(arguments)
    except (ValueError, ArgSpecParseError, PassFailedException) as error:
        complain("", f"{_first_line(error)}{_nearest_pass(error)}")
        return 2
    try:
        driver.run()
    except (NotText, UnknownTarget) as error:
        complain("", error)
        return 2
    except (ParseError, _Placed) as error:
        print(error, file=sys.stderr)
        return 1
    except (XdslParseError, VerifyException, PassFailedException, DiagnosticException) as error:
        complain("", f"error: {str(error).rstrip()}")
        return 1
    except OSError as error:
        if error.filename is None:  # of the output: `main` knows what to say
            raise
        complain("", f"{error.filename}: {error.strerror}{_nearest_verb(error)}")
        return 2
    return 0


def _nearest_verb(error: OSError) -> str:
    """The verb that a missing file's name resembles."""
    from pto.cli import VERBS

    missing = isinstance(error, FileNotFoundError)
    close = close_match(str(error.filename), VERBS) if missing else None
    return f"; did you mean 'pto-opt {close}'?" if close else ""


def _first_line(error: BaseException) -> str:
    """The message on one line, without the excerpt of the pipeline that xDSL shows."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    if lines and lines[0].endswith(":") and len(lines) > 1:
        return f"{lines[0]} {lines[-1].lstrip('^~- ')}"
    return lines[0] if lines else type(error).__name__


def _nearest_pass(error: BaseException) -> str:
    """The known pass that an unrecognised one resembles."""
    unknown = re.findall(r"'([^']+)'", str(error)) if "Unrecognized passes" in str(error) else []
    for name in unknown:
        if hint := did_you_mean(name, ALL_PASSES):
            return hint
    return f"; this package's passes are {', '.join(ALL_PASSES)}" if unknown else ""
