import pytest

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.references import FileReference, check_references, find_references

HEAD = b"---\nname: a\ndescription: b\n---\n"


def paths(body: str) -> list[str]:
    return [found.path for found in find_references(body)]


def missing(body: str, *files: str) -> list[int | None]:
    return [found.line for found in check_references(HEAD + body.encode(), files)]


@pytest.mark.parametrize(
    ("body", "found"),
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
def test_relative_links_outside_of_code_are_found(body: str, found: list[str]) -> None:
    assert paths(body) == found


@pytest.mark.parametrize(
    "target",
    [
        *["https://x.y/z", "mailto:a@b.c", "#part", "/abs.md", "~/x.md", "\\x.md", "url", ""],
        *["{name}.md", "$X/a.md", "<x>.md", "a*.md", "...", "a/….md"],
    ],
)
def test_addresses_anchors_and_placeholders_are_no_references(target: str) -> None:
    assert paths(f"[a]({target})") == []


def test_a_reference_knows_its_line() -> None:
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
def test_links_that_lead_nowhere_are_found_once(body: str, lines: list[int]) -> None:
    assert missing(body, "a.md", "docs/deep/b.md") == lines


def test_the_finding_says_whether_a_link_leaves_the_skill() -> None:
    found = list(check_references(HEAD + b"[a](b.md) [c](../d.md)", []))
    assert {one.code for one in found} == {Code.REFERENCE_MISSING}
    assert [one.message for one in found] == [
        "the body links to 'b.md', which is not in the skill",
        "the body links to '../d.md', which lies outside the skill",
    ]


def test_a_file_without_frontmatter_has_no_references() -> None:
    assert list(check_references(b"[a](b.md)", [])) == []


@pytest.mark.parametrize(
    "line", ["[" * 100_000, "](" * 100_000, "`" * 100_000, "` `` " * 50_000, "](a(" * 50_000]
)
def test_hostile_lines_are_searched_in_linear_time(line: str) -> None:
    paths(line)
