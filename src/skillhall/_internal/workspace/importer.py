"""Skills into sessions: from archives, files, named sources and folders of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.reader import bundle_of
from skillhall._internal.policy.profiles import SKILL_IMPORT
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.sources.archive.source import read_archive, read_files
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.workspace.block_types import SKILL
from skillhall._internal.workspace.blocks import ADDED, EDITED, append_contents, touched
from skillhall._internal.workspace.sessions import NO_BUDGETS, Sessions
from skillhall._internal.workspace.skill_blocks import (
    LOCAL,
    UPLOAD,
    Candidate,
    Provenance,
    accepted,
    read_candidate,
    read_candidates,
)
from skillhall._internal.workspace.unit_of_work import found_session
from skillhall.errors import Conflict, FolderScanOff, SkillhallError, SkillNotFound

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.storage.ports import Reading
    from skillhall._internal.storage.records import Block, Content, Session, Zone
    from skillhall._internal.workspace.unit_of_work import Change, Desk

# What a named source holds, and where that is: something above this layer knows how to open it.
OpenSource: TypeAlias = Callable[[str], tuple[Sequence[Bundle], Provenance]]
FOLDER = SKILL_IMPORT.roots[0][0]  # where a scan looks if nobody says where
_MARKDOWN = ".md"


class SameName(StrEnum):
    """What becomes of a skill whose name a block of the session has already."""

    REFUSE = "refuse"
    REPLACE = "replace"  # where the old block stands
    KEEP = "keep"  # both


class Wish(NamedTuple):
    """How skills are imported."""

    zone: Zone | None = None
    same: SameName = SameName.REFUSE
    names: tuple[str, ...] = ()  # of skills or their folders; all, if none is named


PLAIN = Wish()


class Found(NamedTuple):
    """What a source holds, to be chosen from, and where that is."""

    candidates: tuple[Candidate, ...]
    origin: Provenance

    @property
    def size(self) -> int:
        """How much it takes to keep it, in characters."""
        return sum(len(one.body) for one in self.candidates)


class FolderScan(NamedTuple):
    """What a folder of this machine holds: a checklist."""

    folder: str
    candidates: tuple[Candidate, ...]
    findings: tuple[Judged, ...]  # about the folder itself


class Imported(NamedTuple):
    """What an import did."""

    blocks: tuple[Block, ...]
    replaced: tuple[str, ...]  # names
    skipped: tuple[Candidate, ...]  # what is no skill
    findings: tuple[Judged, ...]


@dataclass(frozen=True, slots=True)
class Imports:
    """The ways in. Whether folders of this machine may be read is decided here, for all of them."""

    desk: Desk
    open_source: OpenSource
    folder_scan: bool
    working_directory: str

    def look_upload(self, data: bytes, filename: str) -> list[Candidate]:
        """What an uploaded file holds. Raises: ArchiveRejected, TooLarge, FieldRefused."""
        return [*self.find_upload(data, filename).candidates]

    def look_source(self, source: str) -> list[Candidate]:
        """What a named source holds. Raises: what opening it raises."""
        return [*self.find_source(source).candidates]

    def look_folder(self, folder: str = "") -> FolderScan:
        """What a folder of this machine holds, broken skills too. Raises: FolderScanOff."""
        if not self.folder_scan:
            raise FolderScanOff
        root = Root.of(folder or FOLDER, self.working_directory)
        catalog = load_roots([root], SKILL_IMPORT, None)
        found = [_scanned(skill) for skill in catalog]
        found += [
            Candidate(one.id, one.name, "", "", 0, _inside(one.findings, root.path))
            for one in catalog.rejected
        ]
        found.sort(key=lambda one: one.id)
        return FolderScan(root.path, tuple(found), catalog.notes)

    def find_upload(self, data: bytes, filename: str, source_type: str = UPLOAD) -> Found:
        """What an uploaded file holds. Raises: ArchiveRejected, TooLarge, FieldRefused."""
        origin = Provenance(source_type, _file_name(filename))
        return self.find_bundles(_uploaded(data, filename), origin)

    def find_source(self, source: str) -> Found:
        """What a named source holds. Raises: what opening it raises."""
        return self.find_bundles(*self.open_source(source))

    def find_folder(self, folder: str = "") -> Found:
        """What a folder of this machine holds. Raises: FolderScanOff."""
        scan = self.look_folder(folder)
        return Found(scan.candidates, Provenance(LOCAL, scan.folder))

    def find_bundles(self, bundles: Iterable[Bundle], origin: Provenance) -> Found:
        """What bundles hold that somebody else opened."""
        return Found(tuple(read_candidates(bundles)), origin)

    def same_names(self, session: str, found: Found) -> frozenset[str]:
        """The names among the skills of which the session has blocks. Raises: RecordNotFound."""

        def work(read: Reading) -> Sequence[Block]:
            found_session(read, session)
            return read.blocks(session, None, SKILL)

        there = {one.content.skill.name for one in self.desk.store.read(work) if one.content.skill}
        wanted = (one for one in found.candidates if one.portable is None and not one.reasons)
        return frozenset(one.name for one in wanted) & there

    def import_upload(
        self,
        session: str,
        data: bytes,
        filename: str,
        wish: Wish = PLAIN,
        source_type: str = UPLOAD,
    ) -> Imported:
        """The skills of a file as blocks. Raises: as `take`, and ArchiveRejected."""
        return self.take(session, self.find_upload(data, filename, source_type), wish)

    def import_source(self, session: str, source: str, wish: Wish = PLAIN) -> Imported:
        """The skills of a named source as blocks. Raises: as `take`, and opening it."""
        return self.take(session, self.find_source(source), wish)

    def import_folder(self, session: str, folder: str, wish: Wish = PLAIN) -> Imported:
        """The skills of a folder of this machine. Raises: FolderScanOff, and as `take`."""
        return self.take(session, self.find_folder(folder), wish)

    def open_session(self, data: bytes, filename: str, name: str | None = None) -> Session:
        """A new session out of an exported one, or out of an archive of skills.

        Raises: SkillRejected, ArchiveRejected, TooLarge, FieldRefused, TextRefused.
        """
        origin = Provenance(UPLOAD, _file_name(filename))
        good = accepted(read_candidates(_uploaded(data, filename)))
        contents = [one for found in good for one in found.contents(None, origin)]
        portable = next((one.portable for one in good if one.portable is not None), None)
        own = portable.name if portable else good[0].name
        budgets = portable.budgets if portable else NO_BUDGETS
        return Sessions(self.desk).create(name or own, budgets, contents)

    def take(self, session: str, found: Found, wish: Wish = PLAIN) -> Imported:
        """What was found, or what is chosen of it, as blocks.

        Raises: RecordNotFound, Conflict, SkillRejected, SkillNotFound, TooLarge.
        """
        chosen = _chosen(found.candidates, wish.names)
        good = accepted(chosen)

        def work(change: Change) -> Imported:
            blocks: list[Block] = []
            replaced: list[str] = []
            for one in good:
                contents = one.contents(wish.zone, found.origin)
                old = _replaced(change, one, contents, wish.same)
                if old is None:
                    blocks += _appended(self.desk, change, contents)
                else:
                    blocks.append(old)
                    replaced.append(one.name)
            return Imported(tuple(blocks), tuple(replaced), skipped, findings)

        skipped = tuple(one for one in chosen if one.reasons)
        findings = tuple(judged for one in chosen for judged in one.findings)
        return self.desk.change(session, work)


def _scanned(skill: Skill) -> Candidate:
    try:
        candidate = read_candidate(bundle_of(skill, SKILL_IMPORT.scan))
    except (SkillhallError, OSError):  # it changed since it was listed
        return Candidate(skill.id, skill.name, "", "", 0, (), problem="it cannot be read")
    return candidate._replace(id=skill.id, place=skill.directory)


def _inside(findings: Sequence[Judged], folder: str) -> tuple[Judged, ...]:
    """The findings with paths below the folder that was scanned."""
    return tuple(
        one._replace(finding=one.finding.at(one.finding.path.removeprefix(folder).lstrip("/\\")))
        for one in findings
    )


def _chosen(found: Sequence[Candidate], names: Sequence[str]) -> list[Candidate]:
    if not names:
        return [*found]
    for name in names:
        if not any(name in (one.id, one.name) for one in found):
            raise SkillNotFound(name, hint="look at what the source holds first")
    return [one for one in found if one.id in names or one.name in names]


def _replaced(
    change: Change, one: Candidate, contents: Sequence[Content], same: SameName
) -> Block | None:
    """The block of that skill with its new content, if it is to be replaced. Raises: Conflict."""
    if one.portable is not None or same is SameName.KEEP:
        return None
    before = change.write.skill_blocks(change.session.id, one.name)
    # What this very import has added is no earlier version.
    older = [block for block in before if block.version != change.revision]
    if not older:
        return None
    if same is SameName.REFUSE:
        raise Conflict(f"a skill named {one.name!r}", "replace it, or keep both")
    block = touched(change, older[0], replace(contents[0], zone=older[0].zone))
    change.write.save_block(block)
    change.note(EDITED, block.id, version=block.version)
    return block


def _appended(desk: Desk, change: Change, contents: Sequence[Content]) -> list[Block]:
    added: list[Block] = []
    for content in contents:
        last = change.write.preceding(change.session.id, content.zone, "")
        [block] = append_contents(desk, change, [content])
        change.note(ADDED, block.id, zone=content.zone, after=last[0] if last else "")
        added.append(block)
    return added


def _uploaded(data: bytes, filename: str) -> tuple[Bundle, ...]:
    """The bundles in a file: one alone if it is a Markdown text, else those of an archive."""
    name = _file_name(filename)
    if name.lower().endswith(_MARKDOWN):
        stem = name[: -len(_MARKDOWN)]
        folder = stem if stem.lower() != "skill" else ""
        [bundle] = read_files([(SKILL_MD, data)], folder or "skill")
        return (bundle,)
    return read_archive(data, name)


def _file_name(filename: str) -> str:
    return filename.replace("\\", "/").rpartition("/")[2] or "skill.zip"
