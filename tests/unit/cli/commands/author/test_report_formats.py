from typing import Any

from skillhall._internal.cli.commands.author.report_formats import (
    as_github,
    as_sarif,
    as_text,
    coloured,
    judged_results,
    shown_path,
)
from skillhall._internal.policy.effects import Effect, Judged
from skillhall._internal.skill.finding import Code, Finding

FOUND = Judged(
    Finding(Code.YAML_REPAIRED, "a: b, 100%", 3, "quote it", "/base/x, y/SKILL.md", "x"),
    Effect.REJECT,
)
NOTE = Judged(Finding(Code.ROOT_MISSING, "gone", path="/other"), Effect.WARN)


def test_text_reads_like_a_compiler() -> None:
    assert list(as_text([FOUND, NOTE], "/base")) == [
        "x, y/SKILL.md:3: reject[yaml-repaired]: a: b, 100%",
        "    hint: quote it",
        "/other: warn[root-missing]: gone",
    ]


def test_colours_wrap_only_the_effect_and_code() -> None:
    line = next(as_text([FOUND], "/base", coloured))
    assert line == "x, y/SKILL.md:3: \x1b[1;31mreject[yaml-repaired]\x1b[0m: a: b, 100%"


def test_a_hostile_path_cannot_forge_a_line() -> None:
    finding = Finding(Code.BOM, "m\n::error::x", 1, path="/base/a\n\x1b[2J")
    (line,) = as_text([Judged(finding, Effect.WARN)], "/base")
    assert line.isprintable()
    (command,) = as_github([Judged(finding, Effect.WARN)], "/base")
    assert command.isprintable()


def test_github_commands_are_escaped() -> None:
    assert list(as_github([FOUND], "/base")) == [
        "::error file=x%2C y/SKILL.md,line=3,title=yaml-repaired::a: b, 100%25 (hint: quote it)"
    ]


def test_sarif_names_rules_levels_and_places() -> None:
    log: Any = as_sarif(judged_results([FOUND, NOTE, FOUND]), "/base", "1.2")
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
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "x%2C%20y/SKILL.md"},
        "region": {"startLine": 3},
    }
    other = run["results"][1]["locations"][0]["physicalLocation"]
    assert other["artifactLocation"] == {"uri": "file:///other"}


def test_a_path_is_relative_only_below_the_working_directory() -> None:
    assert shown_path("/base/a", "/base") == "a"
    assert shown_path("/base-2/a", "/base") == "/base-2/a"
    assert shown_path("/a", "/") == "a"
