from skillhall._internal.policy.naming import (
    described_else_folder,
    from_frontmatter,
    frontmatter_else_folder,
)


def test_the_frontmatter_alone_names_a_skill() -> None:
    assert from_frontmatter("", "", "folder") == ("", "")
    assert from_frontmatter("n", "d", "folder") == ("n", "d")


def test_the_folder_stands_in_for_a_missing_name() -> None:
    assert frontmatter_else_folder("", "", "folder") == ("folder", "")
    assert frontmatter_else_folder("n", "d", "folder") == ("n", "d")


def test_the_folder_stands_in_for_a_blank_description() -> None:
    assert described_else_folder("n", " ", "folder") == ("n", "folder")
    assert described_else_folder("n", "d", "folder") == ("n", "d")
