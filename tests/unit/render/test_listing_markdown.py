from typing import NamedTuple

import pytest

from skillhall._internal.render.listing import render_markdown


class Entry(NamedTuple):
    name: str = "pdf"
    description: str = "Reads PDF files."
    location: str = "/skills/pdf/SKILL.md"


def test_skill_is_one_list_item() -> None:
    text = render_markdown([Entry(), Entry("csv", "Lists.", "/c/SKILL.md")])
    assert text == (
        "- **pdf**: Reads PDF files. (`/skills/pdf/SKILL.md`)\n- **csv**: Lists. (`/c/SKILL.md`)"
    )


def test_list_without_skills_is_empty() -> None:
    assert render_markdown([]) == ""


@pytest.mark.parametrize("character", list("\\`*_~[]<>&|"))
def test_markdown_character_in_name_is_escaped(character: str) -> None:
    assert render_markdown([Entry(f"a{character}b")]).startswith(f"- **a\\{character}b**: ")


def test_line_break_in_description_cannot_start_an_item() -> None:
    text = render_markdown([Entry(description="One.\n- **fake**: Two.")])
    assert text.startswith("- **pdf**: One. - \\*\\*fake\\*\\*: Two.")
    assert "\n" not in text


def test_backticks_in_location_stay_in_code_span() -> None:
    assert render_markdown([Entry(location="/a``b`")]).endswith("(``` /a``b` ```)")
