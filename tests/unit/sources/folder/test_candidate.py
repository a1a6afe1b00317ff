"""Candidates: reading and parsing the head of a SKILL.md."""

import os
from pathlib import Path

import pytest

from skillhall._internal.policy.profiles import LENIENT, LOCAL_SKILLS, Profile
from skillhall._internal.skill.frontmatter_locator import MAX_SKILL_MD_BYTES
from skillhall._internal.sources.folder.candidate import HEAD_SIZE, Candidate, to_read_finding
from skillhall.errors import NotAFile
from tests.support.trees import scan_below


def read(root: Path, text: str, profile: Profile = LENIENT) -> Candidate:
    """Write a SKILL.md and return its candidate."""
    (root / "pdf").mkdir(exist_ok=True)
    (root / "pdf" / "SKILL.md").write_text(text, encoding="utf-8")
    [candidate] = scan_below(root, profile).candidates
    return candidate


def codes(candidate: Candidate) -> list[str]:
    return [str(row[0]) for row in candidate.findings]


def frontmatter(description: str) -> str:
    return f"---\nname: pdf\ndescription: {description}\n---\n"


def test_candidate_has_values_of_frontmatter(tmp_path: Path) -> None:
    result = read(tmp_path, frontmatter("Reads PDFs.") + "Body.")
    assert (result.folder, result.file) == ("pdf", "SKILL.md")
    assert (result.name, result.description, result.hidden) == ("pdf", "Reads PDFs.", False)
    assert result.findings == ()


@pytest.mark.parametrize("around", range(-8, 9))
@pytest.mark.parametrize("letter", ["x", "é", "文"])
def test_fence_near_end_of_head_is_found(tmp_path: Path, around: int, letter: str) -> None:
    width = len(letter.encode())
    room = HEAD_SIZE + around - len(frontmatter("").encode())
    description = letter * (room // width) + "y" * (room % width)
    result = read(tmp_path, frontmatter(description) + "Body.\n")
    assert result.description == description
    assert codes(result) == ["description-too-long"]


@pytest.mark.parametrize("size", [HEAD_SIZE - 1, HEAD_SIZE, HEAD_SIZE + 1])
def test_file_ending_with_fence_is_read_completely(tmp_path: Path, size: int) -> None:
    description = "x" * (size - len(frontmatter("")) + 1)
    text = frontmatter(description).removesuffix("\n")
    assert len(text) == size
    assert read(tmp_path, text).description == description


@pytest.mark.parametrize("cut", range(HEAD_SIZE - 6, HEAD_SIZE + 3))
def test_hyphens_at_end_of_head_need_line_end(tmp_path: Path, cut: int) -> None:
    text = "---\nname: pdf\ndescription: Fine.\nx: "
    text += "x" * (cut - len(text) - 1) + "\n"
    assert codes(read(tmp_path, f"{text}---nofence: x\n---\n")) == ["unknown-field"]


@pytest.mark.parametrize(
    "blanks", [1, HEAD_SIZE - 2, HEAD_SIZE - 1, HEAD_SIZE, HEAD_SIZE + 1, 3 * HEAD_SIZE]
)
def test_blank_lines_before_fence_are_skipped(tmp_path: Path, blanks: int) -> None:
    result = read(tmp_path, "\n" * blanks + frontmatter("Late."))
    assert result.description == "Late."
    assert codes(result) == ["leading-blank"]


def test_long_frontmatter_is_read(tmp_path: Path) -> None:
    text = frontmatter("Long.").replace("---\n", f"---\nextra: {'x' * 60_000}\n", 1)
    assert read(tmp_path, text).description == "Long."


def test_frontmatter_beyond_limit_is_reported(tmp_path: Path) -> None:
    assert codes(read(tmp_path, frontmatter("x" * 70_000))) == ["frontmatter-large"]


def test_skill_md_beyond_size_limit_is_not_read(tmp_path: Path) -> None:
    text = frontmatter("Fine.")
    text += "x" * (MAX_SKILL_MD_BYTES - len(text))
    assert codes(read(tmp_path, text)) == []
    assert codes(read(tmp_path, text + "x")) == ["too-large"]


def test_empty_file_has_no_frontmatter(tmp_path: Path) -> None:
    assert codes(read(tmp_path, "")) == ["no-frontmatter"]


@pytest.mark.parametrize("value", ["true", "True", '"true"'])
def test_candidate_has_hidden_flag(tmp_path: Path, value: str) -> None:
    text = frontmatter("Hidden.").replace("name", f"disable-model-invocation: {value}\nname")
    assert read(tmp_path, text).hidden


def test_keys_in_other_case_depend_on_profile(tmp_path: Path) -> None:
    text = frontmatter("Any case.").replace("name", "Name").replace("description", "DESCRIPTION")
    assert read(tmp_path, text, LOCAL_SKILLS).description == "Any case."
    assert read(tmp_path, text).description == ""


def test_edit_with_same_size_and_time_changes_signature(tmp_path: Path) -> None:
    before = read(tmp_path, frontmatter("One."))
    file = tmp_path / "pdf" / "SKILL.md"
    stat = file.stat()
    file.unlink()
    after = read(tmp_path, frontmatter("Two."))
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert before.signature != after.signature


def test_read_findings_do_not_name_paths() -> None:
    denied = to_read_finding(PermissionError(13, "Permission denied", "/private/place"))
    assert (str(denied.code), denied.line) == ("unreadable", 1)
    assert "/private" not in denied.message
    assert to_read_finding(NotAFile("SKILL.md")).code == "not-a-file"
