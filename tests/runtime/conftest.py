"""The exact reference of the numeric tests is the reference of conversions on tiles too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "numerics"))
