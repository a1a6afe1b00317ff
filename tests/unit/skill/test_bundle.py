import pytest

from skillhall._internal.skill.bundle import (
    MAX_PATH_LENGTH,
    Bundle,
    RelativePath,
    SkillFile,
    fold_name,
)
from skillhall.errors import SkillFileNotFound, UnsafePath


def make_file(path: str, content: bytes = b"x") -> SkillFile:
    return SkillFile(RelativePath.parse(path), len(content), executable=False, read=lambda: content)


def make_bundle(*paths: str) -> Bundle:
    return Bundle("pdf", {path: make_file(path) for path in paths})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", "a"),
        ("a/b.md", "a/b.md"),
        ("./a/./b", "a/b"),
        (".hidden/x", ".hidden/x"),
        ("a b/é.txt", "a b/é.txt"),
        ("...a", "...a"),
        ("a/~b", "a/~b"),
        ("console.md", "console.md"),
        ("com0", "com0"),
        ("x" * MAX_PATH_LENGTH, "x" * MAX_PATH_LENGTH),
    ],
)
def test_plain_relative_path_is_accepted(text: str, path: str) -> None:
    assert str(RelativePath.parse(text)) == path
    assert "/".join(RelativePath.parse(text).parts) == path


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("x" * (MAX_PATH_LENGTH + 1), "it has more than 1024 characters"),
        ("..", "it points outside its folder"),
        ("../a", "it points outside its folder"),
        ("a/../../b", "it points outside its folder"),
        ("a/..", "it points outside its folder"),
        ("/etc/passwd", "it is not a plain relative path"),
        ("//server/share", "it is not a plain relative path"),
        ("\\\\server\\share", "it is not a plain relative path"),
        ("\\\\?\\C:\\x", "it is not a plain relative path"),
        ("C:\\x", "it is not a plain relative path"),
        ("C:x", "it is not a plain relative path"),
        ("a\\..\\b", "it is not a plain relative path"),
        ("a:stream", "it is not a plain relative path"),
        ("~/x", "it is not a plain relative path"),
        ("~user/x", "it is not a plain relative path"),
        ("a\0b", "it contains control characters"),
        ("a\nb", "it contains control characters"),
        ("a\x7f", "it contains control characters"),
        ("a\ud800", "it contains control characters"),
        (".", "it does not name a file"),
        ("./", "it does not name a file"),
        ("a/", "it does not name a file"),
        ("a//b", "it does not name a file"),
        ("a./b", "'a.' ends in a dot or space"),
        ("a /b", "'a ' ends in a dot or space"),
        ("...", "'...' ends in a dot or space"),
        (".. /a", "'.. ' ends in a dot or space"),
        ("CON", "'CON' is a reserved device name on Windows"),
        ("a/nul.txt", "'nul.txt' is a reserved device name on Windows"),
        ("aux .md", "'aux .md' is a reserved device name on Windows"),
        ("Com1", "'Com1' is a reserved device name on Windows"),
        ("lpt¹.log", "'lpt¹.log' is a reserved device name on Windows"),
    ],
)
def test_unsafe_path_is_rejected(text: str, reason: str) -> None:
    with pytest.raises(UnsafePath) as caught:
        RelativePath.parse(text)
    assert (caught.value.path, caught.value.reason) == (text, reason)


@pytest.mark.parametrize(
    "text", ["a/b.md", "./a/b.md", "a//b.md", "a/../a/b.md", " a/b.md\n", "x/y/../../a/./b.md"]
)
def test_lenient_parse_normalizes_harmless_paths(text: str) -> None:
    assert RelativePath.parse_lenient(text) == RelativePath.parse("a/b.md")


@pytest.mark.parametrize("text", ["", " ", "..", "a/..", "../a", "a/../../a", "/a", "//a", "~/a"])
def test_lenient_parse_rejects_paths_that_leave_the_root(text: str) -> None:
    with pytest.raises(UnsafePath):
        RelativePath.parse_lenient(text)


def test_paths_are_sorted_by_text() -> None:
    paths = [RelativePath.parse(text) for text in ("b", "a/b", "B", "a")]
    assert [path.text for path in sorted(paths)] == ["B", "a", "a/b", "b"]


def test_file_digest_includes_the_algorithm() -> None:
    assert make_file("a", b"").digest() == (
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )


def test_get_file_finds_file_by_path() -> None:
    bundle = make_bundle("SKILL.md", "a/b")
    assert bundle.get_file(RelativePath.parse("./a/b")).path.text == "a/b"


def test_get_file_raises_for_missing_file() -> None:
    with pytest.raises(SkillFileNotFound) as caught:
        make_bundle("SKILL.md").get_file(RelativePath.parse("a"))
    assert caught.value.path == "a"


def test_resources_exclude_only_the_root_skill_md() -> None:
    bundle = make_bundle("SKILL.md", "a", "nested/SKILL.md")
    assert [file.path.text for file in bundle.resources()] == ["a", "nested/SKILL.md"]


@pytest.mark.parametrize("name", ["PDF", "ｐｄｆ", "p\u200ddf", "pdf"])
def test_equivalent_names_fold_to_the_same_key(name: str) -> None:
    assert fold_name(name) == "pdf"
