"""What the README and the docs show is what comes out."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def console_blocks() -> list[tuple[str, str, str]]:
    """Page, command and expected output of each `console` block that shows this program."""
    found = []
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                if command.startswith("pto-opt "):
                    found.append((page.name, command, output))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples and the arrays that the pages name."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(ROOT / "examples", folder / "examples")
    x = np.random.default_rng(0).normal(0, 20_000, (40, 64)).astype(np.float32)
    np.save(folder / "x.npy", x)
    # A page makes this one by a command of its own, which may run in another process.
    np.save(folder / "x_bf16.npy", x.astype(ml_dtypes.bfloat16).view(np.uint16))
    return folder


@pytest.mark.parametrize(("page", "command", "expected"), console_blocks())
def test_shown_output_is_real(page: str, command: str, expected: str, folder: Path) -> None:
    words = [sys.executable, "-m", "pto.cli", *shlex.split(command)[1:]]
    done = subprocess.run(
        words, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert "Traceback" not in done.stdout
    pieces = [re.escape(piece) for piece in re.split(r"^\.\.\.\n", expected, flags=re.MULTILINE)]
    pattern = r"(?:.*\n)*?".join(pieces)
    shown = done.stdout.rstrip() + "\n" if done.stdout else ""
    assert re.fullmatch(pattern, shown), done.stdout


def test_python_page() -> None:
    page = str(ROOT / "docs" / "python.md")
    results = doctest.testfile(page, module_relative=False)
    assert results.attempted > 5
    assert results.failed == 0


def test_links_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
