from skillhall._internal.skill_store.version_diff import (
    MAX_DIFF_LINES,
    MAX_TEXT_SIZE,
    compare_files,
    diff_texts,
)


def signs(old: str, new: str) -> str:
    marks = {"same": " ", "old": "-", "new": "+", "gap": "~"}
    return "".join(marks[line.kind] for line in diff_texts(old, new))


def test_only_what_differs_is_shown_with_a_few_lines_around_it() -> None:
    lines = [f"{number}\n" for number in range(20)]
    changed = [*lines[:10], "x\n", *lines[11:]]
    found = diff_texts("".join(lines), "".join(changed))
    assert "".join(line.kind[0] for line in found) == "gsssonsssg"
    assert [(line.old, line.new, line.text) for line in found[4:6]] == [
        (11, None, "10"),
        (None, 11, "x"),
    ]


def test_equal_texts_have_nothing_to_show() -> None:
    assert diff_texts("a\nb\n", "a\nb\n") == ()


def test_changes_that_are_close_share_the_lines_between_them() -> None:
    assert signs("a\nb\nc\nd\n", "A\nb\nc\nD\n") == "-+  -+"


def test_files_come_and_go_and_the_skill_md_is_first() -> None:
    found = compare_files(
        {"a": b"1\n", "SKILL.md": b"x\n", "same": b""}, {"b": b"2\n", "same": b""}
    )
    assert [(one.path, one.kind) for one in found] == [
        ("SKILL.md", "removed"),
        ("a", "removed"),
        ("b", "added"),
    ]


def test_what_is_no_text_or_too_long_is_named_alone() -> None:
    found = compare_files({}, {"a": b"\0", "b": b"\xff", "c": b"x" * (MAX_TEXT_SIZE + 1)})
    assert [one.lines for one in found] == [(), (), ()]


def test_of_a_long_change_the_first_lines_are_shown() -> None:
    (found,) = compare_files({"a": b""}, {"a": b"x\n" * (MAX_DIFF_LINES + 1)})
    assert (len(found.lines), found.is_truncated) == (MAX_DIFF_LINES, True)
