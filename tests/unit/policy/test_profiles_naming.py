from skillhall._internal.policy.profiles import (
    fill_description_from_folder,
    fill_name_from_folder,
    use_frontmatter_only,
)


def test_frontmatter_only_ignores_the_folder() -> None:
    assert use_frontmatter_only("", "", "folder") == ("", "")
    assert use_frontmatter_only("n", "d", "folder") == ("n", "d")


def test_folder_replaces_a_missing_name() -> None:
    assert fill_name_from_folder("", "", "folder") == ("folder", "")
    assert fill_name_from_folder("n", "d", "folder") == ("n", "d")


def test_folder_replaces_a_blank_description() -> None:
    assert fill_description_from_folder("n", " ", "folder") == ("n", "folder")
    assert fill_description_from_folder("n", "d", "folder") == ("n", "d")
