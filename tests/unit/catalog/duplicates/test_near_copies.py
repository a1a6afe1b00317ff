from functools import partial
from random import Random

import pytest

from skillhall._internal.catalog.duplicates.near_copies import (
    MIN_WORDS,
    PresentSkill,
    find_near_copy,
    summarize_text,
)
from skillhall._internal.skill.finding import Code
from skillhall.errors import SkillFileNotFound


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
    assert finding.message == "near copy of 'skill1' (98% equal), which already exists"


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
