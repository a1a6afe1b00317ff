"""Properties of URIs and entries of MCP servers: no path leaves its skill."""

import posixpath

from hypothesis import example, given
from hypothesis import strategies as st

from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.skill_uri import SkillUri
from skillhall._internal.sources.mcp.entry import parse_entry
from skillhall.errors import UnsafePath

PIECES = ["skill", "://", "/", "pdf", "SKILL.md", "..", ".", "%2e", "%2F", "%5c", "%00", "\\", "a"]
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=3,
)
PDF = SkillUri.parse("skill://pdf/SKILL.md")


@given(TEXTS)
@example("../../etc/passwd")
@example("%2e%2e/%2e%2e/etc/passwd")
@example("a/%2e%2e%2f%2e%2e/b")
def test_file_uri_never_leaves_the_skill(text: str) -> None:
    try:
        path = PDF.to_relative_path(f"skill://pdf/{text}")
    except UnsafePath:
        return
    assert RelativePath.parse(path.text) == path
    absolute = posixpath.normpath(posixpath.join("/skills/pdf", path.text))
    assert absolute == f"/skills/pdf/{path.text}"


@given(TEXTS)
def test_uri_is_rejected_or_names_a_skill(text: str) -> None:
    try:
        uri = SkillUri.parse(text)
    except UnsafePath:
        return
    assert uri.to_relative_path(text).text == "SKILL.md"
    assert uri.text == text
    assert {"", ".", ".."}.isdisjoint(uri.path.split("/"))


@given(st.fixed_dictionaries({"uri": TEXTS, "frontmatter": JSON, "resources": JSON}) | JSON)
def test_invalid_entry_has_findings_and_never_raises(value: object) -> None:
    entry = parse_entry(value)
    assert entry.findings
    assert entry.files == ()
