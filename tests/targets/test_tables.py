"""The legality tables against the documents, transcribed here independently."""

from __future__ import annotations

import subprocess
import sys

import pytest
from spec_table import ALL_MODES, FIVE, OFF_BY_DEFAULT, PYTORCH, ROWS

from pto.numerics import FORMATS
from pto.numerics.rules import MODES
from pto.targets import (
    TARGETS,
    TCVT_TARGETS,
    Pair,
    Table,
    UnknownTarget,
    pair_of,
    product_of,
    table_of,
    tables,
)

KINDS = {"=": "exact", "int": "int", "S12": "s12", "S13": "s13"}
ALL_TABLES = tables()


def table(instruction: str, product: str) -> Table:
    return next(t for t in ALL_TABLES if (t.instruction, t.product) == (instruction, product))


def row_of(instruction: str, arch: str, src: str, dst: str) -> Pair | None:
    return pair_of(instruction, product_of(arch), FORMATS[src], FORMATS[dst])


def names(table: Table) -> set[tuple[str, str]]:
    return {(row.src.name, row.dst.name) for row in table.rows}


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_tcvt_rows_are_those_of_the_spec(arch: str) -> None:
    expected = {(s, d): row for (a, s, d), row in ROWS.items() if a == arch}
    found = {(row.src.name, row.dst.name): row for row in table("TCVT", arch).rows}
    assert found.keys() == expected.keys()
    for key, row in found.items():
        assert row.modes == expected[key].modes, key
        assert row.kind == KINDS.get(expected[key].rule, "round"), key
        assert row.default_saturation == ("OFF" if key in OFF_BY_DEFAULT else "ON"), key
        assert row.through_i32 == (key in PYTORCH), key


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_tcvt_accepts_what_the_spec_accepts(arch: str) -> None:
    for (a, src, dst), row in ROWS.items():
        if a == arch:
            pair = row_of("TCVT", arch, src, dst)
            assert pair is not None
            for mode in (None, *ALL_MODES):
                assert pair.accepts(mode) == row.accepts(mode), (src, dst, mode)
            assert not pair.accepts("RINTT")


def test_saturation_choice_follows_overflow() -> None:
    """A pair has the choice iff its result can leave the destination's range (spec S2 to S13)."""
    never = {("f32", "f32"), ("f16", "i32"), ("i16", "ui32"), ("i32", "f16")}
    for row in (r for arch in ("a2a3", "a5") for r in table("TCVT", arch).rows):
        src, dst = row.src.name, row.dst.name
        to_f32_or_f4 = dst == "f32" or dst.startswith("f4")
        int_to_float = src.lstrip("u").startswith("i") and not dst.lstrip("u").startswith("i")
        none = (src, dst) in never or to_f32_or_f4 or int_to_float or row.kind == "exact"
        assert row.has_saturation == (not none), (src, dst)


def test_cast_and_tcvt_of_a2a3_list_the_same_pairs() -> None:
    assert names(table("Cast", "a2")) == names(table("TCVT", "a2a3"))
    assert table("Cast", "a2").rows == table("Cast", "a3").rows


CAST_COUNTS = {
    "atlas-training": 9,
    "atlas-inference": 14,
    "a2": 25,
    "a3": 25,
    "atlas-200i-500-a2": 23,
    "a5": 64,
    "kirin-x90": 5,
    "kirin-9030": 5,
}


@pytest.mark.parametrize(("product", "count"), CAST_COUNTS.items())
def test_cast_row_counts(product: str, count: int) -> None:
    assert len(table("Cast", product).rows) == count


# Rows that differ between products, as the documents print them.
CAST_ROWS = [
    ("atlas-training", "f32", "f16", "ODD NONE"),
    ("atlas-training", "f16", "i8", "ROUND FLOOR CEIL TRUNC NONE"),
    ("atlas-training", "i32", "f32", "NONE"),
    ("atlas-inference", "f16", "i16", "RINT"),
    ("atlas-inference", "f16", "i4", "NONE"),
    ("atlas-inference", "i32", "f16", ""),
    ("a2", "f16", "i4", "RINT ROUND FLOOR CEIL TRUNC NONE"),
    ("a3", "i16", "f16", "RINT ROUND FLOOR CEIL TRUNC NONE"),
    ("atlas-200i-500-a2", "i32", "f16", "NONE"),
    ("a5", "f16", "i8", "RINT ROUND FLOOR CEIL TRUNC"),
    ("a5", "f64", "i32", "TRUNC"),
    ("a5", "c64", "c32", "RINT ROUND FLOOR CEIL TRUNC ODD NONE"),
    ("a5", "f32", "hif8", "ROUND HYBRID"),
    ("kirin-x90", "f16", "ui8", "CEIL"),
    ("kirin-9030", "f16", "i32", "FLOOR"),
    ("kirin-9030", "i32", "f32", "CEIL"),
    ("kirin-x90", "f32", "bf16", "ROUND"),
]


@pytest.mark.parametrize(("product", "src", "dst", "modes"), CAST_ROWS)
def test_cast_rows(product: str, src: str, dst: str, modes: str) -> None:
    pair = row_of("Cast", product, src, dst)
    assert pair is not None
    assert pair.modes == tuple(modes.split())
    assert pair.default_saturation == "ON"


@pytest.mark.parametrize(
    ("product", "src", "dst"),
    [
        ("atlas-training", "f32", "f32"),
        ("atlas-inference", "f32", "i16"),
        ("atlas-200i-500-a2", "f16", "i4"),
        ("a2", "f16", "bf16"),
        ("a5", "f16", "f8e4m3fn"),
        ("a5", "bf16", "f8e8m0"),
        ("kirin-x90", "f32", "f16"),
    ],
)
def test_cast_lacks(product: str, src: str, dst: str) -> None:
    assert row_of("Cast", product, src, dst) is None


# Table 1 of the astype document.
ASTYPE = {
    "i4": "i16 f16 bf16",
    "i8": "i16 f16 i32",
    "ui8": "ui16 f16 ui32",
    "f4e2m1": "bf16",
    "f4e1m2": "bf16",
    "hif8": "f16 f32",
    "f8e8m0": "bf16",
    "f8e5m2": "f32",
    "f8e4m3fn": "f32",
    "i16": "i4 ui8 f16 i32 ui32 f32",
    "ui16": "ui8 ui32",
    "f16": "i4 i8 ui8 hif8 i16 bf16 i32 f32",
    "bf16": "f4e2m1 f4e1m2 f8e8m0 f16 i32 f32",
    "i32": "ui8 i16 ui16 f32 i64",
    "ui32": "ui8 i16 ui16",
    "f32": "hif8 f8e5m2 f8e4m3fn i16 f16 bf16 i32 i64",
    "i64": "i32 f32",
}
BITS = {"hif8": 8, "f8e8m0": 8, "f8e5m2": 8, "f8e4m3fn": 8, "f4e2m1": 4, "f4e1m2": 4, "bf16": 16}


def bits(name: str) -> int:
    return BITS.get(name) or int(name.lstrip("uif"))


def test_astype_pairs_are_those_of_table_1() -> None:
    expected = {(s, d) for s, dsts in ASTYPE.items() for d in dsts.split()}
    assert names(table("astype", "a5")) == expected


def test_astype_layouts_follow_the_widths() -> None:
    """Equal widths have no layout, 2x has two, 4x four (spec L3); 4-bit floats work on pairs, and
    have four against bf16 all the same."""
    for row in table("astype", "a5").rows:
        widths = bits(row.src.name), bits(row.dst.name)
        ratio = max(widths) // min(widths)
        assert len(row.layouts) == {1: 0, 2: 2, 4: 4}[ratio], (row.src, row.dst)
        assert row.layouts == ("ZERO", "ONE", "TWO", "THREE")[: len(row.layouts)]
        assert row.default_saturation == "OFF"


def test_astype_saturation() -> None:
    rows = table("astype", "a5").rows
    chosen = {(row.src.name, row.dst.name) for row in rows if row.has_saturation}
    assert ("f16", "i32") not in chosen
    assert ("f16", "bf16") not in chosen
    assert ("bf16", "f4e2m1") not in chosen
    assert {("f16", "i4"), ("bf16", "f16"), ("f32", "hif8"), ("i16", "i4")} <= chosen


def test_mulcast() -> None:
    assert names(table("MulCast", "a2a3")) == {("f16", "i8"), ("f16", "ui8")}
    assert row_of("MulCast", "a5", "i64", "f32") is not None
    assert row_of("MulCast", "a3", "i64", "f32") is None
    assert row_of("MulCast", "kirin-x90", "f16", "i8") is None


@pytest.mark.parametrize(
    ("pair", "mode"),
    [
        (row_of("TCVT", "a5", "f32", "f16"), "RINT"),
        (row_of("TCVT", "a5", "f32", "hif8"), "ROUND"),
        (row_of("TCVT", "a5", "i16", "f32"), "RINT"),
        (row_of("Cast", "a5", "f64", "i32"), "TRUNC"),
        (row_of("Cast", "kirin-x90", "i32", "f32"), "CEIL"),
        (row_of("Cast", "atlas-training", "f16", "i8"), "RINT"),
    ],
)
def test_natural_mode(pair: Pair, mode: str) -> None:
    assert pair.natural_mode == mode


def test_every_table_is_well_formed() -> None:
    for t in ALL_TABLES:
        assert t.document
        assert len({(r.src, r.dst) for r in t.rows}) == len(t.rows), t.product
        for row in t.rows:
            assert {row.src, row.dst} <= set(FORMATS.values())
            assert set(row.modes) <= set(ALL_MODES)
            assert row.kind in ("round", "exact", "int", "s12", "s13", "s6")
            assert bool(row.modes) or not row.rounds


ALIASES = {
    "a2a3": ["a2", "A3", "a2a3", "Ascend910B", "Ascend910B1", "ascend910b4", "Ascend910_9391"],
    "a5": ["a5", "Ascend950", "Ascend950PR_958b", "Atlas 350", "atlas350", "950PR", "950DT"],
    "atlas-200i-500-a2": ["Ascend310B", "Ascend310B4", "Atlas-200I-500-A2"],
    "atlas-inference": ["Ascend310P", "Ascend310P3"],
    "atlas-training": ["Ascend910", "Ascend910A", "Ascend910ProB"],
    "kirin-x90": ["Kirin X90", "kirin_x90"],
    "kirin-9030": ["Kirin9030"],
}


@pytest.mark.parametrize(("target", "aliases"), ALIASES.items())
def test_aliases(target: str, aliases: list[str]) -> None:
    assert [product_of(alias).name for alias in aliases] == [target] * len(aliases)


@pytest.mark.parametrize("name", ["a4", "Ascend", "", "910C5", "a"])
def test_unknown_target_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownTarget) as error:
        product_of(name)
    assert all(target in str(error.value) for target in TARGETS)


def test_unknown_target_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'Ascend950'"):
        product_of("Ascend95")


def test_unified_buffer() -> None:
    assert product_of("a3").unified_buffer_bytes == 196608
    assert product_of("Ascend950PR").unified_buffer_bytes == 262144
    with pytest.raises(UnknownTarget):
        _ = product_of("kirin-x90").unified_buffer_bytes


def test_tcvt_exists_on_two_targets_only() -> None:
    assert [t for t in TARGETS if table_of("TCVT", product_of(t))] == ["a2a3", "a5"]
    assert TCVT_TARGETS == ("a2a3", "a5")
    assert row_of("TCVT", "kirin-x90", "f32", "bf16") is None


def test_tables_of_a_target() -> None:
    assert [(t.instruction, t.product) for t in tables("Ascend910B1")] == [
        ("TCVT", "a2a3"),
        ("Cast", "a2"),
        ("Cast", "a3"),
        ("MulCast", "a2a3"),
    ]
    assert len(ALL_TABLES) == 13


def test_importing_is_light() -> None:
    code = "import sys, pto.targets, pto.tiles.tmp;print([m for m in ('numpy', 'xdsl') if m in sys.modules])"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_five_modes_are_in_the_order_of_the_spec() -> None:
    assert MODES[:5] == FIVE
