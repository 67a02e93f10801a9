"""Element formats and conversions between them. Knows nothing of tiles, IR or targets."""
