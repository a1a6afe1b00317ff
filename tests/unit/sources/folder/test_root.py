"""Roots: resolving paths."""

import pytest

from skillhall._internal.sources.folder.root import Root


def test_relative_root_starts_at_base() -> None:
    assert Root.resolve("skills", "/base") == Root("/base/skills", "given")


def test_absolute_root_ignores_base() -> None:
    assert Root.resolve("/skills", "/base").path == "/skills"


@pytest.mark.parametrize("text", [".", "", "./", "a/.."])
def test_base_can_be_a_root(text: str) -> None:
    assert Root.resolve(text, "/base").path == "/base"


def test_tilde_is_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/homes/ada")
    assert Root.resolve("~/.skills", "/base").path == "/homes/ada/.skills"


def test_trailing_slash_is_ignored() -> None:
    assert Root.resolve("skills/", "/base") == Root.resolve("skills", "/base")


def test_root_keeps_label_and_required_flag() -> None:
    root = Root.resolve("x", "/base", "user", is_required=False)
    assert (root.source, root.is_required) == ("user", False)
