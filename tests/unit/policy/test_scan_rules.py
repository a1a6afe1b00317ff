import pytest

from skillhall._internal.policy.scan_rules import (
    ALWAYS_SKIPPED,
    GENERATED_FOLDERS,
    EmptyFolderPolicy,
    ScanPolicy,
    installed_prefix_length,
)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".git", "never part of a skill"),
        ("._pdf", "never part of a skill"),
        ("node_modules", "ignored by name"),
        (".venv", "ignored by name"),
        (".hidden", "hidden"),
        ("pdf", None),
        ("Node_Modules", None),
        ("_pdf", None),
    ],
)
def test_an_entry_is_passed_over_for_a_reason(name: str, reason: str | None) -> None:
    assert ScanPolicy(skip_names=GENERATED_FOLDERS).reason_to_skip(name) == reason


def test_hidden_entries_are_kept_where_that_is_asked() -> None:
    policy = ScanPolicy(skip_hidden=False)
    assert policy.reason_to_skip(".hidden") is None
    assert policy.reason_to_skip(".git") == "never part of a skill"


def test_litter_starts_with_a_dot_or_an_underscore() -> None:
    assert {name[0] for name in ALWAYS_SKIPPED} == {".", "_"}


def test_a_folder_without_a_skill_is_a_place_to_look_into_once_the_search_goes_deeper() -> None:
    assert ScanPolicy().with_depth(1).empty_folders is EmptyFolderPolicy.REJECT
    assert ScanPolicy().with_depth(2).empty_folders is EmptyFolderPolicy.REJECT_AMONG_SKILLS


@pytest.mark.parametrize(
    ("name", "parent", "is_group"),
    [
        (".curated", "skills", True),
        (".system", "skills", True),
        (".curated", "docs", False),
        (".curated", "", False),
        ("curated", "skills", False),
        ("..2026_11_16_10_00_00.123", "skills", False),
        (".github", "skills", False),
        (".cache", "skills", False),
        (".disabled", "skills", False),
        (".Trash", "skills", False),
        (".skillhall-0123456789abcdef", "skills", False),
    ],
)
def test_hidden_groups_of_skills_are_searched_in_collections(
    name: str, parent: str, is_group: bool
) -> None:
    assert ScanPolicy(search_as_repository=True).is_hidden_group(name, parent) is is_group
    assert not ScanPolicy().is_hidden_group(name, parent)


@pytest.mark.parametrize(
    ("path", "depth"),
    [
        (".claude/skills/pdf", 2),
        (".opencode/skill/pdf", 2),
        (".skills/pdf", 1),
        (".claude/commands/pdf", 0),
        ("claude/skills/pdf", 0),
        (".git/skills/pdf", 0),
        (".venv/skills/pdf", 0),
        (".cache/skills/pdf", 0),
        ("", 0),
    ],
)
def test_the_folders_of_agents_are_known_by_their_shape(path: str, depth: int) -> None:
    assert installed_prefix_length(path.split("/")) == depth
