"""What the lowering passes share, and the lowering of each target."""
