"""Helpers of the verification tests."""

from __future__ import annotations

import argparse
import re
import shlex

from pto.cli import check as checker
from pto.cli import verify as verb
from pto.diagnostics import FileReport


def check(text: str, *options: str, path: str = "x.pto") -> FileReport:
    """Checks a text as `pto-opt verify OPTIONS FILE` does."""
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    return checker.check_text(text, path, checker.settings_of(parser.parse_args([path, *options])))


def options_of(text: str) -> list[str]:
    """The options that a case file asks for: `// OPTIONS: --arch a5`."""
    match = re.search(r"^// OPTIONS: (.*)$", text, re.MULTILINE)
    return shlex.split(match.group(1)) if match else []
