"""The `pto-opt` command line."""
