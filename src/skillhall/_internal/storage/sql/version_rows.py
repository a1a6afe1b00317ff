"""Versions of skills, their files and reviews, and which version is current, in tables."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlalchemy import and_, delete, func, insert, select, update

from skillhall._internal.policy.trust.version_states import (
    ReviewMode,
    VersionState,
    VersionVerb,
    initial_state,
)
from skillhall._internal.skill.bundle import compute_digest, sha256_hex
from skillhall._internal.storage.records import (
    SKILL_CHANGED,
    SKILL_DELETED,
    VERSION_CHANGED,
    DeletedSkill,
    Event,
    SkillVersion,
    StoredFile,
    VersionReview,
)
from skillhall._internal.storage.sql.events.event_rows import add_events
from skillhall._internal.storage.sql.file_rows import (
    SKILL_OWNER,
    delete_unused_blobs,
    lock_files,
    read_blob,
    read_files,
    store_blobs,
)
from skillhall._internal.storage.sql.rows import select_fields
from skillhall._internal.storage.sql.tables import (
    blobs,
    current_versions,
    deleted_skills,
    recorded_stores,
    reviewed_stores,
    shared_skill_files,
    shared_skills,
    skill_versions,
    version_files,
    version_reviews,
)
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import ColumnElement, Connection, RowMapping

    from skillhall._internal.storage.records import FilesByPath
    from skillhall._internal.storage.sql.engine import Database

_T = TypeVar("_T")
_NEWEST_FIRST = skill_versions.c.number.desc()
_ROLLED_BACK = "rolled back"  # origin of a shared skill
REVIEW_VARIABLE = "SKILLHALL_REVIEW"
IN_DATABASE = "database"  # location of a store whose skills are in the database
BIN_RETENTION = timedelta(days=30)  # the default, for the files of deleted skills


def build_review_error() -> ConfigInvalid:
    """Return the error for a process that would end reviews unintentionally."""
    problem = "it is not set, but the skills in this database are reviewed"
    hint = "set it to one or two; off ends the reviews and serves all drafts"
    return ConfigInvalid(REVIEW_VARIABLE, problem, hint)


def _compute_digest(files: Mapping[str, StoredFile]) -> str:
    return compute_digest((path, file.size, file.digest) for path, file in files.items())


class VersionOrigin(NamedTuple):
    """Who wrote a version, and where it comes from."""

    author: str = ""
    note: str = ""
    source: str = ""
    commit: str = ""
    signer: str = ""


class CurrentVersion(NamedTuple):
    """Version of a skill that is served."""

    number: int
    changed: int  # increases with every change


class SqlVersionTable:
    """Versions of all skills. `write` may call `work` more than once."""

    def __init__(
        self, database: Database, bin_retention: Callable[[], timedelta] = lambda: BIN_RETENTION
    ) -> None:
        self._database = database
        self.bin_retention = bin_retention

    def read(self, work: Callable[[VersionReader], _T]) -> _T:
        """Run a read transaction. Raises: DatabaseUnavailable."""
        return self._database.read(lambda connection: work(VersionReader(connection)))

    def write(self, work: Callable[[VersionWriter], _T], at: str) -> _T:
        """Run a write transaction and publish its events.

        Raises: DatabaseUnavailable, DatabaseFull, and errors from `work`; then nothing is changed.
        """

        def run(connection: Connection) -> _T:
            lock_files(connection)
            writer = VersionWriter(connection, at, self.bin_retention())
            result = work(writer)
            writer.publish_events()
            return result

        return self._database.write(run)


class VersionReader:
    """Queries on versions that all see the same state."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def list_versions(self, skill: str) -> list[SkillVersion]:
        """Return the versions of a skill, newest first."""
        return self._select(skill_versions.c.skill == skill)

    def list_in_state(self, *states: VersionState) -> list[SkillVersion]:
        """Return the versions of all skills in these states, by skill, newest first."""
        return self._select(skill_versions.c.state.in_(states))

    def find(self, skill: str, number: int) -> SkillVersion | None:
        """Return a version, or None."""
        rows = self._select(skill_versions.c.skill == skill, skill_versions.c.number == number)
        return rows[0] if rows else None

    def find_latest(self, skill: str) -> SkillVersion | None:
        """Return the newest version of a skill, or None."""
        newest = select(func.max(skill_versions.c.number)).where(skill_versions.c.skill == skill)
        rows = self._select(
            skill_versions.c.skill == skill,
            skill_versions.c.number == newest.scalar_subquery(),
        )
        return rows[0] if rows else None

    def read_files(self, skill: str, number: int) -> dict[str, StoredFile]:
        """Return the files of a version by path; empty if the skill was deleted."""
        query = (
            select(version_files.c.path, version_files.c.digest, version_files.c.mode, blobs.c.size)
            .join(blobs, blobs.c.digest == version_files.c.digest)
            .where(version_files.c.skill == skill, version_files.c.number == number)
        )
        rows = sorted(self.connection.execute(query), key=lambda row: str(row.path))
        return {row.path: StoredFile(row.digest, row.size, row.mode) for row in rows}

    def read_contents(self, skill: str, number: int) -> dict[str, tuple[bytes, int]]:
        """Return the bytes and the mode of each file of a version."""
        query = (
            select(version_files.c.path, version_files.c.mode, blobs.c.data)
            .join(blobs, blobs.c.digest == version_files.c.digest)
            .where(version_files.c.skill == skill, version_files.c.number == number)
        )
        rows = sorted(self.connection.execute(query), key=lambda row: str(row.path))
        return {row.path: (bytes(row.data), row.mode) for row in rows}

    def find_current(self, skill: str) -> int | None:
        """Return the number of the current version, or None."""
        current = self.find_current_row(skill)
        return None if current is None else current.number

    def find_current_row(self, skill: str) -> CurrentVersion | None:
        """Return the current version, or None."""
        query = select_fields(current_versions).where(current_versions.c.skill == skill)
        row = self.connection.execute(query).first()
        return None if row is None else CurrentVersion(row.number, row.changed)

    def is_shared_equal(self, skill: str, number: int | None) -> bool:
        """Whether a shared skill has the files of a version."""
        shared = read_files(self.connection, SKILL_OWNER, skill).get(skill)
        return number is not None and shared == self.read_files(skill, number)

    def list_current(self) -> dict[str, CurrentVersion]:
        """Return the current version of each skill that has one."""
        return {
            row.skill: CurrentVersion(row.number, row.changed)
            for row in self.connection.execute(select_fields(current_versions))
        }

    def list_approvals(self) -> dict[str, VersionReview]:
        """Return the last approval of each current version, by skill, if it was reviewed."""
        is_current = and_(
            current_versions.c.skill == version_reviews.c.skill,
            current_versions.c.number == version_reviews.c.number,
        )
        query = (
            select_fields(version_reviews)
            .join(current_versions, is_current)
            .where(version_reviews.c.decision == VersionVerb.APPROVE.value)
            .order_by(version_reviews.c.ordinal)
        )
        rows = self.connection.execute(query).mappings()
        return {row["skill"]: _to_review(row) for row in rows}

    def list_reviews(self, skill: str) -> list[VersionReview]:
        """Return the decisions about the versions of a skill, oldest first."""
        query = (
            select_fields(version_reviews)
            .where(version_reviews.c.skill == skill)
            .order_by(version_reviews.c.number, version_reviews.c.ordinal)
        )
        rows = self.connection.execute(query).mappings()
        return [*map(_to_review, rows)]

    def list_authors(self, skill: str, number: int) -> set[str]:
        """Return who wrote a version: all authors since the last approved version before it."""
        approved = (
            select(func.max(skill_versions.c.number))
            .where(
                skill_versions.c.skill == skill,
                skill_versions.c.number < number,
                skill_versions.c.state.in_([VersionState.APPROVED, VersionState.YANKED]),
            )
            .scalar_subquery()
        )
        query = select(skill_versions.c.author).where(
            skill_versions.c.skill == skill,
            skill_versions.c.number <= number,
            skill_versions.c.number > func.coalesce(approved, 0),
        )
        return {*self.connection.execute(query).scalars()}

    def list_reviewed_stores(self) -> list[str]:
        """Return the locations of the stores whose skills are reviewed."""
        return [*self.connection.execute(select(reviewed_stores.c.location)).scalars()]

    def find_recorded_store(self) -> str:
        """Return the run directory whose skills have the versions; "" if there is none."""
        return str(self.connection.execute(select(recorded_stores.c.location)).scalar() or "")

    def find_deleted(self, skill: str) -> DeletedSkill | None:
        """Return a skill in the bin, or None."""
        query = select_fields(deleted_skills).where(deleted_skills.c.skill == skill)
        row = self.connection.execute(query).mappings().first()
        return None if row is None else DeletedSkill(**row)

    def list_deleted(self) -> list[DeletedSkill]:
        """Return the skills in the bin, the last one first."""
        newest_first = (deleted_skills.c.at.desc(), deleted_skills.c.skill)
        rows = self.connection.execute(select_fields(deleted_skills).order_by(*newest_first))
        return [DeletedSkill(**row) for row in rows.mappings()]

    def read_blob(self, digest: str) -> bytes | None:
        """Return the bytes with this digest, or None."""
        return read_blob(self.connection, digest)

    def _select(self, *conditions: ColumnElement[bool]) -> list[SkillVersion]:
        query = (
            select_fields(skill_versions)
            .where(*conditions)
            .order_by(skill_versions.c.skill, _NEWEST_FIRST)
        )
        rows = self.connection.execute(query).mappings()
        return [SkillVersion(**{**row, "state": VersionState(row["state"])}) for row in rows]


def _to_review(row: RowMapping) -> VersionReview:
    return VersionReview(**{**row, "decision": VersionVerb(row["decision"])})


class VersionWriter(VersionReader):
    """Changes to versions in one transaction. Other writers wait."""

    def __init__(
        self, connection: Connection, at: str, bin_retention: timedelta = BIN_RETENTION
    ) -> None:
        super().__init__(connection)
        self.at = at
        self._bin_retention = bin_retention
        self._events: dict[str, str] = {}  # kind by skill
        self._changed_current: set[str] = set()  # rows that need the number of the event
        self._changed_shared: set[str] = set()

    def record(
        self,
        skill: str,
        files: Mapping[str, StoredFile],
        origin: VersionOrigin,
        mode: ReviewMode,
    ) -> SkillVersion:
        """Record stored files of a skill as its newest version, unless that has the same files.

        Without review, the version is approved and current.
        """
        latest = self.find_latest(skill)
        was_deleted = self._take_from_bin(skill)  # it is reviewed again, as any new skill
        if latest is None or was_deleted or not self._is_equal(latest, files):
            number = (latest.number if latest else 0) + 1
            latest = self._add(skill, files, origin, number, initial_state(mode))
            if mode is ReviewMode.OFF:
                self.set_current(skill, number)
        elif mode is ReviewMode.OFF:
            self._approve_unreviewed(latest)
        return latest

    def record_files(
        self, skill: str, files: FilesByPath, origin: VersionOrigin, mode: ReviewMode
    ) -> SkillVersion:
        """Store files and record them as a version."""
        return self.record(skill, store_blobs(self.connection, files), origin, mode)

    def _is_equal(self, version: SkillVersion, files: Mapping[str, StoredFile]) -> bool:
        """Whether a version that is not yanked has these files, with the same modes."""
        is_same = version.digest == _compute_digest(files)  # modes are not a part of it
        is_yanked = version.state is VersionState.YANKED
        return is_same and not is_yanked and self.read_files(version.skill, version.number) == files

    def record_found(self, skill: str, files: FilesByPath, *, is_approved: bool = False) -> None:
        """Record the files found for a skill, unless a version already has them."""
        stored = {
            path: StoredFile(sha256_hex(data), len(data), mode)
            for path, (data, mode) in sorted(files.items())
        }
        digest = _compute_digest(stored)
        versions = [] if self._take_from_bin(skill) else self.list_versions(skill)
        equal = (
            version
            for version in versions
            if version.digest == digest and self.read_files(skill, version.number) == stored
        )
        found = next(equal, None)
        if found is None:
            store_blobs(self.connection, files)
            latest = self.find_latest(skill)
            number = latest.number + 1 if latest else 1
            found = self._add(skill, stored, VersionOrigin(), number)
        if is_approved and found.state is not VersionState.YANKED:
            self._approve_unreviewed(found)

    def adopt_shared_skills(self, mode: ReviewMode) -> None:
        """Record the shared skills that another program wrote without recording a version.

        A skill without versions is approved. Without review, drafts are approved, too.
        """
        shared, current = read_files(self.connection, SKILL_OWNER), self.list_current()
        latest: dict[str, SkillVersion] = {}
        for row in self._select(skill_versions.c.skill.in_(select(shared_skills.c.id))):
            latest.setdefault(row.skill, row)
        for skill, files in shared.items():
            digest = _compute_digest(files)
            known = latest.get(skill)
            version = known
            if version is None or version.digest != digest:
                number = 1 if version is None else version.number + 1
                version = self._add(skill, files, VersionOrigin(), number)
            is_current = skill in current and current[skill].number == version.number
            if known is None or (mode is ReviewMode.OFF and not is_current):
                self._approve_unreviewed(version)
        if mode is ReviewMode.OFF:
            self._events.clear()  # the served skills are the same as before

    def set_state(self, version: SkillVersion, state: VersionState) -> None:
        """Change the state of a version."""
        statement = update(skill_versions).where(
            skill_versions.c.skill == version.skill, skill_versions.c.number == version.number
        )
        self.connection.execute(statement, {"state": state.value})
        self.add_event(VERSION_CHANGED, version.skill)

    def set_signer(self, version: SkillVersion, signer: str) -> None:
        """Record who signed a version."""
        statement = update(skill_versions).where(
            skill_versions.c.skill == version.skill, skill_versions.c.number == version.number
        )
        self.connection.execute(statement, {"signer": signer})

    def set_current(self, skill: str, number: int | None) -> None:
        """Make a version the current one; None means that the skill is not served."""
        self.connection.execute(delete(current_versions).where(current_versions.c.skill == skill))
        self._changed_current.discard(skill)
        if number is not None:
            row = {"skill": skill, "number": number, "changed": 0}  # until `publish_events`
            self.connection.execute(insert(current_versions), row)
            self._changed_current.add(skill)
        self.add_event(SKILL_DELETED if number is None else SKILL_CHANGED, skill)

    def add_review(self, version: SkillVersion, verb: VersionVerb, by: str, comment: str) -> None:
        """Record a decision about a version."""
        is_version = (
            version_reviews.c.skill == version.skill,
            version_reviews.c.number == version.number,
        )
        last = select(func.max(version_reviews.c.ordinal)).where(*is_version)
        ordinal = int(self.connection.execute(last).scalar() or 0) + 1
        row = {
            "skill": version.skill,
            "number": version.number,
            "ordinal": ordinal,
            "decision": verb.value,
            "by": by,
            "at": self.at,
            "comment": comment,
            "digest": version.digest,
        }
        self.connection.execute(insert(version_reviews), row)

    def move_to_bin(self, skill: str, by: str, digest: str) -> None:
        """Stop serving a skill, and keep its versions in the bin.

        `digest` is that of the deleted files. The bin is purged of older skills.
        """
        versions = self.list_versions(skill)
        equal = (version for version in versions if version.digest == digest)
        if restored := next(equal, versions[0] if versions else None):
            self._take_from_bin(skill)
            row = {"skill": skill, "number": restored.number, "by": by, "at": self.at}
            self.connection.execute(insert(deleted_skills), row)
        if self.find_current(skill) is not None:
            self.set_current(skill, None)
        self.purge_bin()

    def purge_bin(self) -> None:
        """Delete the files of the skills that were in the bin for longer than the retention."""
        deleted = datetime.fromisoformat(self.at) - self._bin_retention
        oldest = deleted.isoformat(timespec="seconds")
        query = select(deleted_skills.c.skill).where(deleted_skills.c.at < oldest)
        for skill in self.connection.execute(query).scalars().all():
            self.delete_files(skill)

    def _take_from_bin(self, skill: str) -> bool:
        """Remove a skill from the bin; return whether it was there."""
        is_skill = deleted_skills.c.skill == skill
        return self.connection.execute(delete(deleted_skills).where(is_skill)).rowcount > 0

    def delete_files(self, skill: str) -> None:
        """Delete the files of all versions of a skill, which is no longer served."""
        self._take_from_bin(skill)
        is_skill = version_files.c.skill == skill
        digests = select(version_files.c.digest).where(is_skill)
        unused = set(self.connection.execute(digests).scalars())
        self.connection.execute(delete(version_files).where(is_skill))
        delete_unused_blobs(self.connection, unused)
        if self.find_current(skill) is not None:
            self.set_current(skill, None)

    def copy_to_shared(self, skill: str, number: int | None) -> None:
        """Replace the shared skill with the files of a version; None deletes it."""
        self.connection.execute(delete(shared_skills).where(shared_skills.c.id == skill))
        if number is None:
            self.add_event(SKILL_DELETED, skill)
            return
        row = {"id": skill, "origin": _ROLLED_BACK, "version": 0, "updated": self.at}
        self.connection.execute(insert(shared_skills), row)
        self.mark_shared_changed(skill)
        columns = (version_files.c.skill, *(version_files.c[n] for n in ("path", "digest", "mode")))
        query = select(*columns).where(
            version_files.c.skill == skill, version_files.c.number == number
        )
        names = ["skill_id", "path", "digest", "mode"]
        self.connection.execute(insert(shared_skill_files).from_select(names, query))

    def mark_shared_changed(self, skill: str) -> None:
        """Make `publish_events` set the version of a shared skill."""
        self._changed_shared.add(skill)

    def add_event(self, kind: str, skill: str) -> None:
        """Publish an event with the transaction. The last one about what is served wins."""
        if kind != VERSION_CHANGED or skill not in self._events:
            self._events[skill] = kind

    def set_recorded_store(self, location: str) -> None:
        """Record whose skills have the versions."""
        self.connection.execute(delete(recorded_stores))
        self.connection.execute(insert(recorded_stores), {"location": location, "since": self.at})

    def set_reviewed_store(self, location: str, *, is_reviewed: bool) -> None:
        """Record whether the skills of a store are reviewed."""
        self.connection.execute(delete(reviewed_stores))
        if is_reviewed:
            row = {"location": location, "since": self.at}
            self.connection.execute(insert(reviewed_stores), row)

    def publish_events(self) -> None:
        """Publish the events, and number the changed skills and current versions."""
        if not self._events:
            return
        # Clients may read events, but not which skills have drafts.
        events = [
            Event(kind, "" if kind == VERSION_CHANGED else skill, "", 0, {}, self.at)
            for skill, kind in self._events.items()
        ]
        number = add_events(self.connection, *events)
        if self._changed_shared:
            is_changed = shared_skills.c.id.in_(self._changed_shared)
            row = {"version": number, "updated": self.at}
            self.connection.execute(update(shared_skills).where(is_changed), row)
        if self._changed_current:
            is_changed = current_versions.c.skill.in_(self._changed_current)
            self.connection.execute(update(current_versions).where(is_changed), {"changed": number})

    def number_without_events(self) -> None:
        """Number the changed current versions without publishing events.

        Skills that are served from folders have no events. The numbers are negative, so they differ
        from those of events: a mirror that is used later notices the change.
        """
        self._events.clear()
        if self._changed_current:
            is_changed = current_versions.c.skill.in_(self._changed_current)
            row = {"changed": -int(datetime.fromisoformat(self.at).timestamp())}
            self.connection.execute(update(current_versions).where(is_changed), row)

    def _add(
        self,
        skill: str,
        files: Mapping[str, StoredFile],
        origin: VersionOrigin,
        number: int,
        state: VersionState = VersionState.DRAFT,
    ) -> SkillVersion:
        row: dict[str, Any] = {
            "skill": skill,
            "number": number,
            "digest": _compute_digest(files),
            "state": state.value,
            **origin._asdict(),
            "created": self.at,
        }
        self.connection.execute(insert(skill_versions), row)
        rows = [
            {"skill": skill, "number": number, "path": p, "digest": f.digest, "mode": f.mode}
            for p, f in files.items()
        ]
        if rows:
            self.connection.execute(insert(version_files), rows)
        self.add_event(VERSION_CHANGED, skill)
        return SkillVersion(**{**row, "state": state})

    def _approve_unreviewed(self, version: SkillVersion) -> None:
        if version.state is not VersionState.APPROVED:
            self.set_state(version, VersionState.APPROVED)
        if self.find_current(version.skill) != version.number:
            self.set_current(version.skill, version.number)
