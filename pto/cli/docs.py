"""`python -m pto.cli.docs FOLDER`: writes the generated pages of the docs."""

from __future__ import annotations

import sys
from pathlib import Path

from pto.cli import explain_id, table

PAGES = {"tables.md": table.document, "diagnostics.md": explain_id.document}
"""File name → what makes the page."""


def main(folder: Path) -> None:
    """Writes every generated page to `folder`."""
    for name, document in PAGES.items():
        (folder / name).write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
