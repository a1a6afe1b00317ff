import pytest

from skillhall._internal.skill.lossless_editor import (
    Document,
    EditRefused,
    locate_frontmatter_fields,
)
from skillhall._internal.skill.parser import parse_skill


def edit(text: str, key: str, value: str) -> str:
    return Document(text.encode()).with_field(key, value).data.decode()


def remove(text: str, key: str) -> str:
    return Document(text.encode()).without_field(key).data.decode()


def test_unchanged_document_has_the_same_bytes() -> None:
    data = b"\xef\xbb\xbf\r\n--- \r\nname:  'a' # b\r---\n\xff"
    assert Document(data).data == data


@pytest.mark.parametrize(
    ("field", "edited"),
    [
        ("b: old", "b: new"),
        ("b:   old   ", "b: new   "),
        ("b: old # why", "b: new # why"),
        ("b: 'old' # why", "b: new # why"),
        ('"b": "old"', '"b": new'),
        ("b:", "b: new"),
        ("b: # why", "b: new # why"),
        ("b: [x, y]", "b: new"),
        ("b:\n- x\n- y", "b: new"),
        ("b:\n  x: y\n  z:\n    - w", "b: new"),
        ("b: |\n  two\n  lines", "b: new"),
        ("b: >-\n  two\n\n  parts\n", "b: new\n"),
        ("b: two\n  lines", "b: new"),
        ("b: |+\n  kept\n\n", "b: new\n\n"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_editing_a_field_preserves_all_other_bytes(field: str, edited: str, end: str) -> None:
    frame = "---\n# top\na: 1 # é😀\n\n{}\nc: 'd' # end\n---\nb: body\n"
    before, after = (frame.format(text).replace("\n", end) for text in (field, edited))
    assert edit(before, "b", "new") == after


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain text", "plain text"),
        ("a: b", '"a: b"'),
        ("true", '"true"'),
        ("1.10", '"1.10"'),
        ("", '""'),
        ("a\nb", '"a\\nb"'),
        ("---", '"---"'),
        ("x\n---\ny", '"x\\n---\\ny"'),
    ],
)
def test_written_value_round_trips(value: str, written: str) -> None:
    text = edit("---\nname: a\n---\n", "name", value)
    assert text == f"---\nname: {written}\n---\n"
    assert parse_skill(text.encode()).frontmatter.fields == {"name": value}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\na: b\n---\n", "---\na: b\nx: new\n---\n"),
        ("---\r\na: b\r\n---\r\n", "---\r\na: b\r\nx: new\r\n---\r\n"),
        ("---\n---\n", "---\nx: new\n---\n"),
        ("---\na: |\n  b\n---", "---\na: |\n  b\nx: new\n---"),
        ("---\na: b\n# end\n---\n", "---\na: b\n# end\nx: new\n---\n"),
        ("\ufeff---\na: b\n---\nbody", "\ufeff---\na: b\nx: new\n---\nbody"),
    ],
)
def test_new_field_is_appended(before: str, after: str) -> None:
    assert edit(before, "x", "new") == after


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("---\na: b\nc: d\n---\n", "a", "---\nc: d\n---\n"),
        ("---\na: b\nc: d\n---\n", "c", "---\na: b\n---\n"),
        ("---\r\na: b # x\r\nc: d\r\n---\r\n", "a", "---\r\nc: d\r\n---\r\n"),
        ("---\na:\n- b\n- c\nd: e\n---\n", "a", "---\nd: e\n---\n"),
        ("---\na: |\n  b\n  c\nd: e\n---\n", "a", "---\nd: e\n---\n"),
        ("---\na: b\n---\n", "a", "---\n---\n"),
        ("---\na: b: c\nd: e\n---\n", "a", "---\nd: e\n---\n"),
        ("---\na: b\n---\n", "x", "---\na: b\n---\n"),
    ],
)
def test_field_is_removed_with_its_lines(before: str, key: str, after: str) -> None:
    assert remove(before, key) == after


@pytest.mark.parametrize(
    ("key", "after"),
    [
        ("name", "---\nname: new\ndescription: Use when: x\n# c\nb: 'd\n---\n"),
        ("description", "---\nname: a\ndescription: new\n# c\nb: 'd\n---\n"),
        ("b", "---\nname: a\ndescription: Use when: x\n# c\nb: new\n---\n"),
    ],
)
def test_document_that_needs_repair_is_edited_in_place(key: str, after: str) -> None:
    before = "---\nname: a\ndescription: Use when: x\n# c\nb: 'd\n---\n"
    assert edit(before, key, "new") == after


def test_last_of_duplicate_keys_is_edited() -> None:
    assert edit("---\na: b\na: c\n---\n", "a", "new") == "---\na: b\na: new\n---\n"


@pytest.mark.parametrize(
    ("text", "key", "value", "reason"),
    [
        ("# no fence\n", "a", "b", "no frontmatter to edit (no opening fence)"),
        ("---\na: b\n", "a", "b", "no frontmatter to edit (no closing fence)"),
        ("---\na: b\n---\n", "a b", "c", "'a b' is not a valid field name"),
        ("---\na: b\n---\n", "a\n", "c", "'a\\n' is not a valid field name"),
        ("---\na: b\n---\n", "a", "\x07", "'a' contains the control character '\\x07'"),
        (
            "---\na: b\n---\n",
            "a",
            "\ud800",
            "'a' cannot be changed without affecting other content",
        ),
        ("---\na: &x b\nc: *x\n---\n", "a", "d", "uses an alias"),
        ("---\n- a\n---\n", "a", "d", "not a map of 'key: value' lines"),
        ("---\na: b\x85\n---\n", "a", "d", "only some parsers treat as a line break"),
        ("---\n{a: b}\n---\n", "c", "d", "not valid YAML"),
    ],
)
def test_edit_with_side_effects_is_refused(text: str, key: str, value: str, reason: str) -> None:
    with pytest.raises(EditRefused) as caught:
        edit(text, key, value)
    assert reason in str(caught.value)


def test_edit_of_frontmatter_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(EditRefused, match="not UTF-8"):
        Document(b"---\na: \xff\n---\n").with_field("a", "b")


def test_removing_a_duplicate_key_is_refused() -> None:
    with pytest.raises(EditRefused, match="cannot be changed without affecting other content"):
        remove("---\na: b\na: c\n---\n", "a")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\na: b\n---\nold\n", "---\na: b\n---\nnew\n"),
        ("---\na: b\n---", "---\na: b\n---\nnew\n"),
        ("---\r\na: b\r\n---", "---\r\na: b\r\n---\r\nnew\n"),
        ("\ufeff--- \na: b: c\n--- \nold", "\ufeff--- \na: b: c\n--- \nnew\n"),
    ],
)
def test_new_body_preserves_the_frontmatter(before: str, after: str) -> None:
    assert Document(before.encode()).with_body("new\n").data.decode() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\nName: a\nb: c\n---\n", "---\nname: a\nb: c\n---\n"),
        ("---\r\nb: c\r\nName:  |\r\n  a # x\r\n---\r\n", None),
        ("---\nName: a: b\nb: 'c\n---\n", "---\nname: a: b\nb: 'c\n---\n"),
    ],
)
def test_field_is_renamed_in_place(before: str, after: str | None) -> None:
    renamed = Document(before.encode()).with_renamed_field("Name", "name").data.decode()
    assert renamed == (after or before.replace("Name", "name"))


@pytest.mark.parametrize(
    ("block", "key", "new"),
    [
        ("a: b\n", "x", "y_"),
        ("a: b\nc: d\n", "a", "c"),
        ("a: b\n", "a", "b c"),
        ("'a': b\n", "a", "c"),
        ("a: b\na: c\n", "a", "d"),
    ],
)
def test_rename_with_side_effects_is_refused(block: str, key: str, new: str) -> None:
    with pytest.raises(EditRefused):
        Document(f"---\n{block}---\n".encode()).with_renamed_field(key, new)


def test_edit_of_unrepairable_document_is_refused() -> None:
    with pytest.raises(EditRefused, match="uses the tag"):
        edit("---\na: b: c\nd: !t e\n---\n", "a", "new")


def test_edit_of_block_without_fields_is_refused() -> None:
    with pytest.raises(EditRefused, match="not valid YAML"):
        edit("---\n[a\n---\n", "a", "new")


def test_fields_are_located_in_the_decoded_document() -> None:
    text = "---\nname: größe\ndescription: a: b\nmetadata:\n  x: '1'\n---\nBody\n"
    spans = locate_frontmatter_fields(text.encode())
    assert [
        (key, text[span.value_start : span.value_end].strip()) for key, span in spans.items()
    ] == [
        ("name", "größe"),
        ("description", "a: b"),
        ("metadata", "x: '1'"),
    ]
    assert text[spans["metadata"].key_start :].startswith("metadata:")


@pytest.mark.parametrize(
    "data", [b"", b"# Text\n", b"---\nname: a\n", b"---\nname: \xff\n---\n", b"---\n- a\n---\n"]
)
def test_document_without_readable_fields_has_no_located_ones(data: bytes) -> None:
    assert locate_frontmatter_fields(data) == {}
