from pathlib import Path

from skillhall._internal.installer.present_skills import list_present_skills
from tests.support.skills import make_skill, make_skill_md

BODY = "The quick brown fox jumps over the lazy dog, again and again and again.\n" * 5


def test_skills_of_similar_size_are_listed(tmp_path: Path) -> None:
    for name, times in (("small", 1), ("same", 4), ("large", 16)):
        make_skill(tmp_path, name, data=make_skill_md(name, "Runs.", BODY * times))
    (present,) = list_present_skills(str(tmp_path), [len(BODY) * 4])
    assert (present.id, present.read()) == ("same", (tmp_path / "same/SKILL.md").read_bytes())
    assert present.summary


def test_links_and_folders_without_a_skill_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "skills" / "empty").mkdir(parents=True)
    (tmp_path / "skills" / "SKILL.md").write_text(BODY, "utf-8")
    make_skill(tmp_path, "elsewhere", data=make_skill_md("x", "Runs.", BODY))
    (tmp_path / "skills" / "link").symlink_to(tmp_path / "elsewhere")
    assert [*list_present_skills(str(tmp_path / "skills"), [len(BODY)])] == []


def test_missing_folder_has_no_skills(tmp_path: Path) -> None:
    assert [*list_present_skills(str(tmp_path / "none"), [100])] == []
