"""Trees of commits: files of a skill, and findings about skipped ones."""

import pytest

from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.finding import Code
from skillhall._internal.sources.commit_tree import (
    MODE_EXECUTABLE,
    MODE_LINK,
    MODE_REGULAR,
    MODE_SUBMODULE,
    CommitSkill,
    TreeEntry,
    collect_level,
    collect_skills,
    iterate_files,
    searchable_paths,
)
from skillhall._internal.sources.folder.bundle_reader import (
    MAX_DEPTH,
    MAX_FILE_SIZE,
    MAX_FILES,
    MAX_TOTAL_SIZE,
)


def entry(path: str, size: int | None = 1, mode: str = MODE_REGULAR) -> TreeEntry:
    return TreeEntry(path, mode, "1" * 40, size)


def draft(*entries: TreeEntry, folder: str = "") -> CommitSkill:
    [made] = collect_skills(entries, [folder])
    return made


def draft_of(*paths: str) -> CommitSkill:
    return draft(*map(entry, paths))


def found(made: CommitSkill) -> list[tuple[Code, str]]:
    return [(finding.code, finding.path) for finding in made.findings]


# Linked skills


def test_linked_skill_folder_is_reported_with_any_name() -> None:
    links = [entry(path, mode=MODE_LINK) for path in ("folder", "flat.md", "half/SKILL.md", "con")]
    _, findings = collect_level(
        [*links, entry("docs/x")], "", PROMPT_REPOSITORY.scan_policy, "acme/skills"
    )
    assert sorted((finding.code, finding.path) for finding in findings) == [
        (Code.LINK_SKIPPED, ""),
        (Code.LINK_SKIPPED, "flat.md"),
        (Code.LINK_SKIPPED, "folder"),
        (Code.LINK_SKIPPED, "half/SKILL.md"),
        (Code.NO_SKILL_MD, "docs"),
    ]


# Files of a skill


def test_file_belongs_to_innermost_enclosing_skill() -> None:
    entries = [entry(path) for path in ("a/SKILL.md", "a/b/c", "ab/x", "x", "d/SKILL.md")]
    drafts = collect_skills(entries, ["d", "a"])
    assert [(made.folder, list(made.entries)) for made in drafts] == [
        ("d", ["SKILL.md"]),
        ("a", ["SKILL.md", "b/c"]),
    ]


def test_order_of_listing_does_not_matter() -> None:
    paths = ["b", "a/x", "a.md", "A", "a/y"]
    assert draft_of(*paths) == draft_of(*reversed(paths))
    assert list(draft_of(*paths).entries) == ["A", "a.md", "a/x", "a/y", "b"]


def test_bundle_has_bytes_and_modes_of_commit() -> None:
    made = draft(
        TreeEntry("s/go", MODE_EXECUTABLE, "1"), TreeEntry("s/x", "100664", "2"), folder="s"
    )
    made.apply_size_limits({"1": 2, "2": 0})
    bundle = made.build_bundle({"1": b"go", "2": b""})
    assert isinstance(bundle, Bundle)
    assert bundle.folder == "s"
    assert [(f.path.text, f.size, f.executable, f.read()) for f in bundle.files.values()] == [
        ("go", 2, True, b"go"),
        ("x", 0, False, b""),
    ]


def test_root_skill_has_empty_folder() -> None:
    assert draft_of("SKILL.md").build_bundle({"1" * 40: b"x"}).folder == ""


# Candidates


@pytest.mark.parametrize("mode", [MODE_LINK, MODE_SUBMODULE, "100000", "040000"])
def test_linked_skill_md_is_not_a_skill(mode: str) -> None:
    assert searchable_paths([entry("a/SKILL.md", mode=mode)]) == []


@pytest.mark.parametrize(
    "folder",
    [
        *("..", "../up", "/abs", "a//b", ".", "./a", "nul", "a\x1bb", "a\udcff", "C:", "end.", "~"),
        *(".git", ".GIT/x", "git~1", "x/.svn", ".hg", "__MACOSX", "._a"),
    ],
)
def test_unsafe_folder_has_no_skill(folder: str) -> None:
    assert searchable_paths([entry(f"{folder}/SKILL.md"), entry("a/SKILL.md")]) == ["a/SKILL.md"]


def test_searchable_paths_does_not_check_other_files() -> None:
    paths = ["a/nul", "a/../x", ".git/config", "SKILL.md.txt"]
    assert searchable_paths([entry(path) for path in paths]) == paths


# Skipped files


@pytest.mark.parametrize("path", ["__MACOSX/x", "._x", ".DS_Store", "a/.ds_store"])
def test_macos_metadata_gives_no_finding(path: str) -> None:
    made = draft_of(path)
    assert (made.entries, made.findings) == ({}, [])


@pytest.mark.parametrize(
    ("mode", "why", "hint"),
    [
        (MODE_LINK, "it is a link", "copy the file instead"),
        (MODE_SUBMODULE, "it is a submodule", "copy its files instead"),
        ("100000", "it is not a regular file", "remove it"),
    ],
)
def test_non_file_is_skipped_with_hint(mode: str, why: str, hint: str) -> None:
    made = draft(entry("x", mode=mode))
    assert made.entries == {}
    [finding] = made.findings
    assert (finding.code, finding.path, finding.hint) == (Code.FILE_LEFT_OUT, "x", hint)
    assert finding.message == f"left out of the skill's files: {why}"


@pytest.mark.parametrize("mode", [MODE_REGULAR, MODE_LINK])
@pytest.mark.parametrize("path", ["../x", "/x", "a//b", "./a", "a/./b", "nul", "a\x1bb", "a\udcff"])
def test_unsafe_path_is_skipped_and_escaped(path: str, mode: str) -> None:
    made = draft(entry(f"s/{path}", mode=mode), folder="s")
    assert made.entries == {}
    assert found(made) == [(Code.FILE_LEFT_OUT, "")]
    assert made.findings[0].message.isprintable()
    assert made.findings[0].hint


def test_version_control_folder_is_reported_once() -> None:
    made = draft_of(".git/config", ".git/hooks/x", "a/.SVN/b", "git~1", ".gitignore")
    assert list(made.entries) == [".gitignore"]
    assert found(made) == [(Code.FILE_LEFT_OUT, path) for path in (".git", "a/.SVN", "git~1")]


def test_file_beyond_depth_limit_is_skipped() -> None:
    deepest = "d/" * MAX_DEPTH + "x"
    made = draft_of(deepest, f"d/{deepest}")
    assert list(made.entries) == [deepest]
    assert found(made) == [(Code.FILE_LEFT_OUT, f"d/{deepest}")]


def test_depth_is_counted_from_skill_folder() -> None:
    folder = "/".join(["f"] * MAX_DEPTH)
    made = draft(entry(f"{folder}/{'d/' * MAX_DEPTH}x"), folder=folder)
    assert (len(made.entries), made.findings) == (1, [])


def test_path_below_a_file_is_skipped() -> None:
    made = draft_of("a", "a.b", "a/x/y")
    assert list(made.entries) == ["a", "a.b"]
    assert found(made) == [(Code.FILE_LEFT_OUT, "a/x/y")]


# Colliding names


@pytest.mark.parametrize(
    ("first", "second"),
    [("A", "a"), ("ﬁ", "fi"), ("e\u0301", "é"), ("ß", "SS"), ("A", "a/x"), ("d/A", "d/a")],
)
def test_colliding_names_are_kept_and_reported(first: str, second: str) -> None:
    made = draft_of(first, second)
    assert sorted(made.entries) == sorted([first, second])
    [finding] = made.findings
    assert (finding.code, finding.hint) == (Code.CASE_COLLISION, "rename one of them")


def test_colliding_folders_are_reported_once() -> None:
    made = draft_of("A/x", "A/y", "a/x", "a/z/x")
    assert len(made.entries) == 4
    assert found(made) == [(Code.CASE_COLLISION, "a")]


def test_names_in_colliding_folders_are_compared_too() -> None:
    made = draft_of("A/x", "a/Y", "a/y")
    assert found(made) == [(Code.CASE_COLLISION, "a"), (Code.CASE_COLLISION, "a/y")]


def test_skipped_file_does_not_collide() -> None:
    made = draft(entry("A", mode=MODE_LINK), entry("a"))
    assert found(made) == [(Code.FILE_LEFT_OUT, "A")]


# Limits


def test_file_limit_is_reported_once() -> None:
    made = draft_of(*(f"{number:05}" for number in range(MAX_FILES + 5)))
    assert len(made.entries) == MAX_FILES
    assert found(made) == [(Code.TOO_MANY_FILES, "")]


@pytest.mark.parametrize("known", [True, False])
def test_file_beyond_size_limit_is_skipped(known: bool) -> None:
    sizes = {"a": MAX_FILE_SIZE, "b": MAX_FILE_SIZE + 1, "c": 0}
    entries = [
        TreeEntry(name, MODE_REGULAR, name, size if known else None) for name, size in sizes.items()
    ]
    made = draft(*entries)
    made.apply_size_limits({} if known else sizes)
    assert [(item.path, item.size) for item in iterate_files([made])] == [
        ("a", MAX_FILE_SIZE),
        ("c", 0),
    ]
    assert found(made) == [(Code.FILE_TOO_LARGE, "b")]


@pytest.mark.parametrize("known", [True, False])
def test_files_beyond_total_size_are_skipped(known: bool) -> None:
    count = MAX_TOTAL_SIZE // MAX_FILE_SIZE
    sizes = {f"{number:02}": MAX_FILE_SIZE for number in range(count)} | {"x": 0, "y": 1, "z": 0}
    entries = [
        TreeEntry(name, MODE_REGULAR, name, size if known else None) for name, size in sizes.items()
    ]
    made = draft(*entries)
    made.apply_size_limits({} if known else sizes)
    assert list(made.entries) == list(sizes)[: count + 1]
    assert found(made) == [(Code.FILE_TOO_LARGE, "y")]


def test_late_sizes_give_the_same_files() -> None:
    names = [f"{number:05}" for number in range(MAX_FILES + 1)]
    sizes = dict.fromkeys(names, 1) | {names[0]: MAX_FILE_SIZE + 1}
    before = draft(*(TreeEntry(name, MODE_REGULAR, name, sizes[name]) for name in names))
    after = draft(*(TreeEntry(name, MODE_REGULAR, name) for name in names))
    before.apply_size_limits()
    after.apply_size_limits(sizes)
    assert before == after
    assert found(after) == [(Code.TOO_MANY_FILES, ""), (Code.FILE_TOO_LARGE, names[0])]
