"""Pending imports: candidates, confirmation and limits."""

from pathlib import Path

import pytest

from skillhall._internal.cache import MAX_PENDING, MAX_PENDING_AGE, MIN_PENDING_AGE, PendingStore
from skillhall._internal.catalog.duplicates.near_copies import PresentSkill, summarize_text
from skillhall._internal.policy.access.actor import SYSTEM_ACTOR
from skillhall._internal.skill_store.folder_store import FolderStore
from skillhall._internal.skill_store.pending_imports import PendingImports
from skillhall._internal.skill_store.undoable_changes import SkillStoreChanges
from skillhall.errors import Busy, ReviewGone, StaleVersionError
from tests.support.actors import ACTOR
from tests.support.bundles import make_bundle
from tests.support.skills import make_skill, make_skill_md


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def pending_imports(tmp_path: Path) -> PendingImports:
    make_skill(tmp_path / "run/.agents/skills", "pdf", data=make_skill_md("pdf", "Old."))
    changes = SkillStoreChanges(FolderStore(tmp_path / "run"), str(tmp_path / "data"), actor=ACTOR)
    return PendingImports(changes, lambda: ["shipped"], PendingStore(Clock()))


def test_candidate_status_compares_with_the_store(
    pending_imports: PendingImports,
) -> None:
    bundles = [
        make_bundle({"SKILL.md": make_skill_md(name, text)})
        for name, text in (("new", "A."), ("pdf", "Old."), ("pdf", "New."), ("shipped", "A."))
    ]
    broken = make_bundle({"SKILL.md": b"---\nname: x\n---\n"})
    pending = pending_imports.add("some.zip", [*bundles, broken])
    ids = {candidate.key: candidate.name for candidate in pending.candidates[:4]}
    renamed = pending_imports.find(pending.id, ids)
    statuses = [candidate.status for candidate in renamed.candidates]
    assert statuses == ["new", "same", "replaces", "taken", "refused"]
    assert renamed.candidates[2].changes[0].path == "SKILL.md"
    assert "description" in renamed.candidates[4].problem


def test_near_copy_of_a_present_skill_is_a_finding(pending_imports: PendingImports) -> None:
    body = " ".join(f"word{number}" for number in range(100))
    old = make_skill_md("old", "Does it.", body)
    pending_imports.present_skills = lambda: [PresentSkill("old", summarize_text(old), lambda: old)]
    new = make_skill_md("new", "Does it.", body.replace("word50", "other"))
    pending = pending_imports.add("x", [make_bundle({"SKILL.md": new})])
    (judged,) = pending.candidates[0].findings
    assert (judged.finding.code, judged.effect) == ("near-copy", "warn")
    assert pending.candidates[0].can_import


def test_confirmed_import_is_no_longer_pending(pending_imports: PendingImports) -> None:
    pending = pending_imports.add("x", [make_bundle({"SKILL.md": make_skill_md("notes", "A.")})])
    renamed = pending_imports.find(pending.id, {"0": "notes"})
    report, change = pending_imports.confirm(renamed, renamed.candidates, SYSTEM_ACTOR)
    assert [item.id for item in report.imported] == ["notes"]
    assert change
    with pytest.raises(ReviewGone):
        pending_imports.find(pending.id)


def test_confirm_is_rejected_if_the_skill_changed(pending_imports: PendingImports) -> None:
    pending = pending_imports.add("x", [make_bundle({"SKILL.md": make_skill_md("pdf", "New.")})])
    renamed = pending_imports.find(pending.id, {"0": "pdf"})
    path = Path(pending_imports.changes.store.location) / "skills/pdf/SKILL.md"
    path.write_bytes(make_skill_md("pdf", "Edited elsewhere."))
    with pytest.raises(StaleVersionError):
        pending_imports.confirm(renamed, renamed.candidates, SYSTEM_ACTOR)
    assert b"Edited elsewhere." in path.read_bytes()


def test_pending_imports_are_limited_in_number_and_age(pending_imports: PendingImports) -> None:
    clock = pending_imports.pending.clock
    assert isinstance(clock, Clock)
    bundle = make_bundle({"SKILL.md": make_skill_md("a")})
    first = pending_imports.add("x", [bundle])
    for _ in range(MAX_PENDING - 1):
        last = pending_imports.add("x", [bundle])
    with pytest.raises(Busy, match=r"too many pending imports \(32\)"):
        pending_imports.add("x", [bundle])
    assert pending_imports.find(first.id)
    clock.now = MIN_PENDING_AGE + 1  # the oldest one has been left alone: it makes room
    newest = pending_imports.add("x", [bundle])
    with pytest.raises(ReviewGone):
        pending_imports.find(first.id)
    assert pending_imports.find(last.id)
    clock.now = MAX_PENDING_AGE + 1
    with pytest.raises(ReviewGone):
        pending_imports.find(last.id)
    assert pending_imports.find(newest.id)


def test_pending_import_does_not_show_hidden_files_of_the_replaced_skill(
    pending_imports: PendingImports, tmp_path: Path
) -> None:
    (tmp_path / "run/.agents/skills/pdf/.env").write_bytes(b"planted-7f3a")
    pending = pending_imports.add(
        "some.zip", [make_bundle({"SKILL.md": make_skill_md("pdf", "New.")})]
    )
    candidate = pending_imports.find(pending.id, {"0": "pdf"}).candidates[0]
    assert [change.path for change in candidate.changes] == ["SKILL.md"]
