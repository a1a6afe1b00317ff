from dataclasses import dataclass

import pytest

from skillhall._internal.policy.selection import Globs, Selection, matches_glob, select_skills
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.skill.yaml.values import YamlValue


@dataclass(frozen=True)
class NamedSkill:
    name: str
    location: str = "/a/SKILL.md"


def select(globs: Globs, *names: str) -> tuple[list[str], list[str], list[Code]]:
    selection = select_skills([NamedSkill(name) for name in names], globs)
    return (
        [skill.name for skill in selection.listed],
        [skill.name for skill in selection.inlined],
        [finding.code for finding in selection.findings],
    )


@pytest.mark.parametrize(
    ("pattern", "name", "matched"),
    [
        ("pdf", "pdf", True),
        ("pdf", "pdf-tools", False),
        ("pdf", "my-pdf", False),
        ("PDF", "pdf", False),
        ("*", "", True),
        ("*", "a\nb", True),
        ("p*f", "pdf", True),
        ("p*f", "pf", True),
        ("p?f", "pdf", True),
        ("p?f", "pf", False),
        ("p**f", "pdf", True),
        ("*?", "", False),
        ("[pq]df", "pdf", False),
        ("[pq]df", "[pq]df", True),
        ("p.f", "pdf", False),
        ("{a,b}", "a", False),
        ("!a", "b", False),
        ("", "", True),
        ("", "a", False),
        ("日*", "日本", True),
    ],
)
def test_stars_and_question_marks_are_the_only_wildcards(
    pattern: str, name: str, matched: bool
) -> None:
    assert matches_glob(pattern, name) is matched


def test_run_of_stars_is_fast() -> None:
    assert not matches_glob("*" * 5000 + "b", "a" * 1000)


def test_everything_is_listed_by_default() -> None:
    assert select(Globs(), "a", "b") == (["a", "b"], [], [])


def test_nothing_is_listed_with_only_inline_patterns() -> None:
    assert select(Globs(inline=("a",)), "a", "b") == ([], ["a"], [])


@pytest.mark.parametrize("globs", [Globs((), None), Globs((), ()), Globs(None, ())])
def test_empty_pattern_list_selects_nothing(globs: Globs) -> None:
    assert select(globs, "a") == ([], [], [])


def test_inline_wins_over_available_with_a_finding() -> None:
    listed, inlined, codes = select(Globs(("*",), ("b",)), "a", "b", "c")
    assert (listed, inlined, codes) == (["a", "c"], ["b"], [Code.INLINE_WINS])


def test_unmatched_pattern_is_reported_once() -> None:
    _, _, codes = select(Globs(("x", "x", "a"), ("x", "y*")), "a")
    assert codes == [Code.PATTERN_UNMATCHED, Code.PATTERN_UNMATCHED]


def test_default_pattern_has_no_finding_in_empty_source() -> None:
    assert select_skills([], Globs()) == Selection()


def test_order_of_skills_is_independent_of_patterns() -> None:
    assert select(Globs(("b", "a")), "a", "b")[0] == ["a", "b"]


def test_duplicate_names_are_all_selected() -> None:
    assert select(Globs(None, ("a",)), "a", "a")[1] == ["a", "a"]


@pytest.mark.parametrize(("value", "visible"), [(True, False), ("true", False), (False, True)])
def test_skill_that_disables_model_invocation_is_hidden(value: YamlValue, visible: bool) -> None:
    assert (
        is_visible_to_models(Frontmatter.from_fields({"disable-model-invocation": value}))
        is visible
    )


def test_skill_is_visible_by_default() -> None:
    assert is_visible_to_models(Frontmatter.from_fields({"name": "a"}))
