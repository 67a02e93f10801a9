"""Every code of every source of 16 bits or fewer, against exact arithmetic, on both engines."""

import pytest
from numeric_support import NARROW, check, every_code, pairs


@pytest.mark.parametrize(("src", "dst"), pairs(NARROW))
def test_every_code(src: str, dst: str) -> None:
    check(every_code(src), src, dst)
