"""Tests of skipped items: one per path."""

from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.policy.skipped_items import SkippedItem, collect_skipped
from skillhall._internal.skill.finding import Code, Finding


def collect(*findings: Finding) -> tuple[SkippedItem, ...]:
    return collect_skipped(PROMPT_REPOSITORY.load_policy.judge(findings))


def test_only_findings_that_skip_something_give_an_item() -> None:
    accepted = Finding(Code.CRLF, "CRLF", path="a.md")
    warned = Finding(Code.BODY_LARGE, "large", path="a.md")
    shadowed = Finding(Code.SHADOWED, "shadowed", path="b/SKILL.md", skill="b")
    assert collect(accepted, warned, shadowed) == (
        SkippedItem("b", "b/SKILL.md", Code.SHADOWED, "shadowed"),
    )


def test_reasons_for_one_path_share_an_item() -> None:
    first = Finding(Code.FLAT_NAME_MISSING, "no name", path="a.md")
    second = Finding(Code.DESCRIPTION_MISSING, "no description", path="a.md")
    expected = SkippedItem("a", "a.md", Code.FLAT_NAME_MISSING, "no name; no description")
    assert collect(first, second, first) == (expected,)


def test_items_without_a_path_are_separate_and_first() -> None:
    unsafe = [Finding(Code.UNSAFE_PATH, text) for text in ("one", "two")]
    items = collect(Finding(Code.NOT_UTF8, "x", path="z.md"), *unsafe)
    assert [(item.path, item.message) for item in items] == [
        ("", "one"),
        ("", "two"),
        ("z.md", "x"),
    ]
