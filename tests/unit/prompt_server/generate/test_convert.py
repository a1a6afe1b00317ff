"""Conversion of prompts to skills: folder name, SKILL.md and scripts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.prompt_server.generate.convert import (
    MAX_FOLDER_NAME,
    PromptFilter,
    build_prompt_skill_md,
    is_script,
    to_folder_name,
)
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.sources.server_api.prompt_client import RemotePromptArgument


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("pdf", "pdf"),
        ("Read PDF!", "read-pdf"),
        ("acme/skills@pdf", "acme-skills-pdf"),
        ("..", "skill"),
        ("NUL", "nul-skill"),
        ("x" * 100, "x" * 64),
        ("日本" * 40, "日本" * 32),
    ],
)
def test_folder_name_follows_the_specification(name: str, folder: str) -> None:
    assert to_folder_name(name) == folder


@given(st.text())
def test_any_name_gives_a_safe_folder_name(name: str) -> None:
    folder = to_folder_name(name)
    assert RelativePath.parse(folder).parts == (folder,)
    assert not folder.startswith((".", "-"))
    assert len(folder.encode()) <= MAX_FOLDER_NAME + len("-skill")


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
)
def test_converted_prompt_can_be_parsed_without_loss(description: str, body: str) -> None:
    data = build_prompt_skill_md(
        "pdf",
        description,
        body,
        [RemotePromptArgument("a", required=True), RemotePromptArgument("b")],
    )
    fields = parse_skill(data, "pdf").frontmatter.fields
    assert fields == {"name": "pdf", "description": description, "argument-hint": "<a> [b]"}
    assert data.decode().partition("\n---\n")[2] == body


@pytest.mark.parametrize(
    ("prompt_filter", "selected"),
    [
        (PromptFilter(), {"a", "ab", "B"}),
        (PromptFilter(include=("a*",)), {"a", "ab"}),
        (PromptFilter(include=("a", "B")), {"a", "B"}),
        (PromptFilter(exclude=("?",)), {"ab"}),
        (PromptFilter(include=("a*",), exclude=("*b",)), {"a"}),
        (PromptFilter(include=("b",)), set()),
    ],
)
def test_filter_selects_included_and_not_excluded_names(
    prompt_filter: PromptFilter, selected: set[str]
) -> None:
    assert {name for name in ("a", "ab", "B") if prompt_filter.includes(name)} == selected


def test_script_is_recognized_by_first_line_or_extension() -> None:
    assert is_script("a/b", b"#!/bin/sh")
    assert is_script("a/B.SH", b"")
    assert not is_script("a.sh/b.txt", b" #!/bin/sh")
