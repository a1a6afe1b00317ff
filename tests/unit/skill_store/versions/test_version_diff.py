from skillhall._internal.skill_store.versions.version_diff import (
    MAX_DIFF_LINES,
    MAX_TEXT_SIZE,
    compare_files,
    diff_texts,
)


def render_signs(old: str, new: str) -> str:
    signs_by_kind = {"same": " ", "old": "-", "new": "+", "gap": "~"}
    return "".join(signs_by_kind[line.kind] for line in diff_texts(old, new))


def test_diff_shows_changes_with_context_lines() -> None:
    lines = [f"{number}\n" for number in range(20)]
    changed = [*lines[:10], "x\n", *lines[11:]]
    diff = diff_texts("".join(lines), "".join(changed))
    assert "".join(line.kind[0] for line in diff) == "gsssonsssg"
    assert [(line.old, line.new, line.text) for line in diff[4:6]] == [
        (11, None, "10"),
        (None, 11, "x"),
    ]


def test_diff_of_equal_texts_is_empty() -> None:
    assert diff_texts("a\nb\n", "a\nb\n") == ()


def test_close_changes_share_their_context() -> None:
    assert render_signs("a\nb\nc\nd\n", "A\nb\nc\nD\n") == "-+  -+"


def test_changed_files_are_listed_with_skill_md_first() -> None:
    changes = compare_files(
        {"a": b"1\n", "SKILL.md": b"x\n", "same": b""}, {"b": b"2\n", "same": b""}
    )
    assert [(change.path, change.kind) for change in changes] == [
        ("SKILL.md", "removed"),
        ("a", "removed"),
        ("b", "added"),
    ]


def test_binary_and_large_files_have_no_lines() -> None:
    changes = compare_files({}, {"a": b"\0", "b": b"\xff", "c": b"x" * (MAX_TEXT_SIZE + 1)})
    assert [change.lines for change in changes] == [(), (), ()]


def test_long_diff_is_truncated() -> None:
    (change,) = compare_files({"a": b""}, {"a": b"x\n" * (MAX_DIFF_LINES + 1)})
    assert (len(change.lines), change.is_truncated) == (MAX_DIFF_LINES, True)
