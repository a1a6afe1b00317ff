"""Workspace store in memory, which behaves as `storage.ports` requires."""

import threading
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TypeVar

from skillhall._internal.policy.access.actor import Actor
from skillhall._internal.storage.ports import WorkspaceReader, WorkspaceWriter
from skillhall._internal.storage.records import (
    Block,
    BlockContent,
    Event,
    Session,
    SessionSnapshot,
    Template,
    Zone,
    ZoneSize,
)
from skillhall.errors import Conflict

_T = TypeVar("_T")


@dataclass
class _State:
    """Stored records; values are never changed in place."""

    sessions: dict[str, Session] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)
    templates: dict[str, tuple[Template, tuple[BlockContent, ...]]] = field(default_factory=dict)
    snapshots: dict[str, tuple[SessionSnapshot, tuple[Block, ...]]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def copy(self) -> "_State":
        return _State(**{name: copy(value) for name, value in vars(self).items()})


class MemoryStore:
    """Workspace store for one process."""

    def __init__(self) -> None:
        self._state = _State()
        self._lock = threading.Lock()

    def acting_as(self, actor: Actor) -> "MemoryStore":
        del actor  # it has no audit log
        return self

    def read(self, work: Callable[[WorkspaceReader], _T]) -> _T:
        with self._lock:
            return work(_MemoryTransaction(self._state.copy()))

    def write(self, work: Callable[[WorkspaceWriter], _T]) -> _T:
        with self._lock:
            state = self._state.copy()
            result = work(_MemoryTransaction(state))
            self._state = state
            return result


def _order(block: Block) -> tuple[str, str]:
    return block.zone, block.position


class _MemoryTransaction:
    def __init__(self, state: _State) -> None:
        self._state = state

    def session(self, identity: str) -> Session | None:
        return self._state.sessions.get(identity)

    lock_session = session

    def sessions(self, after: str, limit: int) -> list[Session]:
        ids = sorted(self._state.sessions)
        return [self._state.sessions[identity] for identity in ids if identity > after][:limit]

    def block(self, session: str, identity: str) -> Block | None:
        block = self._state.blocks.get(identity)
        return block if block and block.session == session else None

    def blocks(
        self, session: str, zone: Zone | None = None, kind: str | None = None
    ) -> list[Block]:
        return [
            block
            for block in sorted(self._state.blocks.values(), key=_order)
            if block.session == session
            and block.deleted is None
            and zone in (None, block.zone)
            and kind in (None, block.content.type)
        ]

    def skill_blocks(self, session: str, name: str) -> list[Block]:
        blocks = self.blocks(session)
        return [b for b in blocks if b.content.skill and b.content.skill.name == name]

    def deleted_blocks(self, session: str) -> list[Block]:
        blocks = [b for b in self._state.blocks.values() if b.session == session]
        deleted = [block for block in blocks if block.deleted is not None]
        return sorted(deleted, key=lambda block: (-(block.deleted or 0), block.id))

    def zone_sizes(self, session: str) -> dict[Zone, ZoneSize]:
        sizes: dict[Zone, ZoneSize] = {}
        for block in self.blocks(session):
            size = sizes.get(block.zone, ZoneSize())
            sizes[block.zone] = ZoneSize(
                size.blocks + 1,
                size.tokens + block.content.tokens,
                size.bytes + len(block.content.text.encode()),
            )
        return sizes

    def count_blocks(self, session: str) -> int:
        return len(self.blocks(session))

    def next_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        positions = self.list_positions(session, zone)
        return next((item for item in positions if item[1] > position), None)

    def previous_position(self, session: str, zone: Zone, position: str) -> tuple[str, str] | None:
        positions = self.list_positions(session, zone)
        before = [item for item in positions if not position or item[1] < position]
        return before[-1] if before else None

    def list_positions(self, session: str, zone: Zone) -> list[tuple[str, str]]:
        return [(block.id, block.position) for block in self.blocks(session, zone)]

    def templates(self) -> list[Template]:
        templates = [template for template, _ in self._state.templates.values()]
        return sorted(templates, key=lambda item: (item.name, item.id))

    def template(self, identity: str) -> Template | None:
        entry = self._state.templates.get(identity)
        return entry[0] if entry else None

    def find_template_by_name(self, name: str) -> Template | None:
        return next((template for template in self.templates() if template.name == name), None)

    def template_contents(self, identity: str) -> tuple[BlockContent, ...]:
        entry = self._state.templates.get(identity)
        return entry[1] if entry else ()

    def snapshots(self, session: str) -> list[SessionSnapshot]:
        entries = self._state.snapshots.values()
        snapshots = [snapshot for snapshot, _ in entries if snapshot.session == session]
        return sorted(snapshots, key=lambda snapshot: (-snapshot.revision, snapshot.id))

    def snapshot(self, session: str, identity: str) -> SessionSnapshot | None:
        return next((item for item in self.snapshots(session) if item.id == identity), None)

    def snapshot_blocks(self, identity: str) -> tuple[Block, ...]:
        entry = self._state.snapshots.get(identity)
        return entry[1] if entry else ()

    def events(self, after: int, limit: int, session: str | None = None) -> list[Event]:
        events = [event for event in self._state.events if event.seq > after]
        return [event for event in events if session in (None, event.session)][:limit]

    def event_range(self) -> tuple[int, int]:
        events = self._state.events
        return (events[0].seq, events[-1].seq) if events else (0, 0)

    def add_session(self, session: Session) -> None:
        self._state.sessions[session.id] = session

    save_session = add_session

    def delete_session(self, identity: str) -> None:
        del self._state.sessions[identity]
        self.delete_blocks(identity)
        for snapshot in self.snapshots(identity):
            self.delete_snapshot(snapshot.id)

    def add_blocks(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            self.save_block(block)

    def save_block(self, block: Block) -> None:
        taken = {key: identity for identity, key in self.list_positions(block.session, block.zone)}
        if block.deleted is None:
            assert taken.get(block.position, block.id) == block.id, "two blocks at one position"
        self._state.blocks[block.id] = block

    def set_positions(self, session: str, positions: Sequence[tuple[str, str]]) -> None:
        for identity, key in positions:
            assert self._state.blocks[identity].session == session
            self._state.blocks[identity] = replace(self._state.blocks[identity], position=key)

    def delete_blocks(self, session: str) -> None:
        blocks = self._state.blocks
        self._state.blocks = {key: b for key, b in blocks.items() if b.session != session}

    def prune_deleted_blocks(self, session: str, keep: int) -> None:
        for block in self.deleted_blocks(session)[keep:]:
            del self._state.blocks[block.id]

    def add_template(self, template: Template, contents: Sequence[BlockContent]) -> None:
        self.save_template(template, contents)

    def save_template(self, template: Template, contents: Sequence[BlockContent] | None) -> None:
        other = self.find_template_by_name(template.name)
        if other is not None and other.id != template.id:
            raise Conflict(f"a template named {template.name!r}")
        new_contents = self.template_contents(template.id) if contents is None else tuple(contents)
        self._state.templates[template.id] = template, new_contents

    def delete_template(self, identity: str) -> None:
        del self._state.templates[identity]

    def add_snapshot(self, snapshot: SessionSnapshot) -> None:
        self._state.snapshots[snapshot.id] = snapshot, tuple(self.blocks(snapshot.session))

    def restore_blocks(self, snapshot: SessionSnapshot, version: int, at: str) -> None:
        for block in self.snapshot_blocks(snapshot.id):
            self.save_block(replace(block, version=version, updated=at))

    def delete_snapshot(self, identity: str) -> None:
        del self._state.snapshots[identity]

    def prune_automatic_snapshots(self, session: str, keep: int, keep_id: str) -> None:
        automatic = [s for s in self.snapshots(session) if s.automatic and s.id != keep_id]
        for snapshot in automatic[keep:]:
            self.delete_snapshot(snapshot.id)

    def add_audit_row(self, action: str, subject: str, at: str, **detail: object) -> None:
        pass

    def add_events(self, *events: Event) -> int:
        for event in events:
            self._state.events.append(replace(event, seq=self.event_range()[1] + 1))
        return self.event_range()[1]
