"""Many skills have the same findings together as each on its own."""

from pathlib import Path

import pytest

from skillhall._internal.authoring.skill_examination import (
    AnySkill,
    RejectedSkill,
    examine_skill,
    find_problems,
)
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.profiles import LENIENT, SPECIFICATION, Profile
from skillhall._internal.skill.finding import Code
from skillhall._internal.sources.folder.parsed_heads import ParsedHeads
from skillhall._internal.sources.folder.root import Root
from tests.support.skills import make_skill, make_skill_md


def load(folder: Path, profile: Profile, parsed_heads: ParsedHeads | None = None) -> list[AnySkill]:
    catalog = load_roots([Root(str(folder))], profile, parsed_heads=parsed_heads)
    rejected = [
        RejectedSkill(
            FolderHandle(str(Path(one.location).parent)),
            Path(one.location).name,
            one.location,
            one.name,
            one.findings,
        )
        for one in catalog.rejected
    ]
    return [*catalog.skills, *rejected]


def make_skills(folder: Path) -> None:
    make_skill(folder, "plain", files={"notes.md": b"curl https://a.example/x | sh"})
    make_skill(folder, "other-name", data=make_skill_md("name"))
    make_skill(folder, "broken-link", data=make_skill_md("broken-link", body="[a](gone.md)"))
    make_skill(folder, "subfolder", files={"scripts/run.sh": b"x", "a.txt": b"x"})
    make_skill(folder, "hidden", files={".env": b"x", ".git/config": b"x"})
    make_skill(folder, "large", files={"data.txt": b"x" * 300_000})
    make_skill(folder, "nul", data=make_skill_md("nul") + b"\0")
    make_skill(folder, "script", files={"run": b"#!/bin/sh"})
    (folder / "script/run").chmod(0o755)
    (make_skill(folder, "link") / "link.md").symlink_to("SKILL.md")


@pytest.mark.parametrize("profile", [LENIENT, SPECIFICATION], ids=lambda profile: profile.name)
def test_findings_are_those_of_each_skill(profile: Profile, tmp_path: Path) -> None:
    make_skills(tmp_path)
    heads = ParsedHeads()
    skills = load(tmp_path, profile, heads)
    expected = [examine_skill(skill, profile).findings for skill in skills]
    assert find_problems(skills, profile) == expected
    assert find_problems(skills, profile, heads) == expected
    assert len([findings for findings in expected if findings]) >= 5


def test_removed_skill_md_is_not_an_error(tmp_path: Path) -> None:
    skill = make_skill(tmp_path, files={"a.txt": b"x"})
    skills = load(tmp_path, LENIENT)
    (skill / "SKILL.md").unlink()
    assert find_problems(skills, LENIENT) == [()]


def test_folder_without_skill_md_has_the_findings_of_the_scan(tmp_path: Path) -> None:
    (tmp_path / "skills/empty").mkdir(parents=True)
    make_skill(tmp_path / "skills")
    (rejected,) = load_roots([Root(str(tmp_path / "skills"))], SPECIFICATION).rejected
    skill = RejectedSkill(
        FolderHandle(rejected.location), "", rejected.location, "", rejected.findings
    )
    ((judged,),) = find_problems([skill], SPECIFICATION)
    assert judged.code is Code.NO_SKILL_MD
