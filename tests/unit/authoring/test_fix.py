import os
import stat
from pathlib import Path

import pytest

from skillhall._internal.authoring.fix import FixResult, fix
from skillhall._internal.policy.profiles import LENIENT, SPECIFICATION
from skillhall._internal.settings import Settings
from tests.support.skills import make_skill, make_skill_md

FIXED = make_skill_md("pdf-tools", "Use for: PDF files.")
BROKEN = FIXED.replace(b'"', b"")


def run_fix(folder: Path, *, dry_run: bool = False) -> tuple[FixResult, ...]:
    settings = Settings(str(folder), str(folder / "cache"), use_head_cache=False)
    return fix(["."], SPECIFICATION, settings, dry_run=dry_run)


def test_repaired_value_is_quoted_on_disk(tmp_path: Path) -> None:
    skill_md = make_skill(tmp_path, data=BROKEN) / "SKILL.md"
    (fixed,) = run_fix(tmp_path)
    assert skill_md.read_bytes() == FIXED
    assert fixed.changes == ("quoted the value of 'description'",)
    assert fixed.written


def test_dry_run_returns_a_diff_and_writes_nothing(tmp_path: Path) -> None:
    skill_md = make_skill(tmp_path, data=BROKEN) / "SKILL.md"
    (fixed,) = run_fix(tmp_path, dry_run=True)
    assert skill_md.read_bytes() == BROKEN
    assert "\n-description: Use for: PDF files.\n+description: " in fixed.diff


def test_diff_marks_a_missing_final_newline(tmp_path: Path) -> None:
    make_skill(tmp_path, data=BROKEN.rstrip(b"\n"))
    (fixed,) = run_fix(tmp_path, dry_run=True)
    assert fixed.diff.endswith(" # Steps\n\\ No newline at end of file\n")


@pytest.mark.skipif(os.name == "nt", reason="modes are a POSIX thing")
def test_fix_preserves_the_file_mode(tmp_path: Path) -> None:
    skill_md = make_skill(tmp_path, data=BROKEN) / "SKILL.md"
    skill_md.chmod(0o640)
    run_fix(tmp_path)
    assert stat.S_IMODE(skill_md.stat().st_mode) == 0o640


def test_case_variant_is_renamed(tmp_path: Path) -> None:
    folder = make_skill(tmp_path)
    (folder / "SKILL.md").rename(folder / "Skill.md")
    (fixed,) = run_fix(tmp_path)
    assert fixed.changes == ("renamed 'Skill.md' to 'SKILL.md'",)
    assert [entry.name for entry in folder.iterdir()] == ["SKILL.md"]


def test_file_that_would_not_improve_is_left_unchanged(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf---\nname: other\n"
    skill_md = make_skill(tmp_path, data=data) / "SKILL.md"
    assert run_fix(tmp_path) == ()
    assert skill_md.read_bytes() == data


def test_file_behind_a_link_is_not_written(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_bytes(BROKEN)
    folder = tmp_path / "skills" / "pdf-tools"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to(outside)
    assert run_fix(tmp_path / "skills") == ()
    assert outside.read_bytes() == BROKEN


def test_fix_leaves_no_temporary_files(tmp_path: Path) -> None:
    folder = make_skill(tmp_path, data=BROKEN)
    run_fix(tmp_path)
    assert [entry.name for entry in folder.iterdir()] == ["SKILL.md"]


def test_write_failure_is_reported_and_other_files_are_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make_skill(tmp_path, "a", data=BROKEN.replace(b"pdf-tools", b"a"))
    second = make_skill(tmp_path, "b", data=BROKEN.replace(b"pdf-tools", b"b"))
    real = os.fsync
    calls: list[int] = []

    def full_once(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 1:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full_once)
    failed, fixed = run_fix(tmp_path)
    assert failed.problem == "cannot be written: no space left on device"
    assert fixed.written
    assert [e.name for e in first.iterdir()] == ["SKILL.md"]
    assert b"Use for: PDF" in (first / "SKILL.md").read_bytes()
    assert b'"Use for: PDF' in (second / "SKILL.md").read_bytes()


def test_profile_decides_whether_a_fix_is_an_improvement(tmp_path: Path) -> None:
    make_skill(tmp_path, data=make_skill_md(allowed_tools="[Read, Write]"))
    settings = Settings(str(tmp_path), str(tmp_path / "cache"), use_head_cache=False)
    (fixed,) = fix(["pdf-tools"], LENIENT, settings)
    assert fixed.changes == ("separated the entries of 'allowed-tools' with spaces",)
