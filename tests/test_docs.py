"""The documents' examples are true."""

from __future__ import annotations

import doctest
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_python_page() -> None:
    page = str(DOCS / "python.md")
    results = doctest.testfile(page, module_relative=False)
    assert results.attempted > 5
    assert results.failed == 0
