"""`python -m pto.cli`: the same as `pto-opt`."""

import sys

from pto.cli import main

sys.exit(main())
