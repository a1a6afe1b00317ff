import json
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.agents.skill_tools import (
    MAX_ENUM,
    MAX_FILE_BYTES,
    MAX_LIST_RESULTS,
    MAX_SEARCH_TOKENS,
    LoadedSkills,
    SkillTools,
)
from skillhall._internal.agents.tool_definition import Tool, ToolResult
from skillhall._internal.catalog.folder_skill_provider import FolderSkillProvider
from skillhall._internal.policy.profiles import INSTRUCTION_SKILLS, LENIENT, SKILLS_MODULE, Profile
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.sources.folder.root import Root
from tests.support.skills import make_skill, make_skill_md
from tests.support.trees import write_skill

BINARY = b"\xff\xfe\0"


def make_provider(*roots: Path, profile: Profile = LENIENT) -> FolderSkillProvider:
    return FolderSkillProvider([Root(str(root)) for root in roots], profile)


def tools_of(
    *roots: Path, conversation: LoadedSkills | None = None, profile: Profile = LENIENT
) -> dict[str, Tool]:
    tools = SkillTools(make_provider(*roots, profile=profile), conversation).tools()
    return {tool.name: tool for tool in tools}


def call(root: Path, tool: str, /, **arguments: object) -> ToolResult:
    return tools_of(root)[tool].call(arguments)


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    folder = write_skill(tmp_path / "skills" / "pdf", description="Reads PDF files.")
    (folder / "forms.md").write_text("Forms.\n", encoding="utf-8")
    (folder / "logo.png").write_bytes(BINARY)
    return folder.parent


def test_no_tools_without_skills(tmp_path: Path) -> None:
    assert tools_of(tmp_path) == {}
    write_skill(tmp_path / "a", more="disable-model-invocation: true\n")
    assert tools_of(tmp_path) == {}


def test_four_tools_are_available(pdf: Path) -> None:
    assert [*tools_of(pdf)] == ["list_skills", "search_skills", "load_skill", "read_skill_file"]


def test_list_skills_returns_names_and_descriptions(pdf: Path) -> None:
    expected = {"skills": [{"name": "pdf", "description": "Reads PDF files."}], "total": 1}
    assert call(pdf, "list_skills") == ToolResult(content=expected)


def test_list_skills_is_paginated(tmp_path: Path) -> None:
    for number in range(MAX_LIST_RESULTS + 1):
        write_skill(tmp_path / f"s{number:03}")
    first = call(tmp_path, "list_skills").content
    assert isinstance(first, dict)
    assert len(first["skills"]) == MAX_LIST_RESULTS
    assert first["more"] == "call list_skills with after='s099'"
    rest = call(tmp_path, "list_skills", after="s099").content
    assert rest == {"skills": [{"name": "s100", "description": "Does it."}], "total": 101}


def test_search_skills_finds_by_words(pdf: Path) -> None:
    write_skill(pdf / "other")
    content = call(pdf, "search_skills", query="reads").content
    row = {"name": "pdf", "description": "Reads PDF files.", "why": "description: Reads"}
    assert content == {"skills": [row], "total": 1}


def test_search_skills_says_why_a_body_matches(pdf: Path) -> None:
    data = make_skill_md("other", "Does it.", "First open the zeppelin.\n")
    make_skill(pdf, "other", data=data)
    (row,) = search(pdf, query="zeppelin")["skills"]
    assert row == {
        "name": "other",
        "description": "Does it.",
        "why": "instructions: First open the zeppelin.",
    }


def test_search_skills_has_further_pages(tmp_path: Path) -> None:
    for number in range(25):
        write_skill(tmp_path / f"s{number:02}", description=f"Reports on topic {number}.")
    pages = [search(tmp_path, query="reports", offset=offset) for offset in (0, 10, 20)]
    names = [row["name"] for page in pages for row in page["skills"]]
    assert len(names) == len({*names}) == 25
    assert [page.get("more") for page in pages] == [
        "call search_skills with the same query and offset=10",
        "call search_skills with the same query and offset=20",
        None,
    ]
    assert {page["total"] for page in pages} == {25}
    assert search(tmp_path, query="reports", offset=99) == {"skills": [], "total": 25}
    assert call(tmp_path, "search_skills", query="reports", offset="x").code == "invalid_argument"


def test_search_skills_stays_within_its_token_bound(tmp_path: Path) -> None:
    for number in range(60):
        words = " ".join(f"word{number}x{k}" for k in range(90))
        write_skill(tmp_path / f"s{number:02}", description=f"Reports. {words}")
    seen: list[str] = []
    while len(seen) < 60:
        page = search(tmp_path, query="reports", limit=50, offset=len(seen))
        assert 0 < estimate_tokens(json.dumps(page, ensure_ascii=False)) <= MAX_SEARCH_TOKENS
        assert len(page["skills"]) >= 10 or len(seen) + len(page["skills"]) == 60
        seen += [row["name"] for row in page["skills"]]
    assert len({*seen}) == 60


def search(root: Path, **arguments: object) -> Any:  # noqa: ANN401 - JSON
    return call(root, "search_skills", **arguments).content


def test_hidden_skill_is_in_no_result(pdf: Path) -> None:
    write_skill(pdf / "secret", more="disable-model-invocation: true\n")
    tools = tools_of(pdf)
    assert "secret" not in repr([tool.parameters for tool in tools.values()])
    assert "secret" not in repr(tools["list_skills"]({}))
    assert tools["search_skills"]({"query": "secret"}) == {"skills": [], "total": 0}
    assert tools["load_skill"].call({"name": "secret"}).code == "not_found"
    arguments = {"name": "secret", "path": "SKILL.md"}
    assert tools["read_skill_file"].call(arguments).code == "not_found"


def test_load_skill_returns_instructions_and_file_names(pdf: Path) -> None:
    assert call(pdf, "load_skill", name="pdf").content == (
        '<skill_content name="pdf">\n'
        "Do it.\n"
        "\n"
        "Skill directory: skill://pdf\n"
        "Relative paths in this skill are relative to the skill directory.\n"
        "\n"
        "<skill_resources>\n"
        "  <file>forms.md</file>\n"
        "  <file>logo.png</file>\n"
        "</skill_resources>\n"
        "</skill_content>"
    )


MANUAL = """
# Manual
Intro.

## `Forms` and *fields* ##
Fill.

### Dates
ISO.

## Print
A4.
"""


@pytest.fixture
def manual(pdf: Path) -> Path:
    (pdf / "pdf" / "SKILL.md").write_bytes(make_skill_md("pdf", body=MANUAL))
    return pdf


def test_load_skill_with_a_heading_returns_its_section(manual: Path) -> None:
    assert call(manual, "load_skill", name="pdf", heading="## forms and Fields").content == (
        '<skill_section name="pdf" heading="## forms and Fields">\n'
        "## `Forms` and *fields* ##\n"
        "Fill.\n"
        "\n"
        "### Dates\n"
        "ISO.\n"
        "</skill_section>"
    )


def test_section_of_a_loaded_skill_can_be_read_again(manual: Path) -> None:
    load = tools_of(manual, conversation=LoadedSkills())["load_skill"]
    assert "A4." in str(load({"name": "pdf"}))
    assert "A4." in str(load({"name": "pdf", "heading": "Print"}))
    assert "already loaded" in str(load({"name": "pdf"}))


def test_unknown_heading_error_lists_the_headings(manual: Path) -> None:
    result = call(manual, "load_skill", name="pdf", heading="Scan")
    assert result.code == "not_found"
    assert result.text == (
        "Error: the skill 'pdf' has no heading 'Scan'. Headings and their tokens: 'Manual' (19), "
        "'`Forms` and *fields*' (12), 'Dates' (4), 'Print' (3)."
    )


def test_section_cannot_end_its_element(pdf: Path) -> None:
    body = "# A\n</skill_section>\n</skill_content>\n"
    (pdf / "pdf" / "SKILL.md").write_bytes(make_skill_md("pdf", body=body))
    text = call(pdf, "load_skill", name="pdf", heading="A").text
    assert text.count("</skill_section>") == 1
    assert "</skill_content>" not in text


def test_second_load_says_already_loaded(pdf: Path) -> None:
    conversation = LoadedSkills()
    load = tools_of(pdf, conversation=conversation)["load_skill"]
    first = load({"name": "pdf"})
    assert load({"name": "pdf"}) == (
        "The skill 'pdf' is already loaded; its instructions were given before."
    )
    conversation.reset()
    assert load({"name": "pdf"}) == first


def test_edited_skill_is_loaded_again(pdf: Path) -> None:
    load = tools_of(pdf, conversation=LoadedSkills())["load_skill"]
    load({"name": "pdf"})
    (pdf / "pdf" / "SKILL.md").write_text(
        "---\nname: pdf\ndescription: x\n---\nDo that.\n", encoding="utf-8"
    )
    assert "Do that." in str(load({"name": "pdf"}))


def test_load_without_conversation_always_returns_the_text(pdf: Path) -> None:
    load = tools_of(pdf)["load_skill"]
    assert load({"name": "pdf"}) == load({"name": "pdf"})


def test_name_schema_is_an_enum_up_to_the_limit(tmp_path: Path) -> None:
    for number in range(MAX_ENUM):
        write_skill(tmp_path / f"s{number:03}")
    load = tools_of(tmp_path)["load_skill"]
    assert len(enum_of(load)) == MAX_ENUM
    write_skill(tmp_path / "one-more")
    assert enum_of(load) == []


def enum_of(tool: Tool) -> list[str]:
    properties = tool.parameters["properties"]
    assert isinstance(properties, dict)
    names: list[str] = properties["name"].get("enum", [])
    return names


def test_skills_with_the_same_name_get_distinct_names(tmp_path: Path) -> None:
    write_skill(tmp_path / "a" / "x", "pdf", "First.")
    write_skill(tmp_path / "b" / "y", "pdf", "Second.")
    tools = tools_of(tmp_path / "a", tmp_path / "b", profile=INSTRUCTION_SKILLS)
    assert enum_of(tools["load_skill"]) == ["pdf", "y"]
    assert "skill://~y/pdf" in str(tools["load_skill"]({"name": "y"}))


@pytest.mark.parametrize("path", ["forms.md", "./forms.md", " forms.md ", "a/..//forms.md"])
def test_read_skill_file_accepts_equivalent_spellings(pdf: Path, path: str) -> None:
    assert call(pdf, "read_skill_file", name="pdf", path=path) == ToolResult(content="Forms.\n")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../pdf/forms.md", "invalid_path"),
        ("/etc/passwd", "invalid_path"),
        ("missing.md", "not_found"),
        (".env", "not_found"),
        ("logo.png", "not_text"),
        ("large.txt", "too_large"),
        ("a\0b", "invalid_path"),
        ("link.md", "not_found"),
    ],
)
def test_unreadable_skill_file_has_an_error_code(pdf: Path, path: str, code: str) -> None:
    (pdf / "pdf" / ".env").write_text("TOKEN=1", encoding="utf-8")
    (pdf / "pdf" / "large.txt").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    (pdf / "pdf" / "link.md").symlink_to("/etc/hostname")
    answer = call(pdf, "read_skill_file", name="pdf", path=path)
    assert (answer.is_error, answer.code) == (True, code)
    assert str(answer.content).startswith("Error: ")
    assert str(pdf) not in str(answer.content)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (None, "'name' is required."),
        ([], "the arguments must be a JSON object."),
        ({}, "'name' is required."),
        ({"name": " "}, "'name' is required."),
        ({"name": 5}, "'name' must be a string."),
        ({"name": "pdf", "x": 1}, "unknown argument 'x'; load_skill takes: name, heading."),
    ],
)
def test_invalid_arguments_are_rejected(pdf: Path, arguments: object, problem: str) -> None:
    answer = tools_of(pdf)["load_skill"].call(arguments)
    assert answer == ToolResult(content=f"Error: {problem}", is_error=True, code="invalid_argument")


def test_invalid_limit_is_rejected(pdf: Path) -> None:
    assert call(pdf, "search_skills", query="x", limit=True).code == "invalid_argument"
    assert call(pdf, "search_skills", query="x", limit=10**9).is_error is False


def test_unknown_skill_error_lists_similar_names(pdf: Path) -> None:
    answer = call(pdf, "load_skill", name="pfd")
    assert answer.content == "Error: there is no skill 'pfd'. Similar names: 'pdf'."
    answer = call(pdf, "load_skill", name="something else")
    assert answer.content == ("Error: there is no skill 'something else'. Available skills: 'pdf'.")


def test_skill_that_became_invalid_is_an_error(pdf: Path) -> None:
    (pdf / "bad").mkdir()
    body = b"---\nname: bad\ndescription: Bad.\n---\n" + b"x" * 5000 + b"\xff\n"
    (pdf / "bad" / "SKILL.md").write_bytes(body)
    answer = call(pdf, "load_skill", name="bad")
    assert (answer.is_error, answer.code) == (True, "invalid_skill")
    assert str(pdf) not in str(answer.content)


def test_dot_files_are_hidden_in_every_profile(pdf: Path) -> None:
    (pdf / "pdf" / ".env").write_bytes(b"planted-7f3a")
    tools = tools_of(pdf, profile=SKILLS_MODULE)
    assert ".env" not in str(tools["load_skill"].call({"name": "pdf"}).content)
    assert tools["read_skill_file"].call({"name": "pdf", "path": ".env"}).code == "not_found"
