"""Tiles and memory as numpy arrays, and the interpreter."""
