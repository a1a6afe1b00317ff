"""Reviews: skills that wait for a person to look at them before they are imported.

They wait in memory, for a while and up to a size; whatever was looked at is what is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.cache import PendingStore
from skillhall._internal.installer.preflight import (
    compute_bundle_digest,
    read_bundle_description,
    read_bundle_name,
)
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.readable_files import remove_hidden_files
from skillhall._internal.skill.bundle import fold_name
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.skill_store.draft import judge_skill_md
from skillhall._internal.skill_store.input_checks import find_skill_md, prepare_bundles, suggest_id
from skillhall._internal.skill_store.version_diff import compare_files, read_contents
from skillhall._internal.sources.folder.bundle_reader import load_into_memory
from skillhall.errors import SkillhallError, StaleVersionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.changes import SkillStoreChanges
    from skillhall._internal.skill_store.folder_store import ImportReport
    from skillhall._internal.skill_store.version_diff import FileChange

ImportStatus: TypeAlias = Literal["new", "same", "replaces", "taken", "refused"]


@dataclass(frozen=True, slots=True)
class ImportCandidate:
    """A skill that could be imported, and what that would mean."""

    key: str  # what it is chosen by
    id: str
    name: str
    description: str
    tokens: int
    files: int
    status: ImportStatus
    problem: str  # why it is refused
    findings: tuple[JudgedFinding, ...]
    changes: tuple[FileChange, ...]  # to the one that it replaces
    replaced_digest: str  # the digest of that one
    bundle: Bundle

    @property
    def can_import(self) -> bool:
        """Whether importing it would do something, and may."""
        return self.status in ("new", "replaces")


class PendingImport(NamedTuple):
    """Candidates of one source, in order."""

    id: str
    source: str  # in words
    candidates: tuple[ImportCandidate, ...]


@dataclass(slots=True)
class PendingImports:
    """Everything that waits; safe to use from several threads."""

    changes: SkillStoreChanges
    system_ids: Callable[[], Iterable[str]] = tuple
    pending: PendingStore[_PendingBundles] = field(default_factory=PendingStore)

    def add(self, source: str, bundles: Iterable[Bundle]) -> PendingImport:
        """Let bundles wait. Raises: what reading them raises."""
        held = tuple(load_into_memory(bundle) for bundle in bundles)
        size = sum(file.size for bundle in held for file in bundle.files.values())
        waiting = _PendingBundles(source, held)
        return self._build_pending_import(self.pending.add(waiting, size), waiting, {})

    def find(self, import_id: str, ids: Mapping[str, str] | None = None) -> PendingImport:
        """What waits under that id, with other ids for some candidates. Raises: ReviewGone."""
        return self._build_pending_import(import_id, self.pending.find(import_id), ids or {})

    def confirm(
        self, pending_import: PendingImport, chosen: Sequence[ImportCandidate]
    ) -> tuple[ImportReport, str]:
        """Import what was chosen, if it would still do what was shown.

        Raises: StaleVersionError, and what importing raises.
        """
        for one in chosen:
            present = self.changes.store.files(one.id)
            if (compute_bundle_digest(present) if present else "") != one.replaced_digest:
                raise StaleVersionError(one.id)
        is_replacing = any(one.status == "replaces" for one in chosen)
        bundles = [one.bundle for one in chosen]
        report = self.changes.import_(bundles, replace=is_replacing)
        self.pending.drop(pending_import.id)
        return report

    def _build_pending_import(
        self, import_id: str, bundles: _PendingBundles, ids: Mapping[str, str]
    ) -> PendingImport:
        system = {fold_name(one) for one in self.system_ids()}
        candidates: list[ImportCandidate] = []
        for number, bundle in enumerate(bundles.bundles):
            key = str(number)
            given = ids.get(key)
            one = self._build_candidate(key, bundle if not given else replace(bundle, folder=given))
            if one.status != "refused" and fold_name(one.id) in system:
                one = replace(one, status="taken", problem=one.id)
            candidates.append(one)
        return PendingImport(import_id, bundles.source, tuple(candidates))

    def _build_candidate(self, key: str, bundle: Bundle) -> ImportCandidate:
        try:
            prepared = prepare_bundles([bundle], None)[0]
        except SkillhallError as error:
            return _build_rejected_candidate(key, bundle, error)
        identity = prepared.skill.id
        present = self.changes.store.files(identity)
        changes: tuple[FileChange, ...] = ()
        standing: ImportStatus = "new"
        if present is not None:
            # Hidden files of the skill that is replaced are not shown to the importer.
            changes = compare_files(
                read_contents(remove_hidden_files(present)), read_contents(bundle)
            )
            standing = (
                "replaces"
                if compute_bundle_digest(present) != compute_bundle_digest(bundle)
                else "same"
            )
        data = bundle.files[find_skill_md(bundle)].read()
        return ImportCandidate(
            key=key,
            id=identity,
            name=prepared.skill.name,
            description=prepared.skill.description,
            tokens=estimate_tokens(parse_skill(data).body),
            files=len(bundle.files),
            status=standing,
            problem="",
            findings=(*judge_skill_md(identity, data), *_judge_other_files(bundle, data)),
            changes=changes,
            replaced_digest=compute_bundle_digest(present) if present else "",
            bundle=bundle,
        )


@dataclass(frozen=True, slots=True)
class _PendingBundles:
    source: str
    bundles: tuple[Bundle, ...]


def _judge_other_files(bundle: Bundle, data: bytes) -> tuple[JudgedFinding, ...]:
    """What is worth telling about the other files."""
    own = find_skill_md(bundle)
    found = (*bundle.findings, *scan_bundle(bundle, parse_skill(data).frontmatter))
    judged = LOCAL_SKILLS.load_policy.judge(one for one in found if one.path != own)
    return tuple(one for one in judged if one.effect is not Effect.ACCEPT)


def _build_rejected_candidate(key: str, bundle: Bundle, error: SkillhallError) -> ImportCandidate:
    reasons = getattr(error, "reasons", None) or (str(error),)
    return ImportCandidate(
        key=key,
        id=suggest_id(bundle),
        name=read_bundle_name(bundle),
        description=read_bundle_description(bundle),
        tokens=0,
        files=len(bundle.files),
        status="refused",
        problem="; ".join(reasons),
        findings=(),
        changes=(),
        replaced_digest="",
        bundle=bundle,
    )
