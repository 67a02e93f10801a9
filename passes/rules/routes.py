"""What takes the place of a conversion that the target lacks: the statements that
`pto-legalize-tcvt` would write.

They are not made up here: the function is copied, the pass's own rewriting is done on the copy, and
what it prints there is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from pto.dialect.ops import TCvtOp
from pto.frontend.printing import PtoPrinter
from pto.passes.common import function_of
from pto.passes.lowering.chain import replace_by_chain, replacement_chain
from pto.passes.rules.checked_conversion import CheckedConversion
from pto.passes.rules.locate import Locator
from pto.targets import Product
from pto.targets.chains import Chain, difference

Lines = dict[TCvtOp, tuple[str, ...]]
"""The statements that replace each of a function's conversions, if any do."""


class ChainPreview:
    """The replacements of the conversions of one module, made function by function when asked."""

    def __init__(self, locator: Locator) -> None:
        self._locator = locator
        self._functions: dict[tuple[FuncOp, Product, str], Lines] = {}

    def notes(self, c: CheckedConversion) -> list[str]:
        """`another route on a5: i32 -> f32 -> f16, exact: ..` with the statements to paste."""
        if c.src_format is None or c.dst_format is None:
            return []
        for product in c.products:
            if (chain := _chain(c.op, product, c.default_sat)) is not None:
                lines = self._lines(c.op, product, c.default_sat)
                return ["\n".join((_headline(chain, product), *lines))]
        return []

    def _lines(self, op: TCvtOp, product: Product, default_sat: str) -> tuple[str, ...]:
        if (function := function_of(op)) is None:
            return ()
        key = (function, product, default_sat)
        if key not in self._functions:
            self._functions[key] = self._legalised(*key)
        return self._functions[key].get(op, ())

    def _legalised(self, function: FuncOp, product: Product, default_sat: str) -> Lines:
        """What replaces the conversions of a function that the product lacks."""
        copy = function.clone()
        names: dict[SSAValue, str] = {}
        made: dict[TCvtOp, list[Operation]] = {}
        for original, op in zip(_conversions(function), _conversions(copy), strict=True):
            resolved = op.resolve(product, default_sat)
            if resolved is None or resolved.pair is not None:
                continue
            chain = _chain(op, product, default_sat)
            if chain is None or chain.steps[-1].illegal is not None:
                continue
            written = self._locator.operand_names(original)
            for value, name in zip(op.operands, written, strict=False):
                if value.name_hint is None:
                    names[value] = name.removeprefix("%")
            block, before, after = op.parent_block(), op.prev_op, op.next_op
            assert block is not None  # a conversion of a function stands in a block
            try:
                replace_by_chain(op, chain)
            except PassFailedException:  # no room for the tiles between
                continue
            first = before.next_op if before is not None else block.first_op
            made[original] = list(_until(first, after))
        return _printed(copy, made, names)


def _conversions(function: FuncOp) -> list[TCvtOp]:
    return [op for op in function.walk() if isinstance(op, TCvtOp)]


def _until(first: Operation | None, end: Operation | None) -> Iterator[Operation]:
    while first is not None and first is not end:
        yield first
        first = first.next_op


def _chain(op: TCvtOp, product: Product, default_sat: str) -> Chain | None:
    try:
        return replacement_chain(op, product, default_sat)
    except ValueError:  # a pair or a mode that exists nowhere
        return None


def _headline(chain: Chain, product: Product) -> str:
    if chain.is_exact:
        return f"another route on {product}: {chain}, exact: the bits of a direct conversion"
    found = difference(chain)
    how = f"which differs: {found}" if found else "which is not proved to be the same"
    return f"the nearest route on {product}: {chain}, {how}"


class _Recorder(PtoPrinter):
    """Prints a function, and keeps the text of some of its operations."""

    def __init__(self, wanted: Iterable[Operation], names: Mapping[SSAValue, str]) -> None:
        self._stream = StringIO()
        super().__init__(self._stream)
        self.texts: dict[Operation, str] = dict.fromkeys(wanted, "")
        self._ssa_values.update(names)

    def print_op(self, op: Operation) -> None:
        start = self._stream.tell()
        super().print_op(op)
        if op in self.texts:
            self._stream.seek(start)
            self.texts[op] = self._stream.read()


def _printed(
    function: FuncOp, made: Mapping[TCvtOp, Sequence[Operation]], names: dict[SSAValue, str]
) -> Lines:
    """The statements as they stand in the print of the function.

    Values without a name would be numbered as the print numbers them, which the text does not: new
    ones are called `%step0` and so on instead.
    """
    new = [op for ops in made.values() for op in ops]
    unnamed = [result for op in new for result in op.results if result.name_hint is None]
    names |= {result: f"step{number}" for number, result in enumerate(unnamed)}
    recorder = _Recorder(new, names)
    recorder.print_op(function)
    return {op: tuple(recorder.texts[n] for n in ops) for op, ops in made.items()}
