import pytest

from skillhall._internal.skill.lossless_editor import (
    SkillText,
    edit_skill_md,
    parse_form_fields,
    parse_skill_text,
)
from skillhall.errors import EditRefused

CRLF = (
    b"---\r\nname: pdf # ours\r\nDescription: 'Reads.'\r\nlicense: MIT\r\n---\r\n"
    b"\r\n# Do\r\n\r\nIt.\r\n"
)


def test_unchanged_text_preserves_every_byte() -> None:
    assert edit_skill_md(CRLF, parse_skill_text(CRLF)) == CRLF


def test_different_line_ends_change_nothing() -> None:
    text = parse_skill_text(CRLF)
    assert edit_skill_md(CRLF, text._replace(body=text.body.replace("\n", "\r\n"))) == CRLF


def test_miscased_field_is_changed_in_place() -> None:
    edited = edit_skill_md(CRLF, parse_skill_text(CRLF)._replace(description="Reads: all"))
    assert edited == CRLF.replace(b"'Reads.'", b'"Reads: all"')


def test_new_body_preserves_surrounding_blank_lines_and_line_ends() -> None:
    edited = edit_skill_md(CRLF, parse_skill_text(CRLF)._replace(body="New\nbody"))
    assert edited == CRLF.replace(b"# Do\r\n\r\nIt.\r\n", b"New\r\nbody\r\n")


def test_body_is_added_to_skill_without_one() -> None:
    edited = edit_skill_md(b"---\nname: a\ndescription: b\n---\n", SkillText("a", "b", "Do.\n"))
    assert edited == b"---\nname: a\ndescription: b\n---\nDo.\n"


def test_edit_of_file_without_frontmatter_is_refused() -> None:
    with pytest.raises(EditRefused):
        edit_skill_md(b"# Only text\n", SkillText("a", "b", "c"))


def test_other_fields_are_changed_added_and_deleted_and_the_rest_stays() -> None:
    data = b"---\nname: a\nlicense: MIT # ours\ndescription: b\nmetadata:\n  x: 1\n---\nDo.\n"
    assert parse_form_fields(data) == {"license": "MIT", "compatibility": "", "allowed-tools": ""}
    fields = (("license", ""), ("compatibility", "Needs git"), ("allowed-tools", " "))
    edited = edit_skill_md(data, SkillText("a", "b", "Do.", fields))
    assert edited == (
        b"---\nname: a\ndescription: b\nmetadata:\n  x: 1\ncompatibility: Needs git\n---\nDo.\n"
    )


def test_field_that_is_no_string_is_not_edited_by_the_form() -> None:
    data = b"---\nname: a\ndescription: b\nallowed-tools: [Read, Grep]\n---\nDo.\n"
    assert "allowed-tools" not in parse_form_fields(data)
    assert edit_skill_md(data, SkillText("a", "b", "Do.", (("license", ""),))) == data
