"""Skills into sessions: from archives, files, named sources and folders of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall.catalog.load import load_roots
from skillhall.catalog.read import bundle_of
from skillhall.errors import Conflict, FolderScanOff, SkillhallError, SkillNotFound
from skillhall.policy.profiles import SKILL_IMPORT
from skillhall.skill.bundle import Bundle
from skillhall.skill.frontmatter import SKILL_MD
from skillhall.sources.archive import read_archive, read_files
from skillhall.sources.roots import Root
from skillhall.workspace.blocks import ADDED, EDITED, append_contents, touched
from skillhall.workspace.intake import (
    LOCAL,
    UPLOAD,
    Candidate,
    Provenance,
    accepted,
    read_candidate,
    read_candidates,
)
from skillhall.workspace.sessions import NO_BUDGETS, Sessions

if TYPE_CHECKING:
    from skillhall.catalog.catalog import Skill
    from skillhall.policy.loading import Judged
    from skillhall.storage.records import Block, Content, Session, Zone
    from skillhall.workspace.desk import Change, Desk

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
        return read_candidates(_uploaded(data, filename))

    def look_source(self, source: str) -> list[Candidate]:
        """What a named source holds. Raises: what opening it raises."""
        return read_candidates(self.open_source(source)[0])

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

    def import_upload(
        self,
        session: str,
        data: bytes,
        filename: str,
        wish: Wish = PLAIN,
        source_type: str = UPLOAD,
    ) -> Imported:
        """The skills of a file as blocks.

        Raises: RecordNotFound, Conflict, SkillRejected, SkillNotFound, ArchiveRejected, TooLarge.
        """
        found = read_candidates(_uploaded(data, filename))
        return self._import(session, found, Provenance(source_type, _file_name(filename)), wish)

    def import_source(self, session: str, source: str, wish: Wish = PLAIN) -> Imported:
        """The skills of a named source as blocks. Raises: as `import_upload`, and opening it."""
        bundles, origin = self.open_source(source)
        return self._import(session, read_candidates(bundles), origin, wish)

    def import_folder(self, session: str, folder: str, wish: Wish = PLAIN) -> Imported:
        """The skills of a folder of this machine. Raises: FolderScanOff, as `import_upload`."""
        scan = self.look_folder(folder)
        return self._import(session, scan.candidates, Provenance(LOCAL, scan.folder), wish)

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

    def _import(
        self, session: str, found: Sequence[Candidate], origin: Provenance, wish: Wish
    ) -> Imported:
        chosen = _chosen(found, wish.names)
        good = accepted(chosen)

        def work(change: Change) -> Imported:
            blocks: list[Block] = []
            replaced: list[str] = []
            for one in good:
                contents = one.contents(wish.zone, origin)
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
        [bundle] = read_files({SKILL_MD: data}, folder or "skill")
        return (bundle,)
    return read_archive(data, name)


def _file_name(filename: str) -> str:
    return filename.replace("\\", "/").rpartition("/")[2] or "skill.zip"
