"""What each operation computes: every module lists its implementations, this one joins them."""

from pto.runtime.compiler import Implementations
from pto.runtime.ops import (
    control,
    elementwise,
    gather_scatter,
    load_store,
    moves,
    pointers,
    quantise,
    reductions,
    scalars,
    sorting,
    synchronisation,
    tcvt,
    tiles,
    views,
)

IMPLEMENTATIONS = Implementations.joined(
    module.IMPLEMENTATIONS
    for module in (
        control,
        scalars,
        pointers,
        views,
        tiles,
        load_store,
        elementwise,
        reductions,
        moves,
        gather_scatter,
        sorting,
        quantise,
        tcvt,
        synchronisation,
    )
)
"""The implementations of all operations above the machine."""
