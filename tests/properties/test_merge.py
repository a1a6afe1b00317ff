"""Properties of merges: lossless, symmetric, consistent with git."""

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

# Few distinct lines, so that they repeat. One has a different line end, the last may have none.
lines = st.sampled_from(["a\n", "b\n", "c\n", "\n", "a\r\n"])


@st.composite
def edited(draw: st.DrawFn, base: list[str], added: st.SearchStrategy[str]) -> str:
    """Return the lines with one to three edits."""
    new = list(base)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(new)))
        new[start : start + draw(st.integers(0, 2))] = draw(st.lists(added, max_size=2))
    return "".join(new).removesuffix("\n") if draw(st.booleans()) else "".join(new)


@st.composite
def repeating(draw: st.DrawFn) -> tuple[str, str, str]:
    """A base and two sides with repeated lines."""
    base = draw(st.lists(lines, max_size=10))
    return "".join(base), draw(edited(base, lines)), draw(edited(base, lines))


@st.composite
def distinct(draw: st.DrawFn) -> tuple[str, str, str]:
    """A base without repeated lines, and two sides that add own or common lines."""
    base = [f"{number}\n" for number in range(draw(st.integers(0, 10)))]
    fresh = {side: st.sampled_from([f"{side}\n", "both\n"]) for side in ("local", "upstream")}
    local, upstream = (draw(edited(base, added)) for added in fresh.values())
    return "".join(base), local, upstream


texts = st.one_of(repeating(), distinct())


def git_merge(base: str, local: str, upstream: str, folder: Path) -> str | None:
    """Return the result of `git merge-file`; `None` for a conflict."""
    for name, text in (("base", base), ("local", local), ("upstream", upstream)):
        (folder / name).write_bytes(text.encode())
    command = ["git", "merge-file", "-p", "local", "base", "upstream"]
    process = subprocess.run(command, cwd=folder, check=False, capture_output=True)
    assert process.returncode < 128, process.stderr
    return process.stdout.decode() if process.returncode == 0 else None


@given(sides=distinct())
def test_merge_of_distinct_lines_equals_git(
    sides: tuple[str, str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert merge_text(*sides) == git_merge(*sides, tmp_path_factory.mktemp("git"))


def test_merge_of_repeated_lines_equals_git_or_conflicts(tmp_path: Path) -> None:
    # Git may place a change elsewhere. In these cases it does not.
    random = Random(1)  # noqa: S311 - the same cases in every run
    for _ in range(200):
        base = random.choices("abcde", k=random.randrange(12))
        sides = ["".join(f"{line}\n" for line in side) for side in (base, *_edits(base, random))]
        merged = merge_text(sides[0], sides[1], sides[2])
        if merged is not None:
            assert merged == git_merge(sides[0], sides[1], sides[2], tmp_path)


def _edits(base: list[str], random: Random) -> Iterator[list[str]]:
    for _ in range(2):
        side = list(base)
        for _ in range(random.randint(1, 3)):
            start = random.randint(0, len(side))
            side[start : start + random.randrange(3)] = random.choices(
                "abcde", k=random.randrange(3)
            )
        yield side


@given(texts)
def test_unchanged_side_takes_the_other(sides: tuple[str, str, str]) -> None:
    base, local, upstream = sides
    assert merge_text(base, base, upstream) == upstream
    assert merge_text(base, local, base) == local
    assert merge_text(base, local, local) == local


@given(texts)
def test_merge_is_symmetric(sides: tuple[str, str, str]) -> None:
    base, local, upstream = sides
    assert merge_text(base, local, upstream) == merge_text(base, upstream, local)


@given(texts)
@example(("a\nb", "a\nb\nc", "A\nx\na\nb"))
def test_merge_preserves_added_lines(sides: tuple[str, str, str]) -> None:
    merged = merge_text(*sides)
    assume(merged is not None)
    assert merged is not None
    before, local_counts, upstream_counts, after = (
        Counter(split_lines(text)) for text in (*sides, merged)
    )
    for line in (local_counts | upstream_counts).keys() - before.keys():
        assert after[line] >= max(local_counts[line], upstream_counts[line])


contents = st.sampled_from([b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n", b"\0", b"\xff"])
states = st.builds(FileState, contents, st.booleans())
paths = st.sampled_from(["SKILL.md", "skill.md", "a", "a/b", "A/b/c", "b"])
trees = st.dictionaries(paths, states, max_size=4)


@given(trees, trees, trees, st.booleans())
def test_merged_files_match_their_outcomes(
    base: dict[str, FileState],
    local: dict[str, FileState],
    upstream: dict[str, FileState],
    has_bytes: bool,
) -> None:
    bases = {path: MergeBase.from_file_state(state) for path, state in base.items()}
    if not has_bytes:
        bases = {path: state._replace(data=None) for path, state in bases.items()}
    merged = merge_files(bases, local, upstream)
    assert [outcome.path for outcome in merged.outcomes] == sorted({*base, *local, *upstream})
    for path, kind, _, _ in merged.outcomes:
        if kind in (MergeKind.CONFLICT, MergeKind.KEPT_LOCAL, MergeKind.UNCHANGED, MergeKind.SAME):
            assert merged.files.get(path) == local.get(path)
        if kind in (
            MergeKind.TAKEN_UPSTREAM,
            MergeKind.ADDED,
            MergeKind.REMOVED,
            MergeKind.UNCHANGED,
            MergeKind.SAME,
        ):
            assert merged.files.get(path) == upstream.get(path)
        if kind in (MergeKind.TAKEN_UPSTREAM, MergeKind.ADDED, MergeKind.REMOVED):
            assert local.get(path) == base.get(path)


@given(trees, trees)
def test_unchanged_files_become_the_upstream_files(
    base: dict[str, FileState], upstream: dict[str, FileState]
) -> None:
    merged = merge_files(
        {path: MergeBase.from_file_state(state) for path, state in base.items()}, base, upstream
    )
    clashing = {outcome.path for outcome in merged.conflicts}
    assert merged.files == {path: state for path, state in upstream.items() if path not in clashing}
    assert not clashing & base.keys()
