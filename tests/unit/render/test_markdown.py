from typing import NamedTuple

import pytest

from skillhall._internal.render.markdown import render_markdown


class Entry(NamedTuple):
    name: str = "pdf"
    description: str = "Reads PDF files."
    location: str = "/skills/pdf/SKILL.md"


def test_a_skill_is_one_list_item() -> None:
    text = render_markdown([Entry(), Entry("csv", "Lists.", "/c/SKILL.md")])
    assert text == (
        "- **pdf**: Reads PDF files. (`/skills/pdf/SKILL.md`)\n- **csv**: Lists. (`/c/SKILL.md`)"
    )


def test_no_skills_give_no_list() -> None:
    assert render_markdown([]) == ""


@pytest.mark.parametrize("sign", list("\\`*_~[]<>&|"))
def test_a_sign_of_markdown_in_a_name_is_shown_as_it_is(sign: str) -> None:
    assert render_markdown([Entry(f"a{sign}b")]).startswith(f"- **a\\{sign}b**: ")


def test_a_line_break_in_a_description_cannot_start_another_item() -> None:
    text = render_markdown([Entry(description="One.\n- **fake**: Two.")])
    assert text.startswith("- **pdf**: One. - \\*\\*fake\\*\\*: Two.")
    assert "\n" not in text


def test_backticks_in_a_location_stay_inside_its_code() -> None:
    assert render_markdown([Entry(location="/a``b`")]).endswith("(``` /a``b` ```)")
