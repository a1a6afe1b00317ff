"""Skills into sessions: from archives, files, named sources and folders of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.reader import open_skill_bundle
from skillhall._internal.policy.profiles import SKILL_IMPORT
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.sources.archive.source import read_archive, read_loose_files
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.workspace.block_types import SKILL_TYPE
from skillhall._internal.workspace.blocks import (
    BLOCK_ADDED,
    BLOCK_EDITED,
    append_contents,
    update_content,
)
from skillhall._internal.workspace.sessions import NO_BUDGETS, Sessions
from skillhall._internal.workspace.skill_blocks import (
    LOCAL_SOURCE,
    UPLOAD_SOURCE,
    BlockCandidate,
    Provenance,
    filter_accepted,
    read_candidate,
    read_candidates,
)
from skillhall._internal.workspace.unit_of_work import get_session
from skillhall.errors import Conflict, FolderScanOff, SkillhallError, SkillNotFound

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.storage.ports import WorkspaceReader
    from skillhall._internal.storage.records import Block, BlockContent, Session, Zone
    from skillhall._internal.workspace.unit_of_work import SessionChange, UnitOfWork

# What a named source holds, and where that is: something above this layer knows how to open it.
OpenSource: TypeAlias = Callable[[str], tuple[Sequence[Bundle], Provenance]]
DEFAULT_FOLDER = SKILL_IMPORT.roots[0][0]  # where a scan looks if nobody says where
_MARKDOWN = ".md"


class ImportConflict(StrEnum):
    """What becomes of a skill whose name a block of the session has already."""

    REFUSE = "refuse"
    REPLACE = "replace"  # where the old block stands
    KEEP = "keep"  # both


class ImportOptions(NamedTuple):
    """How skills are imported."""

    zone: Zone | None = None
    on_conflict: ImportConflict = ImportConflict.REFUSE
    names: tuple[str, ...] = ()  # of skills or their folders; all, if none is named


DEFAULT_OPTIONS = ImportOptions()


class ImportChoices(NamedTuple):
    """What a source holds, to be chosen from, and where that is."""

    candidates: tuple[BlockCandidate, ...]
    origin: Provenance

    @property
    def size(self) -> int:
        """How much it takes to keep it, in characters."""
        return sum(len(one.body) for one in self.candidates)


class FolderScan(NamedTuple):
    """What a folder of this machine holds: a checklist."""

    folder: str
    candidates: tuple[BlockCandidate, ...]
    findings: tuple[JudgedFinding, ...]  # about the folder itself


class ImportResult(NamedTuple):
    """What an import did."""

    blocks: tuple[Block, ...]
    replaced: tuple[str, ...]  # names
    skipped: tuple[BlockCandidate, ...]  # what is no skill
    findings: tuple[JudgedFinding, ...]


@dataclass(frozen=True, slots=True)
class SkillImporter:
    """The ways in. Whether folders of this machine may be read is decided here, for all of them."""

    unit_of_work: UnitOfWork
    open_source: OpenSource
    allow_folder_scan: bool
    working_directory: str

    def list_upload_candidates(self, data: bytes, filename: str) -> list[BlockCandidate]:
        """What an uploaded file holds. Raises: ArchiveRejected, TooLarge, FieldRefused."""
        return [*self.read_upload(data, filename).candidates]

    def list_source_candidates(self, source: str) -> list[BlockCandidate]:
        """What a named source holds. Raises: what opening it raises."""
        return [*self.read_source(source).candidates]

    def scan_folder(self, folder: str = "") -> FolderScan:
        """What a folder of this machine holds, broken skills too. Raises: FolderScanOff."""
        if not self.allow_folder_scan:
            raise FolderScanOff
        root = Root.resolve(folder or DEFAULT_FOLDER, self.working_directory)
        catalog = load_roots([root], SKILL_IMPORT, None)
        found = [_read_scanned_skill(skill) for skill in catalog]
        found += [
            BlockCandidate(
                one.id, one.name, "", "", 0, _to_relative_findings(one.findings, root.path)
            )
            for one in catalog.rejected
        ]
        found.sort(key=lambda one: one.id)
        return FolderScan(root.path, tuple(found), catalog.scan_findings)

    def read_upload(
        self, data: bytes, filename: str, source_type: str = UPLOAD_SOURCE
    ) -> ImportChoices:
        """What an uploaded file holds. Raises: ArchiveRejected, TooLarge, FieldRefused."""
        origin = Provenance(source_type, _to_base_name(filename))
        return self.read_bundles(_read_uploaded_bundles(data, filename), origin)

    def read_source(self, source: str) -> ImportChoices:
        """What a named source holds. Raises: what opening it raises."""
        return self.read_bundles(*self.open_source(source))

    def read_folder(self, folder: str = "") -> ImportChoices:
        """What a folder of this machine holds. Raises: FolderScanOff."""
        scan = self.scan_folder(folder)
        return ImportChoices(scan.candidates, Provenance(LOCAL_SOURCE, scan.folder))

    def read_bundles(self, bundles: Iterable[Bundle], origin: Provenance) -> ImportChoices:
        """What bundles hold that somebody else opened."""
        return ImportChoices(tuple(read_candidates(bundles)), origin)

    def find_conflicts(self, session: str, choices: ImportChoices) -> frozenset[str]:
        """The names among the skills of which the session has blocks. Raises: RecordNotFound."""

        def work(read: WorkspaceReader) -> Sequence[Block]:
            get_session(read, session)
            return read.blocks(session, None, SKILL_TYPE)

        there = {
            one.content.skill.name
            for one in self.unit_of_work.store.read(work)
            if one.content.skill
        }
        wanted = (
            one for one in choices.candidates if one.portable_session is None and not one.reasons
        )
        return frozenset(one.name for one in wanted) & there

    def import_upload(
        self,
        session: str,
        data: bytes,
        filename: str,
        options: ImportOptions = DEFAULT_OPTIONS,
        source_type: str = UPLOAD_SOURCE,
    ) -> ImportResult:
        """The skills of a file as blocks. Raises: as `take`, and ArchiveRejected."""
        return self.import_choices(session, self.read_upload(data, filename, source_type), options)

    def import_source(
        self, session: str, source: str, options: ImportOptions = DEFAULT_OPTIONS
    ) -> ImportResult:
        """The skills of a named source as blocks. Raises: as `take`, and opening it."""
        return self.import_choices(session, self.read_source(source), options)

    def import_folder(
        self, session: str, folder: str, options: ImportOptions = DEFAULT_OPTIONS
    ) -> ImportResult:
        """The skills of a folder of this machine. Raises: FolderScanOff, and as `take`."""
        return self.import_choices(session, self.read_folder(folder), options)

    def create_session(self, data: bytes, filename: str, name: str | None = None) -> Session:
        """A new session out of an exported one, or out of an archive of skills.

        Raises: SkillRejected, ArchiveRejected, TooLarge, FieldRefused, TextRefused.
        """
        origin = Provenance(UPLOAD_SOURCE, _to_base_name(filename))
        good = filter_accepted(read_candidates(_read_uploaded_bundles(data, filename)))
        contents = [one for found in good for one in found.build_contents(None, origin)]
        portable = next(
            (one.portable_session for one in good if one.portable_session is not None), None
        )
        own = portable.name if portable else good[0].name
        budgets = portable.budgets if portable else NO_BUDGETS
        return Sessions(self.unit_of_work).create(name or own, budgets, contents)

    def import_choices(
        self, session: str, choices: ImportChoices, options: ImportOptions = DEFAULT_OPTIONS
    ) -> ImportResult:
        """What was found, or what is chosen of it, as blocks.

        Raises: RecordNotFound, Conflict, SkillRejected, SkillNotFound, TooLarge.
        """
        chosen = _select_candidates(choices.candidates, options.names)
        good = filter_accepted(chosen)

        def work(change: SessionChange) -> ImportResult:
            blocks: list[Block] = []
            replaced: list[str] = []
            for one in good:
                contents = one.build_contents(options.zone, choices.origin)
                old = _replace_block(change, one, contents, options.on_conflict)
                if old is None:
                    blocks += _append_blocks(self.unit_of_work, change, contents)
                else:
                    blocks.append(old)
                    replaced.append(one.name)
            return ImportResult(tuple(blocks), tuple(replaced), skipped, findings)

        skipped = tuple(one for one in chosen if one.reasons)
        findings = tuple(judged for one in chosen for judged in one.findings)
        return self.unit_of_work.change_session(session, work)


def _read_scanned_skill(skill: Skill) -> BlockCandidate:
    try:
        candidate = read_candidate(open_skill_bundle(skill, SKILL_IMPORT.scan_policy))
    except (SkillhallError, OSError):  # it changed since it was listed
        return BlockCandidate(skill.id, skill.name, "", "", 0, (), error="it cannot be read")
    return candidate._replace(id=skill.id, local_path=skill.directory)


def _to_relative_findings(
    findings: Sequence[JudgedFinding], folder: str
) -> tuple[JudgedFinding, ...]:
    """The findings with paths below the folder that was scanned."""
    return tuple(
        one._replace(
            finding=one.finding.with_location(one.finding.path.removeprefix(folder).lstrip("/\\"))
        )
        for one in findings
    )


def _select_candidates(
    candidates: Sequence[BlockCandidate], names: Sequence[str]
) -> list[BlockCandidate]:
    if not names:
        return [*candidates]
    for name in names:
        if not any(name in (one.id, one.name) for one in candidates):
            raise SkillNotFound(name, hint="look at what the source holds first")
    return [one for one in candidates if one.id in names or one.name in names]


def _replace_block(
    change: SessionChange,
    candidate: BlockCandidate,
    contents: Sequence[BlockContent],
    on_conflict: ImportConflict,
) -> Block | None:
    """The block of that skill with its new content, if it is to be replaced. Raises: Conflict."""
    if candidate.portable_session is not None or on_conflict is ImportConflict.KEEP:
        return None
    before = change.writer.skill_blocks(change.session.id, candidate.name)
    # What this very import has added is no earlier version.
    older = [block for block in before if block.version != change.revision]
    if not older:
        return None
    if on_conflict is ImportConflict.REFUSE:
        raise Conflict(f"a skill named {candidate.name!r}", "replace it, or keep both")
    block = update_content(change, older[0], replace(contents[0], zone=older[0].zone))
    change.writer.save_block(block)
    change.add_event(BLOCK_EDITED, block.id, version=block.version)
    return block


def _append_blocks(
    unit_of_work: UnitOfWork, change: SessionChange, contents: Sequence[BlockContent]
) -> list[Block]:
    added: list[Block] = []
    for content in contents:
        last = change.writer.previous_position(change.session.id, content.zone, "")
        [block] = append_contents(unit_of_work, change, [content])
        change.add_event(BLOCK_ADDED, block.id, zone=content.zone, after=last[0] if last else "")
        added.append(block)
    return added


def _read_uploaded_bundles(data: bytes, filename: str) -> tuple[Bundle, ...]:
    """The bundles in a file: one alone if it is a Markdown text, else those of an archive."""
    name = _to_base_name(filename)
    if name.lower().endswith(_MARKDOWN):
        stem = name[: -len(_MARKDOWN)]
        folder = stem if stem.lower() != "skill" else ""
        [bundle] = read_loose_files([(SKILL_MD, data)], folder or "skill")
        return (bundle,)
    return read_archive(data, name)


def _to_base_name(filename: str) -> str:
    return filename.replace("\\", "/").rpartition("/")[2] or "skill.zip"
