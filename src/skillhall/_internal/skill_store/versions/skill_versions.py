"""Versions of a server's skills: list, compare, review, roll back and yank them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skillhall._internal.installer.install import build_bundle
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.readable_files import is_publishable
from skillhall._internal.policy.trust.revocations import Revocation
from skillhall._internal.policy.trust.version_states import (
    TRANSITIONS,
    Refusal,
    ReviewFacts,
    ReviewMode,
    VersionState,
    VersionVerb,
    choose_current,
    find_refusal,
)
from skillhall._internal.skill.bundle import compute_digest
from skillhall._internal.skill.merge import FileState
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.levels import RiskLevel, rate_risk
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.skill_store.input_checks import find_skill_md
from skillhall._internal.skill_store.versions.version_diff import compare_files
from skillhall._internal.storage.sql.audit_rows import add_audit_row
from skillhall._internal.storage.sql.revocation_rows import add_revocation
from skillhall.errors import (
    FieldRefused,
    OwnVersionError,
    SkillNotFound,
    StaleVersionError,
    VersionNotFound,
    VersionStateConflict,
    VersionYanked,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.store import SkillFiles
    from skillhall._internal.skill_store.versions.version_diff import FileChange
    from skillhall._internal.storage.records import DeletedSkill, SkillVersion, VersionReview
    from skillhall._internal.storage.sql.version_rows import (
        SqlVersionTable,
        VersionReader,
        VersionWriter,
    )

MAX_COMMENT = 2000  # characters
PUBLIC_STATES = frozenset({VersionState.APPROVED, VersionState.YANKED})
_EXECUTABLE_BIT = 0o100
_NUMBER = re.compile("[1-9][0-9]{0,17}")
_DIGEST = re.compile("sha256:[0-9a-f]{64}")


class VersionList(NamedTuple):
    """Versions of a skill, newest first, and the decisions about them."""

    skill: str
    versions: tuple[SkillVersion, ...]
    current: int | None  # the served version
    reviews: tuple[VersionReview, ...]

    def reviews_of(self, number: int) -> tuple[VersionReview, ...]:
        """Return the decisions about one version, oldest first."""
        return tuple(review for review in self.reviews if review.number == number)


class VersionScan(NamedTuple):
    """Findings in a version's files for its reviewer, and its risk level."""

    findings: tuple[JudgedFinding, ...] = ()
    risk: RiskLevel = RiskLevel.L0


class VersionDetails(NamedTuple):
    """One version with its files."""

    version: SkillVersion
    is_current: bool
    files: Mapping[str, bytes]
    executables: tuple[str, ...]
    scan: VersionScan
    signer: str
    reviews: tuple[VersionReview, ...]


class VersionComparison(NamedTuple):
    """A version compared with another one, by default with the current version."""

    details: VersionDetails
    base: VersionDetails | None  # None if there is nothing to compare with
    changes: tuple[FileChange, ...]
    mode_changes: tuple[str, ...]  # files whose execute bit differs
    new_findings: tuple[JudgedFinding, ...]  # that the other version does not have
    other_findings: tuple[JudgedFinding, ...]

    @property
    def risk_before(self) -> RiskLevel:
        """Risk level of the other version; L0 if there is none."""
        return RiskLevel.L0 if self.base is None else self.base.scan.risk


class VersionChange(NamedTuple):
    """Changed version, and the number of the version that is served afterwards."""

    version: SkillVersion
    current: int | None


class VersionPin(NamedTuple):
    """A skill and one of its versions, as in `pdf@4` or `pdf@sha256:…`."""

    skill: str
    version: str


class WorkingCopies(Protocol):
    """The skills as last written. New versions are recorded from them."""

    def record_edits(self, skill: str) -> None:
        """Record a version of a working copy that was edited by hand."""

    def follow_in_transaction(
        self, writer: VersionWriter, skill: str, before: int | None, after: int | None
    ) -> None:
        """Update the working copy of a skill whose current version changes."""

    def follow(self, skill: str, before: int | None, after: int | None) -> None:
        """Update the working copy after the transaction, and refresh the served skills."""


def parse_pin(text: str) -> VersionPin | None:
    """Parse an id with a version; None if there is none."""
    skill, separator, version = text.rpartition("@")
    is_version = _NUMBER.fullmatch(version) or _DIGEST.fullmatch(version)
    return VersionPin(skill, version) if skill and separator and is_version else None


def _find_no_signer(_: Bundle) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class SkillVersions:
    """Operations on versions. All surfaces use them."""

    table: SqlVersionTable
    mode: ReviewMode
    working_copies: WorkingCopies
    find_signer: Callable[[Bundle], str] = _find_no_signer
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def is_on(self) -> bool:
        """Whether versions are served only after a review."""
        return self.mode is not ReviewMode.OFF

    @property
    def bin_days(self) -> int:
        """How many days deleted skills can be restored."""
        return self.table.bin_retention().days

    def list(self, skill: str, *, with_drafts: bool = True) -> VersionList:
        """Return the versions of a skill; without drafts, those that were approved once.

        Raises: DatabaseUnavailable.
        """
        self.working_copies.record_edits(skill)

        def work(reader: VersionReader) -> VersionList:
            versions = tuple(
                version
                for version in reader.list_versions(skill)
                if with_drafts or version.state in PUBLIC_STATES
            )
            numbers = {version.number for version in versions}
            reviews = tuple(r for r in reader.list_reviews(skill) if r.number in numbers)
            return VersionList(skill, versions, reader.find_current(skill), reviews)

        return self.table.read(work)

    def list_queue(self) -> tuple[SkillVersion, ...]:
        """Return the versions that wait for a review, oldest first. Raises: as `list`."""
        waiting = self.table.read(lambda reader: reader.list_in_state(VersionState.IN_REVIEW))
        return tuple(sorted(waiting, key=lambda version: (version.created, version.skill)))

    def list_drafts(self) -> tuple[SkillVersion, ...]:
        """Return the newest version of each skill, if it is not served. Raises: as `list`."""

        def work(reader: VersionReader) -> tuple[SkillVersion, ...]:
            pending = reader.list_in_state(VersionState.DRAFT, VersionState.IN_REVIEW)
            newest: dict[str, SkillVersion] = {}
            for version in pending:
                newest.setdefault(version.skill, version)
            current = reader.list_current()
            return tuple(
                version
                for skill, version in newest.items()
                if skill not in current or current[skill].number < version.number
            )

        return self.table.read(work)

    def list_bin(self) -> tuple[DeletedSkill, ...]:
        """Return the skills in the bin, the last deleted one first. Raises: as `list`."""
        deleted = self.table.read(lambda reader: reader.list_deleted())
        oldest = self._now(-self.table.bin_retention())
        if any(row.at < oldest for row in deleted):
            self.table.write(lambda writer: writer.purge_bin(), self._now())
        return tuple(row for row in deleted if row.at >= oldest)

    def read_files(self, skill: str, number: int | None) -> tuple[int, SkillFiles]:
        """Return the number and the files of a version that is to be restored.

        Without a number, it is the last version of a skill in the bin. Raises: SkillNotFound,
        VersionNotFound if its files were deleted, DatabaseUnavailable.
        """

        def work(reader: VersionReader) -> tuple[int, SkillFiles]:
            wanted = number
            if wanted is None:
                deleted = reader.find_deleted(skill)
                if deleted is None:
                    raise SkillNotFound(skill)
                wanted = deleted.number
            found = _find(reader, skill, wanted)
            files = reader.read_contents(skill, found.number)
            if not files:
                raise VersionNotFound(skill, str(found.number))
            return found.number, files

        return self.table.read(work)

    def purge(self, skill: str, actor: Actor) -> None:
        """Delete the files of a skill in the bin. Raises: SkillNotFound, DatabaseUnavailable."""

        def work(writer: VersionWriter) -> None:
            deleted = writer.find_deleted(skill)
            if deleted is None:
                raise SkillNotFound(skill)
            digest = _find(writer, skill, deleted.number).digest
            writer.delete_files(skill)
            add_audit_row(
                writer.connection, actor, "skill.purge", skill, at=writer.at, digest_before=digest
            )

        self.table.write(work, self._now())

    def resolve(self, skill: str, version: str, *, with_drafts: bool = True) -> SkillVersion:
        """Return the version with a number or digest.

        If several versions have the digest, the newest counts.
        Raises: VersionNotFound, VersionYanked unless `with_drafts`, DatabaseUnavailable.
        """
        listed = self.list(skill, with_drafts=with_drafts)
        for row in listed.versions:
            if version not in (str(row.number), row.digest):
                continue
            if row.state is VersionState.YANKED and not with_drafts:
                raise VersionYanked(skill, row.number, _find_reason(listed, row.number))
            return row
        raise VersionNotFound(skill, version)

    def show(self, skill: str, number: int, *, with_drafts: bool = True) -> VersionDetails:
        """Return a version with its files and scan. Raises: as `resolve`."""

        def work(reader: VersionReader) -> VersionDetails:
            return self._read_details(reader, skill, number, with_drafts=with_drafts)

        return self.table.read(work)

    def diff(
        self,
        skill: str,
        number: int,
        against: int | None = None,
        *,
        with_drafts: bool = True,
    ) -> VersionComparison:
        """Compare a version with another one; by default, with the one it would replace.

        That is the current version or, for the current version, the approved one before it.
        Raises: as `resolve`.
        """

        def work(reader: VersionReader) -> tuple[VersionDetails, VersionDetails | None]:
            details = self._read_details(reader, skill, number, with_drafts=with_drafts)
            base = _find_base(reader, skill, number) if against is None else against
            if base is None:
                return details, None
            return details, self._read_details(reader, skill, base, with_drafts=with_drafts)

        return _compare(*self.table.read(work))

    def submit(self, skill: str, number: int, actor: Actor, note: str = "") -> VersionChange:
        """Submit a draft for review; an earlier version in review becomes a draft again.

        Raises: VersionNotFound, VersionStateConflict, FieldRefused, DatabaseUnavailable.
        """
        return self._apply(VersionVerb.SUBMIT, skill, number, actor, note)

    def return_(self, skill: str, number: int, actor: Actor, comment: str) -> VersionChange:
        """Return a version to its author with a comment. Raises: as `submit`."""
        return self._apply(VersionVerb.RETURN, skill, number, actor, comment)

    def approve(
        self, skill: str, number: int, actor: Actor, digest: str, comment: str = ""
    ) -> VersionChange:
        """Approve a version and serve it; `digest` is that of the reviewed files.

        Raises: StaleVersionError if that is not the version in review, OwnVersionError, and as
        `submit`.
        """
        return self._apply(VersionVerb.APPROVE, skill, number, actor, comment, digest)

    def yank(self, skill: str, number: int, actor: Actor, reason: str) -> VersionChange:
        """Yank an approved version.

        If it is served, the newest other approved version replaces it.
        Raises: as `submit`.
        """
        return self._apply(VersionVerb.YANK, skill, number, actor, reason)

    def use(self, skill: str, number: int, actor: Actor, comment: str = "") -> VersionChange:
        """Serve an approved version, usually an earlier one. Raises: as `submit`."""
        return self._apply(VersionVerb.USE, skill, number, actor, comment)

    def _apply(  # noqa: PLR0913, PLR0917 - the fields of a request
        self,
        verb: VersionVerb,
        skill: str,
        number: int,
        actor: Actor,
        comment: str,
        digest: str | None = None,
    ) -> VersionChange:
        comment = comment.strip()
        if len(comment) > MAX_COMMENT:
            raise FieldRefused("comment", f"must have at most {MAX_COMMENT} characters")
        signer, is_scanned = "", False
        if verb in (VersionVerb.SUBMIT, VersionVerb.APPROVE, VersionVerb.USE):
            details = self.show(skill, number)  # files never change, so not in the transaction
            is_deleted = self.table.read(lambda reader: reader.find_deleted(skill)) is not None
            if is_deleted or not details.files:
                raise VersionNotFound(skill, str(number))
            signer, is_scanned = details.signer, True

        def work(writer: VersionWriter) -> tuple[VersionChange, int | None]:
            version, before = _find(writer, skill, number), writer.find_current(skill)
            if digest is not None:
                _check_digest(writer, version, digest)
            authors = {author.partition("/")[0] for author in writer.list_authors(skill, number)}
            is_author = actor.user in authors
            facts = ReviewFacts(version.state, self.mode, is_author, is_scanned, bool(comment))
            _check_refusal(verb, version, find_refusal(verb, facts))
            after = _change_version(writer, verb, version, before)
            if signer and signer != version.signer:
                writer.set_signer(version, signer)
            if before != after:
                writer.set_current(skill, after)
                self.working_copies.follow_in_transaction(writer, skill, before, after)
            writer.add_review(version, verb, actor.name, comment)
            self._add_audit_row(writer, verb, version, actor, before)
            _revoke(writer, verb, version, actor, comment, after)
            return VersionChange(_find(writer, skill, number), after), before

        change, before = self.table.write(work, self._now())
        self.working_copies.follow(skill, before, change.current)
        return change

    def _now(self, difference: timedelta = timedelta()) -> str:
        return (self.clock() + difference).isoformat(timespec="seconds")

    @staticmethod
    def _add_audit_row(
        writer: VersionWriter,
        verb: VersionVerb,
        version: SkillVersion,
        actor: Actor,
        before: int | None,
    ) -> None:
        served = None if before is None else writer.find(version.skill, before)
        add_audit_row(
            writer.connection,
            actor,
            f"version.{verb.value}",
            f"{version.skill}@{version.number}",
            at=writer.at,
            digest_before="" if served is None else served.digest,
            digest_after=version.digest,
        )

    def _read_details(
        self, reader: VersionReader, skill: str, number: int, *, with_drafts: bool
    ) -> VersionDetails:
        version = _find(reader, skill, number)
        if not with_drafts and version.state not in PUBLIC_STATES:
            raise VersionNotFound(skill, str(number))
        # Only authors, who may restore it, see the files of a deleted skill.
        is_visible = with_drafts or reader.find_deleted(skill) is None
        contents = reader.read_contents(skill, number) if is_visible else {}
        executables = tuple(p for p, (_, mode) in contents.items() if mode & _EXECUTABLE_BIT)
        files = {path: data for path, (data, _) in contents.items()}
        states = {path: FileState(data, path in executables) for path, data in files.items()}
        bundle = build_bundle(skill, states)
        reviews = tuple(r for r in reader.list_reviews(skill) if r.number == number)
        return VersionDetails(
            version,
            reader.find_current(skill) == number,
            files,
            executables,
            _scan(skill, bundle) if files else VersionScan(),
            version.signer or (self.find_signer(bundle) if files else ""),
            reviews,
        )


def _find(reader: VersionReader, skill: str, number: int) -> SkillVersion:
    version = reader.find(skill, number)
    if version is None:
        if reader.find_latest(skill) is None:
            raise SkillNotFound(skill)
        raise VersionNotFound(skill, str(number))
    return version


def _find_base(reader: VersionReader, skill: str, number: int) -> int | None:
    current = reader.find_current(skill)
    if current is not None and current != number:
        return current
    approved = (
        version.number
        for version in reader.list_versions(skill)
        if version.state is VersionState.APPROVED and version.number < number
    )
    return max(approved, default=None)


def _find_reason(listed: VersionList, number: int) -> str:
    yanks = [r for r in listed.reviews_of(number) if r.decision is VersionVerb.YANK]
    return yanks[-1].comment if yanks else "no reason was given"


def _check_digest(reader: VersionReader, version: SkillVersion, digest: str) -> None:
    """Check that the digest is that of the version in review. Raises: StaleVersionError."""
    if digest != version.digest:
        raise StaleVersionError(version.skill, version.digest)
    if version.state is VersionState.DRAFT:
        for other in reader.list_versions(version.skill):
            if other.state is VersionState.IN_REVIEW:  # it was submitted since
                raise StaleVersionError(version.skill, other.digest)


def _check_refusal(verb: VersionVerb, version: SkillVersion, refusal: Refusal | None) -> None:
    if refusal is Refusal.COMMENT_MISSING:
        field = "reason" if verb is VersionVerb.YANK else "comment"
        raise FieldRefused(field, "must not be empty")
    if refusal is Refusal.OWN_WORK:
        raise OwnVersionError(version.skill, version.number)
    if refusal is not None:
        needed = TRANSITIONS[verb].before
        raise VersionStateConflict(version.skill, version.number, version.state.value, needed.value)


def _change_version(
    writer: VersionWriter, verb: VersionVerb, version: SkillVersion, current: int | None
) -> int | None:
    """Change the state of a version; return the number of the version to serve."""
    versions = writer.list_versions(version.skill)
    if verb is VersionVerb.SUBMIT:
        for other in versions:
            if other.state is VersionState.IN_REVIEW:
                writer.set_state(other, VersionState.DRAFT)
    state = TRANSITIONS[verb].after
    if state is not version.state:
        writer.set_state(version, state)
    if verb in (VersionVerb.APPROVE, VersionVerb.USE):
        return version.number
    if verb is not VersionVerb.YANK:
        return current
    # The bytes are revoked, regardless of the version's number.
    for other in versions:
        if other.digest == version.digest and other.state is VersionState.APPROVED:
            writer.set_state(other, state)
    approved = {
        other.number
        for other in versions
        if other.state is VersionState.APPROVED and other.digest != version.digest
    }
    return current if current in approved else choose_current(approved)


def _revoke(  # noqa: PLR0913, PLR0917 - the fields of a yank
    writer: VersionWriter,
    verb: VersionVerb,
    version: SkillVersion,
    actor: Actor,
    reason: str,
    current: int | None,
) -> None:
    """Revoke the digests of a yanked version; restore them if it is approved again."""
    if verb in (VersionVerb.YANK, VersionVerb.APPROVE):
        instead = f"{version.skill}@{current}" if current is not None else ""
        is_revoked = verb is VersionVerb.YANK
        for digest in _list_digests(writer, version):
            revocation = Revocation(digest, version.skill, reason, writer.at, instead)
            add_revocation(writer.connection, actor, revocation, is_revoked=is_revoked)


def _list_digests(reader: VersionReader, version: SkillVersion) -> tuple[str, ...]:
    """Return the digest of all files, and of published files if it differs."""
    files = reader.read_files(version.skill, version.number)
    if all(map(is_publishable, files)):
        return (version.digest,)
    published = [(path, file.size, file.digest) for path, file in files.items()]
    return version.digest, compute_digest(row for row in published if is_publishable(row[0]))


def _scan(skill: str, bundle: Bundle) -> VersionScan:
    path = find_skill_md(bundle)
    parsed = parse_skill(bundle.files[path].read(), skill, LOCAL_SKILLS.key_case)
    risks = [*scan_bundle(bundle, parsed.frontmatter)]
    findings = [f.with_location(f.path or path) for f in (*parsed.findings, *risks)]
    judged = LOCAL_SKILLS.load_policy.judge(findings)
    shown = tuple(finding for finding in judged if finding.effect is not Effect.ACCEPT)
    return VersionScan(shown, rate_risk(finding.code for finding in risks))


def _compare(details: VersionDetails, base: VersionDetails | None) -> VersionComparison:
    old = base.files if base else {}
    known = {_finding_key(judged) for judged in base.scan.findings} if base else set()
    findings = details.scan.findings
    executables = {*base.executables} if base else set()
    modes = {*details.executables} ^ executables
    return VersionComparison(
        details,
        base,
        compare_files(old, details.files),
        tuple(sorted(path for path in modes if path in old and path in details.files)),
        tuple(judged for judged in findings if _finding_key(judged) not in known),
        tuple(judged for judged in findings if _finding_key(judged) in known),
    )


def _finding_key(judged: JudgedFinding) -> tuple[str, str, str]:
    # Without the line, which moves when text is added above it.
    return judged.finding.code, judged.finding.path, judged.finding.message
