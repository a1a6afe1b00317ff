from typing import Any

import pytest

from skillhall._internal.policy.effects import FILE_MISMATCH_CODES, Effect
from skillhall._internal.policy.profiles import PROFILES
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.sources.mcp.entry import (
    MAX_ENTRY_BYTES,
    MAX_ENTRY_FILES,
    McpSkillEntry,
    cross_check_entries,
    find_differing_fields,
    parse_entry,
    verify_file,
    verify_frontmatter,
)
from tests.support.mcp_servers import PDF, URI, make_entry, make_resource
from tests.support.skills import make_skill_md


def codes(entry: McpSkillEntry) -> list[Code]:
    return [result.code for result in entry.findings]


def test_valid_entry_has_no_findings() -> None:
    entry = parse_entry(make_entry())
    assert (entry.uri, entry.name, entry.description) == (URI, "pdf", "Reads PDF files.")
    assert [file.path for file in entry.files] == list(PDF)
    assert entry.findings == ()


ENTRIES: dict[str, tuple[object, Code]] = {
    "nothing": (None, Code.MCP_ENTRY),
    "a text": ("skill://pdf/SKILL.md", Code.MCP_ENTRY),
    "an entry without a URI": ({**make_entry(), "uri": None}, Code.MCP_ENTRY),
    "a URI of a number": ({**make_entry(), "uri": 1}, Code.MCP_ENTRY),
    "a URI of a folder": ({**make_entry(), "uri": "skill://pdf"}, Code.MCP_URI),
    "no frontmatter": ({"uri": URI, "resources": []}, Code.MCP_ENTRY),
    "frontmatter of text": ({**make_entry(), "frontmatter": "name: pdf"}, Code.MCP_ENTRY),
    "a name of a number": (make_entry(frontmatter={"name": 1, "description": ""}), Code.MCP_ENTRY),
    "no description": (make_entry(frontmatter={"name": "pdf"}), Code.MCP_ENTRY),
    "another name": (
        make_entry(frontmatter={"name": "docx", "description": "x"}),
        Code.MCP_NAME,
    ),
    "a description without end": (
        make_entry(frontmatter={"name": "pdf", "description": "x" * 70_000}),
        Code.MCP_LIMIT,
    ),
    "no resources": ({**make_entry(), "resources": None}, Code.MCP_ENTRY),
    "an odd word for resources": ({**make_entry(), "resources": "static"}, Code.MCP_ENTRY),
    "resources on demand": ({**make_entry(), "resources": "dynamic"}, Code.MCP_DYNAMIC),
    "no files": ({**make_entry(), "resources": []}, Code.MCP_ENTRY),
    "no SKILL.md": ({**make_entry(), "resources": make_entry()["resources"][1:]}, Code.MCP_ENTRY),
    "its SKILL.md under another case": (
        make_entry({"skill.md": b"x", "a": b""}),
        Code.MCP_ENTRY,
    ),
    "too many files": (
        make_entry({"SKILL.md": b"", **{f"{at}.md": b"" for at in range(MAX_ENTRY_FILES)}}),
        Code.MCP_LIMIT,
    ),
}


@pytest.mark.parametrize(
    ("value", "is_hidden"), [(True, True), ("True", True), ("no", False), (1, False)]
)
def test_entry_can_hide_skill_from_models(value: object, is_hidden: bool) -> None:
    front = {"name": "pdf", "description": "x", "disable-model-invocation": value}
    assert parse_entry(make_entry(frontmatter=front)).hidden is is_hidden


def test_long_uri_is_truncated() -> None:
    entry = parse_entry({**make_entry(), "uri": f"skill://{'a' * 10_000}/SKILL.md"})
    assert codes(entry) == [Code.MCP_URI]
    assert len(entry.uri) == 2048


@pytest.mark.parametrize(("value", "code"), ENTRIES.values(), ids=ENTRIES)
def test_invalid_entry_is_rejected(value: object, code: Code) -> None:
    assert codes(parse_entry(value)) == [code]


RESOURCES: dict[str, tuple[object, Code]] = {
    "is no object": ("skill://pdf/a.md", Code.MCP_ENTRY),
    "lacks its digest": ({"uri": "skill://pdf/a.md", "size": 1}, Code.MCP_ENTRY),
    "lacks its size": ({"uri": "skill://pdf/a.md", "digest": "sha256:0"}, Code.MCP_ENTRY),
    "has a digest in capitals": (
        {"uri": "skill://pdf/a.md", "digest": f"sha256:{'A' * 64}", "size": 1},
        Code.MCP_ENTRY,
    ),
    "has another kind of digest": (
        {"uri": "skill://pdf/a.md", "digest": f"sha512:{'a' * 128}", "size": 1},
        Code.MCP_ENTRY,
    ),
    "has a size below nothing": (
        {**make_resource("skill://pdf/a.md", b""), "size": -1},
        Code.MCP_ENTRY,
    ),
    "has a size of true": (
        {**make_resource("skill://pdf/a.md", b""), "size": True},
        Code.MCP_ENTRY,
    ),
    "has a size of many digits": (
        {**make_resource("skill://pdf/a.md", b""), "size": 10**4000},
        Code.MCP_ENTRY,
    ),
    "has a size of text": (
        {**make_resource("skill://pdf/a.md", b""), "size": "1"},
        Code.MCP_ENTRY,
    ),
    "is too large": (
        {**make_resource("skill://pdf/a.md", b""), "size": MAX_ENTRY_BYTES},
        Code.MCP_LIMIT,
    ),
    "leads out of the skill": (make_resource("skill://pdf/../a.md", b""), Code.MCP_URI),
    "belongs to another skill": (make_resource("skill://docx/a.md", b""), Code.MCP_URI),
    "belongs to version control": (make_resource("skill://pdf/.git/config", b""), Code.MCP_URI),
    "is listed twice": (make_resource(URI, b""), Code.MCP_REPEATED),
    "differs only in its spelling": (
        make_resource("skill://pdf/references/%66orms.md", b""),
        Code.MCP_REPEATED,
    ),
    "differs only in its case": (
        make_resource("skill://pdf/REFERENCES/forms.md", b""),
        Code.MCP_REPEATED,
    ),
    "has the path of a folder": (
        make_resource("skill://pdf/references", b""),
        Code.MCP_REPEATED,
    ),
}


@pytest.mark.parametrize(("value", "code"), RESOURCES.values(), ids=RESOURCES)
def test_entry_with_invalid_file_is_rejected(value: object, code: Code) -> None:
    entry = make_entry()
    entry["resources"].append(value)
    assert codes(parse_entry(entry)) == [code]


def test_skill_at_limits_is_accepted() -> None:
    files = {"SKILL.md": b"", **{f"{at}.md": b"" for at in range(MAX_ENTRY_FILES - 1)}}
    entry = make_entry(files)
    entry["resources"][0]["size"] = MAX_ENTRY_BYTES
    assert codes(parse_entry(entry)) == []


@pytest.mark.parametrize("code", sorted(FILE_MISMATCH_CODES))
def test_mcp_findings_reject_under_every_profile(code: Code) -> None:
    assert {profile.load_policy.get_effect(code) for profile in PROFILES.values()} == {
        Effect.REJECT
    }


def test_nested_skill_warns_under_every_profile() -> None:
    effects = {profile.load_policy.get_effect(Code.MCP_NESTED) for profile in PROFILES.values()}
    assert effects == {Effect.WARN}


# Several entries


def compared(*entries: dict[str, Any]) -> list[list[Code]]:
    return [codes(item) for item in cross_check_entries([parse_entry(entry) for entry in entries])]


def test_repeated_uri_is_rejected_both_times() -> None:
    assert compared(make_entry(), make_entry()) == [[Code.MCP_REPEATED], [Code.MCP_REPEATED]]


def test_skills_with_same_name_are_kept_with_paths() -> None:
    entries = [make_entry(folder="skill://a/pdf"), make_entry(folder="skill://b/pdf")]
    first, second = cross_check_entries([parse_entry(entry) for entry in entries])
    assert codes(first) == codes(second) == [Code.SAME_NAME]
    assert "'b/pdf'" in second.findings[0].hint


def test_nested_skill_is_reported_if_listed() -> None:
    outer = make_entry({**PDF, "forms/SKILL.md": b"x"})
    assert compared(outer, make_entry(folder="skill://pdf/forms")) == [[Code.MCP_NESTED], []]


def test_unlisted_nested_skill_rejects_outer_skill() -> None:
    inner = make_entry(folder="skill://pdf/a/forms")
    assert compared(make_entry(), inner) == [[Code.MCP_UNLISTED], []]


def test_skill_with_same_prefix_is_not_nested() -> None:
    assert compared(make_entry(), make_entry(folder="skill://pdf-forms")) == [[], []]


# Verification


def test_verify_file_compares_size_and_digest() -> None:
    file = parse_entry(make_entry()).files[1]
    right = PDF[file.path]
    result = [verify_file(file, data) for data in (right, right + b"x", right[::-1])]
    assert [item and item.code for item in result] == [None, Code.MCP_SIZE, Code.MCP_DIGEST]


FRONTS: dict[str, tuple[dict[str, object], str]] = {
    "a field more": ({"hooks": {"run": "x"}}, ""),
    "another field": ({"license": "GPL"}, "license: MIT"),
    "a list for a text": ({"license": ["MIT"]}, "license: MIT"),
    "another number": ({"version": 1.2}, "version: 1.10"),
    "another truth": ({"user-invocable": False}, "user-invocable: yes"),
    "a text for a map": ({"metadata": "a"}, "metadata:\n  a: b"),
    "another map": ({"metadata": {"a": "c"}}, "metadata:\n  a: b"),
    "a shorter list": ({"allowed-tools": ["Read"]}, "allowed-tools:\n  - Read\n  - Bash"),
    "tools of its own": ({"allowed-tools": "Read"}, "allowed-tools: Read Bash(*)"),
    "nothing for a text": ({"license": None}, "license: MIT"),
}


def announced(fields: dict[str, object]) -> McpSkillEntry:
    return parse_entry(make_entry(frontmatter={"name": "pdf", "description": "x", **fields}))


@pytest.mark.parametrize(("fields", "text"), FRONTS.values(), ids=FRONTS)
def test_verify_frontmatter_reports_difference(fields: dict[str, object], text: str) -> None:
    data = f"---\nname: pdf\ndescription: x\n{text}\n---\n".encode()
    result = verify_frontmatter(announced(fields), data)
    assert result is not None
    assert result.code is Code.MCP_FRONTMATTER
    assert repr(next(iter(fields))) in result.message


def test_unlisted_field_is_a_difference() -> None:
    data = b"---\nname: pdf\ndescription: x\nallowed-tools: Bash(*)\n---\n"
    result = verify_frontmatter(announced({}), data)
    assert result is not None
    assert "'allowed-tools'" in result.message


def test_missing_frontmatter_is_a_difference() -> None:
    assert verify_frontmatter(announced({}), b"# Nothing") is not None


def test_yaml_spellings_of_values_are_equal() -> None:
    block = (
        b"version: 1.10\ncount: 0x1F\nmode: 017\nbig: 1_000\nflag: yes\noff: No\nempty:\n"
        b"tilde: ~\nwhen: 2026-01-31\nfold: >\n  a\n  b\nlist: [1, true]\nmap: {a: 1.0}\n"
    )
    fields = parse_skill(b"---\n" + block + b"---\n").frontmatter.fields
    served = {
        "version": 1.1,
        "count": 31,
        "mode": 15,
        "big": 1000,
        "flag": True,
        "off": False,
        "empty": None,
        "tilde": None,
        "when": "2026-01-31",
        "fold": "a b\n",
        "list": [1, True],
        "map": {"a": 1},
    }
    assert find_differing_fields(served, fields) == []


def test_parsed_frontmatter_equals_itself() -> None:
    fields = parse_skill(make_skill_md("pdf", version="1.10", metadata="{a: yes}")).frontmatter
    assert find_differing_fields(fields.fields, fields.fields) == []
