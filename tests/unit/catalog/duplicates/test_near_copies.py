from functools import partial
from pathlib import Path
from random import Random

import pytest

from skillhall._internal.catalog.duplicates.near_copies import (
    MIN_WORDS,
    PresentSkill,
    find_near_copy,
    list_present_skills,
    summarize_text,
)
from skillhall._internal.skill.finding import Code
from skillhall.errors import SkillFileNotFound
from tests.support.skills import make_skill, make_skill_md

BODY = "The quick brown fox jumps over the lazy dog, again and again and again.\n" * 5


def make_data(seed: int, count: int = 300) -> bytes:
    rng = Random(seed)  # noqa: S311 - test data
    return " ".join(f"word{rng.randrange(400)}" for _ in range(count)).encode()


def make_present(skill_id: str, data: bytes) -> PresentSkill:
    return PresentSkill(skill_id, summarize_text(data), partial(bytes, data))


def edit(data: bytes, step: int) -> bytes:
    words = data.split()
    words[::step] = [b"other"] * len(words[::step])
    return b" ".join(words)


def test_most_similar_skill_is_reported() -> None:
    data = make_data(1)
    others = [edit(data, 20), edit(data, 50), make_data(2), edit(data, 30)]
    present = [make_present(f"skill{number}", other) for number, other in enumerate(others)]
    finding = find_near_copy(data, "new", present)
    assert finding is not None
    assert finding.code is Code.NEAR_COPY
    assert finding.message == "nearly a copy of the existing skill 'skill1' (98% equal)"


@pytest.mark.parametrize("step", [2, 4])
def test_skill_with_many_changes_is_not_a_near_copy(step: int) -> None:
    data = make_data(1)
    assert find_near_copy(data, "new", [make_present("old", edit(data, step))]) is None


def test_skill_with_the_same_id_is_not_a_copy() -> None:
    data = make_data(1)
    assert find_near_copy(data, "PDF", [make_present("pdf", data)]) is None


def test_short_texts_are_not_compared() -> None:
    data = make_data(1, MIN_WORDS - 1)
    assert not summarize_text(data)
    assert find_near_copy(data, "new", [make_present("old", data)]) is None


def test_skill_that_vanished_is_left_out() -> None:
    def read() -> bytes:
        raise SkillFileNotFound("SKILL.md")

    data = make_data(1)
    assert find_near_copy(data, "new", [PresentSkill("old", summarize_text(data), read)]) is None


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
