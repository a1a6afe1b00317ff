"""Several processes that change one session at once, and the proof that nothing was lost.

`python -m tests.support.session_concurrency URL SESSION WORKER CHANGES` is one of them. It prints
what it
was told about each change, as JSON.
"""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skillhall._internal.storage.records import Block, Event
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.workspace_writes import SqlWorkspaceStore
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.importer import ImportConflict, ImportOptions
from skillhall._internal.workspace.ordering import BlockPlacement
from skillhall._internal.workspace.workspace import Workspace
from skillhall.errors import BlockMovedError, RecordNotFound, SkillhallError, VersionConflict
from tests.support.databases import TIMESTAMP
from tests.support.workspaces import make_workspace, skill_md

ROOT = Path(__file__).parents[2]
READY = "ready\n"
SKILLS = 8  # names that all of them import
CONFLICTS = (VersionConflict, BlockMovedError, RecordNotFound)


@dataclass
class WorkerResults:
    """What the processes were told."""

    accepted: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    last_texts: dict[str, list[tuple[int, str]]] = field(default_factory=dict)  # by block

    @property
    def total(self) -> int:
        return self.accepted.total() + self.rejected


def open_workspace(url: str, prefix: str) -> tuple[Database, Workspace]:
    """A workspace whose ids begin with `prefix`."""
    database = Database(url, TIMESTAMP)
    return database, make_workspace(SqlWorkspaceStore(database), prefix)


def run_workers(url: str, session: str, processes: int, changes: int) -> WorkerResults:
    """Let so many processes make so many changes each; what they were told."""
    running = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.support.session_concurrency"),
                *(url, session, f"w{number}", str(changes)),
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    for one in running:  # all have looked before anybody changes anything
        assert one.stdout is not None
        assert one.stdout.readline() == READY
    told = WorkerResults()
    for one in running:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    for one in running:
        out, _ = one.communicate(timeout=900)
        assert one.returncode == 0
        answer = json.loads(out)
        told.accepted.update(answer["accepted"])
        told.rejected += answer["refused"]
        for block, version, text in answer["texts"]:
            told.last_texts.setdefault(block, []).append((version, text))
    return told


def check_nothing_lost(
    workspace: Workspace, session: str, results: WorkerResults, before: Sequence[Block]
) -> None:
    """See that what is there is what the accepted events say, one after the other."""
    events = _all_events(workspace, session)
    revisions = [event.revision for event in events]
    assert sorted(set(revisions)) == list(range(1, max(revisions) + 1)), "a change left no event"
    assert revisions == sorted(revisions), "events are not in the order of the changes"
    kinds = Counter(event.kind for event in events if event.revision > before[-1].version)
    assert kinds == results.accepted, (kinds, results.accepted)
    blocks = workspace.blocks.list(session)
    places = [(block.zone, block.position) for block in blocks]
    assert len(set(places)) == len(places), "two blocks at one position"
    assert [block.id for block in blocks] == replay(events), "another order than that of events"
    for block in blocks:
        said = results.last_texts.get(block.id)
        if said:
            assert block.content.text == max(said)[1], "an accepted edit was lost"


def replay(events: Iterable[Event]) -> list[str]:
    """The blocks in order, if the events happen one after the other."""
    zones: dict[str, list[str]] = {zone.value: [] for zone in Zone}
    for event in events:
        if event.kind in ("block-moved", "block-deleted"):
            for some in zones.values():
                if event.subject in some:
                    some.remove(event.subject)
        if event.kind in ("block-added", "block-moved", "block-brought-back"):
            zone, after = zones[str(event.data["zone"])], str(event.data["after"])
            zone.insert(zone.index(after) + 1 if after else 0, event.subject)
    return [block for zone in Zone for block in zones[zone.value]]


def _all_events(workspace: Workspace, session: str) -> list[Event]:
    found: list[Event] = []
    while page := workspace.events(found[-1].seq if found else 0, session):
        found += page
    return found


class _Worker:
    """One process: it changes what it sees, and notes what it is told."""

    def __init__(self, workspace: Workspace, session: str, name: str) -> None:
        self.workspace = workspace
        self.session = session
        self.name = name
        self.random = random.Random(name)  # noqa: S311 - the same changes each time
        self.known_blocks = workspace.blocks.list(session)
        self.accepted: Counter[str] = Counter()
        self.rejected = 0
        self.texts: list[tuple[str, int, str]] = []

    def change(self, number: int) -> None:
        """One change of a block as it was when it was last looked at."""
        if number and number % 5 == 0:
            self.known_blocks = self.workspace.blocks.list(self.session)
        block = self.random.choice(self.known_blocks)
        text = f"{self.name} {number}"
        ways = (self.edit, self.edit, self.move, self.move, self.import_, self.delete)
        try:
            self.random.choice(ways)(block, text)
        except CONFLICTS:
            self.rejected += 1
            self.known_blocks = self.workspace.blocks.list(self.session)

    def edit(self, block: Block, text: str) -> None:
        made = self.workspace.blocks.edit(self.session, block.id, block.version, text=text)
        self._record("block-edited", made)

    def move(self, block: Block, _: str) -> None:
        zone = self.random.choice([*Zone])
        beside = [one.id for one in self.known_blocks if one.zone is zone and one.id != block.id]
        place = (
            BlockPlacement(after=self.random.choice(beside))
            if beside
            else BlockPlacement(first=True)
        )
        made = self.workspace.blocks.move(self.session, block.id, block.version, zone, place)
        self.accepted["block-moved"] += 1
        self._remember(made)

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
        wish = ImportOptions(on_conflict=ImportConflict.REPLACE)
        done = self.workspace.importer.import_upload(self.session, data, "skill.md", wish)
        for made in done.blocks:
            self._record("block-edited" if done.replaced else "block-added", made)

    def _record(self, kind: str, made: Block) -> None:
        self.accepted[kind] += 1
        self.texts.append((made.id, made.version, made.content.text))
        self._remember(made)

    def _remember(self, made: Block) -> None:
        self.known_blocks = [one for one in self.known_blocks if one.id != made.id] + [made]


def _main(url: str, session: str, name: str, changes: str) -> None:
    database, desk = open_workspace(url, name)
    worker = _Worker(desk, session, name)
    sys.stdout.write(READY)
    sys.stdout.flush()
    sys.stdin.readline()
    for number in range(int(changes)):
        worker.change(number)
    database.close()
    told = {"accepted": worker.accepted, "refused": worker.rejected, "texts": worker.texts}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:])
    except SkillhallError as error:
        sys.exit(f"{type(error).__name__}: {error}")
