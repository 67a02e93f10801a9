"""What tests of several rooms share."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.universe import Universe

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").rglob("*.pto"))


@pytest.fixture
def xdsl_context() -> Context:
    """A context with the dialects that every xDSL tool finds, this package's among them."""
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context
