"""The pto dialect for xDSL."""
