"""`pto-opt FILE -p PASSES`: xDSL's optimiser driver with this package's frontend and errors."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from io import StringIO
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import (
    DiagnosticException,
    PassFailedException,
    VerifyException,
)
from xdsl.utils.exceptions import (
    ParseError as XdslParseError,
)
from xdsl.xdsl_opt_main import xDSLOptMain

from pto.frontend import ParseError, print_module


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

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        if self.args.input_file in (None, "-"):
            return sys.stdin.buffer, "pto"
        stream, extension = super().get_input_stream()
        return stream, extension if extension in self.available_frontends else "pto"

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
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=os.path.basename(path))
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
        PtoOptMain(arguments).run()
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
