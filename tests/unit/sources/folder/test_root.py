"""Roots: what the text for a folder means."""

import pytest

from skillhall._internal.sources.folder.root import Root


def test_a_relative_root_starts_at_the_base() -> None:
    assert Root.resolve("skills", "/base") == Root("/base/skills", "given")


def test_an_absolute_root_ignores_the_base() -> None:
    assert Root.resolve("/skills", "/base").path == "/skills"


@pytest.mark.parametrize("text", [".", "", "./", "a/.."])
def test_the_base_itself_can_be_a_root(text: str) -> None:
    assert Root.resolve(text, "/base").path == "/base"


def test_a_tilde_is_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/homes/ada")
    assert Root.resolve("~/.skills", "/base").path == "/homes/ada/.skills"


def test_a_trailing_slash_changes_nothing() -> None:
    assert Root.resolve("skills/", "/base") == Root.resolve("skills", "/base")


def test_a_root_keeps_its_label_and_whether_it_is_expected() -> None:
    root = Root.resolve("x", "/base", "user", is_required=False)
    assert (root.source, root.is_required) == ("user", False)
