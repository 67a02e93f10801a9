"""What a conversion means: everything that is left out resolved, once, for everyone who asks.

A conversion is a pair of formats with what the program says of it (mode, saturation, whether there
is a tmp operand), an instruction and a product. `resolve` looks it up in the product's table;
`resolve_generally` goes by the rules of spec R and S alone, as if a product had every pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pto import numerics
from pto.numerics import rules
from pto.numerics.formats import Format
from pto.targets.products import TCVT_TARGETS, Product, product_of
from pto.targets.tables import Pair, pair_of, table_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEFAULT_SATURATIONS = ("target", "on", "off")
"""What an absent saturation mode can be taken to mean: the pair's default, ON or OFF (spec S14)."""


@dataclass(frozen=True, slots=True)
class Illegal:
    """Why a product does not have a conversion."""

    id: str
    """"type-pair" or "round-mode", as in the diagnostics."""
    message: str
    advice: str
    """What it has instead: the destinations of the source, or the modes of the pair."""


@dataclass(frozen=True, slots=True)
class ResolvedConversion:
    """One conversion with all its defaults in place."""

    src: Format
    dst: Format
    instruction: str
    product: Product | None
    """None under the general rules."""
    pair: Pair | None
    """The row of the product's table; None where it has none."""
    illegal: Illegal | None
    """Why the product does not have it, None where it does."""
    mode: str | None
    """The mode that rounds, None where none has an effect (spec R7, R9, R10)."""
    saturation: str | None
    """ON or OFF, None where there is no choice (spec S14)."""
    is_default_saturation: bool
    """There is a choice, and the program leaves it out."""
    through_i32: bool
    """It takes the PyTorch-compatible path (spec S10)."""
    takes_tmp: bool
    """It would take that path if it had a tmp operand, and takes it only so."""

    @property
    def is_exact(self) -> bool:
        """Every value of the source is one of the destination (spec R10)."""
        return rules.is_exact(self.src, self.dst)

    @property
    def is_dequantisation(self) -> bool:
        """It multiplies by the scale that the program has set (spec S13)."""
        return rules.is_dequantisation(self.src, self.dst)

    @property
    def tails_last(self) -> bool:
        """What is left of the rows is read after all whole repeats (spec L2)."""
        return self.product is not None and self.product.tails_last

    @property
    def through_bits(self) -> int:
        """Width of a type that it goes through, 0 for none."""
        return 32 if self.through_i32 else 0

    def convert(
        self,
        codes: NDArray[Any],
        *,
        out: NDArray[Any] | None = None,
        nan_saturation: str = "zero",
        deq_scale: float = 1.0,
        engine: str = "auto",
    ) -> NDArray[Any]:
        """Converts bit patterns; the arguments are those of `numerics.convert_bits`.

        Where there is no choice of saturation nothing overflows, and infinities and NaN are kept.
        """
        return numerics.convert_bits(
            codes,
            self.src,
            self.dst,
            self.mode,
            self.saturation or "OFF",
            pytorch_path=self.through_i32,
            nan_saturation=nan_saturation,
            deq_scale=deq_scale,
            out=out,
            engine=engine,
        )

    def __str__(self) -> str:
        return f"{self.src} to {self.dst}"


@lru_cache(maxsize=4096)
def resolve(
    src: Format,
    dst: Format,
    product: Product,
    *,
    instruction: str = "TCVT",
    mode: str | None = None,
    saturation: str | None = None,
    has_tmp: bool = False,
    default_saturation: str = "target",
) -> ResolvedConversion:
    """What a conversion means on a product.

    `mode` and `saturation` are as the program has them, None where it leaves them out;
    `default_saturation` is one of DEFAULT_SATURATIONS. A saturation where the pair has no choice
    has no effect. An illegal conversion is returned with its reason.
    """
    pair = pair_of(instruction, product, src, dst)
    illegal = _illegality(pair, src, dst, product, instruction, mode)
    chosen = None
    if pair is not None and pair.has_saturation:
        chosen = saturation or _default(pair, default_saturation)
    off = pair is not None and pair.through_i32 and chosen == "OFF"
    return ResolvedConversion(
        src=src,
        dst=dst,
        instruction=instruction,
        product=product,
        pair=pair,
        illegal=illegal,
        mode=None if pair is None else _effective_mode(pair, mode),
        saturation=chosen,
        is_default_saturation=chosen is not None and saturation is None,
        through_i32=off and (product.i32_path == "always" or (product.takes_tmp and has_tmp)),
        takes_tmp=off and product.takes_tmp,
    )


def _default(pair: Pair, default_saturation: str) -> str:
    return pair.default_saturation if default_saturation == "target" else default_saturation.upper()


def _effective_mode(pair: Pair, mode: str | None) -> str | None:
    if not pair.rounds:
        return None
    return pair.natural_mode if mode in (None, "NONE") else mode


def _illegality(
    pair: Pair | None,
    src: Format,
    dst: Format,
    product: Product,
    instruction: str,
    mode: str | None,
) -> Illegal | None:
    if pair is None:
        table = table_of(instruction, product)
        names = "" if table is None else ", ".join(f.name for f in table.destinations(src))
        advice = f"{src} converts to: {names or 'nothing'}"
        return Illegal("type-pair", f"{product} does not convert {src} to {dst}", advice)
    if not pair.accepts(mode):
        message = f"{src} to {dst} does not round by {mode} on {product}"
        return Illegal("round-mode", message, f"the pair's modes: {', '.join(pair.modes)}")
    return None


def resolve_generally(
    src: Format,
    dst: Format,
    *,
    mode: str | None = None,
    saturation: str | None = None,
    through_i32: bool = False,
    default_saturation: str = "on",
) -> ResolvedConversion:
    """What a conversion means where no product restricts it (spec R, S).

    The default saturation "target" is the pair's on a product that has it, else ON. Raises
    ValueError for a pair or a mode that exists nowhere, with the modes that do.
    """
    written = rules.canonical_mode(mode)
    offered = rules.modes(src, dst)
    if written is not None and written not in offered:
        raise ValueError(f"{src} to {dst} has no mode {written}; it has {' '.join(offered)}")
    natural = rules.natural_mode(src, dst) if written in (None, "NONE") else written
    chosen = None
    if rules.has_saturation(src, dst):
        chosen = rules.canonical_saturation(saturation)
        chosen = chosen or _general_default(src, dst, default_saturation)
    return ResolvedConversion(
        src=src,
        dst=dst,
        instruction="",
        product=None,
        pair=None,
        illegal=None,
        mode=None if rules.ignores_mode(src, dst) else natural,
        saturation=chosen,
        is_default_saturation=chosen is not None and saturation is None,
        through_i32=through_i32 and chosen == "OFF",
        takes_tmp=False,
    )


def _general_default(src: Format, dst: Format, default_saturation: str) -> str:
    if default_saturation != "target":
        return default_saturation.upper()
    pairs = (pair_of("TCVT", product_of(name), src, dst) for name in TCVT_TARGETS)
    return next((pair.default_saturation for pair in pairs if pair is not None), "ON")
