"""Pending imports: skills that wait in memory for confirmation.

They are limited by age and size. Confirming one writes exactly the bytes that were reviewed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.cache import PendingStore
from skillhall._internal.catalog.duplicates.near_copies import find_near_copy
from skillhall._internal.installer.install import (
    read_bundle_description,
    read_bundle_name,
)
from skillhall._internal.installer.install_rules import (
    NO_RULES,
    NO_SIGNATURE,
    CheckedSignature,
    InstallRules,
)
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.policy.readable_files import remove_hidden_files
from skillhall._internal.skill.bundle import fold_name
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.skill_store.draft import judge_skill_md, list_reasons
from skillhall._internal.skill_store.input_checks import find_skill_md, prepare_bundles, suggest_id
from skillhall._internal.skill_store.store import ImportOrigin
from skillhall._internal.skill_store.versions.version_diff import compare_files, read_contents
from skillhall._internal.sources.folder.bundle_reader import load_into_memory
from skillhall.errors import SkillhallError, StaleVersionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillhall._internal.catalog.duplicates.near_copies import PresentSkill
    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill_store.store import ImportReport
    from skillhall._internal.skill_store.undoable_changes import SkillStoreChanges
    from skillhall._internal.skill_store.versions.version_diff import FileChange

ImportStatus: TypeAlias = Literal["new", "same", "replaces", "taken", "refused"]


@dataclass(frozen=True, slots=True)
class ImportCandidate:
    """Skill that could be imported, with the effects of importing it."""

    key: str  # selects it in a request
    bundle: Bundle
    id: str
    name: str
    description: str
    status: ImportStatus
    problem: str = ""  # why it is refused, or the id if that is taken
    tokens: int = 0
    findings: tuple[JudgedFinding, ...] = ()
    changes: tuple[FileChange, ...] = ()  # compared with the skill that it replaces
    replaced_digest: str = ""  # digest of that skill
    signature: CheckedSignature = NO_SIGNATURE

    @property
    def files(self) -> int:
        """Number of files."""
        return len(self.bundle.files)

    @property
    def can_import(self) -> bool:
        """Whether importing it is allowed and has an effect."""
        return self.status in ("new", "replaces")


class _PendingBundles(NamedTuple):
    source: str
    bundles: tuple[Bundle, ...]
    rules: InstallRules
    commit: str = ""


class PendingImport(NamedTuple):
    """Candidates of one source, in order."""

    id: str
    source: str  # for display
    candidates: tuple[ImportCandidate, ...]
    commit: str = ""  # of a repository


@dataclass(slots=True)
class PendingImports:
    """All pending imports. Thread-safe."""

    changes: SkillStoreChanges
    system_ids: Callable[[], Iterable[str]] = tuple
    pending: PendingStore[_PendingBundles] = field(default_factory=PendingStore)
    present_skills: Callable[[], Iterable[PresentSkill]] = tuple

    def add(
        self,
        source: str,
        bundles: Iterable[Bundle],
        rules: InstallRules = NO_RULES,
        commit: str = "",
    ) -> PendingImport:
        """Add bundles as a pending import. Raises: errors from reading them."""
        loaded = tuple(load_into_memory(bundle) for bundle in bundles)
        size = sum(file.size for bundle in loaded for file in bundle.files.values())
        pending = _PendingBundles(source, loaded, rules, commit)
        return self._build_pending_import(self.pending.add(pending, size), pending, {})

    def find(self, import_id: str, ids: Mapping[str, str] | None = None) -> PendingImport:
        """Return a pending import; `ids` overrides skill ids, by key. Raises: ReviewGone."""
        return self._build_pending_import(import_id, self.pending.find(import_id), ids or {})

    def confirm(
        self, pending_import: PendingImport, chosen: Sequence[ImportCandidate], actor: Actor
    ) -> tuple[ImportReport, str]:
        """Import the chosen candidates; return the report and the change's id.

        Raises: StaleVersionError if a stored skill has changed since the review, and errors
        from importing.
        """
        for candidate in chosen:
            present = self.changes.store.files(candidate.id)
            if (present.digest() if present else "") != candidate.replaced_digest:
                raise StaleVersionError(candidate.id)
        is_replacing = any(candidate.status == "replaces" for candidate in chosen)
        bundles = [candidate.bundle for candidate in chosen]
        rules = self.pending.find(pending_import.id).rules
        changes = replace(self.changes, actor=actor)
        provenance = ImportOrigin(pending_import.source, pending_import.commit)
        report = changes.import_(bundles, None, provenance, replace=is_replacing, rules=rules)
        self.pending.drop(pending_import.id)
        return report

    def _build_pending_import(
        self, import_id: str, bundles: _PendingBundles, ids: Mapping[str, str]
    ) -> PendingImport:
        system_ids = {fold_name(identity) for identity in self.system_ids()}
        present = list(self.present_skills())
        candidates: list[ImportCandidate] = []
        for number, bundle in enumerate(bundles.bundles):
            key = str(number)
            new_id = ids.get(key)
            renamed = replace(bundle, folder=new_id) if new_id else bundle
            candidate = self._build_candidate(key, renamed, present, bundles.rules)
            if candidate.status != "refused" and fold_name(candidate.id) in system_ids:
                candidate = replace(candidate, status="taken", problem=candidate.id)
            candidates.append(candidate)
        return PendingImport(import_id, bundles.source, tuple(candidates), bundles.commit)

    def _build_candidate(
        self, key: str, bundle: Bundle, others: Sequence[PresentSkill], rules: InstallRules
    ) -> ImportCandidate:
        try:
            skill = prepare_bundles([bundle], None, rules)[0].skill
        except SkillhallError as error:
            return ImportCandidate(
                key,
                bundle,
                suggest_id(bundle),
                read_bundle_name(bundle),
                read_bundle_description(bundle),
                "refused",
                "; ".join(list_reasons(error)),
            )
        present = self.changes.store.files(skill.id)
        changes: tuple[FileChange, ...] = ()
        status: ImportStatus = "new"
        if present is not None:
            # Hidden files of the replaced skill are private, so they are not compared.
            shown = remove_hidden_files(present)
            changes = compare_files(read_contents(shown), read_contents(bundle))
            is_same = present.digest() == bundle.digest()
            status = "same" if is_same else "replaces"
        skill_md = find_skill_md(bundle)
        data = bundle.files[skill_md].read()
        parsed = parse_skill(data)
        found = (*bundle.findings, *scan_bundle(bundle, parsed.frontmatter))
        near_copy = find_near_copy(data, skill.id, others)
        copies = [near_copy] if near_copy else []
        judged = LOCAL_SKILLS.load_policy.judge(
            (*copies, *(finding for finding in found if finding.path != skill_md))
        )
        other_findings = (item for item in judged if item.effect is not Effect.ACCEPT)
        return ImportCandidate(
            key,
            bundle,
            skill.id,
            skill.name,
            skill.description,
            status,
            tokens=estimate_tokens(parsed.body),
            findings=(*judge_skill_md(skill.id, data), *other_findings),
            changes=changes,
            replaced_digest=present.digest() if present else "",
            signature=rules.inspect_signature(bundle),
        )
