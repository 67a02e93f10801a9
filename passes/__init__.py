"""xDSL passes over the pto dialect, one file each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def _load(module: str, name: str) -> type[ModulePass]:
    found: type[ModulePass] = getattr(import_module(f"pto.passes.{module}"), name)
    return found


_PASSES = {
    "pto-fold-tcvt": ("fold_tcvt", "FoldTcvtPass"),
    "pto-legalize-tcvt": ("legalize_tcvt", "LegalizeTcvtPass"),
    "pto-lower-tcvt": ("lower_tcvt", "LowerTcvtPass"),
    "pto-materialize-tmp": ("materialize_tmp", "MaterializeTmpPass"),
    "pto-tile-to-buf": ("tile_to_buf", "TileToBufPass"),
    "verify-tcvt": ("verify_tcvt", "VerifyTcvtPass"),
}

ALL_PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    name: partial(_load, *home) for name, home in _PASSES.items()
}
"""Every pass by its command-line name, loaded on first use."""
