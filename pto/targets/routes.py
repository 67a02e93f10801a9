"""Chains of legal conversions that take the place of an illegal one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pto.targets.grids import Grid, grid, is_integer
from pto.targets.tables import tcvt_table

_MAX_STEPS = 3


@dataclass(frozen=True, slots=True)
class Route:
    """A chain of conversions, `formats` from the source to the destination."""

    formats: tuple[str, ...]
    exact: bool
    """Gives the bits of a direct conversion, in every mode of the last step (see `_is_exact`)."""


def find_route(arch: str, src: str, dst: str) -> Route | None:
    """The shortest legal chain of at most three steps from `src` to `dst` on `arch`, an exact one
    if there is any; None if there is no chain. A chain of one step is the pair itself."""
    chains = sorted(_chains(arch, src, dst), key=len)
    if not chains:
        return None
    exact = next((chain for chain in chains if _is_exact(chain)), None)
    return Route(exact or chains[0], exact is not None)


def _chains(arch: str, src: str, dst: str) -> list[tuple[str, ...]]:
    table = tcvt_table(arch)
    if table is None:
        return []
    found: list[tuple[str, ...]] = []
    open_: list[tuple[str, ...]] = [(src,)] if src != dst else []
    for _ in range(_MAX_STEPS):
        longer = [(*c, row.dst) for c in open_ for row in table.rows if row.src == c[-1]]
        found += [c for c in longer if c[-1] == dst]
        open_ = [c for c in longer if len(set(c)) == len(c) and c[-1] != dst]
    return found


def _is_exact(chain: tuple[str, ...]) -> bool:
    """Only the last step rounds or clips, for every value that the destination can hold.

    Each step before it must keep such values as they are. Larger ones stay too large for a float
    destination, since rounding is monotonic and the bound itself is kept; an integer destination
    may take low bits of them, so there all values of the source must be kept. A float source keeps
    its infinities and NaN, because a format that holds it widens it, which never saturates.
    """
    grids = [g for name in chain if (g := grid(name)) is not None]
    if len(grids) < len(chain):
        return False
    first, *middle, last = grids
    if not is_integer(chain[-1]):
        twice = replace(last, low=2 * last.low, high=2 * last.high)
        return all(step.holds(first.within(twice)) for step in middle)
    # A step that narrows takes low bits of a negative where a widening one clips it (spec S12).
    clips_along = first.low < 0 and _clips(grids[-2], last)
    return clips_along == _clips(first, last) and all(step.holds(first) for step in middle)


def _clips(source: Grid, destination: Grid) -> bool:
    """A signed integer to a wider unsigned one: negatives become 0 always."""
    return source.low < 0 == destination.low and destination.bits > source.bits + 1
