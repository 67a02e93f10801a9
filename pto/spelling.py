"""Suggestions for words that are not known."""

from __future__ import annotations

from collections.abc import Iterable


def close_match(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that is nearest in any case, if one is near."""
    from difflib import get_close_matches

    spellings = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), spellings, n=1, cutoff=cutoff)
    return spellings[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """`; did you mean 'x'?` where a known word is near, else nothing."""
    close = close_match(word, known, cutoff)
    return f"; did you mean '{close}'?" if close else ""


def nearest(word: str, known: Iterable[object]) -> str:
    """`; did you mean 'x'?` where a known word is near, else the known words."""
    names = [str(name) for name in known]
    return did_you_mean(word, names) or f"; known are {', '.join(names)}"
