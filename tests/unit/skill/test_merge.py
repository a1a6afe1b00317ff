import pytest

from skillhall._internal.skill.merge import (
    ConflictReason,
    FileState,
    MergeBase,
    MergeKind,
    MergeResult,
    merge_files,
    merge_text,
)

BASE = "one\ntwo\nthree\nfour\nfive\n"


@pytest.mark.parametrize(
    ("local", "upstream", "merged"),
    [
        (
            "ONE\ntwo\nthree\nfour\nfive\n",
            "one\ntwo\nthree\nfour\nFIVE\n",
            "ONE two three four FIVE",
        ),
        ("one\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\n5\n6\n", "one three four 5 6"),
        ("zero\n" + BASE, BASE + "six\n", "zero one two three four five six"),
        ("one\ntwo\n3\nfour\nfive\n", "ONE\ntwo\n3\nfour\nfive\n", "ONE two 3 four five"),
        ("one\n2\n3\nfour\nfive\n", "one\n2\n3\nfour\nfive\nsix\n", "one 2 3 four five six"),
    ],
    ids=["changed", "removed and grown", "both ends", "one change in common", "one side contained"],
)
def test_separate_changes_are_merged(local: str, upstream: str, merged: str) -> None:
    assert merge_text(BASE, local, upstream) == merged.replace(" ", "\n") + "\n"


@pytest.mark.parametrize(
    ("local", "upstream"),
    [
        ("one\nTWO\nthree\nfour\nfive\n", "one\nZWEI\nthree\nfour\nfive\n"),
        ("ONE\ntwo\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n"),
        ("one\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n"),
        (BASE + "six\n", BASE + "seven\n"),
        (BASE + "six\n", BASE + "six\nseven\n"),
        ("", "one\nTWO\nthree\nfour\nfive\n"),
    ],
    ids=["one line", "neighbors", "removed", "both grown", "one grown further", "all removed"],
)
def test_adjacent_changes_conflict(local: str, upstream: str) -> None:
    assert merge_text(BASE, local, upstream) is None
    assert merge_text(BASE, upstream, local) is None


def test_merge_preserves_line_ends() -> None:
    base = "one\r\ntwo\nthree\x0bx\u2028y\r\nfour"
    local, upstream = base.replace("one", "1"), base.replace("four", "4")
    assert merge_text(base, local, upstream) == "1\r\ntwo\nthree\x0bx\u2028y\r\n4"


def test_final_newline_is_merged_like_any_change() -> None:
    assert merge_text("a\nb\nc", "A\nb\nc", "a\nb\nc\n") == "A\nb\nc\n"
    assert merge_text("a\nb\nc", "a\nb\nC", "a\nb\nc\n") is None


def test_ambiguous_diff_of_repeated_lines_conflicts() -> None:
    base = "a\nd\na\nd\nb\nd\nc\nb\n"
    assert merge_text(base, "a\na\nd\nd\nb\nd\nc\nb\n", "a\nd\na\nb\nd\nd\nb\nd\nb\n") is None


def numbers(count: int) -> list[str]:
    return [f"{number}\n" for number in range(count)]


@pytest.mark.parametrize(
    ("base", "local", "upstream"),
    [
        (numbers(20_001), numbers(20_001)[1:], numbers(20_000)),
        (numbers(9_000), numbers(9_000)[::-1], numbers(8_999)),
        (["a\n", "b\n"] * 9_000, ["b\n", "a\n", "c\n"] * 6_000, ["a\n", "a\n", "b\n"] * 6_000),
    ],
    ids=["long", "reversed", "repeated"],
)
def test_text_over_the_work_limit_conflicts(
    base: list[str], local: list[str], upstream: list[str]
) -> None:
    assert merge_text("".join(base), "".join(local), "".join(upstream)) is None


def test_long_text_with_many_edits_is_merged() -> None:
    base, local, upstream, both = (numbers(10_000) for _ in range(4))
    for at in range(0, 10_000, 10):
        local[at] = both[at] = f"local {at}\n"
        upstream[at + 5] = both[at + 5] = f"upstream {at}\n"
    assert merge_text("".join(base), "".join(local), "".join(upstream)) == "".join(both)


def state(text: str, *, executable: bool = False) -> FileState:
    return FileState(text.encode("latin-1"), executable)


def merge_one(base: str | None, local: str | None, upstream: str | None) -> MergeResult:
    """Merge one file; `None` means that a side does not have it."""
    before, local_files, upstream_files = (
        {} if text is None else {"a.md": state(text)} for text in (base, local, upstream)
    )
    return merge_files(
        {path: MergeBase.from_file_state(file) for path, file in before.items()},
        local_files,
        upstream_files,
    )


BOTH = "x\none\ntwo\nthree\nfour\nfive\ny\n"


@pytest.mark.parametrize(
    ("base", "local", "upstream", "kind", "remaining"),
    [
        ("b", "b", "b", MergeKind.UNCHANGED, "b"),
        ("b", "b", "t", MergeKind.TAKEN_UPSTREAM, "t"),
        (None, None, "t", MergeKind.ADDED, "t"),
        ("b", "b", None, MergeKind.REMOVED, None),
        ("b", "m", "b", MergeKind.KEPT_LOCAL, "m"),
        ("b", None, "b", MergeKind.KEPT_LOCAL, None),
        (None, "m", None, MergeKind.KEPT_LOCAL, "m"),
        (BASE, "x\n" + BASE, BASE + "y\n", MergeKind.MERGED, BOTH),
        ("b", "x", "x", MergeKind.SAME, "x"),
        ("b", None, None, MergeKind.SAME, None),
        (None, "x", "x", MergeKind.SAME, "x"),
    ],
)
def test_file_without_conflict_is_merged(
    base: str | None,
    local: str | None,
    upstream: str | None,
    kind: MergeKind,
    remaining: str | None,
) -> None:
    merged = merge_one(base, local, upstream)
    assert [(outcome.path, outcome.kind, outcome.reason) for outcome in merged.outcomes] == [
        ("a.md", kind, None)
    ]
    assert merged.files == ({} if remaining is None else {"a.md": state(remaining)})
    assert merged.conflicts == ()


@pytest.mark.parametrize(
    ("base", "local", "upstream", "reason"),
    [
        ("b", "m", "t", ConflictReason.BOTH_CHANGED),
        ("b", "m", None, ConflictReason.REMOVED_UPSTREAM),
        ("b", None, "t", ConflictReason.REMOVED_HERE),
        (None, "m", "t", ConflictReason.BOTH_ADDED),
        (BASE + "\0", "x\n" + BASE + "\0", BASE + "y\n\0", ConflictReason.BOTH_CHANGED),
        (BASE, "x\n" + BASE, BASE + "\xff\n", ConflictReason.BOTH_CHANGED),
    ],
    ids=["changed", "removed upstream", "removed local_files", "added", "binary", "not UTF-8"],
)
def test_conflict_leaves_the_local_file(
    base: str | None, local: str | None, upstream: str | None, reason: ConflictReason
) -> None:
    merged = merge_one(base, local, upstream)
    assert [(outcome.path, outcome.reason) for outcome in merged.conflicts] == [("a.md", reason)]
    assert merged.files == ({} if local is None else {"a.md": state(local)})


@pytest.mark.parametrize(
    ("local", "upstream", "kind"),
    [
        (BASE, BASE + "y\n", MergeKind.TAKEN_UPSTREAM),
        ("x\n" + BASE, BASE, MergeKind.KEPT_LOCAL),
        ("x\n" + BASE, BASE + "y\n", MergeKind.CONFLICT),
    ],
)
def test_base_without_bytes_still_shows_which_side_changed(
    local: str, upstream: str, kind: MergeKind
) -> None:
    base = {"a.md": MergeBase.from_file_state(state(BASE))._replace(data=None)}
    merged = merge_files(base, {"a.md": state(local)}, {"a.md": state(upstream)})
    assert [outcome.kind for outcome in merged.outcomes] == [kind]


@pytest.mark.parametrize("base", [True, False])
def test_executable_bit_is_merged_separately_from_text(base: bool) -> None:
    before = {"run": MergeBase.from_file_state(state(BASE, executable=base))}
    local = {"run": state("x\n" + BASE, executable=base)}
    upstream = {"run": state(BASE + "y\n", executable=not base)}
    expected = {"run": state(BOTH, executable=not base)}
    assert merge_files(before, local, upstream).files == expected
    assert merge_files(before, upstream, local).files == expected


def test_executable_bit_and_text_from_different_sides_are_merged() -> None:
    before = {"run": MergeBase.from_file_state(state("b"))}
    sides = {"run": state("m")}, {"run": state("b", executable=True)}
    for local, upstream in (sides, sides[::-1]):
        merged = merge_files(before, local, upstream)
        assert merged.files == {"run": state("m", executable=True)}
        assert [outcome.kind for outcome in merged.outcomes] == [MergeKind.MERGED]


def test_executable_bit_without_base_does_not_conflict() -> None:
    merged = merge_files({}, {"run": state("m")}, {"run": state("m", executable=True)})
    assert (merged.files, merged.conflicts) == ({"run": state("m")}, ())


@pytest.mark.parametrize(
    ("local", "upstream"),
    [
        ("Notes.md", "notes.md"),
        ("caf\u00e9.md", "cafe\u0301.md"),
        ("STRASSE/a", "stra\u00dfe/a"),
        ("docs", "docs/a.md"),
        ("docs/a.md", "docs"),
        ("Docs/x/a.md", "docs/X"),
        ("Docs", "docs/x/a.md"),
    ],
)
def test_new_file_that_clashes_with_local_file_conflicts(local: str, upstream: str) -> None:
    merged = merge_files({}, {local: state("m")}, {upstream: state("t"), "z.md": state("t")})
    assert merged.conflicts == ((upstream, MergeKind.CONFLICT, ConflictReason.CLASH, local),)
    assert merged.files == {local: state("m"), "z.md": state("t")}


def test_new_files_that_clash_with_each_other_conflict() -> None:
    merged = merge_files({}, {}, {"a": state("1"), "A": state("2")})
    assert [(outcome.path, outcome.clashing_path) for outcome in merged.conflicts] == [
        ("A", "a"),
        ("a", "A"),
    ]
    assert merged.files == {}


@pytest.mark.parametrize(
    ("old", "new"), [("Readme.md", "README.md"), ("docs", "docs/a.md"), ("docs/a.md", "docs")]
)
def test_unchanged_file_can_be_renamed_upstream(old: str, new: str) -> None:
    base = {old: MergeBase.from_file_state(state("b"))}
    merged = merge_files(base, {old: state("b")}, {new: state("b")})
    assert (merged.files, merged.conflicts) == ({new: state("b")}, ())
    touched = merge_files(base, {old: state("m")}, {new: state("b")})
    assert touched.files == {old: state("m")}
    assert {outcome.path for outcome in touched.conflicts} == {old, new}


def test_existing_files_with_clashing_names_do_not_conflict() -> None:
    local = {"a": state("1"), "A": state("2")}
    merged = merge_files(
        {path: MergeBase.from_file_state(file) for path, file in local.items()}, local, local
    )
    assert (merged.files, merged.conflicts) == (local, ())


def test_outcomes_are_in_path_order() -> None:
    merged = merge_files({}, {"b": state("1"), "d": state("1")}, {"c": state("1"), "a": state("1")})
    assert [outcome.path for outcome in merged.outcomes] == ["a", "b", "c", "d"]
