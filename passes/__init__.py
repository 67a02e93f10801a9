"""xDSL passes over the pto dialect, one file each."""
