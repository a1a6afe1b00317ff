"""Skills that wait to be looked at before they are imported."""

from pathlib import Path

import pytest

from skillhall._internal.cache import MAX_PENDING, MAX_PENDING_AGE, PendingStore
from skillhall._internal.skill_store.changes import SkillStoreChanges
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.pending_imports import PendingImports
from skillhall.errors import ReviewGone, StaleVersionError
from tests.support.bundles import make_bundle
from tests.support.skills import make_skill, make_skill_md


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def reviews(tmp_path: Path) -> PendingImports:
    make_skill(tmp_path / "run/.agents/skills", "pdf", data=make_skill_md("pdf", "Old."))
    changes = SkillStoreChanges(FolderStore(tmp_path / "run"), str(tmp_path / "data"))
    return PendingImports(changes, lambda: ["shipped"], PendingStore(Clock()))


def test_a_candidate_is_new_the_same_or_replaces_or_cannot_be_taken(
    reviews: PendingImports,
) -> None:
    given = [
        make_bundle({"SKILL.md": make_skill_md(name, text)})
        for name, text in (("new", "A."), ("pdf", "Old."), ("pdf", "New."), ("shipped", "A."))
    ]
    broken = make_bundle({"SKILL.md": b"---\nname: x\n---\n"})
    found = reviews.add("some.zip", [*given, broken])
    ids = {one.key: one.name for one in found.candidates[:4]}
    again = reviews.find(found.id, ids)
    standings = [one.status for one in again.candidates]
    assert standings == ["new", "same", "replaces", "taken", "refused"]
    assert again.candidates[2].changes[0].path == "SKILL.md"
    assert "description" in again.candidates[4].problem


def test_what_was_looked_at_is_taken_and_waits_no_longer(reviews: PendingImports) -> None:
    found = reviews.add("x", [make_bundle({"SKILL.md": make_skill_md("notes", "A.")})])
    named = reviews.find(found.id, {"0": "notes"})
    report, change = reviews.confirm(named, named.candidates)
    assert [one.id for one in report.imported] == ["notes"]
    assert change
    with pytest.raises(ReviewGone):
        reviews.find(found.id)


def test_what_means_something_else_by_now_is_not_taken(reviews: PendingImports) -> None:
    found = reviews.add("x", [make_bundle({"SKILL.md": make_skill_md("pdf", "New.")})])
    named = reviews.find(found.id, {"0": "pdf"})
    place = Path(reviews.changes.store.location) / "skills/pdf/SKILL.md"
    place.write_bytes(make_skill_md("pdf", "Edited meanwhile."))
    with pytest.raises(StaleVersionError):
        reviews.confirm(named, named.candidates)
    assert b"Edited meanwhile." in place.read_bytes()


def test_nothing_waits_for_ever_or_without_end(reviews: PendingImports) -> None:
    clock = reviews.pending.clock
    assert isinstance(clock, Clock)
    one = make_bundle({"SKILL.md": make_skill_md("a")})
    first = reviews.add("x", [one])
    for _ in range(MAX_PENDING):
        last = reviews.add("x", [one])
    with pytest.raises(ReviewGone):
        reviews.find(first.id)
    assert reviews.find(last.id)
    clock.now = MAX_PENDING_AGE + 1
    with pytest.raises(ReviewGone):
        reviews.find(last.id)


def test_a_review_does_not_show_dot_files_of_the_replaced_skill(
    reviews: PendingImports, tmp_path: Path
) -> None:
    (tmp_path / "run/.agents/skills/pdf/.env").write_bytes(b"planted-7f3a")
    found = reviews.add("some.zip", [make_bundle({"SKILL.md": make_skill_md("pdf", "New.")})])
    candidate = reviews.find(found.id, {"0": "pdf"}).candidates[0]
    assert [change.path for change in candidate.changes] == ["SKILL.md"]
