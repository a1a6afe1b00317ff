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
    ("mine", "theirs", "merged"),
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
def test_changes_in_different_places_are_both_kept(mine: str, theirs: str, merged: str) -> None:
    assert merge_text(BASE, mine, theirs) == merged.replace(" ", "\n") + "\n"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("one\nTWO\nthree\nfour\nfive\n", "one\nZWEI\nthree\nfour\nfive\n"),
        ("ONE\ntwo\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n"),
        ("one\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n"),
        (BASE + "six\n", BASE + "seven\n"),
        (BASE + "six\n", BASE + "six\nseven\n"),
        ("", "one\nTWO\nthree\nfour\nfive\n"),
    ],
    ids=["one line", "neighbours", "removed", "both grown", "one grown further", "all removed"],
)
def test_changes_that_touch_each_other_conflict(mine: str, theirs: str) -> None:
    assert merge_text(BASE, mine, theirs) is None
    assert merge_text(BASE, theirs, mine) is None


def test_line_ends_stay_as_they_are() -> None:
    base = "one\r\ntwo\nthree\x0bx\u2028y\r\nfour"
    mine, theirs = base.replace("one", "1"), base.replace("four", "4")
    assert merge_text(base, mine, theirs) == "1\r\ntwo\nthree\x0bx\u2028y\r\n4"


def test_a_final_line_feed_is_a_change_like_any_other() -> None:
    assert merge_text("a\nb\nc", "A\nb\nc", "a\nb\nc\n") == "A\nb\nc\n"
    assert merge_text("a\nb\nc", "a\nb\nC", "a\nb\nc\n") is None


def test_a_guess_between_repeated_lines_is_a_conflict() -> None:
    base = "a\nd\na\nd\nb\nd\nc\nb\n"
    assert merge_text(base, "a\na\nd\nd\nb\nd\nc\nb\n", "a\nd\na\nb\nd\nd\nb\nd\nb\n") is None


def numbers(count: int) -> list[str]:
    return [f"{number}\n" for number in range(count)]


@pytest.mark.parametrize(
    ("base", "mine", "theirs"),
    [
        (numbers(20_001), numbers(20_001)[1:], numbers(20_000)),
        (numbers(9_000), numbers(9_000)[::-1], numbers(8_999)),
        (["a\n", "b\n"] * 9_000, ["b\n", "a\n", "c\n"] * 6_000, ["a\n", "a\n", "b\n"] * 6_000),
    ],
    ids=["long", "turned round", "repeated"],
)
def test_what_takes_too_long_to_compare_is_a_conflict(
    base: list[str], mine: list[str], theirs: list[str]
) -> None:
    assert merge_text("".join(base), "".join(mine), "".join(theirs)) is None


def test_a_long_text_with_many_edits_is_merged() -> None:
    base, mine, theirs, both = (numbers(10_000) for _ in range(4))
    for at in range(0, 10_000, 10):
        mine[at] = both[at] = f"mine {at}\n"
        theirs[at + 5] = both[at + 5] = f"theirs {at}\n"
    assert merge_text("".join(base), "".join(mine), "".join(theirs)) == "".join(both)


def state(text: str, *, executable: bool = False) -> FileState:
    return FileState(text.encode("latin-1"), executable)


def merge_one(base: str | None, mine: str | None, theirs: str | None) -> MergeResult:
    """The merge of one file; a side is its text, or nothing."""
    before, here, there = (
        {} if text is None else {"a.md": state(text)} for text in (base, mine, theirs)
    )
    return merge_files(
        {path: MergeBase.from_file_state(one) for path, one in before.items()}, here, there
    )


BOTH = "x\none\ntwo\nthree\nfour\nfive\ny\n"


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "kind", "left"),
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
def test_a_file_that_can_be_merged(
    base: str | None, mine: str | None, theirs: str | None, kind: MergeKind, left: str | None
) -> None:
    merged = merge_one(base, mine, theirs)
    assert [(one.path, one.kind, one.reason) for one in merged.outcomes] == [("a.md", kind, None)]
    assert merged.files == ({} if left is None else {"a.md": state(left)})
    assert merged.conflicts == ()


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "reason"),
    [
        ("b", "m", "t", ConflictReason.BOTH_CHANGED),
        ("b", "m", None, ConflictReason.REMOVED_UPSTREAM),
        ("b", None, "t", ConflictReason.REMOVED_HERE),
        (None, "m", "t", ConflictReason.BOTH_ADDED),
        (BASE + "\0", "x\n" + BASE + "\0", BASE + "y\n\0", ConflictReason.BOTH_CHANGED),
        (BASE, "x\n" + BASE, BASE + "\xff\n", ConflictReason.BOTH_CHANGED),
    ],
    ids=["changed", "removed upstream", "removed here", "added", "binary", "not UTF-8"],
)
def test_a_conflict_leaves_what_is_mine(
    base: str | None, mine: str | None, theirs: str | None, reason: ConflictReason
) -> None:
    merged = merge_one(base, mine, theirs)
    assert [(one.path, one.reason) for one in merged.conflicts] == [("a.md", reason)]
    assert merged.files == ({} if mine is None else {"a.md": state(mine)})


@pytest.mark.parametrize(
    ("mine", "theirs", "kind"),
    [
        (BASE, BASE + "y\n", MergeKind.TAKEN_UPSTREAM),
        ("x\n" + BASE, BASE, MergeKind.KEPT_LOCAL),
        ("x\n" + BASE, BASE + "y\n", MergeKind.CONFLICT),
    ],
)
def test_a_base_without_its_bytes_still_tells_who_changed(
    mine: str, theirs: str, kind: MergeKind
) -> None:
    base = {"a.md": MergeBase.from_file_state(state(BASE))._replace(data=None)}
    merged = merge_files(base, {"a.md": state(mine)}, {"a.md": state(theirs)})
    assert [one.kind for one in merged.outcomes] == [kind]


@pytest.mark.parametrize("base", [True, False])
def test_the_executable_bit_is_merged_beside_the_text(base: bool) -> None:
    before = {"run": MergeBase.from_file_state(state(BASE, executable=base))}
    mine = {"run": state("x\n" + BASE, executable=base)}
    theirs = {"run": state(BASE + "y\n", executable=not base)}
    expected = {"run": state(BOTH, executable=not base)}
    assert merge_files(before, mine, theirs).files == expected
    assert merge_files(before, theirs, mine).files == expected


def test_a_bit_set_on_one_side_and_a_text_changed_on_the_other_are_both_kept() -> None:
    before = {"run": MergeBase.from_file_state(state("b"))}
    sides = {"run": state("m")}, {"run": state("b", executable=True)}
    for mine, theirs in (sides, sides[::-1]):
        merged = merge_files(before, mine, theirs)
        assert merged.files == {"run": state("m", executable=True)}
        assert [one.kind for one in merged.outcomes] == [MergeKind.MERGED]


def test_without_a_base_a_bit_alone_is_no_conflict() -> None:
    merged = merge_files({}, {"run": state("m")}, {"run": state("m", executable=True)})
    assert (merged.files, merged.conflicts) == ({"run": state("m")}, ())


@pytest.mark.parametrize(
    ("mine", "theirs"),
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
def test_a_new_file_that_cannot_stand_beside_mine_is_a_conflict(mine: str, theirs: str) -> None:
    merged = merge_files({}, {mine: state("m")}, {theirs: state("t"), "z.md": state("t")})
    assert merged.conflicts == ((theirs, MergeKind.CONFLICT, ConflictReason.CLASH, mine),)
    assert merged.files == {mine: state("m"), "z.md": state("t")}


def test_new_files_that_cannot_stand_beside_each_other_are_both_in_conflict() -> None:
    merged = merge_files({}, {}, {"a": state("1"), "A": state("2")})
    assert [(one.path, one.clashing_path) for one in merged.conflicts] == [("A", "a"), ("a", "A")]
    assert merged.files == {}


@pytest.mark.parametrize(
    ("old", "new"), [("Readme.md", "README.md"), ("docs", "docs/a.md"), ("docs/a.md", "docs")]
)
def test_an_untouched_file_may_be_renamed_upstream(old: str, new: str) -> None:
    base = {old: MergeBase.from_file_state(state("b"))}
    merged = merge_files(base, {old: state("b")}, {new: state("b")})
    assert (merged.files, merged.conflicts) == ({new: state("b")}, ())
    touched = merge_files(base, {old: state("m")}, {new: state("b")})
    assert touched.files == {old: state("m")}
    assert {one.path for one in touched.conflicts} == {old, new}


def test_files_that_stand_side_by_side_already_are_no_conflict() -> None:
    mine = {"a": state("1"), "A": state("2")}
    merged = merge_files(
        {path: MergeBase.from_file_state(one) for path, one in mine.items()}, mine, mine
    )
    assert (merged.files, merged.conflicts) == (mine, ())


def test_outcomes_come_in_the_order_of_paths() -> None:
    merged = merge_files({}, {"b": state("1"), "d": state("1")}, {"c": state("1"), "a": state("1")})
    assert [one.path for one in merged.outcomes] == ["a", "b", "c", "d"]
