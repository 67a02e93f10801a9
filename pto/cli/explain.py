"""`pto-opt explain SRC DST VALUE...`: how each mode rounds a value, bit by bit."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from pto.cli import terminal
from pto.numerics.formats import FORMATS, Format, format_of, value_of

if TYPE_CHECKING:
    from pto.numerics.rounding_analysis import RoundingAnalysis
    from pto.targets import Pair, Product

Paint = Callable[[str, str], str]

_COLOURS = {"kept": "\x1b[1;32m", "dropped": "\x1b[31m", "head": "\x1b[1m"}
_LINE = 41  # columns of the picture of the neighbours, odd so that a tie is its middle


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `pto-opt explain SRC DST VALUE...`."""
    parser.description = "Show how each rounding mode converts a value, bit by bit."
    parser.epilog = (
        f"Formats: {', '.join(n for n in FORMATS if FORMATS[n].kind != 'complex')}. "
        "A value is a decimal, a hexadecimal float (0x1.8p-3), inf, nan, or 0x and a bit pattern."
    )
    parser.add_argument("src", metavar="SRC", help="source format, such as f32")
    parser.add_argument("dst", metavar="DST", help="destination format, such as f16")
    parser.add_argument("values", metavar="VALUE", nargs="+")
    terminal.add_target(parser, "show legality on this target only")
    terminal.add_colour(parser)
    # Values such as -inf and -0x1p3 are not options either.
    parser._negative_number_matcher = re.compile(r"-(\d|\.\d|inf|nan)", re.IGNORECASE)


def run(args: argparse.Namespace) -> int:
    """Prints the explanations; 2 for a format, value or target that does not exist."""
    from pto.numerics.rounding_analysis import parse_code
    from pto.numerics.rules import MODES, parts

    try:
        src, dst = format_of(args.src), format_of(args.dst)
        if "complex" in (src.kind, dst.kind):
            raise ValueError("a complex number converts part by part: explain f32 and f16")
        parts(src, dst)
        codes = [parse_code(text, src) for text in args.values]
        rows = _rows(src, dst, args.arch)
    except ValueError as error:
        terminal.complain("explain", f"error: {error}")
        return 2
    paint = _painter(args.color)
    offered = {mode for found in rows.values() for _, row in found for mode in row.modes}
    where = f"not offered on {next(iter(rows))}" if args.arch else "no target offers it"
    notes = {m: where for m in MODES if m not in offered} if offered else {}
    for text, (code, exact) in zip(args.values, codes, strict=True):
        written = None if exact else text
        print("\n".join(_explain(src, dst, code, written, notes, paint)), end="\n\n")
    print(paint("head", f"{src} to {dst} on the targets"))
    print("\n".join(_legality(rows)))
    return 0


def _painter(when: str) -> Paint:
    if terminal.use_colour(when):
        return lambda role, text: f"{_COLOURS[role]}{text}\x1b[0m" if text else text
    return lambda _role, text: text


# ------------------------------------------------------------------------------------ numbers


def number(value: Fraction | float | int) -> str:
    """A value in decimal: all digits where they are few."""
    if isinstance(value, float) and value - value != 0:  # NaN, inf
        return str(value)
    if isinstance(value, Fraction):
        if value.denominator == 1 and abs(value) < 1 << 63:
            return str(int(value))
        value = float(value)
    if isinstance(value, int):
        return str(value)
    digits = format(Decimal(value).normalize(), "f")
    return min(digits, repr(value).removesuffix(".0"), key=len)


def hexadecimal(code: int, fmt: Format) -> str:
    """The code with all its digits."""
    return f"0x{code:0{-(-fmt.bits // 4)}X}"


def _error(code: int, dst: Format, exact: RoundingAnalysis) -> str:
    value = value_of(code, dst)
    if value - value != 0:
        return ""
    ulps = (Fraction(value) - exact.value) / exact.ulp
    if ulps == 0:
        return "0"
    return f"{float(ulps):+.6g}"


# ------------------------------------------------------------------------------------ the page


def _explain(
    src: Format,
    dst: Format,
    code: int,
    written: str | None,
    notes: dict[str, str],
    paint: Paint,
) -> Iterator[str]:
    from pto.numerics.rounding_analysis import analyse

    value = value_of(code, src)
    yield paint("head", f"{number(value)} from {src} to {dst}")
    if written is not None:
        yield f"  the {src} nearest to {written}"
    yield ""
    yield from _source_bits(src, code)
    exact = analyse(src, dst, code)
    if exact is not None and dst.kind != "scale" and not (src.is_integer and dst.is_integer):
        yield from _picture(exact, paint)
    yield ""
    yield from _results(src, dst, code, exact, notes)


def _source_bits(src: Format, code: int) -> Iterator[str]:
    """The fields of the source code."""
    bits = f"{code:0{src.bits}b}"
    fields = {"bits": bits}
    meaning = ""
    if src.kind == "float":
        e = 1 + src.exponent_bits
        fields = {"sign": bits[0], "exponent": bits[1:e], "mantissa": bits[e:]}
        meaning = _float_class(src, code)
    elif src.kind == "scale":
        fields = {"exponent": bits}
        meaning = f"2^{code - src.bias}" if code != src.nan_code else "NaN"
    elif src.kind == "tapered":
        fields = _hif8_fields(bits)
    names = "   ".join(f"{name:{len(text)}}" for name, text in fields.items())
    values = "   ".join(f"{text:{len(name)}}" for name, text in fields.items())
    label = f"  {src.name} {hexadecimal(code, src)}"
    yield f"{'':{len(label)}}   {names}".rstrip()
    yield f"{label}   {values}   {meaning}".rstrip()


def _float_class(src: Format, code: int) -> str:
    magnitude = code & src.magnitude_mask
    exponent = magnitude >> src.mantissa_bits
    if magnitude > src.max_code:
        return "infinity" if magnitude == src.inf_code else "NaN"
    if magnitude == 0:
        return "zero"
    if exponent == 0:
        return f"subnormal: exponent as 1, so 2^{src.min_exponent}, and no leading 1"
    return f"exponent {exponent} - {src.bias} = {exponent - src.bias}"


def _hif8_fields(bits: str) -> dict[str, str]:
    """Spec F1: the dot field says how many exponent bits follow."""
    low = bits[1:]
    fields = {"0000": 0, "0001": 0, "001": 1, "01": 2, "10": 3, "11": 4}
    dot, exponent_bits = next(item for item in fields.items() if low.startswith(item[0]))
    end = len(dot) + exponent_bits
    exponent = low[len(dot) : end] or "-"
    return {"sign": bits[0], "dot": dot, "exponent": exponent, "mantissa": low[end:]}


def _picture(exact: RoundingAnalysis, paint: Paint) -> Iterator[str]:
    """The significand with its cut, and the value between its neighbours."""
    dst = exact.dst
    kept, dropped = exact.kept, exact.dropped
    yield ""
    if not exact.value:
        yield "  zero is exact"
        return
    point = exact.lowest_bit + len(exact.digits) - 1
    unit = f" x 2^{point}" if point else ""
    whole = exact.digits if kept else dropped
    shown = f"{paint('kept', _dotted(kept))}|{paint('dropped', dropped)}"
    if not kept:
        shown = f"{paint('kept', '0')}|{paint('dropped', dropped)}"
        unit = f" x 2^{exact.step}"
    if not dropped:
        yield f"  significand  {paint('kept', _dotted(whole))}{unit}"
        yield f"               {dst} has room for all of it: exact in every mode, if in range"
        return
    yield f"  significand  {shown}{unit}"
    width = len(_dotted(kept)) if kept else 1
    what = _remainder(exact.part)
    yield f"               {'kept':{width}} rounded off: {what}"
    if exact.part:
        yield ""
        yield from _number_line(exact)


def _dotted(digits: str) -> str:
    """A significand with its binary point."""
    return digits if len(digits) < 2 else f"{digits[0]}.{digits[1:]}"


def _remainder(part: Fraction) -> str:
    if part == 0:
        return "nothing but zeros: exact"
    if part == Fraction(1, 2):
        return "exactly half an ulp, a tie"
    half = "less" if part < Fraction(1, 2) else "more"
    return f"{_short(part)} ulp, {half} than half"


def _short(part: Fraction) -> str:
    """Six digits, never rounded onto a tie or a neighbour."""
    text = f"{float(part):.6g}"
    return text if Fraction(text) not in (0, 1, Fraction(1, 2)) else f"{float(part):.17g}"


def _number_line(exact: RoundingAnalysis) -> Iterator[str]:
    """The value between its two neighbours, smaller magnitude on the left."""
    at = round(exact.part * (_LINE - 1))
    if exact.part not in (0, 1):
        at = min(max(at, 1), _LINE - 2)
        if exact.part != Fraction(1, 2) and at == _LINE // 2:
            at += 1 if exact.part > Fraction(1, 2) else -1
    line = ["-"] * _LINE
    line[_LINE // 2] = "+"
    line[0] = line[-1] = "|"
    line[at] = "x"
    left, right = number(exact.below), number(exact.above)
    parity = ("even", "odd") if exact.below_is_even else ("odd", "even")
    gap = max(len(left), len(parity[0])) + 2
    yield f"  {left:>{gap}} {''.join(line)} {right}"
    tie = "half way" if exact.part != Fraction(1, 2) else "a tie"
    ulp = f"one ulp = {number(exact.ulp)}"
    yield f"  {parity[0]:>{gap}} {tie:^{_LINE}} {parity[1]}   {ulp}"


@dataclass(frozen=True)
class Row:
    """What one mode gives."""

    mode: str
    on: int
    off: int
    why: str


def _results(
    src: Format, dst: Format, code: int, exact: RoundingAnalysis | None, notes: dict[str, str]
) -> Iterator[str]:
    """A line for each mode, or two where saturation matters, and what saturation does.

    `notes` has a remark on modes that are not legal.
    """
    from pto.numerics.rounding_analysis import result
    from pto.numerics.rules import MODES, is_exact, modes

    names = [m for m in modes(src, dst) if m != "NONE"]
    ignored = modes(src, dst) is MODES
    rows = []
    for name in ["any"] if ignored else names:
        mode = None if ignored else name
        on, off = (result(src, dst, code, mode, saturation) for saturation in ("ON", "OFF"))
        beyond = "out of range" if exact is not None and on != off else ""
        remarks = (_why(name, exact), beyond, "" if ignored else notes.get(name, ""))
        rows.append(Row(name, on, off, "; ".join(filter(None, remarks))))
    yield from _table(rows, dst, exact, "RINT" in names and not ignored)
    yield ""
    yield from _saturation(src, dst, code, rows)
    if is_exact(src, dst):
        yield f"  {dst} has every value of {src}: the mode has no effect."


def _table(
    rows: list[Row], dst: Format, exact: RoundingAnalysis | None, none_is_rint: bool
) -> Iterator[str]:
    differs = any(row.on != row.off for row in rows)
    cells = [["mode", "saturation" if differs else "", "result", "bits", "error/ulp", "why"]]
    for row in rows:
        results = [("ON", row.on), ("OFF", row.off)] if row.on != row.off else [("", row.on)]
        for i, (saturation, code) in enumerate(results):
            mode, why = (row.mode, row.why) if i == 0 else ("", "")
            error = "" if exact is None else _error(code, dst, exact)
            value = number(value_of(code, dst))
            cells.append([mode, saturation, value, _bits(code, dst), error, why])
    if none_is_rint:
        cells.append(["NONE", "", "as RINT", "", "", ""])
    widths = [max(len(line[i]) for line in cells) for i in range(5)]
    for line in cells:
        shown = [f"{text:<{w}}" for text, w in zip(line, widths, strict=False) if w]
        if widths[4]:
            shown[-1] = shown[-1].strip().rjust(widths[4])
        yield f"  {'  '.join(shown)}  {line[5]}".rstrip()


def _bits(code: int, dst: Format) -> str:
    binary = f" {code:0{dst.bits}b}" if dst.bits <= 16 else ""
    return hexadecimal(code, dst) + binary


def _why(mode: str, exact: RoundingAnalysis | None) -> str:
    if exact is None or mode == "any":
        return ""
    if exact.part == 0 and mode != "HYBRID":
        return "exact"
    if exact.part == Fraction(1, 2) and mode in ("RINT", "ROUND"):
        even = "tie: to the even neighbour, whose last bit is 0"
        return even if mode == "RINT" else "tie: away from zero"
    return _hybrid(exact) if mode == "HYBRID" else _REASONS[mode]


_REASONS = {
    "RINT": "to the nearer neighbour",
    "ROUND": "to the nearer neighbour",
    "FLOOR": "towards -inf",
    "CEIL": "towards +inf",
    "TRUNC": "towards zero: the bits are dropped",
    "ODD": "something is rounded off: the last kept bit becomes 1",
}


def _hybrid(exact: RoundingAnalysis) -> str:
    """Spec R8: the threshold is in the source's low bits."""
    from pto.numerics.rounding_analysis import hybrid_threshold

    found = hybrid_threshold(exact)
    if found is None:
        return "as ROUND"
    fraction, threshold = found
    sign = ">=" if fraction >= threshold else "<"
    return f"fraction {fraction} {sign} threshold {threshold}, from the source's low bits"


def _saturation(src: Format, dst: Format, code: int, rows: list[Row]) -> Iterator[str]:
    from pto.numerics.rounding_analysis import result
    from pto.numerics.rules import PYTORCH_PAIRS, has_saturation

    if not has_saturation(src, dst):
        yield f"  saturation: {src} to {dst} has no choice."
        return
    if all(row.on == row.off for row in rows):
        yield "  saturation: ON and OFF give the same for this value."
    else:
        what = "keeps the lowest bits" if dst.is_integer else "gives infinity or NaN"
        yield f"  saturation: ON limits to {_range(dst)} and makes NaN 0; OFF {what}."
    if (src.name, dst.name) not in PYTORCH_PAIRS:
        return
    path = [result(src, dst, code, row.mode, "OFF", pytorch_path=True) for row in rows]
    if any(row.on != row.off for row in rows) or path != [row.off for row in rows]:
        values = " or ".join(number(value_of(c, dst)) for c in sorted(set(path)))
        yield (
            "  OFF on the PyTorch-compatible path (a5; a2a3 with tmp) goes through i32 and gives "
            f"{values}."
        )


def _range(dst: Format) -> str:
    return f"{number(dst.min_value)}..{number(dst.max_value)}"


# ------------------------------------------------------------------------------------ legality


def _rows(src: Format, dst: Format, arch: str | None) -> dict[Product, list[tuple[str, Pair]]]:
    """The (instruction, table row) that each target has for the pair."""
    from pto.targets import INSTRUCTIONS, PRODUCTS, pair_of, product_of

    return {
        product: [
            (instruction, row)
            for instruction in INSTRUCTIONS
            if instruction != "MulCast"
            and (row := pair_of(instruction, product, src, dst)) is not None
        ]
        for product in (PRODUCTS.values() if arch is None else (product_of(arch),))
    }


def _legality(rows: dict[Product, list[tuple[str, Pair]]]) -> Iterator[str]:
    """Which instructions of which targets have the pair, with which modes."""
    width = max(len(product.name) for product in rows)
    for product, found in rows.items():
        for i, (instruction, row) in enumerate(found):
            yield f"  {product.name if i == 0 else '':{width}}  {instruction:7} {_offer(row)}"
    without = [product.name for product, found in rows.items() if not found]
    if without:
        yield f"  not offered on {', '.join(without)}"


def _offer(row: Pair) -> str:
    modes = " ".join(row.modes) if row.rounds else "any mode"
    default = f"; saturation {row.default_saturation} by default" if row.has_saturation else ""
    return modes + default
