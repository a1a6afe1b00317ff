from dataclasses import dataclass

import pytest

from skillhall._internal.policy.selection import Globs, Selection, matches_glob, select_skills
from skillhall._internal.policy.visibility import is_visible_to_models
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parsed import Frontmatter
from skillhall._internal.skill.yaml.values import YamlValue


@dataclass(frozen=True)
class Named:
    name: str
    location: str = "/a/SKILL.md"


def chosen(globs: Globs, *names: str) -> tuple[list[str], list[str], list[Code]]:
    selection = select_skills([Named(name) for name in names], globs)
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


def test_a_run_of_stars_is_not_slow() -> None:
    assert not matches_glob("*" * 5000 + "b", "a" * 1000)


def test_everything_is_listed_when_nothing_is_said() -> None:
    assert chosen(Globs(), "a", "b") == (["a", "b"], [], [])


def test_nothing_is_listed_when_only_inline_is_given() -> None:
    assert chosen(Globs(inline=("a",)), "a", "b") == ([], ["a"], [])


@pytest.mark.parametrize("globs", [Globs((), None), Globs((), ()), Globs(None, ())])
def test_an_empty_list_selects_nothing(globs: Globs) -> None:
    assert chosen(globs, "a") == ([], [], [])


def test_inline_wins_over_available_with_a_finding() -> None:
    listed, inlined, codes = chosen(Globs(("*",), ("b",)), "a", "b", "c")
    assert (listed, inlined, codes) == (["a", "c"], ["b"], [Code.INLINE_WINS])


def test_a_pattern_that_matches_nothing_is_found_once() -> None:
    _, _, codes = chosen(Globs(("x", "x", "a"), ("x", "y*")), "a")
    assert codes == [Code.PATTERN_UNMATCHED, Code.PATTERN_UNMATCHED]


def test_the_default_pattern_is_no_finding_in_an_empty_source() -> None:
    assert select_skills([], Globs()) == Selection()


def test_skills_stay_in_their_order_whatever_the_order_of_patterns() -> None:
    assert chosen(Globs(("b", "a")), "a", "b")[0] == ["a", "b"]


def test_skills_of_one_name_are_all_selected() -> None:
    assert chosen(Globs(None, ("a",)), "a", "a")[1] == ["a", "a"]


@pytest.mark.parametrize(("value", "shown"), [(True, False), ("true", False), (False, True)])
def test_a_skill_that_disables_model_invocation_is_not_shown(value: YamlValue, shown: bool) -> None:
    assert (
        is_visible_to_models(Frontmatter.from_fields({"disable-model-invocation": value})) is shown
    )


def test_a_skill_is_shown_unless_it_says_otherwise() -> None:
    assert is_visible_to_models(Frontmatter.from_fields({"name": "a"}))
