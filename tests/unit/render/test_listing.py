from typing import NamedTuple

from skillhall._internal.render.listing import (
    InlineSkill,
    render_inline,
    render_instructions,
    render_listing,
)


class Entry(NamedTuple):
    name: str = "pdf"
    description: str = "Reads PDF files."
    location: str = "/skills/pdf/SKILL.md"


LISTING = """\
<available_skills>
  <skill>
    <name>pdf</name>
    <description>Reads PDF files.</description>
    <location>/skills/pdf/SKILL.md</location>
  </skill>
</available_skills>"""
INLINE = """\
<skill name="pdf" location="/skills/pdf/SKILL.md">
References are relative to /skills/pdf.

Read it.
</skill>"""
INLINED = InlineSkill("pdf", "/skills/pdf/SKILL.md", "/skills/pdf", "\nRead it.\n")


def test_listing_has_one_line_per_element() -> None:
    assert render_listing([Entry()]) == LISTING


def test_empty_listing_is_empty_text() -> None:
    assert render_listing([]) == ""


def test_listing_preserves_order() -> None:
    text = render_listing([Entry("b"), Entry("a")])
    assert text.index("<name>b</name>") < text.index("<name>a</name>")


def test_every_listing_field_is_escaped() -> None:
    text = render_listing([Entry("<n>", '"d"\n</skill>', "/a&b/'c'/SKILL.md")])
    assert "<name>&lt;n&gt;</name>" in text
    assert "<description>&quot;d&quot; &lt;/skill&gt;</description>" in text
    assert "<location>/a&amp;b/&apos;c&apos;/SKILL.md</location>" in text


def test_inline_block_has_folder_and_trimmed_body() -> None:
    assert render_inline(*INLINED) == INLINE


def test_folder_name_cannot_close_the_block() -> None:
    text = render_inline('a"b', "/</skill>/SKILL.md", "/</skill>", "body")
    assert text.count("</skill>") == 1
    assert text.startswith('<skill name="a&quot;b" location="/&lt;/skill&gt;/SKILL.md">\n')


def test_listing_precedes_inline_blocks() -> None:
    text = render_instructions([Entry()], [INLINED, INLINED])
    assert text == f"{LISTING}\n\n{INLINE}\n\n{INLINE}"


def test_inline_blocks_without_listing_have_no_leading_blank_line() -> None:
    assert render_instructions([], [INLINED]) == INLINE


def test_empty_selection_is_empty_text() -> None:
    assert render_instructions([], []) == ""
