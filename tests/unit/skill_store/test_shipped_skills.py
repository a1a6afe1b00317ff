"""The skills that Skillhall ships are skills as it wants them."""

import re
from pathlib import Path

import pytest

from skillhall._internal.authoring.validate import validate
from skillhall._internal.policy.profiles import SPECIFICATION
from skillhall._internal.settings import Settings
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill_store.shipped_skills import SHIPPED_METADATA, read_shipped_skills

SHIPPED = sorted(read_shipped_skills())


def test_writing_and_checking_are_shipped() -> None:
    assert {"checking-skills", "writing-skills"} <= set(SHIPPED)


@pytest.mark.parametrize("identity", SHIPPED)
def test_a_shipped_skill_follows_the_specification_without_a_finding(
    identity: str, tmp_path: Path
) -> None:
    for path, data in read_shipped_skills()[identity].items():
        (tmp_path / identity / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / identity / path).write_bytes(data)
    settings = Settings(str(tmp_path), str(tmp_path / "cache"))
    report = validate([str(tmp_path / identity)], SPECIFICATION, settings)
    assert [(result.accepted, result.findings) for result in report.results] == [(True, ())]


@pytest.mark.parametrize("identity", SHIPPED)
def test_a_shipped_skill_says_what_and_when_and_names_its_files(identity: str) -> None:
    files = read_shipped_skills()[identity]
    parsed = parse_skill(files["SKILL.md"], identity)
    assert "Use when" in parsed.frontmatter.description
    assert parsed.frontmatter.metadata[SHIPPED_METADATA[0]] == SHIPPED_METADATA[1]
    assert parsed.body.count("\n") < 150
    named = set(re.findall(r"\]\(([^)]+)\)", parsed.body))
    assert named == set(files) - {"SKILL.md"}
