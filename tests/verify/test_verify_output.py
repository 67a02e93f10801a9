"""How diagnostics are written: text, JSON, SARIF, GitHub; and which are shown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from checking import check
from pydantic import ValidationError
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from pto.diagnostics import FileReport, registry
from pto.diagnostics.render import render

ODD = """\
module attributes {pto.target_arch = "a3"} {
func.func @f(%s: !pto.tile_buf<vec, 16x64xf32>, %d: !pto.tile_buf<vec, 16x64xbf16>) {
  pto.tcvt ins(%s {rmode = #pto<round_mode ODD>} : !pto.tile_buf<vec, 16x64xf32>) outs(%d : !pto.tile_buf<vec, 16x64xbf16>)
  return
}
}
"""


def text_of(report: FileReport, **options: object) -> list[str]:
    return render([report], "text", **options).splitlines()  # type: ignore[arg-type]


def test_text() -> None:
    assert text_of(check(ODD, path="dir/k.pto"), width=80) == [
        "dir/k.pto:3:28: error: f32 to bf16 does not round by ODD on a2a3 [round-mode]",
        "    3 |   pto.tcvt ins(%s {rmode = #pto<round_mode ODD>} : !pto.tile_buf<vec, 1…",
        "      |                            ^~~~~~~~~~~~~~~~~~~~",
        "      = note: modes of this pair on a2a3: RINT ROUND FLOOR CEIL TRUNC (NONE means RINT)",
        "      = note: write: rmode = #pto<round_mode RINT>",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 300])
def test_the_caret_stays_under_its_part_at_every_width(width: int) -> None:
    line = "x" * 130 + "OFFENDER" + "y" * 200
    report = check(ODD)
    wide = replace(report.diagnostics[0], column=131, length=8)
    report = replace(report, diagnostics=[wide], lines={3: line})
    _, source, caret, *_ = text_of(report, width=width)
    start, end = caret.index("^"), len(caret)
    assert source[start:end] == "OFFENDER"
    assert len(source) <= width


def test_wide_characters_before_the_part() -> None:
    report = check(ODD)
    d = replace(report.diagnostics[0], column=4, length=2)
    report = replace(report, diagnostics=[d], lines={3: "转换 xy"})
    _, source, caret, *_ = text_of(report)
    assert source.endswith("| 转换 xy")
    assert caret.endswith("|      ^~")


def test_a_part_longer_than_the_terminal_is_cut() -> None:
    report = check(ODD)
    wide = replace(report.diagnostics[0], column=10, length=500)
    report = replace(report, diagnostics=[wide], lines={3: "z" * 600})
    _, source, caret, *_ = text_of(report, width=80)
    assert len(source) <= 80
    assert len(caret) <= 80


def test_colour_changes_nothing_but_colour() -> None:
    import re

    report = check(ODD)
    coloured = render([report], "text", colour=True)
    assert "\x1b[1;31merror:" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == render([report], "text")


CARETS = [
    ("round-mode", "#pto<round_mode ODD>"),
    ("type-pair", "f16"),
    ("shape", "16x32"),
    ("valid-region", "valid=8x64"),
    ("location", "mat"),
    ("tmp-location", "mat"),
    ("tmp-small", "1x224"),
    ("row-align", "1x31"),
    ("capacity", "256x256"),
    ("overlap", "%d"),
    ("unknown-attribute", "round_mode"),
    ("satmode-ignored", "#pto<saturation_mode ON>"),
    ("tmp-unused", "%tmp"),
    ("double-rounding", "%m"),
    ("native-overflow", "pto.tcvt"),
    ("attribute", '"TRUNC"'),
    ("target-override", '"a3"'),
    ("unknown-target", '"a4"'),
    ("sat-mode", '"SAT"'),
]


@pytest.mark.parametrize(("id_", "part"), CARETS)
def test_the_caret_is_under_the_offending_part(id_: str, part: str) -> None:
    info = registry()[id_]
    wrong = info.wrong
    if id_ == "valid-region":  # the destination's region is the one pointed at
        wrong = wrong.replace("valid=8x64", "valid=9x64").replace("xf16>", "xf16, valid=8x64>")
    arch = ["--arch", info.arch] if info.arch else []
    report = check(wrong, *arch, *info.options)
    found = next(d for d in report.diagnostics if d.id == id_)
    line = wrong.split("\n")[found.line - 1]
    assert line[found.column - 1 : found.column - 1 + found.length] == part


LONG = """\
func.func @f(%s: !pto.tile_buf<loc=vec, dtype=i64, rows=16, cols=64, v_row=16, v_col=64, blayout=row_major, slayout=none_box, fractal=512, pad=0>,
             %d: !pto.tile_buf<loc=vec, dtype=f16, rows=16, cols=64, v_row=16, v_col=64, blayout=row_major, slayout=none_box, fractal=512, pad=0>) {
  pto.tcvt ins(%s // the source ) outs(
      : !pto.tile_buf<loc=vec, dtype=i64, rows=16, cols=64, v_row=16, v_col=64, blayout=row_major, slayout=none_box, fractal=512, pad=0>)
    outs(%d
      : !pto.tile_buf<loc=vec, dtype=f16, rows=16, cols=64, v_row=16, v_col=64, blayout=row_major, slayout=none_box, fractal=512, pad=0>)
  return
}
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_statement_over_several_lines(end: str) -> None:
    report = check(LONG.replace("\n", end))
    found = next(d for d in report.diagnostics if d.id == "type-pair")
    line = LONG.split("\n")[found.line - 1]
    assert found.line == 6
    assert line[found.column - 1 : found.column - 1 + found.length] == "f16"
    assert "\r" not in render([report], "text")


def test_a_generic_operation_is_pointed_at_as_a_whole() -> None:
    text = ODD.replace('"a3"', '"a5"')
    import pto

    generic = pto.print_module(pto.parse(text), generic=True)
    report = check(generic)
    assert [d.id for d in report.diagnostics] == ["round-mode"]
    line = generic.split("\n")[report.diagnostics[0].line - 1]
    assert '"pto.tcvt"' in line[report.diagnostics[0].column - 1 :]


def test_a_module_without_text_has_diagnostics_all_the_same() -> None:
    import pto
    from pto.passes.verify_tcvt import verify

    module = pto.parse(ODD)
    copy = module.clone()
    assert [d.id for d in verify(copy)] == ["round-mode"]
    assert verify(copy)[0].message == verify(module)[0].message


def test_json() -> None:
    value = json.loads(render([check(ODD, path="k.pto")], "json"))
    (file,) = value["files"]
    assert (file["path"], file["tcvt"], file["target"]) == ("k.pto", 1, "a2a3")
    (diagnostic,) = file["diagnostics"]
    assert diagnostic["severity"] == "error"
    assert diagnostic["id"] == "round-mode"
    assert (diagnostic["line"], diagnostic["column"]) == (3, 28)
    assert diagnostic["notes"][1] == "write: rmode = #pto<round_mode RINT>"
    assert value["summary"] == {"files": 1, "tcvt": 1, "errors": 1, "warnings": 0, "remarks": 0}


def all_examples() -> list[FileReport]:
    reports = []
    for info in registry().values():
        arch = ["--arch", info.arch] if info.arch else []
        on = [] if info.default else ["-W", info.id]
        reports.append(check(info.wrong, *arch, *info.options, *on, path=f"a b/{info.id}.pto"))
    return reports


def test_sarif_is_valid() -> None:
    """Against models generated from the OASIS schema, which forbid what it does not define."""
    log = json.loads(render(all_examples(), "sarif"))
    Sarif.model_validate(log)
    log["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(ValidationError):
        Sarif.model_validate(log)


def test_sarif_points_at_the_place() -> None:
    log = json.loads(render([check(ODD, path="a b/k.pto")], "sarif"))
    (run,) = log["runs"]
    (result,) = run["results"]
    assert log["version"] == "2.1.0"
    assert result["ruleId"] == run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"]
    assert result["level"] == "error"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b/k.pto"
    assert place["region"] == {"startLine": 3, "startColumn": 28, "endColumn": 48}


def test_sarif_levels() -> None:
    log = json.loads(render(all_examples(), "sarif"))
    levels = {"error": "error", "warning": "warning", "remark": "note"}
    for result in log["runs"][0]["results"]:
        assert result["level"] == levels[registry()[result["ruleId"]].severity]


def test_github() -> None:
    report = check(ODD, path="a,b/k.pto")
    (line,) = render([report], "github").splitlines()
    assert line.startswith(
        "::error file=a%2Cb/k.pto,line=3,col=28,endColumn=48,title=round-mode::"
        "f32 to bf16 does not round by ODD on a2a3%0Amodes of this pair"
    )
    notices = render(all_examples(), "github").splitlines()
    assert {line.split(" ")[0] for line in notices} == {"::error", "::warning", "::notice"}


def test_unknown_format() -> None:
    with pytest.raises(ValueError, match="formats: text, json, github, sarif"):
        render([], "xml")
