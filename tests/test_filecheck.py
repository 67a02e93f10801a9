"""Runs the command-line tests under `tests/filecheck`: `// RUN:` lines, checked by filecheck."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent / "filecheck"
FOLDERS = sorted({path.parent.relative_to(ROOT) for path in ROOT.rglob("*.pto")})


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_filecheck(folder: Path, tmp_path: Path) -> None:
    code = "from lit.main import main; main()"
    command = [sys.executable, "-c", code, "-v", "-j2", f"-Dexec_root={tmp_path}", ROOT / folder]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
