from typing import Any

from skillhall._internal.cli.commands.author.report_formats import (
    build_sarif,
    format_github,
    format_text,
    shorten_path,
    to_sarif_results,
)
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.skill.finding import Code, Finding

FOUND = JudgedFinding(
    Finding(Code.YAML_REPAIRED, "a: b, 100%", 3, "quote it", "/base/x, y/SKILL.md", "x"),
    Effect.REJECT,
)
NOTE = JudgedFinding(Finding(Code.ROOT_MISSING, "gone", path="/other"), Effect.WARN)


def test_text_format_resembles_compiler_output() -> None:
    assert list(format_text([FOUND, NOTE], "/base")) == [
        "x, y/SKILL.md:3: reject[yaml-repaired]: a: b, 100%",
        "    hint: quote it",
        "/other: warn[root-missing]: gone",
    ]


def test_colors_wrap_only_the_effect_and_code() -> None:
    line = next(format_text([FOUND], "/base", color=True))
    assert line == "x, y/SKILL.md:3: \x1b[1;31mreject[yaml-repaired]\x1b[0m: a: b, 100%"


def test_hostile_path_cannot_forge_a_line() -> None:
    finding = Finding(Code.BOM, "m\n::error::x", 1, path="/base/a\n\x1b[2J")
    (line,) = format_text([JudgedFinding(finding, Effect.WARN)], "/base")
    assert line.isprintable()
    (command,) = format_github([JudgedFinding(finding, Effect.WARN)], "/base")
    assert command.isprintable()


def test_github_commands_are_escaped() -> None:
    assert list(format_github([FOUND], "/base")) == [
        "::error file=x%2C y/SKILL.md,line=3,title=yaml-repaired::a: b, 100%25 (hint: quote it)"
    ]


def test_sarif_has_rules_levels_and_locations() -> None:
    log: Any = build_sarif(to_sarif_results([FOUND, NOTE, FOUND]), "/base")
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "root-missing",
        "yaml-repaired",
    ]
    assert [(r["ruleId"], r["ruleIndex"], r["level"]) for r in run["results"]] == [
        ("yaml-repaired", 1, "error"),
        ("root-missing", 0, "warning"),
        ("yaml-repaired", 1, "error"),
    ]
    location = run["results"][0]["locations"][0]["physicalLocation"]
    assert location == {
        "artifactLocation": {"uri": "x%2C%20y/SKILL.md"},
        "region": {"startLine": 3},
    }
    other = run["results"][1]["locations"][0]["physicalLocation"]
    assert other["artifactLocation"] == {"uri": "file:///other"}


def test_path_is_relative_only_below_the_working_directory() -> None:
    assert shorten_path("/base/a", "/base") == "a"
    assert shorten_path("/base-2/a", "/base") == "/base-2/a"
    assert shorten_path("/a", "/") == "a"
