"""Regression tests for fixed bugs."""

import contextlib
from dataclasses import dataclass

import pytest

from skillhall._internal.policy.duplicate_precedence import resolve_duplicates
from skillhall._internal.policy.profiles import INSTRUCTION_SKILLS
from skillhall._internal.policy.selection import matches_glob
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import is_frontmatter_complete
from skillhall._internal.skill.lossless_editor import Document, EditRefused
from skillhall._internal.skill.parsed import Frontmatter, KeyCase
from skillhall._internal.skill.parser import parse_frontmatter, parse_skill
from skillhall._internal.skill.yaml.fast_reader import read_simple_yaml
from skillhall._internal.skill.yaml.full_reader import read_full_yaml
from skillhall._internal.skill.yaml.lenient_reader import read_fields, repair_yaml
from skillhall._internal.skill.yaml.yaml_findings import YamlReadError
from skillhall.errors import UnsafePath


@pytest.mark.parametrize(
    "block", ["".join(f"k{n}: v\n" for n in range(600)), "a:\n" + "- b\n" * 1000]
)
def test_fast_reader_leaves_too_many_values_to_full_reader(block: str) -> None:
    with pytest.raises(YamlReadError) as caught:
        read_fields(block)
    assert caught.value.finding.code is Code.YAML_NODES


def test_fast_reader_leaves_long_key_to_full_reader() -> None:
    assert read_simple_yaml("k" * 1025 + ": v\n") is None


def test_number_in_metadata_flow_map_is_reported() -> None:
    block = "metadata: {a: 1}\n"
    assert read_fields(block) == read_full_yaml(block)


def test_repair_reports_flow_style() -> None:
    block = "a: b: c\nd: [e]\n"
    with pytest.raises(YamlReadError) as caught:
        read_full_yaml(block)
    assert repair_yaml(block, caught.value) == read_fields(block)


@pytest.mark.parametrize(
    "block",
    ["#\n" * 200_000, "\n" * 200_000, "".join(f"k{n}: |\n  b\n" for n in range(4_000))],
)
def test_fast_reader_takes_linear_time(block: str) -> None:
    assert read_simple_yaml(block) is None  # a quadratic reader would take minutes


def test_repair_limits_duplicate_key_findings() -> None:
    head = parse_frontmatter(b"---\n" + b"a: b: c\n" * 8000 + b"---\n", "a")
    assert len(head.findings) < 1000


def test_glob_with_many_stars_is_fast() -> None:
    assert not matches_glob("*a" * 20 + "b", "a" * 64)  # backtracking would take years


@dataclass(frozen=True)
class Ranked:
    name: str
    root_number: int
    location: str
    id: str = "a"
    is_flat: bool = False


def test_first_skill_of_later_root_wins_in_that_root() -> None:
    skills = [Ranked("a", 0, "/0/a"), Ranked("a", 1, "/1/a"), Ranked("a", 1, "/1/b")]
    used, duplicates = resolve_duplicates(skills, INSTRUCTION_SKILLS.precedence_policy)
    assert used == skills[:2]
    shadowed = [(one.skill, one.winner) for one in duplicates if one.is_shadowed]
    assert shadowed == [(skills[2], skills[1])]


@pytest.mark.parametrize("block", ["? a\n", "{a}\n"])
def test_edit_of_key_without_colon_is_refused(block: str) -> None:
    with pytest.raises(EditRefused):
        Document(f"---\n{block}---\n".encode()).with_field("a", "b")


def test_edit_that_breaks_valid_yaml_is_refused() -> None:
    with pytest.raises(EditRefused):
        Document(b"---\na: b\n...\n---\n").with_field("x", "y")


@pytest.mark.parametrize("value", ["\n  - b", "\n  b: c"])
def test_edit_preserves_comment_after_list_or_map(value: str) -> None:
    document = Document(f"---\na:{value}\n# about name\nname: c\n---\n".encode())
    assert document.with_field("a", "d").data == b"---\na: d\n# about name\nname: c\n---\n"
    assert document.without_field("a").data == b"---\n# about name\nname: c\n---\n"


def test_body_that_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(EditRefused):
        Document(b"---\na: b\n---\n").with_body("\ud800")


def test_tool_with_nested_parentheses_is_not_split() -> None:
    front = Frontmatter.from_fields({"allowed-tools": "Bash(echo $(date) now) Read"})
    assert front.allowed_tools == ("Bash(echo $(date) now)", "Read")


@pytest.mark.parametrize("tools", ["{a: b}", "true"])
def test_map_or_boolean_in_allowed_tools_is_not_read(tools: str) -> None:
    data = f"---\nname: a\ndescription: b\nallowed-tools: {tools}\n---\n".encode()
    messages = [finding.message for finding in parse_frontmatter(data, "a").findings]
    assert not any("it was read anyway" in message for message in messages)


def test_miscased_hidden_field_hides_the_skill() -> None:
    front = Frontmatter.from_fields({"Name": "a", "Disable-Model-Invocation": True}, KeyCase.ANY)
    assert front.hidden


def test_utf16_has_the_same_finding_in_both_parsers() -> None:
    data = "---\nname: a\n---\n".encode("utf-16")
    assert parse_skill(data).findings == parse_frontmatter(data).findings


def test_byte_order_mark_is_not_part_of_the_body() -> None:
    assert parse_skill(b"\xef\xbb\xbf# Title\n").body == "# Title"


@pytest.mark.parametrize("head", [b"", b"\n\n", b"\xef\xbb", b"\xef\xbb\xbf", b"--", b" \n-"])
def test_partial_data_that_may_become_a_fence_needs_more(head: bytes) -> None:
    assert parse_frontmatter(head, "a", KeyCase.EXACT, complete=False) is None


@pytest.mark.parametrize("lead", [b"\xef\xbb\xbf\n", b"\n\n\n\n", b"   \n"])
def test_opening_fence_after_blank_lines_does_not_close_the_block(lead: bytes) -> None:
    assert not is_frontmatter_complete(lead + b"---\nname: a\n")


def test_removing_indented_field_does_not_indent_closing_fence() -> None:
    document = Document(b"---\n name: v\n---\nbody\n")
    with contextlib.suppress(EditRefused):
        assert document.without_field("name").data == b"---\n---\nbody\n"


@pytest.mark.parametrize("text", ["./~", "./~/x", "././~user/x"])
def test_tilde_after_dot_segment_is_rejected(text: str) -> None:
    with pytest.raises(UnsafePath):
        RelativePath.parse(text)


def test_many_flow_maps_exceed_the_value_limit() -> None:
    flow = ", ".join(f"a{n}: b" for n in range(16))
    block = "".join(f"k{n}: {{{flow}}}\n" for n in range(50))
    with pytest.raises(YamlReadError) as caught:
        read_fields(block)
    assert caught.value.finding.code is Code.YAML_NODES
