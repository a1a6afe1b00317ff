"""Concurrent changes to a session by several processes; none may be lost.

`python -m tests.support.session_concurrency URL SESSION WORKER CHANGES` runs one of the processes.
It prints the results of its changes as JSON.
"""

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

from skillhall._internal.storage.records import Block, Event
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.importer import ImportConflict, ImportOptions
from skillhall._internal.workspace.ordering import BlockPlacement
from skillhall._internal.workspace.workspace import Workspace
from skillhall.errors import BlockMovedError, RecordNotFound, SkillhallError, VersionConflict
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP
from tests.support.fork_server import ForkedProcess
from tests.support.workspaces import import_upload, make_workspace, skill_md

READY = "ready\n"
SKILLS = 8  # different names to import
CONFLICTS = (VersionConflict, BlockMovedError, RecordNotFound)


@dataclass
class WorkerResults:
    """Combined results of all processes."""

    accepted: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    last_texts: dict[str, list[tuple[int, str]]] = field(default_factory=dict)  # by block

    @property
    def total(self) -> int:
        return self.accepted.total() + self.rejected


def open_workspace(url: str, prefix: str) -> tuple[Database, Workspace]:
    """Open a workspace whose ids begin with `prefix`."""
    database = Database(url, TIMESTAMP)
    return database, make_workspace(SqlWorkspaceStore(database, actor=ACTOR), prefix)


def run_workers(url: str, session: str, processes: int, changes: int) -> WorkerResults:
    """Run `processes` that make `changes` each, and return their results."""
    module = "tests.support.session_concurrency"
    results = WorkerResults()
    with ExitStack() as stack:
        reader, writer = os.pipe()
        with os.fdopen(reader, "rb") as stdin:
            running = [
                stack.enter_context(
                    closing(
                        ForkedProcess(
                            module,
                            url,
                            session,
                            f"w{number}",
                            str(changes),
                            imports=[module],
                            stdin=stdin,
                        )
                    )
                )
                for number in range(processes)
            ]
        for worker in running:  # all have read the blocks before the first change
            assert worker.stdout is not None
            assert worker.stdout.readline() == READY
        os.close(writer)  # ends their stdin, for which they wait
        outputs = [worker.read_output(timeout=900) for worker in running]
        assert [worker.wait(900) for worker in running] == [0] * processes
    for output in outputs:
        data = json.loads(output)
        results.accepted.update(data["accepted"])
        results.rejected += data["rejected"]
        for block, version, text in data["texts"]:
            results.last_texts.setdefault(block, []).append((version, text))
    return results


def check_nothing_lost(
    workspace: Workspace, session: str, results: WorkerResults, before: Sequence[Block]
) -> None:
    """Check that the session matches its events and that no accepted edit was lost."""
    events = _all_events(workspace, session)
    revisions = [event.revision for event in events]
    assert sorted(set(revisions)) == list(range(1, max(revisions) + 1)), "a change left no event"
    assert revisions == sorted(revisions), "events are not in the order of the changes"
    kinds = Counter(event.kind for event in events if event.revision > before[-1].version)
    assert kinds == results.accepted, (kinds, results.accepted)
    blocks = workspace.blocks.list(session)
    positions = [(block.zone, block.position) for block in blocks]
    assert len(set(positions)) == len(positions), "two blocks have the same position"
    assert [block.id for block in blocks] == replay(events), "the order differs from the events"
    for block in blocks:
        texts = results.last_texts.get(block.id)
        if texts:
            assert block.content.text == max(texts)[1], "an accepted edit was lost"


def replay(events: Iterable[Event]) -> list[str]:
    """Return the ids of the blocks in order, after all events."""
    zones: dict[str, list[str]] = {zone.value: [] for zone in Zone}
    for event in events:
        if event.kind in ("block-moved", "block-deleted"):
            for ids in zones.values():
                if event.subject in ids:
                    ids.remove(event.subject)
        if event.kind in ("block-added", "block-moved", "block-brought-back"):
            zone, after = zones[str(event.data["zone"])], str(event.data["after"])
            zone.insert(zone.index(after) + 1 if after else 0, event.subject)
    return [block for zone in Zone for block in zones[zone.value]]


def _all_events(workspace: Workspace, session: str) -> list[Event]:
    events: list[Event] = []
    while page := workspace.events(events[-1].seq if events else 0, session):
        events += page
    return events


class _Worker:
    """Makes random changes and records which are accepted."""

    def __init__(self, workspace: Workspace, session: str, name: str) -> None:
        self.workspace = workspace
        self.session = session
        self.name = name
        self.random = random.Random(name)  # noqa: S311 - reproducible changes
        self.known_blocks = workspace.blocks.list(session)
        self.accepted: Counter[str] = Counter()
        self.rejected = 0
        self.texts: list[tuple[str, int, str]] = []

    def change(self, number: int) -> None:
        """Change a block based on its last known version."""
        if number and number % 5 == 0:
            self.known_blocks = self.workspace.blocks.list(self.session)
        block = self.random.choice(self.known_blocks)
        text = f"{self.name} {number}"
        changes = (self.edit, self.edit, self.move, self.move, self.import_, self.delete)
        try:
            self.random.choice(changes)(block, text)
        except CONFLICTS:
            self.rejected += 1
            self.known_blocks = self.workspace.blocks.list(self.session)

    def edit(self, block: Block, text: str) -> None:
        edited = self.workspace.blocks.edit(self.session, block.id, block.version, text=text)
        self._record("block-edited", edited)

    def move(self, block: Block, _: str) -> None:
        zone = self.random.choice([*Zone])
        others = [b.id for b in self.known_blocks if b.zone is zone and b.id != block.id]
        placement = BlockPlacement(first=True)
        if others:
            placement = BlockPlacement(after=self.random.choice(others))
        moved = self.workspace.blocks.move(self.session, block.id, block.version, zone, placement)
        self.accepted["block-moved"] += 1
        self._remember(moved)

    def delete(self, block: Block, text: str) -> None:
        if text.endswith("3"):
            self.workspace.blocks.delete(self.session, block.id, block.version)
            self.accepted["block-deleted"] += 1
            self.workspace.blocks.restore(self.session, block.id)
            self.accepted["block-brought-back"] += 1
        else:
            self.edit(block, text)

    def import_(self, _: Block, text: str) -> None:
        data = skill_md(f"skill-{self.random.randrange(SKILLS)}", text)
        options = ImportOptions(on_conflict=ImportConflict.REPLACE)
        result = import_upload(self.workspace.importer, self.session, data, "skill.md", options)
        for block in result.blocks:
            self._record("block-edited" if result.replaced else "block-added", block)

    def _record(self, kind: str, block: Block) -> None:
        self.accepted[kind] += 1
        self.texts.append((block.id, block.version, block.content.text))
        self._remember(block)

    def _remember(self, block: Block) -> None:
        self.known_blocks = [b for b in self.known_blocks if b.id != block.id] + [block]


def _main(url: str, session: str, name: str, changes: str) -> None:
    database, workspace = open_workspace(url, name)
    worker = _Worker(workspace, session, name)
    sys.stdout.write(READY)
    sys.stdout.flush()
    sys.stdin.readline()
    for number in range(int(changes)):
        worker.change(number)
    database.close()
    data = {"accepted": worker.accepted, "rejected": worker.rejected, "texts": worker.texts}
    sys.stdout.write(json.dumps(data))


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:])
    except SkillhallError as error:
        sys.exit(f"{type(error).__name__}: {error}")
