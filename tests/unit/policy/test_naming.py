from skillhall._internal.policy.naming import (
    fill_description_from_folder,
    fill_name_from_folder,
    use_frontmatter_only,
)


def test_the_frontmatter_alone_names_a_skill() -> None:
    assert use_frontmatter_only("", "", "folder") == ("", "")
    assert use_frontmatter_only("n", "d", "folder") == ("n", "d")


def test_the_folder_stands_in_for_a_missing_name() -> None:
    assert fill_name_from_folder("", "", "folder") == ("folder", "")
    assert fill_name_from_folder("n", "d", "folder") == ("n", "d")


def test_the_folder_stands_in_for_a_blank_description() -> None:
    assert fill_description_from_folder("n", " ", "folder") == ("n", "folder")
    assert fill_description_from_folder("n", "d", "folder") == ("n", "d")
