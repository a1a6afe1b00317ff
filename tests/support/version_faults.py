"""Changes to versions of a skill that are killed at every SQL statement.

`python -m tests.support.version_faults URL CASE` runs in a separate process, because no database
connection may be open when it forks.
"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import NamedTuple

from sqlalchemy import func, select

from skillhall._internal.policy.access.actor import Actor
from skillhall._internal.policy.trust.version_states import ReviewMode
from skillhall._internal.skill_store.database_store import DatabaseStore
from skillhall._internal.skill_store.mirror import SkillMirror
from skillhall._internal.skill_store.store import bind_actor
from skillhall._internal.skill_store.versions.skill_versions import SkillVersions
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkillTable
from skillhall._internal.storage.sql.tables import audit, revocations, version_reviews
from skillhall._internal.storage.sql.version_rows import SqlVersionTable, VersionWriter
from tests.support.bundles import build_single_bundle
from tests.support.databases import TIMESTAMP
from tests.support.skills import make_skill_md
from tests.support.statement_faults import MAX_STEPS, run_fault_module, run_until_killed

SKILL, AUTHOR, REVIEWER = "pdf", Actor("dev1"), Actor("rev1")


class _NoWorkingCopies:
    """Working copies that do not follow the served version."""

    def record_edits(self, skill: str) -> None:
        pass

    def follow_in_transaction(
        self, writer: VersionWriter, skill: str, before: int | None, after: int | None
    ) -> None:
        if before is not None and writer.is_shared_equal(skill, before):
            writer.copy_to_shared(skill, after)

    def follow(self, skill: str, before: int | None, after: int | None) -> None:
        pass


class State(NamedTuple):
    """What a change may change: states and current version, and rows about it."""

    versions: dict[int, str]
    current: int | None
    reviews: int
    audit: int
    revocations: int


def _submit(versions: SkillVersions) -> None:
    versions.submit(SKILL, 3, AUTHOR)


def _approve(versions: SkillVersions) -> None:
    digest = versions.show(SKILL, 4).version.digest
    versions.approve(SKILL, 4, REVIEWER, digest)


def _yank(versions: SkillVersions) -> None:
    versions.yank(SKILL, 2, REVIEWER, "it deletes files")


# Each change, with the states and the current version that it leads to.
CASES: dict[str, tuple[Callable[[SkillVersions], None], dict[int, str], int]] = {
    "submit": (_submit, {1: "approved", 2: "approved", 3: "in-review", 4: "draft"}, 2),
    "approve": (_approve, {1: "approved", 2: "approved", 3: "draft", 4: "approved"}, 4),
    "yank": (_yank, {1: "approved", 2: "yanked", 3: "draft", 4: "in-review"}, 1),
}


def run_version_faults(url: str, case: str) -> int:
    """Kill the change at every step, a statement or commit; return the number of steps."""
    return run_fault_module("tests.support.version_faults", url, case)


def _open(database: Database) -> SkillVersions:
    return SkillVersions(SqlVersionTable(database), ReviewMode.TWO, _NoWorkingCopies())


def _prepare(url: str) -> None:
    """Write versions 1 and 2, approved, the draft 3, and 4, which is in review."""
    with tempfile.TemporaryDirectory() as folder, closing(Database(url, TIMESTAMP)) as database:
        table = SqlSharedSkillTable(database, ReviewMode.TWO)
        with closing(SkillMirror(table, f"{folder}/mirror")) as mirror:
            store = bind_actor(DatabaseStore(folder, table, mirror), AUTHOR)
            versions = _open(database)
            for number in range(1, 5):
                text = make_skill_md(SKILL, "Reads.", f"Version {number}.")
                store.import_(build_single_bundle({"SKILL.md": text}, SKILL), replace=True)
                if number in (1, 2, 4):
                    versions.submit(SKILL, number, AUTHOR)
                if number in (1, 2):
                    digest = versions.show(SKILL, number).version.digest
                    versions.approve(SKILL, number, REVIEWER, digest)


def _read_state(url: str) -> State:
    with closing(Database(url, TIMESTAMP)) as database:
        listed = _open(database).list(SKILL)
        is_version_row = audit.c.action.like("version.%")
        counts = (
            select(func.count()).select_from(version_reviews),
            select(func.count()).select_from(audit).where(is_version_row),
            select(func.count()).select_from(revocations),
        )
        numbers = database.read(lambda c: [int(c.execute(q).scalar_one()) for q in counts])
        states = {version.number: version.state.value for version in listed.versions}
        return State(states, listed.current, *numbers)


def _run_change(url: str, change: Callable[[SkillVersions], None]) -> None:
    change(_open(Database(url, TIMESTAMP)))


def _main(url: str, case: str) -> None:
    change, states, current = CASES[case]
    _prepare(url)
    before = _read_state(url)
    assert before.versions == {1: "approved", 2: "approved", 3: "draft", 4: "in-review"}
    is_yank = case == "yank"
    after = State(
        states, current, before.reviews + 1, before.audit + 1, before.revocations + is_yank
    )
    for step in range(1, MAX_STEPS):
        is_complete = run_until_killed(step, partial(_run_change, url, change))
        state = _read_state(url)
        if state == after:
            sys.stdout.write(str(step - is_complete))
            return
        assert state == before, f"killed at {step}: {state}"
    raise AssertionError(f"more than {MAX_STEPS} statements")


if __name__ == "__main__":
    _main(*sys.argv[1:])
