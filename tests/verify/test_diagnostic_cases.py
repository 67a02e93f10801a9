"""The case files (`cases/*.pto`) and the registry's own examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import check, options_of

from pto.diagnostics import explain, rules

CASES = sorted(Path(__file__).parent.joinpath("cases").glob("*.pto"))
EXPLAINED = [id_ for id_, rule in rules().items() if rule.wrong]


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
    assert found == set(rules())


def options_for(id_: str) -> list[str]:
    rule = rules()[id_]
    arch = ["--arch", rule.arch] if rule.arch else []
    return [*arch, *rule.options, *([] if rule.default else ["-W", id_])]


@pytest.mark.parametrize("id_", EXPLAINED)
def test_the_example_triggers_its_id_alone(id_: str) -> None:
    report = check(rules()[id_].wrong, *options_for(id_))
    assert {d.id for d in report.diagnostics} - {"no-target"} == {id_} - {"no-target"}
    found = next(d for d in report.diagnostics if d.id == id_)
    assert found.severity == rules()[id_].severity


@pytest.mark.parametrize("id_", EXPLAINED)
def test_what_to_write_instead_is_clean(id_: str) -> None:
    report = check(rules()[id_].right, *options_for(id_))
    assert {d.id for d in report.diagnostics} <= {"no-target"} - {id_}


def test_every_id_has_an_example_and_an_explanation() -> None:
    assert list(rules()) == EXPLAINED
    for rule in rules().values():
        assert rule.right
        assert not rule.summary.endswith(".")
        assert rule.id in explain(rule)
