"""Shipped skills follow the rules that Skillhall checks."""

import re
from pathlib import Path

import pytest

from skillhall._internal.authoring.validate import validate
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import SPECIFICATION
from skillhall._internal.settings import Settings
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill_store.input_checks import prepare_bundles
from skillhall._internal.skill_store.shipped_skills import (
    SHIPPED_METADATA,
    read_sample_skills,
    read_shipped_skills,
)

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = sorted(read_shipped_skills())


def test_expected_skills_are_shipped() -> None:
    assert {"checking-skills", "writing-skills"} <= set(SHIPPED)


@pytest.mark.parametrize("identity", SHIPPED)
def test_shipped_skill_has_no_findings(identity: str, tmp_path: Path) -> None:
    for path, data in read_shipped_skills()[identity].items():
        (tmp_path / identity / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / identity / path).write_bytes(data)
    settings = Settings(str(tmp_path), str(tmp_path / "cache"))
    report = validate([str(tmp_path / identity)], SPECIFICATION, settings)
    assert [(result.accepted, result.findings) for result in report.results] == [(True, ())]


@pytest.mark.parametrize("identity", SHIPPED)
def test_shipped_skill_has_metadata_and_links_its_files(identity: str) -> None:
    files = read_shipped_skills()[identity]
    parsed = parse_skill(files["SKILL.md"], identity)
    assert "Use when" in parsed.frontmatter.description
    assert parsed.frontmatter.metadata[SHIPPED_METADATA[0]] == SHIPPED_METADATA[1]
    assert parsed.body.count("\n") < 150
    linked = set(re.findall(r"\]\(([^)]+)\)", parsed.body))
    assert linked == set(files) - {"SKILL.md"}


def test_samples_have_no_warnings_and_equal_the_examples() -> None:
    for bundle in read_sample_skills():
        folder = ROOT / "examples/skills" / bundle.folder
        for path, file in bundle.files.items():
            assert not folder.is_dir() or file.read() == (folder / path).read_bytes()
        [prepared] = prepare_bundles([bundle], None)
        assert [row for row in prepared.findings if row.effect is not Effect.ACCEPT] == []
