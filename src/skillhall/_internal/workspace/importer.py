"""Import of skills into sessions, from uploads, sources and local folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.skill_content import open_skill_bundle
from skillhall._internal.policy.profiles import SKILL_IMPORT
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.sources.archive.source import read_archive, read_loose_files
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.workspace.block_types import SKILL_TYPE
from skillhall._internal.workspace.blocks import BLOCK_ADDED, BLOCK_EDITED, append_contents
from skillhall._internal.workspace.sessions import Sessions
from skillhall._internal.workspace.skill_blocks import (
    LOCAL_SOURCE,
    UPLOAD_SOURCE,
    BlockCandidate,
    Provenance,
    filter_accepted,
    read_candidate,
)
from skillhall._internal.workspace.unit_of_work import get_session
from skillhall.errors import Conflict, FolderScanOff, SkillhallError, SkillNotFound

if TYPE_CHECKING:
    from skillhall._internal.catalog.trust.server_gate import ServerGate
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.storage.records import Block, BlockContent, Session, Zone
    from skillhall._internal.workspace.unit_of_work import SessionChange, UnitOfWork


class OpenedSkills(NamedTuple):
    """The skills of a source."""

    bundles: Sequence[Bundle]
    origin: Provenance
    source: str  # as policies name it


# Opens a source reference. Provided by `wiring`, since this layer must not import every source.
# The second argument says whether the server's git tokens may be used.
OpenSource: TypeAlias = Callable[[str, bool], OpenedSkills]
DEFAULT_FOLDER = SKILL_IMPORT.roots[0][0]
_MARKDOWN = ".md"


class ImportConflict(StrEnum):
    """What to do with a skill if the session already has a block with its name."""

    REFUSE = "refuse"
    REPLACE = "replace"  # at the position of the old block
    KEEP = "keep"  # keep both


class ImportOptions(NamedTuple):
    """Options of an import."""

    zone: Zone | None = None
    on_conflict: ImportConflict = ImportConflict.REFUSE
    names: tuple[str, ...] = ()  # of skills or their folders; empty means all


DEFAULT_OPTIONS = ImportOptions()


class ImportChoices(NamedTuple):
    """The candidates of a source and their provenance."""

    candidates: tuple[BlockCandidate, ...]
    origin: Provenance

    @property
    def size(self) -> int:
        """Return the approximate memory use, in characters."""
        return sum(len(candidate.body) for candidate in self.candidates)


class FolderScan(NamedTuple):
    """The candidates in a local folder."""

    folder: str
    candidates: tuple[BlockCandidate, ...]
    findings: tuple[JudgedFinding, ...]  # about the folder itself


class ImportResult(NamedTuple):
    """Result of an import."""

    blocks: tuple[Block, ...]
    replaced: tuple[str, ...]  # names
    skipped: tuple[BlockCandidate, ...]  # rejected candidates
    findings: tuple[JudgedFinding, ...]


@dataclass(frozen=True, slots=True)
class SkillImporter:
    """Imports skills as blocks.

    On a server, only `scan_folder` reads local folders; it checks that this is allowed. Models get
    the text of blocks, so skills that the gate holds are rejected.
    """

    unit_of_work: UnitOfWork
    gate: ServerGate
    open_source: OpenSource
    allow_folder_scan: bool
    working_directory: str

    def scan_folder(self, folder: str = "") -> FolderScan:
        """Return the candidates in a local folder, including rejected ones.

        Raises: FolderScanOff.
        """
        if not self.allow_folder_scan:
            raise FolderScanOff
        root = Root.resolve(folder or DEFAULT_FOLDER, self.working_directory)
        catalog = load_roots([root], SKILL_IMPORT, None)
        candidates = []
        held = {one.skill.id: one.decision.rule for one in self.gate.clear_uncached(catalog).held}
        for skill in catalog:
            try:
                candidate = read_candidate(open_skill_bundle(skill, SKILL_IMPORT.scan_policy))
            except (SkillhallError, OSError):  # the skill changed since the scan
                error = "it cannot be read"
                candidate = BlockCandidate(skill.id, skill.name, "", "", 0, (), error=error)
            else:
                candidate = candidate._replace(id=skill.id, local_path=skill.directory)
                candidate = candidate.reject(held.get(skill.id, ""))
            candidates.append(candidate)
        for rejected in catalog.rejected:
            findings = []
            for judged in rejected.findings:
                path = judged.finding.path.removeprefix(root.path).lstrip("/\\")
                findings.append(judged._replace(finding=judged.finding.with_location(path)))
            candidates.append(
                BlockCandidate(rejected.id, rejected.name, "", "", 0, tuple(findings))
            )
        candidates.sort(key=lambda candidate: candidate.id)
        return FolderScan(root.path, tuple(candidates), catalog.scan_findings)

    def read_upload(
        self, data: bytes, filename: str, source_type: str = UPLOAD_SOURCE
    ) -> ImportChoices:
        """Read an archive, or a Markdown file as one skill.

        Raises: ArchiveRejected, TooLarge, FieldRefused.
        """
        name = filename.replace("\\", "/").rpartition("/")[2] or "skill.zip"
        if name.lower().endswith(_MARKDOWN):
            stem = name[: -len(_MARKDOWN)]
            # The name "SKILL.md" does not name the skill.
            folder = stem if stem.lower() != "skill" else ""
            bundles = tuple(read_loose_files([(SKILL_MD, data)], folder or "skill"))
        else:
            bundles = read_archive(data, name)
        return self.read_bundles(bundles, Provenance(source_type, name))

    def read_source(self, source: str, *, allow_tokens: bool = True) -> ImportChoices:
        """Read a source, with a server's git tokens only if that is allowed.

        Raises: same as `open_source`.
        """
        opened = self.open_source(source, allow_tokens)
        return self.read_bundles(opened.bundles, opened.origin, opened.source)

    def read_folder(self, folder: str = "") -> ImportChoices:
        """Read a local folder. Raises: FolderScanOff."""
        scan = self.scan_folder(folder)
        return ImportChoices(scan.candidates, Provenance(LOCAL_SOURCE, scan.folder))

    def read_bundles(
        self, bundles: Iterable[Bundle], origin: Provenance, source: str = ""
    ) -> ImportChoices:
        """Read bundles that are already open."""
        return ImportChoices(tuple(self._judge(bundle, source) for bundle in bundles), origin)

    def read_cleared(self, bundles: Iterable[Bundle], origin: Provenance) -> ImportChoices:
        """Read bundles of skills that the gate has cleared."""
        return ImportChoices(tuple(map(read_candidate, bundles)), origin)

    def _judge(self, bundle: Bundle, source: str) -> BlockCandidate:
        candidate = read_candidate(bundle)
        if candidate.reasons:
            return candidate
        try:
            return candidate.reject(self.gate.find_problem(candidate.name, bundle, source))
        except SkillhallError as error:
            return candidate._replace(error=str(error))

    def find_conflicts(self, session: str, choices: ImportChoices) -> frozenset[str]:
        """Return the names of candidates that the session already has.

        Raises: RecordNotFound.
        """
        blocks = self.unit_of_work.store.read(
            lambda read: read.blocks(get_session(read, session).id, None, SKILL_TYPE)
        )
        existing = {block.content.skill.name for block in blocks if block.content.skill}
        return frozenset(
            candidate.name
            for candidate in choices.candidates
            if candidate.portable_session is None and not candidate.reasons
        ).intersection(existing)

    def create_session(self, data: bytes, filename: str, name: str | None = None) -> Session:
        """Create a session from an exported session or an archive of skills.

        Raises: SkillRejected, ArchiveRejected, TooLarge, FieldRefused, TextRefused.
        """
        choices = self.read_upload(data, filename)
        skills = filter_accepted(choices.candidates)
        contents = [each for skill in skills for each in skill.build_contents(None, choices.origin)]
        portable = next((s.portable_session for s in skills if s.portable_session), None)
        default_name = portable.name if portable else skills[0].name
        budgets = portable.budgets if portable else None
        return Sessions(self.unit_of_work).create(name or default_name, budgets, contents)

    def import_choices(
        self, session: str, choices: ImportChoices, options: ImportOptions = DEFAULT_OPTIONS
    ) -> ImportResult:
        """Import the selected candidates as blocks.

        Raises: RecordNotFound, Conflict, SkillRejected, SkillNotFound, TooLarge.
        """
        chosen = choices.candidates
        if options.names:
            for name in options.names:
                if not any(name in (candidate.id, candidate.name) for candidate in chosen):
                    raise SkillNotFound(name, hint="list the skills of the source first")
            chosen = tuple(c for c in chosen if {c.id, c.name}.intersection(options.names))
        accepted = filter_accepted(chosen)

        def work(change: SessionChange) -> ImportResult:
            blocks: list[Block] = []
            replaced: list[str] = []
            for skill in accepted:
                contents = skill.build_contents(options.zone, choices.origin)
                block = _replace_block(change, skill, contents, options.on_conflict)
                if block is not None:
                    blocks.append(block)
                    replaced.append(skill.name)
                    continue
                for content in contents:
                    last = change.writer.previous_position(session, content.zone, "")
                    [block] = append_contents(change, [content])
                    after = last[0] if last else ""
                    change.add_event(BLOCK_ADDED, block.id, zone=content.zone, after=after)
                    blocks.append(block)
            change.writer.add_audit_row("session.import", session, change.at, skills=len(accepted))
            return ImportResult(tuple(blocks), tuple(replaced), skipped, findings)

        skipped = tuple(candidate for candidate in chosen if candidate.reasons)
        findings = tuple(finding for candidate in chosen for finding in candidate.findings)
        return self.unit_of_work.change_session(session, work)


def _replace_block(
    change: SessionChange,
    candidate: BlockCandidate,
    contents: Sequence[BlockContent],
    on_conflict: ImportConflict,
) -> Block | None:
    """Replace the existing block of the skill and return the new one.

    Returns None if there is no such block, if the import keeps both, or if the candidate is an
    exported session. Raises: Conflict if existing blocks must not be replaced.
    """
    if candidate.portable_session is not None or on_conflict is ImportConflict.KEEP:
        return None
    blocks = change.writer.skill_blocks(change.session.id, candidate.name)
    # Blocks that this import has added have the version of the change. They do not conflict.
    older = next((block for block in blocks if block.version != change.revision), None)
    if older is None:
        return None
    if on_conflict is ImportConflict.REFUSE:
        raise Conflict(f"a skill named {candidate.name!r}", "replace it, or keep both")
    block = change.save_block(replace(older, content=replace(contents[0], zone=older.zone)))
    change.add_event(BLOCK_EDITED, block.id, version=block.version)
    return block
