from pathlib import Path

from skillhall._internal.catalog.fingerprint import Fingerprint, take_fingerprint
from skillhall._internal.policy.profiles import INSTRUCTION_SKILLS, LENIENT, PROMPT_REPOSITORY
from tests.support.skills import make_skill

YEAR = 365 * 24 * 3600 * 1_000_000_000  # nanoseconds


def take_stable_fingerprint(root: Path) -> Fingerprint:
    """Take a fingerprint as if all files were a year old."""
    taken = take_fingerprint([str(root)], INSTRUCTION_SKILLS.scan_policy)
    return Fingerprint(taken.signatures, taken.taken_ns + YEAR)


def test_fingerprint_is_current_without_changes(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf")
    assert take_stable_fingerprint(tmp_path).is_current()


def test_fingerprint_of_new_files_is_not_current(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf")
    assert not take_fingerprint([str(tmp_path)], INSTRUCTION_SKILLS.scan_policy).is_current()


def test_edit_changes_the_fingerprint(tmp_path: Path) -> None:
    skill = make_skill(tmp_path, "pdf")
    fingerprint = take_stable_fingerprint(tmp_path)
    (skill / "SKILL.md").write_bytes(b"something longer than before, and certainly another size")
    assert not fingerprint.is_current()


def test_missing_root_has_a_fingerprint(tmp_path: Path) -> None:
    fingerprint = take_stable_fingerprint(tmp_path / "none")
    assert fingerprint.is_current()
    (tmp_path / "none").mkdir()
    assert not fingerprint.is_current()


def test_fingerprint_has_only_folders_and_skill_files_in_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make_skill(root, "pdf", files={"notes.md": b"", ".git/SKILL.md": b""})
    make_skill(tmp_path, "outside")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(root)
    paths = {Path(path).relative_to(root).as_posix() for path in list_paths(root)}
    assert paths == {".", "pdf", "pdf/SKILL.md", "loop"}


def test_fingerprint_follows_links_only_on_request(tmp_path: Path) -> None:
    make_skill(tmp_path / "outside", "pdf")
    (tmp_path / "root").mkdir()
    (tmp_path / "root/pdf").symlink_to(tmp_path / "outside/pdf")
    root = str(tmp_path / "root")
    followed = take_fingerprint([root], INSTRUCTION_SKILLS.scan_policy, {root}).signatures
    assert f"{root}/pdf/SKILL.md" in followed
    assert f"{root}/pdf/SKILL.md" not in list_paths(tmp_path / "root")


def test_fingerprint_includes_installed_skills(tmp_path: Path) -> None:
    make_skill(tmp_path / ".claude/skills", "pdf")
    make_skill(tmp_path / ".claude/other", "docx")
    make_skill(tmp_path / "skills/.curated", "notes")
    signatures = take_fingerprint([str(tmp_path)], LENIENT.scan_policy).signatures
    assert {Path(path).relative_to(tmp_path).as_posix() for path in signatures} >= {
        ".claude",
        ".claude/skills/pdf/SKILL.md",
        "skills/.curated/notes/SKILL.md",
    }
    assert str(tmp_path / ".claude/other") not in signatures


def list_paths(root: Path) -> list[str]:
    return list(take_fingerprint([str(root)], INSTRUCTION_SKILLS.scan_policy).signatures)


def test_edit_of_a_flat_file_changes_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "review.md").write_bytes(b"---\nname: review\n---\n")
    taken = take_fingerprint([str(tmp_path)], PROMPT_REPOSITORY.scan_policy)
    fingerprint = Fingerprint(taken.signatures, taken.taken_ns + YEAR)
    (tmp_path / "review.md").write_bytes(b"---\nname: review\n---\nAnd more.")
    assert not fingerprint.is_current()
