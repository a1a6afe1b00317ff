"""Merges lose nothing, know no sides, and agree with git."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from skillhall._internal.skill.line_diff import split_lines
from skillhall._internal.skill.merge import FileState, MergeBase, MergeKind, merge_files, merge_text

# Few different lines, so that they repeat; one has another end, and the last may have none.
lines = st.sampled_from(["a\n", "b\n", "c\n", "\n", "a\r\n"])


@st.composite
def edited(draw: st.DrawFn, base: list[str], added: st.SearchStrategy[str]) -> str:
    """The lines with one to three places changed."""
    new = list(base)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(new)))
        new[start : start + draw(st.integers(0, 2))] = draw(st.lists(added, max_size=2))
    return "".join(new).removesuffix("\n") if draw(st.booleans()) else "".join(new)


@st.composite
def repeating(draw: st.DrawFn) -> tuple[str, str, str]:
    """A base and two sides of few different lines."""
    base = draw(st.lists(lines, max_size=10))
    return "".join(base), draw(edited(base, lines)), draw(edited(base, lines))


@st.composite
def distinct(draw: st.DrawFn) -> tuple[str, str, str]:
    """A base in which no line repeats, and two sides that add lines of their own, or in common."""
    base = [f"{number}\n" for number in range(draw(st.integers(0, 10)))]
    fresh = {side: st.sampled_from([f"{side}\n", "both\n"]) for side in ("mine", "theirs")}
    mine, theirs = (draw(edited(base, added)) for added in fresh.values())
    return "".join(base), mine, theirs


texts = st.one_of(repeating(), distinct())


def git_merge(base: str, mine: str, theirs: str, folder: Path) -> str | None:
    """What `git merge-file` makes of it; `None` for a conflict."""
    for name, text in (("base", base), ("mine", mine), ("theirs", theirs)):
        (folder / name).write_bytes(text.encode())
    command = ["git", "merge-file", "-p", "mine", "base", "theirs"]
    ended = subprocess.run(command, cwd=folder, check=False, capture_output=True)
    assert ended.returncode < 128, ended.stderr
    return ended.stdout.decode() if ended.returncode == 0 else None


@given(sides=distinct())
def test_where_no_line_repeats_git_merges_the_same(
    sides: tuple[str, str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert merge_text(*sides) == git_merge(*sides, tmp_path_factory.mktemp("git"))


def test_where_lines_repeat_nothing_is_merged_that_git_leaves_to_a_person(tmp_path: Path) -> None:
    # Git may see a change in another place than we do; these cases show that it is rare.
    chance = Random(1)  # noqa: S311 - the same cases in every run
    for _ in range(200):
        base = chance.choices("abcde", k=chance.randrange(12))
        sides = ["".join(f"{line}\n" for line in one) for one in (base, *_edits(base, chance))]
        merged = merge_text(sides[0], sides[1], sides[2])
        if merged is not None:
            assert merged == git_merge(sides[0], sides[1], sides[2], tmp_path)


def _edits(base: list[str], chance: Random) -> Iterator[list[str]]:
    for _ in range(2):
        side = list(base)
        for _ in range(chance.randint(1, 3)):
            start = chance.randint(0, len(side))
            side[start : start + chance.randrange(3)] = chance.choices(
                "abcde", k=chance.randrange(3)
            )
        yield side


@given(texts)
def test_a_side_that_changed_nothing_takes_the_other_one(sides: tuple[str, str, str]) -> None:
    base, mine, theirs = sides
    assert merge_text(base, base, theirs) == theirs
    assert merge_text(base, mine, base) == mine
    assert merge_text(base, mine, mine) == mine


@given(texts)
def test_a_merge_knows_no_sides(sides: tuple[str, str, str]) -> None:
    base, mine, theirs = sides
    assert merge_text(base, mine, theirs) == merge_text(base, theirs, mine)


@given(texts)
@example(("a\nb", "a\nb\nc", "A\nx\na\nb"))
def test_no_added_line_vanishes_in_a_merge(sides: tuple[str, str, str]) -> None:
    merged = merge_text(*sides)
    assume(merged is not None)
    assert merged is not None
    before, here, there, after = (Counter(split_lines(text)) for text in (*sides, merged))
    for line in (here | there).keys() - before.keys():
        assert after[line] >= max(here[line], there[line])


contents = st.sampled_from([b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n", b"\0", b"\xff"])
states = st.builds(FileState, contents, st.booleans())
paths = st.sampled_from(["SKILL.md", "skill.md", "a", "a/b", "A/b/c", "b"])
trees = st.dictionaries(paths, states, max_size=4)


@given(trees, trees, trees, st.booleans())
def test_files_that_only_a_person_changed_stay_and_every_path_has_an_outcome(
    base: dict[str, FileState],
    mine: dict[str, FileState],
    theirs: dict[str, FileState],
    has_bytes: bool,
) -> None:
    known = {path: MergeBase.from_file_state(one) for path, one in base.items()}
    if not has_bytes:
        known = {path: one._replace(data=None) for path, one in known.items()}
    merged = merge_files(known, mine, theirs)
    assert [one.path for one in merged.outcomes] == sorted({*base, *mine, *theirs})
    for path, kind, _, _ in merged.outcomes:
        if kind in (MergeKind.CONFLICT, MergeKind.KEPT_LOCAL, MergeKind.UNCHANGED, MergeKind.SAME):
            assert merged.files.get(path) == mine.get(path)
        if kind in (
            MergeKind.TAKEN_UPSTREAM,
            MergeKind.ADDED,
            MergeKind.REMOVED,
            MergeKind.UNCHANGED,
            MergeKind.SAME,
        ):
            assert merged.files.get(path) == theirs.get(path)
        if kind in (MergeKind.TAKEN_UPSTREAM, MergeKind.ADDED, MergeKind.REMOVED):
            assert mine.get(path) == base.get(path)


@given(trees, trees)
def test_files_that_nobody_touched_become_those_of_upstream(
    base: dict[str, FileState], theirs: dict[str, FileState]
) -> None:
    merged = merge_files(
        {path: MergeBase.from_file_state(one) for path, one in base.items()}, base, theirs
    )
    clashing = {one.path for one in merged.conflicts}
    assert merged.files == {path: one for path, one in theirs.items() if path not in clashing}
    assert not clashing & base.keys()
