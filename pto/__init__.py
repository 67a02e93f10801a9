"""PTO assembly front-end: parse, verify, lower and execute tile conversions of Ascend NPUs."""
