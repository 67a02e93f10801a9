"""The case files (`cases/*.pto`) and the registry's own examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import check, options_of

from pto.diagnostics import registry
from pto.diagnostics.registry import explain

CASES = sorted(Path(__file__).parent.joinpath("cases").glob("*.pto"))
EXPLAINED = [id_ for id_, info in registry().items() if info.wrong]


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_case_file(path: Path) -> None:
    text = path.read_text()
    report = check(text, "--split-input-file", "--verify-diagnostics", *options_of(text))
    assert report.problems == []
    assert report.diagnostics


def test_every_id_occurs_in_the_case_files() -> None:
    texts = [path.read_text() for path in CASES]
    reports = [check(text, "--split-input-file", *options_of(text)) for text in texts]
    found = {d.id for report in reports for d in report.diagnostics}
    assert found == set(registry())


def options_for(id_: str) -> list[str]:
    info = registry()[id_]
    arch = ["--arch", info.arch] if info.arch else []
    return [*arch, *info.options, *([] if info.default else ["-W", id_])]


@pytest.mark.parametrize("id_", EXPLAINED)
def test_the_example_triggers_its_id_alone(id_: str) -> None:
    report = check(registry()[id_].wrong, *options_for(id_))
    assert {d.id for d in report.diagnostics} - {"no-target"} == {id_} - {"no-target"}
    found = next(d for d in report.diagnostics if d.id == id_)
    assert found.severity == registry()[id_].severity


@pytest.mark.parametrize("id_", EXPLAINED)
def test_what_to_write_instead_is_clean(id_: str) -> None:
    report = check(registry()[id_].right, *options_for(id_))
    assert {d.id for d in report.diagnostics} <= {"no-target"} - {id_}


def test_every_id_has_an_example_and_an_explanation() -> None:
    assert list(registry()) == EXPLAINED
    for info in registry().values():
        assert info.right
        assert not info.summary.endswith(".")
        assert info.id in explain(info)
