import pytest

from skillhall._internal.policy.folder_walk_rules import (
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
def test_skipped_entry_has_a_reason(name: str, reason: str | None) -> None:
    assert ScanPolicy(skip_names=GENERATED_FOLDERS).reason_to_skip(name) == reason


def test_hidden_entries_can_be_included() -> None:
    policy = ScanPolicy(skip_hidden=False)
    assert policy.reason_to_skip(".hidden") is None
    assert policy.reason_to_skip(".git") == "never part of a skill"


def test_always_skipped_names_start_with_dot_or_underscore() -> None:
    assert {name[0] for name in ALWAYS_SKIPPED} == {".", "_"}


def test_deeper_scan_allows_folders_without_a_skill() -> None:
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
def test_hidden_groups_are_searched_only_in_repositories(
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
def test_install_folders_of_agents_are_recognized(path: str, depth: int) -> None:
    assert installed_prefix_length(path.split("/")) == depth
