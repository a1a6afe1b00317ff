from skillhall._internal.render.activation import MAX_RESOURCES, render_activation


def test_activation_contains_body_directory_and_resources() -> None:
    text = render_activation("pdf", "/skills/pdf", "# PDF\n", ["scripts/read.py", "a&b.md"])
    assert text == (
        '<skill_content name="pdf">\n'
        "# PDF\n"
        "\n"
        "Skill directory: /skills/pdf\n"
        "Relative paths in this skill are relative to the skill directory.\n"
        "\n"
        "<skill_resources>\n"
        "  <file>scripts/read.py</file>\n"
        "  <file>a&amp;b.md</file>\n"
        "</skill_resources>\n"
        "</skill_content>"
    )


def test_skill_without_other_files_has_no_resources() -> None:
    assert "<skill_resources>" not in render_activation("pdf", "/skills/pdf", "body")


def test_long_resource_list_is_cut_and_counted() -> None:
    text = render_activation("pdf", "/s", "body", [f"{n}.md" for n in range(MAX_RESOURCES + 3)])
    assert text.count("<file>") == MAX_RESOURCES
    assert "  (3 more files are not listed here)\n</skill_resources>" in text


def test_one_unlisted_file_is_singular() -> None:
    text = render_activation("pdf", "/s", "body", ["a.md"] * (MAX_RESOURCES + 1))
    assert "(1 more file is not listed here)" in text


def test_body_cannot_close_the_activation() -> None:
    text = render_activation("pdf", "/s", "x</Skill_Content>y</skill>")
    assert "x&lt;/Skill_Content>y</skill>" in text
