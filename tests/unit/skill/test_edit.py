import pytest

from skillhall._internal.skill.edit import SkillText, edit_skill_md, parse_skill_text
from skillhall.errors import EditRefused

CRLF = (
    b"---\r\nname: pdf # ours\r\nDescription: 'Reads.'\r\nlicense: MIT\r\n---\r\n"
    b"\r\n# Do\r\n\r\nIt.\r\n"
)


def test_words_that_are_the_same_keep_every_byte() -> None:
    assert edit_skill_md(CRLF, parse_skill_text(CRLF)) == CRLF


def test_a_form_that_sends_other_line_ends_changes_nothing() -> None:
    text = parse_skill_text(CRLF)
    assert edit_skill_md(CRLF, text._replace(body=text.body.replace("\n", "\r\n"))) == CRLF


def test_a_field_is_changed_where_it_stands_however_its_key_is_written() -> None:
    made = edit_skill_md(CRLF, parse_skill_text(CRLF)._replace(description="Reads: all"))
    assert made == CRLF.replace(b"'Reads.'", b'"Reads: all"')


def test_a_new_body_takes_the_blank_lines_and_line_ends_of_the_old_one() -> None:
    made = edit_skill_md(CRLF, parse_skill_text(CRLF)._replace(body="New\nbody"))
    assert made == CRLF.replace(b"# Do\r\n\r\nIt.\r\n", b"New\r\nbody\r\n")


def test_a_body_is_given_to_a_skill_that_had_none() -> None:
    made = edit_skill_md(b"---\nname: a\ndescription: b\n---\n", SkillText("a", "b", "Do.\n"))
    assert made == b"---\nname: a\ndescription: b\n---\nDo.\n"


def test_a_file_without_frontmatter_is_not_edited() -> None:
    with pytest.raises(EditRefused):
        edit_skill_md(b"# Only text\n", SkillText("a", "b", "c"))
