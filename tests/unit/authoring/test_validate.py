from pathlib import Path

import pytest

from skillhall._internal.authoring.validate import ValidationReport, validate
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT, PROFILES, SPECIFICATION
from skillhall._internal.settings import Settings
from skillhall._internal.skill.finding import Code
from skillhall.errors import SkillFileNotFound
from tests.support.skills import make_skill, make_skill_md


def settings(folder: Path) -> Settings:
    return Settings(str(folder), str(folder / "cache"), use_head_cache=False)


def check(folder: Path, *paths: str, profile: str = "specification") -> ValidationReport:
    return validate(paths, PROFILES[profile], settings(folder))


def test_path_may_be_a_file_a_skill_or_a_folder_of_skills(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "skills")
    for path in ("skills/pdf-tools/SKILL.md", "skills/pdf-tools", "skills"):
        (result,) = check(tmp_path, path).results
        assert (result.path, result.name, result.accepted) == (str(skill), "pdf-tools", True)


@pytest.mark.parametrize("profile", PROFILES)
def test_skill_folder_is_validated_with_every_profile(profile: str, tmp_path: Path) -> None:
    make_skill(tmp_path)
    (result,) = check(tmp_path, "pdf-tools", profile=profile).results
    assert result.accepted


def test_missing_path_is_an_error(tmp_path: Path) -> None:
    make_skill(tmp_path)
    with pytest.raises(SkillFileNotFound):
        check(tmp_path, "pdf-tools", "gone")


def test_requested_folder_without_skills_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (result,) = check(tmp_path, "empty", profile="lenient").results
    assert [judged.finding.code for judged in result.findings] == [Code.NO_SKILL_MD]
    assert not result.accepted


def test_requested_file_that_is_not_a_skill_is_rejected(tmp_path: Path) -> None:
    make_skill(tmp_path, files={"notes.txt": b"x"})
    (result,) = check(tmp_path, "pdf-tools/notes.txt").results
    assert result.findings[0].finding.code is Code.NO_SKILL_MD


def test_without_paths_the_folders_of_the_profile_are_validated(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills")
    assert [result.name for result in check(tmp_path).results] == ["pdf-tools"]


def test_without_paths_and_folders_the_report_is_empty(tmp_path: Path) -> None:
    report = check(tmp_path)
    assert (report.results, report.scan_findings, report.accepted) == ((), (), True)


def test_results_are_in_path_order_without_duplicates(tmp_path: Path) -> None:
    for name in ("b", "c", "a"):
        make_skill(tmp_path, name)
    report = check(tmp_path, "c", "b", "a", "b/SKILL.md", ".")
    assert [result.name for result in report.results] == ["a", "b", "c"]


def test_accepted_findings_are_reported(tmp_path: Path) -> None:
    make_skill(tmp_path, data=make_skill_md(version="1"))
    (result,) = check(tmp_path, "pdf-tools").results
    assert [(judged.finding.code, judged.effect) for judged in result.findings] == [
        (Code.UNKNOWN_FIELD, Effect.ACCEPT)
    ]


def test_complete_file_is_validated(tmp_path: Path) -> None:
    make_skill(tmp_path, data=make_skill_md(body="x" * 5000) + b"\0")
    (result,) = check(tmp_path, "pdf-tools").results
    assert [judged.finding.code for judged in result.findings] == [Code.NUL_BYTE]


def test_reference_to_a_missing_file_has_a_line(tmp_path: Path) -> None:
    body = "# Steps\n[a](gone.md) [b](there.md)\n"
    make_skill(tmp_path, data=make_skill_md(body=body), files={"there.md": b""})
    (result,) = check(tmp_path, "pdf-tools").results
    (judged,) = result.findings
    assert (judged.finding.code, judged.finding.line) == (Code.REFERENCE_MISSING, 6)
    assert judged.finding.path == str(tmp_path / "pdf-tools" / "SKILL.md")


def test_skipped_files_are_reported_with_their_path(tmp_path: Path) -> None:
    skill = make_skill(tmp_path, data=make_skill_md(body="[a](link.md)\n"))
    (skill / "link.md").symlink_to("SKILL.md")
    (result,) = check(tmp_path, "pdf-tools").results
    file, summary = result.findings
    assert file.finding.code is Code.FILE_LEFT_OUT
    assert file.finding.path == str(skill / "link.md")
    assert summary.finding.code is Code.LINKS_DROPPED


def test_shadowed_skills_are_validated(tmp_path: Path) -> None:
    make_skill(tmp_path / ".agents/skills")
    make_skill(tmp_path / ".skills")
    report = check(tmp_path)
    assert [result.name for result in report.results] == ["pdf-tools", "pdf-tools"]
    assert [judged.finding.code for judged in report.scan_findings] == [Code.SHADOWED]


def test_requested_folders_do_not_shadow_each_other(tmp_path: Path) -> None:
    make_skill(tmp_path / "a")
    make_skill(tmp_path / "b")
    report = check(tmp_path, "a", "b", profile="lenient")
    assert [Path(result.path).parent.name for result in report.results] == ["a", "b"]
    assert report.scan_findings == ()


def test_findings_are_not_repeated(tmp_path: Path) -> None:
    make_skill(tmp_path, "UPPER", data=make_skill_md("UPPER", "Use: it"))
    (result,) = validate(["UPPER"], LENIENT, settings(tmp_path)).results
    codes = [judged.finding.code for judged in result.findings]
    assert sorted(codes) == sorted(set(codes))


def test_report_names_the_profile(tmp_path: Path) -> None:
    make_skill(tmp_path)
    assert validate(["."], SPECIFICATION, settings(tmp_path)).profile == "specification"
