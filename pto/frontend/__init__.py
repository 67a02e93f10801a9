"""From `.pto` text to xDSL IR and back."""
