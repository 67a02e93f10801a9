"""The regular tile operations, one row each: their operands by name.

A row lists the operands of `ins(..)` and `outs(..)`, with `?` where one may be absent, and `{}`
where the attribute dictionary stands inside `ins(..)`. The interpreter hands an operation's
implementation its operands by these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True)
class Signature:
    """Names of a regular operation's operands; one that ends in `?` may be absent."""

    ins: tuple[str, ...]
    outs: tuple[str, ...]
    attributes_in_ins: bool
    """Whether the attribute dictionary is written inside `ins(..)`."""

    def accepts(self, ins: int, outs: int) -> bool:
        """Whether these operand counts fit."""
        return _fits(self.ins, ins) and _fits(self.outs, outs)

    def text(self) -> str:
        """`ins(src0, src1) outs(dst)`, optional operands in brackets."""
        return f"ins({_listed(self.ins)}) outs({_listed(self.outs)})"


def named(names: tuple[str, ...], values: Sequence[Value]) -> dict[str, Value] | None:
    """The values by their operands' names; None where the counts do not fit.

    Of the operands that may be absent, the first ones are there.
    """
    if not _fits(names, len(values)):
        return None
    spare = len(values) - sum(not name.endswith("?") for name in names)
    found: dict[str, Value] = {}
    given = iter(values)
    for name in names:
        if name.endswith("?"):
            spare -= 1
            if spare < 0:
                continue
        found[name.removesuffix("?")] = next(given)
    return found


def _fits(names: tuple[str, ...], count: int) -> bool:
    required = sum(not name.endswith("?") for name in names)
    return required <= count <= len(names)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"[{name[:-1]}]" if name.endswith("?") else name for name in names)


def _signature(row: str) -> Signature:
    ins, outs = row.split("->")
    words = ins.split()
    return Signature(
        tuple(word for word in words if word != "{}"), tuple(outs.split()), "{}" in words
    )


SIGNATURES: dict[str, Signature] = {
    f"pto.{name}": _signature(row)
    for names, row in {
        "tcvt": "src tmp? {} -> dst",
        "tload tstore tprefetch": "src quant? -> dst",
        "tabs texp tlog tneg tnot trelu trecip tsqrt": "src -> dst",
        "trsqrt": "src tmp? -> dst",
        "tadd tsub tmul tdiv tmax tmin tand tor tshl tshr tfmod taddrelu": "src0 src1 -> dst",
        "txor trem tpow": "src0 src1 tmp? -> dst",
        "tadds tsubs tmuls tdivs tmaxs tmins tands tors tshls tshrs tfmods tlrelu taxpy": (
            "src scalar -> dst"
        ),
        "txors trems tpows": "src scalar tmp? -> dst",
        "tprelu": "src0 src1 tmp? -> dst",
        "taddc tsubc": "src0 src1 src2 -> dst",
        "taddsc tsubsc": "src0 scalar src1 -> dst",
        "texpands": "scalar -> dst",
        "trowsum trowmax trowmin trowprod trowargmax trowargmin": "src tmp? -> dst",
        "tcolsum tcolargmax tcolargmin": "src {} tmp? -> dst",
        "tcolmax tcolmin tcolprod": "src tmp? -> dst",
        "trowexpand tcolexpand": "src -> dst",
        "trowexpandadd trowexpandsub trowexpandmul trowexpanddiv trowexpandmax trowexpandmin "
        "trowexpandexpdif": "src0 src1 tmp? -> dst",
        "tcolexpandadd tcolexpandsub tcolexpandmul tcolexpanddiv tcolexpandmax tcolexpandmin "
        "tcolexpandexpdif": "src0 src1 -> dst",
        "tcmp": "src0 src1 {} -> dst",
        "tcmps": "src scalar {} -> dst",
        "tsel": "mask src0 src1 tmp? -> dst",
        "tsels": "mask src0? tmp? scalar -> dst",
        "tci": "start tmp? -> dst",
        "ttri": "diagonal {} -> dst",
        "trandom": "key0 key1 counter0 counter1 counter2 counter3 {} -> dst",
        "tfillpad tget_scale_addr": "src -> dst",
        "ttrans": "src tmp? -> dst",
        "tmov": "src quant? -> dst",
        "textract tinsert": "src row? col? quant? -> dst",
        "tconcat": "src0 src1 -> dst",
        "tconcatidx": "src0 src1 index0 index1 -> dst",
        "tgather": "src {} index? tmp? -> dst tmp?",
        "tgatherb": "src offsets -> dst",
        "tscatter": "src {} index? -> dst",
        "mgather": "src index tmp? -> dst",
        "mscatter": "src index -> dst",
        "tsort32": "src index tmp? -> dst",
        "tmrgsort": "src0 src1? src2? src3? tmp? {} -> dst executed?",
        "thistogram": "src index -> dst",
        "tpartadd tpartmul tpartmax tpartmin": "src0 src1 -> dst",
        "tpartargmax tpartargmin": "src0 src1 index0 index1 -> dst index",
        "tquant": "src scale offset? -> dst tmp?",
        "tquant.mx": "src -> dst exponent max scaling tmp?",
        "tdequant": "src scale offset -> dst",
        "tsetval": "offset value -> dst",
        "tprint": "src tmp? ->",
        "cast": "src mask? repeat? {} -> dst",
        "mulcast and": "src0 src1 mask? repeat? {} -> dst",
        "duplicate": "value mask? repeat? {} -> dst",
        "tmatmul tgemv": "lhs rhs -> dst",
        "tmatmul.acc tgemv.acc": "acc lhs rhs -> dst",
        "tmatmul.bias tgemv.bias": "lhs rhs bias -> dst",
        "tmatmul.mx tgemv.mx": "lhs lhs_scale rhs rhs_scale -> dst",
        "tmatmul.mx.acc tgemv.mx.acc": "acc lhs lhs_scale rhs rhs_scale -> dst",
        "tmatmul.mx.bias tgemv.mx.bias": "lhs lhs_scale rhs rhs_scale bias -> dst",
    }.items()
    for name in names.split()
}
"""Every regular operation by name."""
