from pathlib import Path

from skillhall._internal.catalog.fingerprint import Fingerprint, take_fingerprint
from skillhall._internal.policy.profiles import INSTRUCTION_SKILLS, LENIENT, PROMPT_REPOSITORY
from tests.support.skills import make_skill

YEAR = 365 * 24 * 3600 * 1_000_000_000  # nanoseconds


def stamps_a_year_later(root: Path) -> Fingerprint:
    """Stamps of files old enough to be trusted."""
    taken = take_fingerprint([str(root)], INSTRUCTION_SKILLS.scan_policy)
    return Fingerprint(taken.signatures, taken.taken_ns + YEAR)


def test_stamps_hold_while_nothing_changes(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf")
    assert stamps_a_year_later(tmp_path).is_current()


def test_stamps_of_files_that_were_just_written_are_not_trusted(tmp_path: Path) -> None:
    make_skill(tmp_path, "pdf")
    assert not take_fingerprint([str(tmp_path)], INSTRUCTION_SKILLS.scan_policy).is_current()


def test_an_edit_breaks_the_stamps(tmp_path: Path) -> None:
    skill = make_skill(tmp_path, "pdf")
    stamps = stamps_a_year_later(tmp_path)
    (skill / "SKILL.md").write_bytes(b"something longer than before, and certainly another size")
    assert not stamps.is_current()


def test_a_missing_root_has_a_stamp_too(tmp_path: Path) -> None:
    stamps = stamps_a_year_later(tmp_path / "none")
    assert stamps.is_current()
    (tmp_path / "none").mkdir()
    assert not stamps.is_current()


def test_only_folders_and_skill_files_inside_the_root_are_stamped(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make_skill(root, "pdf", files={"notes.md": b"", ".git/SKILL.md": b""})
    make_skill(tmp_path, "outside")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(root)
    stamped = {Path(path).relative_to(root).as_posix() for path in stamps_of(root)}
    assert stamped == {".", "pdf", "pdf/SKILL.md", "loop"}


def test_what_a_link_leads_to_is_stamped_if_links_are_followed(tmp_path: Path) -> None:
    make_skill(tmp_path / "outside", "pdf")
    (tmp_path / "root").mkdir()
    (tmp_path / "root/pdf").symlink_to(tmp_path / "outside/pdf")
    root = str(tmp_path / "root")
    followed = take_fingerprint([root], INSTRUCTION_SKILLS.scan_policy, {root}).signatures
    assert f"{root}/pdf/SKILL.md" in followed
    assert f"{root}/pdf/SKILL.md" not in stamps_of(tmp_path / "root")


def test_skills_that_agents_installed_are_stamped(tmp_path: Path) -> None:
    make_skill(tmp_path / ".claude/skills", "pdf")
    make_skill(tmp_path / ".claude/other", "docx")
    make_skill(tmp_path / "skills/.curated", "notes")
    stamped = take_fingerprint([str(tmp_path)], LENIENT.scan_policy).signatures
    assert {Path(path).relative_to(tmp_path).as_posix() for path in stamped} >= {
        ".claude",
        ".claude/skills/pdf/SKILL.md",
        "skills/.curated/notes/SKILL.md",
    }
    assert str(tmp_path / ".claude/other") not in stamped


def stamps_of(root: Path) -> list[str]:
    return list(take_fingerprint([str(root)], INSTRUCTION_SKILLS.scan_policy).signatures)


def test_an_edit_of_a_flat_file_breaks_the_stamps(tmp_path: Path) -> None:
    (tmp_path / "review.md").write_bytes(b"---\nname: review\n---\n")
    taken = take_fingerprint([str(tmp_path)], PROMPT_REPOSITORY.scan_policy)
    stamps = Fingerprint(taken.signatures, taken.taken_ns + YEAR)
    (tmp_path / "review.md").write_bytes(b"---\nname: review\n---\nAnd more.")
    assert not stamps.is_current()
