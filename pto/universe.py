"""What this package adds to xDSL's tools: dialect, passes and frontend, loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.universe import Universe

if TYPE_CHECKING:
    from xdsl.ir import Dialect
    from xdsl.utils.frontend import Frontend


def _dialect() -> Dialect:
    from pto.dialect.dialect import PTO

    return PTO


def _frontend() -> type[Frontend]:
    from pto.frontend.xdsl_frontend import PtoFrontend

    return PtoFrontend


def _universe() -> Universe:
    from pto.passes import ALL_PASSES

    return Universe(
        all_dialects={"pto": _dialect},
        all_passes=dict(ALL_PASSES),
        all_frontends={"pto": _frontend},
    )


PTO_UNIVERSE = _universe()
