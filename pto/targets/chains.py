"""Chains of conversions that take the place of one that a product lacks (spec L4).

A chain is exact where it is the direct conversion, bit for bit, under the same mode and saturation.
For a source of up to 16 bits the proof can be to try every input. For any source it can be a
property of the formats:

1. Only the last step rounds, clips or wraps: every format between holds every value of the source
   (i8 to f16 to i16). Infinities and NaN pass steps that have no saturation.
2. Where the destination clips (saturation ON, or a float), a format between may lose values that
   the last step clips anyway: it holds every value of the source up to twice the destination's
   range, and rounding is monotonic, so that what lies beyond stays beyond (i32 to f32 to f16);
   the steps between saturate.
3. The last step follows the rules that the direct conversion has: not the PyTorch-compatible path
   (spec S10), not HYBRID, whose threshold is made of the source's own bits (spec R8), nor the sign
   of a NaN, which no step but the last one keeps (spec S3, S15).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pto.numerics.formats import Format, value_of
from pto.numerics.value_sets import value_set
from pto.targets.products import Product
from pto.targets.resolution import ResolvedConversion, resolve
from pto.targets.tables import table_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MAX_STEPS = 3
_STEP_KINDS = ("round", "exact", "int")
"""Kinds of pairs that may be steps: those whose result depends on the value alone."""
ALL_INPUTS_BITS = 16
"""Width of a source up to which every input is tried."""
_RANDOM_CODES = 1 << 16


@dataclass(frozen=True)
class Chain:
    """Legal conversions of a product, one after the other."""

    direct: ResolvedConversion
    """The conversion that the chain is to equal, under the general rules."""
    steps: tuple[ResolvedConversion, ...]
    is_exact: bool
    """It gives the bits of the direct conversion for every input."""

    @property
    def formats(self) -> tuple[Format, ...]:
        """From the source to the destination."""
        return (self.direct.src, *(step.dst for step in self.steps))

    def convert(self, codes: Array) -> Array:
        """Converts bit patterns step by step."""
        for step in self.steps:
            codes = step.convert(codes)
        return codes

    def __str__(self) -> str:
        return " -> ".join(map(str, self.formats))


@lru_cache(maxsize=1024)
def find_chain(direct: ResolvedConversion, product: Product) -> Chain | None:
    """The shortest exact chain on a product, else the shortest one; None where there is none.

    `direct` is resolved under the general rules (`resolve_generally`).
    """
    shortest: list[Chain] = []
    for formats in _routes(product, direct.src, direct.dst):
        steps = tuple(_steps(formats, direct, product))
        chain = Chain(direct, steps, is_exact=_is_proved(steps, direct))
        if chain.is_exact:
            return chain
        if not shortest or len(formats) == len(shortest[0].formats):
            shortest.append(chain)
    for chain in shortest:
        if _is_equal_for_all_inputs(chain):
            return replace(chain, is_exact=True)
    return shortest[0] if shortest else None


def _routes(product: Product, src: Format, dst: Format) -> Iterator[tuple[Format, ...]]:
    """The formats of legal chains of two or three steps, the shortest first."""
    table = table_of("TCVT", product)
    rows = () if table is None else table.rows
    pairs = [(row.src, row.dst) for row in rows if row.kind in _STEP_KINDS and row.src != row.dst]
    open_: list[tuple[Format, ...]] = [(src,)]
    for _ in range(MAX_STEPS):
        longer = [(*c, to) for c in open_ for from_, to in pairs if from_ is c[-1] not in c[:-1]]
        yield from (c for c in longer if c[-1] is dst and len(c) > 2)
        open_ = [c for c in longer if c[-1] is not dst]


def _steps(
    formats: tuple[Format, ...], direct: ResolvedConversion, product: Product
) -> Iterator[ResolvedConversion]:
    """Steps before the last one saturate where they can; mode and saturation are the last one's."""
    for src, dst in pairwise(formats[:-1]):
        yield resolve(src, dst, product, saturation="ON")
    mode, saturation = direct.mode, direct.saturation or "ON"
    yield resolve(*formats[-2:], product, mode=mode, saturation=saturation)


def _is_proved(steps: tuple[ResolvedConversion, ...], direct: ResolvedConversion) -> bool:
    """Whether the formats prove that a chain is the direct conversion (see above)."""
    *before, last = steps
    if not _same_rules(last, direct):
        return False
    if (direct.src.has_inf or direct.src.has_nan) and any(step.saturation for step in before):
        return False  # infinities and NaN do not reach the last step
    reach, target = value_set(direct.src), value_set(direct.dst)
    if reach is None or target is None:
        return False
    clips = direct.saturation != "OFF" if direct.dst.is_integer else direct.src.is_integer
    if clips:
        low, high = max(reach.low, 2 * target.low), min(reach.high, 2 * target.high)
        reach = replace(reach, low=low, high=high)
    held = [value_set(step.dst) for step in before]
    return all(middle is not None and middle.holds(reach) for middle in held)


def _same_rules(last: ResolvedConversion, direct: ResolvedConversion) -> bool:
    """Whether the last step treats every value as the direct conversion does."""
    if direct.mode == "HYBRID" or last.illegal or last.through_i32:
        return False
    is_e4m3 = direct.dst.has_nan and not direct.dst.has_inf and direct.dst.is_signed
    keeps_sign_of_nan = is_e4m3 and direct.saturation == "OFF"
    return not (keeps_sign_of_nan and direct.src.has_nan)


# ---- Where a chain differs


def _is_equal_for_all_inputs(chain: Chain) -> bool:
    is_small = chain.direct.src.bits <= ALL_INPUTS_BITS
    return is_small and chain.steps[-1].illegal is None and difference(chain) is None


def difference(chain: Chain) -> str | None:
    """`300 gives 44, not 255`: an input for which the chain is not the direct conversion.

    None where none was found, or where the last step lacks the mode.
    """
    import numpy as np

    if chain.steps[-1].illegal:
        return None
    src, dst = chain.direct.src, chain.direct.dst
    codes = _inputs(src)
    direct, stepwise = chain.direct.convert(codes), chain.convert(codes)
    wrong = np.flatnonzero(direct != stepwise)
    if not wrong.size:
        return None
    at = min(wrong, key=lambda n: _size(int(codes[n]), src))
    return (
        f"{value_of(int(codes[at]), src):.9g} gives {value_of(int(stepwise[at]), dst):g}, "
        f"not {value_of(int(direct[at]), dst):g}"
    )


def _inputs(fmt: Format) -> Array:
    """Codes to try: all of a format of up to 16 bits, else those around every power of two, small
    integers with fractions, and random ones; always the same ones."""
    import numpy as np

    if fmt.bits <= ALL_INPUTS_BITS:
        return np.arange(1 << fmt.bits, dtype=fmt.code_dtype)
    rng = np.random.default_rng(0)
    random = rng.integers(0, 1 << 63, _RANDOM_CODES, np.uint64) << np.uint64(1)
    codes = (random >> np.uint64(64 - fmt.bits)).astype(fmt.code_dtype)
    if fmt.is_integer:
        near = [s * (1 << k) + d for k in range(fmt.bits - 1) for s in (1, -1) for d in (-1, 0, 1)]
        plain = np.array([n & (1 << fmt.bits) - 1 for n in near], np.uint64)
        return np.concatenate([plain.astype(fmt.code_dtype), codes])
    small = np.arange(-4096, 4096) / 8
    values = np.concatenate([small, np.nextafter(small, np.inf, dtype=np.float32)])
    return np.concatenate([values.astype(fmt.carrier).view(fmt.code_dtype), codes])


def _size(code: int, fmt: Format) -> float:
    """Small numbers make better examples, NaN the worst."""
    value = abs(value_of(code, fmt))
    return value if value == value else float("inf")
