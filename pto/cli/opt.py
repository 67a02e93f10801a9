"""`pto-opt FILE -p PASSES`: xDSL's optimiser driver with this package's frontend and errors."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from difflib import get_close_matches
from io import StringIO
from time import perf_counter
from typing import IO

from xdsl.dialects.builtin import ModuleOp
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

from pto.frontend import ParseError, print_module
from pto.passes import ALL_PASSES


class PtoOptMain(xDSLOptMain):
    """xDSL's driver: `.pto` is the default input, and printing is this package's."""

    version_format = "pto-opt (xdsl {xdsl_version})"

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
                module.verify()
            if previous and following and self.args.print_between_passes:
                print(f"// ----- after {previous.name}", file=sys.stderr)
                print(print_module(module), file=sys.stderr)
            started = perf_counter()

        self.pipeline = PassPipeline.parse_spec(self.available_passes, self.args.passes, between)

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        if self.args.input_file in (None, "-"):
            return sys.stdin.buffer, "pto"
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
            write_whole(self.args.output_file, self._output.getvalue())


class _Output(StringIO):
    """Collects an output file's text; the driver closes its streams, whatever happened."""

    def close(self) -> None:
        pass


def write_whole(path: str, text: str) -> None:
    """Writes a file so that it is there whole or not at all. Raises OSError."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=os.path.basename(path))
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def run(arguments: Sequence[str]) -> int:
    """Runs the driver and returns the exit status."""
    try:
        driver = PtoOptMain(arguments)
    except (ValueError, ArgSpecParseError, PassFailedException) as error:
        print(f"pto-opt: {_first_line(error)}{_nearest_pass(error)}", file=sys.stderr)
        return 2
    try:
        driver.run()
    except ParseError as error:
        print(error, file=sys.stderr)
        return 1
    except (XdslParseError, VerifyException, PassFailedException, DiagnosticException) as error:
        print(f"pto-opt: error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"pto-opt: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _nearest_pass(error: Exception) -> str:
    """The known pass that an unrecognised one resembles."""
    unknown = re.findall(r"'([^']+)'", str(error)) if "Unrecognized passes" in str(error) else []
    for name in unknown:
        if close := get_close_matches(name, ALL_PASSES, n=1):
            return f"; did you mean '{close[0]}'?"
    return f"; this package's passes are {', '.join(ALL_PASSES)}" if unknown else ""
