"""The parser's tables and the file that keeps them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lark import Lark

from pto.grammar import tables
from pto.grammar.lalr import tokenize, tokens_on_demand

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.pto"))

KERNEL = "module {\n  func.func @f(%i: index) {\n    %x = arith.addi %i, %i : index\n    return\n  }\n}\n"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_lark_itself_accepts_the_examples(path: Path) -> None:
    text = (Path(tables.__file__).parent / "pto.lark").read_text()
    lark = Lark(text, parser="lalr", lexer="contextual", start="file")
    lark.parse(path.read_text())


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of the test's own, and no tables in memory."""
    monkeypatch.setattr(tables, "_cache_folders", lambda: iter([tmp_path / "cache"]))
    tables.load.cache_clear()
    yield tmp_path / "cache"
    tables.load.cache_clear()


def same(one: tables.Tables, other: tables.Tables) -> bool:
    """Whether two builds agree, up to the numbers of the states."""
    return (
        one.productions == other.productions
        and one.pattern == other.pattern
        and one.keywords == other.keywords
        and len(one.states) == len(other.states)
    )


def test_tables_are_kept_and_read_back(own_cache: Path) -> None:
    built = tables.load("types")
    (file,) = own_cache.iterdir()
    tables.load.cache_clear()
    before = file.stat().st_mtime_ns
    assert tables.load("types") == built
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize("damage", [b"", b"not tables", b"(\x00\x00"])
def test_a_damaged_file_is_replaced(own_cache: Path, damage: bytes) -> None:
    built = tables.load("types")
    (file,) = own_cache.iterdir()
    file.write_bytes(damage)
    tables.load.cache_clear()
    assert same(tables.load("types"), built)
    assert file.read_bytes() != damage


def test_tokens_on_demand_are_those_of_the_text() -> None:
    text = KERNEL * 20
    whole = tokenize("pto", text)
    tokens = tokens_on_demand("pto", text, 0)
    assert tokens.kinds[0] == "MODULE"
    assert len(list(tokens.kinds)) < 100
    assert tokens.starts[len(whole.starts) - 1] == whole.starts[-1]
    assert (list(tokens.kinds), list(tokens.texts)) == (whole.kinds, whole.texts)
    assert list(tokens.starts) == whole.starts


def test_parsing_works_where_nothing_can_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    code = (
        "from pathlib import Path\n"
        "from pto.grammar import tables\n"
        f"tables._cache_folders = lambda: iter([Path({str(blocked / 'below')!r})])\n"
        "import pto\n"
        f"print(pto.print_module(pto.parse({KERNEL!r})))\n"
    )
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert b"arith.addi" in done.stdout


def test_a_parser_that_finds_its_tables_does_not_import_lark() -> None:
    code = f"import sys, pto\npto.parse({KERNEL!r})\nassert 'lark' not in sys.modules\n"
    for _ in range(2):  # the first run may have to build them
        done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == 0, done.stderr
