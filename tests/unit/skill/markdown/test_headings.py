from skillhall._internal.skill.markdown.headings import find_section_texts, list_sections
from skillhall._internal.skill.token_count import estimate_tokens


def outline(body: str) -> list[tuple[str, int, int, int]]:
    return [(one.title, one.level, one.line, one.end_line) for one in list_sections(body)]


def test_section_ends_at_the_next_heading_of_its_level_or_above() -> None:
    body = "intro\n# A\n## B\n### C\n## D\n# E\n"
    assert outline(body) == [
        ("A", 1, 1, 5),
        ("B", 2, 2, 4),
        ("C", 3, 3, 4),
        ("D", 2, 4, 5),
        ("E", 1, 5, 7),
    ]


def test_headings_in_code_and_hashtags_are_text() -> None:
    assert outline("```\n# code\n```\n#tag\n####### seven\n    # indented\n#\n## Closed ##\n") == [
        ("", 1, 6, 9),
        ("Closed", 2, 7, 9),
    ]


def test_tokens_of_a_section_include_its_subsections() -> None:
    body = "# A\ntext\n## B\nmore\n"
    first, second = list_sections(body)
    assert first.tokens == estimate_tokens(body)
    assert second.tokens == estimate_tokens("## B\nmore\n")


def test_sections_with_the_same_title_are_all_found() -> None:
    body = "# Use\n1\n## Use\n2\n# Other\n3\n# use\n4\n"
    assert find_section_texts(body, "Use") == ["# Use\n1\n## Use\n2", "# use\n4"]


def test_title_in_a_code_block_is_no_section() -> None:
    assert find_section_texts("```\n# Use\n```\n", "Use") == []
