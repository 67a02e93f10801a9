"""The rules that tile conversions are verified against (spec V)."""
