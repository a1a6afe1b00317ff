import pytest

from skillhall._internal.policy.readable_files import (
    DEFAULT_EXTENSIONS,
    has_extension,
    is_private_path,
    normalize_extensions,
)


def test_extensions_are_unique_lowercase_with_dot() -> None:
    assert normalize_extensions([".md", "SQL", " .Md"]) == (".md", ".sql")
    assert normalize_extensions(".rst") == (".rst",)


@pytest.mark.parametrize("text", ["", ".", "tar.gz", "a/b", "a b", "a\\b"])
def test_invalid_extension_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not a file extension such as"):
        normalize_extensions([text])


@pytest.mark.parametrize(
    "path",
    [
        ".git/config.md",
        ".GIT/config.md",
        "sub/.git/x.md",
        ".env",
        ".Env.json",
        ".env.local.md",
        "config/.env.json",
        ".hidden.md",
        ".skillhall/state.json",
        ".agents/.env",
        ".agents/.skill-lock.json",
        ".agents/skills/pdf/.git/x.md",
        ".agents/skills/.skillhall-old-pdf/SKILL.md",
        "sub/.agents/skills/pdf/SKILL.md",
        "skillhall.toml",
        "SkillHall.TOML",
        "sub/skillhall.db",
        "skillhall.db-wal",
        "skillhall-main.db.json",
        "skillhall-lock.json",
        "git~1/config.md",
        "SKILLH~1.TOM",
        "\u200c.git/x.md",
        "skillhall\u200d.toml",
    ],
)
def test_hidden_and_skillhall_files_are_private(path: str) -> None:
    assert is_private_path(path.split("/"))


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        ".agents/skills/pdf/SKILL.md",
        ".agents/sys.skills/pdf/scripts/run.py",
        "git/notes.md",
        "env.json",
        "skillhall.md",
        "docs/skillhall/notes.md",
        "a..b.md",
        "draft~.md",
    ],
)
def test_other_files_are_not_private(path: str) -> None:
    assert not is_private_path(path.split("/"))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.md", True),
        ("A.MD", True),
        ("a.tar.md", True),
        ("docs.md/a", False),
        ("a.md.exe", False),
        ("a", False),
        (".md", False),
        ("a.", False),
        ("a.mdx", False),
    ],
)
def test_only_the_last_extension_counts(path: str, expected: bool) -> None:
    assert has_extension(path, DEFAULT_EXTENSIONS) is expected
