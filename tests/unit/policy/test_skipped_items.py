"""What a source does not serve: one row for each path, whatever the number of findings."""

from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.policy.skipped_items import SkippedItem, collect_skipped
from skillhall._internal.skill.finding import Code, Finding


def rows(*findings: Finding) -> tuple[SkippedItem, ...]:
    return collect_skipped(PROMPT_REPOSITORY.load_policy.judge(findings))


def test_only_findings_that_leave_something_out_make_a_row() -> None:
    accepted = Finding(Code.CRLF, "CRLF", path="a.md")
    warned = Finding(Code.BODY_LARGE, "large", path="a.md")
    shadowed = Finding(Code.SHADOWED, "shadowed", path="b/SKILL.md", skill="b")
    assert rows(accepted, warned, shadowed) == (
        SkippedItem("b", "b/SKILL.md", Code.SHADOWED, "shadowed"),
    )


def test_several_reasons_for_one_path_share_a_row() -> None:
    first = Finding(Code.FLAT_NAME_MISSING, "no name", path="a.md")
    second = Finding(Code.DESCRIPTION_MISSING, "no description", path="a.md")
    expected = SkippedItem("a", "a.md", Code.FLAT_NAME_MISSING, "no name; no description")
    assert rows(first, second, first) == (expected,)


def test_entries_without_a_safe_path_stay_apart_and_rows_are_in_path_order() -> None:
    unsafe = [Finding(Code.UNSAFE_PATH, text) for text in ("one", "two")]
    found = rows(Finding(Code.NOT_UTF8, "x", path="z.md"), *unsafe)
    assert [(one.path, one.message) for one in found] == [("", "one"), ("", "two"), ("z.md", "x")]
