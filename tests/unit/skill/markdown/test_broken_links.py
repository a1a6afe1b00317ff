import pytest

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.markdown.broken_links import (
    FileReference,
    check_references,
    find_references,
    locate_references,
)

HEAD = b"---\nname: a\ndescription: b\n---\n"


def paths(body: str) -> list[str]:
    return [reference.path for reference in find_references(body)]


def missing(body: str, *files: str) -> list[int | None]:
    return [finding.line for finding in check_references(HEAD + body.encode(), files)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("see [a](docs/a.md)", ["docs/a.md"]),
        ("![image](img.png) and [b](b.md)", ["img.png", "b.md"]),
        ("[a](<my file.md>)", ["my file.md"]),
        ('[a]( a.md "title")', ["a.md"]),
        ("[a](a(1).md)", ["a(1).md"]),
        ("[a](a.md#part) [b](b.md?x=1)", ["a.md", "b.md"]),
        ("[a](my%20file.md)", ["my file.md"]),
        ("[a](100%.md)", ["100%.md"]),
        ("[a]: docs/a.md", ["docs/a.md"]),
        ("[a]: <docs/a b.md>", ["docs/a b.md"]),
        ("text\n`[a](a.md)` [b](b.md)", ["b.md"]),
        ("`` [a](a.md) ` `` [b](b.md)", ["b.md"]),
        ("` [a](a.md)", ["a.md"]),
        ("```\n[a](a.md)\n```\n[b](b.md)", ["b.md"]),
        ("~~~ md\n[a](a.md)\n```\n~~~\n[b](b.md)", ["b.md"]),
        ("```a`b\n[a](a.md)", ["a.md"]),
        ("```\n[a](a.md)\n``` x\n[b](b.md)", []),
    ],
)
def test_relative_links_outside_code_are_found(body: str, expected: list[str]) -> None:
    assert paths(body) == expected


@pytest.mark.parametrize(
    "target",
    [
        *["https://x.y/z", "mailto:a@b.c", "#part", "/abs.md", "~/x.md", "\\x.md", "url", ""],
        *["{name}.md", "$X/a.md", "<x>.md", "a*.md", "...", "a/….md"],
    ],
)
def test_urls_anchors_and_placeholders_are_ignored(target: str) -> None:
    assert paths(f"[a]({target})") == []


def test_reference_has_line() -> None:
    assert list(find_references("a\n\n[b](c.md)\n")) == [FileReference("c.md", 3)]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("[a](a.md)", []),
        ("[a](./a.md) [b](docs/../a.md)", []),
        ("[a](docs/)", []),
        ("[a](docs/deep)", []),
        ("[a](./)", []),
        ("x\n[a](b.md)\n[a](b.md)", [6]),
        ("[a](../other/x.md)", [5]),
        ("[a](docs)", []),
    ],
)
def test_broken_links_are_reported_once(body: str, lines: list[int]) -> None:
    assert missing(body, "a.md", "docs/deep/b.md") == lines


def test_message_says_whether_link_leaves_the_skill() -> None:
    findings = list(check_references(HEAD + b"[a](b.md) [c](../d.md)", []))
    assert {finding.code for finding in findings} == {Code.REFERENCE_MISSING}
    assert [finding.message for finding in findings] == [
        "the body links to 'b.md', which is not in the skill",
        "the body links to '../d.md', which is outside the skill",
    ]


def test_file_without_frontmatter_has_no_references() -> None:
    assert list(check_references(b"[a](b.md)", [])) == []


@pytest.mark.parametrize(
    "line", ["[" * 100_000, "](" * 100_000, "`" * 100_000, "` `` " * 50_000, "](a(" * 50_000]
)
def test_hostile_line_is_searched_in_linear_time(line: str) -> None:
    paths(line)


def test_located_references_have_the_columns_of_their_paths() -> None:
    body = "`[c](code.md)` [a](docs/a.md#top) ![b](<b b.png>)\n[d]: ./d.md?x\n```\n[e](e.md)\n```\n"
    lines = body.split("\n")
    found = [*locate_references(body)]
    assert [(one.path, lines[one.line][one.start : one.end]) for one in found] == [
        ("docs/a.md", "docs/a.md"),
        ("b b.png", "b b.png"),
        ("./d.md", "./d.md"),
    ]


def test_located_references_are_those_that_are_checked() -> None:
    body = "plain\n[a](a%20b.md) [x](https://x.example/y.md) [url](url) [z](../z.md)\n"
    found = [(one.path, one.line + 1) for one in locate_references(body)]
    assert found == [*find_references(body)] == [("a b.md", 2), ("../z.md", 2)]
