"""Updates of installed skills: merge upstream changes with local edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from skillhall._internal.installer.install import (
    AddReport,
    build_bundle,
    preflight_bundles,
    read_bundle_name,
    read_file_states,
)
from skillhall._internal.installer.install_rules import load_install_rules
from skillhall._internal.installer.lock import (
    LockEntry,
    drop_new_hidden_files,
    find_entry_keys,
    matches_entry,
    update_entry,
)
from skillhall._internal.installer.project import Project, read_installed
from skillhall._internal.installer.transaction import Files, Transaction, open_transaction
from skillhall._internal.policy.effects import JudgedFinding
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.bundle import Bundle
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.merge import (
    FileState,
    MergeBase,
    MergeKind,
    MergeOutcome,
    MergeResult,
    merge_files,
)
from skillhall._internal.sources.base import OpenedSource, SourceContext
from skillhall._internal.sources.opener import open_reference, parse_source_ref
from skillhall.errors import SkillhallError, SkillNotFound, SkillRejected

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings
    from skillhall._internal.sources.base import Progress, Ref


_MISSING_HINT = "its source no longer contains it; remove the skill, or add it from another source"
_MOVED_HINT = "a tag should never move: ask the author, or compare the commits, before you update"
_SHORT_COMMIT = 12  # digits
_UpstreamSkill: TypeAlias = tuple[OpenedSource, Bundle]
ConflictChoice: TypeAlias = Literal["mine", "theirs"]  # the version that wins a conflict


class UpdateStatus(StrEnum):
    """State of a skill compared with its source."""

    CURRENT = "current"
    OUTDATED = "outdated"  # changed upstream
    UPDATED = "updated"
    CONFLICT = "conflict"  # both sides changed the same lines; nothing was written
    PINNED = "pinned"  # to a commit
    MISSING = "missing"  # in the lock file, but its folder does not exist
    REJECTED = "rejected"  # agents would not load the merged skill
    FAILED = "failed"  # the source cannot be read, or the folder must not be replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult:
    """Result for one skill.

    >>> installer = Installer.project()
    >>> report = installer.add("./skills", skills=["pdf-tools"])
    >>> [(result.key, result.status.value) for result in installer.update()]
    [('.agents/skills/pdf-tools', 'current')]
    """

    key: str
    status: UpdateStatus
    source: str
    before: str = ""  # commit; "" if the source has no commits
    after: str = ""
    outcomes: tuple[MergeOutcome, ...] = ()  # of changed files
    findings: tuple[JudgedFinding, ...] = ()
    error: SkillhallError | None = None
    stale: str = ""


class _UpdateChoices(NamedTuple):
    """The user's choices for an update."""

    conflicts: ConflictChoice | None
    unsigned: bool


@dataclass(slots=True)
class Upstream:
    """Sources of installed skills; each repository is read at one commit per instance."""

    project: Project
    progress: Progress | None = None
    _commits: dict[str, str] = field(default_factory=dict)
    _tags: dict[str, bool] = field(default_factory=dict)  # whether a source names a tag

    def find(self, entry: LockEntry, commit: str = "") -> tuple[OpenedSource, Bundle]:
        """Return the source and bundle of a skill, at `commit` or the latest version.

        Raises: SkillhallError.
        """
        settings, reference = self._settings, self._parse_reference(entry)
        # A name without a slash would be searched for in the repository; `find_bundle` is exact.
        path = entry.path if "/" in entry.path else ""
        reference = reference.at(path, commit or self._commits.get(entry.source, ""))
        opened = open_reference(reference, settings, self.progress)
        if not commit and opened.commit and not opened.stale:
            self._commits[entry.source] = opened.commit
        bundle = opened.find_bundle(entry.path)
        if bundle is None:
            raise SkillNotFound(entry.path or entry.name, hint=_MISSING_HINT)
        if not bundle.files:
            raise SkillRejected(entry.name, [finding.message for finding in bundle.findings])
        loaded = opened.load_bundle(bundle)
        if reference.left_out_hidden_files:
            loaded = drop_new_hidden_files(entry, loaded)
        return opened, loaded

    def find_moved_tag(self, entry: LockEntry, opened: OpenedSource) -> Iterator[Finding]:
        """Yield a finding if the source is a tag that pointed to another commit.

        Raises: SkillhallError.
        """
        if opened.stale or not entry.commit or opened.commit == entry.commit:
            return
        if entry.source not in self._tags:
            context = SourceContext(self._settings)
            self._tags[entry.source] = self._parse_reference(entry).is_tag(context)
        if self._tags[entry.source]:
            before, after = (commit[:_SHORT_COMMIT] for commit in (entry.commit, opened.commit))
            message = f"the tag of {entry.source} was moved from {before} to {after}"
            yield Finding(Code.REF_MOVED, message, hint=_MOVED_HINT, path=entry.path)

    @property
    def _settings(self) -> Settings:
        # Paths in a lock file are relative to the project, not to the working directory.
        return self.project.settings._replace(working_directory=self.project.root)

    def _parse_reference(self, entry: LockEntry) -> Ref:
        is_local = bool(self.project.settings.allowed_networks)
        return parse_source_ref(entry.source, allow_loopback_http=is_local)


def find_outdated(
    project: Project, names: Iterable[str] = (), progress: Progress | None = None
) -> list[UpdateResult]:
    """Compare skills with their sources, without changing anything.

    Raises: LockNotFound, LockInvalid, SkillNotFound, OSError.
    """
    entries = project.read_lock_entries()
    upstream = Upstream(project, progress)
    return [
        _compare_with_upstream(key, entries[key], upstream)[0]
        for key in find_entry_keys(entries, names)
    ]


def update(
    project: Project,
    names: Iterable[str] = (),
    *,
    conflicts: ConflictChoice | None = None,
    unsigned: bool = False,
    progress: Progress | None = None,
) -> list[UpdateResult]:
    """Update skills; merge edited files, leave skills with conflicts unchanged.

    With `conflicts`, all conflicts are resolved with the chosen version instead. With `unsigned`,
    a broken signature counts as none.

    Raises: LockNotFound, LockInvalid, SkillNotFound, OSError.
    """
    entries = project.read_lock_entries()
    upstream = Upstream(project, progress)
    choices = _UpdateChoices(conflicts, unsigned)
    return [
        _update_entry(key, entries[key], upstream, choices)
        for key in find_entry_keys(entries, names)
    ]


def _update_entry(
    key: str, entry: LockEntry, upstream: Upstream, choices: _UpdateChoices
) -> UpdateResult:
    result, upstream_skill = _compare_with_upstream(key, entry, upstream)
    if upstream_skill is None:
        return result
    try:
        base = _load_merge_base(upstream.project, key, entry, upstream)
        with open_transaction(upstream.project, "update") as transaction:
            current = transaction.entries.get(key)
            if current is None:  # removed by another process while we were fetching
                raise SkillNotFound(key)
            if current == entry:
                return _apply_update(transaction, result, upstream_skill, base, choices)
    except SkillhallError as error:
        return replace(result, status=UpdateStatus.FAILED, error=error)
    # Another process changed the skill while we were fetching: start again with its new entry.
    return _update_entry(key, current, Upstream(upstream.project, upstream.progress), choices)


def _compare_with_upstream(
    key: str, entry: LockEntry, upstream: Upstream
) -> tuple[UpdateResult, _UpstreamSkill | None]:
    """Return the state of a skill, and the upstream skill if it is outdated."""
    result = UpdateResult(
        key=key,
        status=UpdateStatus.CURRENT,
        source=entry.source,
        before=entry.commit,
        after=entry.commit,
    )
    if entry.pinned:
        return replace(result, status=UpdateStatus.PINNED), None
    try:
        opened, bundle = upstream.find(entry)
        is_current = matches_entry(entry, bundle)
        moved = LENIENT.load_policy.judge(
            finding.with_location(key, entry.name)
            for finding in upstream.find_moved_tag(entry, opened)
        )
    except SkillhallError as error:
        return replace(result, status=UpdateStatus.FAILED, error=error), None
    result = replace(result, after=opened.commit, stale=opened.stale, findings=moved)
    if is_current:
        return result, None
    return replace(result, status=UpdateStatus.OUTDATED), (opened, bundle)


def _load_merge_base(
    project: Project, key: str, entry: LockEntry, upstream: Upstream
) -> Mapping[str, MergeBase]:
    """Return the locked files, with their contents where they are still available."""
    bases = {
        file.path: MergeBase(
            file.sha256, file.mode == "100755", project.content_store.find(file.sha256)
        )
        for file in entry.files
    }
    installed = read_installed(project, key)
    mine = installed.files if installed is not None else {}
    # Only edited files need a base; fetching the locked commit is slow.
    unknown = (path for path, base in bases.items() if path in mine and base.data is None)
    if entry.commit and any(
        MergeBase.from_file_state(mine[path]).sha256 != bases[path].sha256 for path in unknown
    ):
        # If the commit is lost, files that both sides changed will be conflicts.
        with suppress(SkillhallError):
            for path, state in read_file_states(upstream.find(entry, entry.commit)[1]).items():
                base = MergeBase.from_file_state(state)
                if bases.get(path, base).sha256 == base.sha256:
                    bases[path] = base
    return bases


def _apply_update(
    transaction: Transaction,
    result: UpdateResult,
    upstream_skill: _UpstreamSkill,
    base: Mapping[str, MergeBase],
    choices: _UpdateChoices,
) -> UpdateResult:
    key, project = result.key, transaction.project
    entry = transaction.entries[key]
    if read_installed(project, key) is None:
        return replace(result, status=UpdateStatus.MISSING)
    opened, bundle = upstream_skill
    theirs = read_file_states(bundle)
    merged = {}
    for path in (key, *entry.get_target_paths("copy")):
        mine = read_installed(project, path)
        # A copy that was deleted is restored.
        merged[path] = merge_files(base, mine.files, theirs) if mine else MergeResult(theirs, ())
    outcomes = tuple(
        outcome
        for merge in merged.values()
        for outcome in merge.outcomes
        if outcome.kind is not MergeKind.UNCHANGED
    )
    result = replace(result, outcomes=outcomes)
    if choices.conflicts is None and any(merge.conflicts for merge in merged.values()):
        return replace(result, status=UpdateStatus.CONFLICT)
    targets = {
        path: _resolve_conflicts(merge, theirs, choices.conflicts) for path, merge in merged.items()
    }
    report = AddReport()
    rules = load_install_rules(opened.reference, project.settings, accepts_broken=choices.unsigned)
    ready = preflight_bundles([build_bundle(key, targets[key])], project.root, report, rules)
    findings = (*result.findings, *report.findings)
    if not ready:
        return replace(result, status=UpdateStatus.REJECTED, findings=findings)
    (checked,) = ready
    after = update_entry(
        entry,
        bundle,
        read_bundle_name(bundle),
        opened.commit,
        signer=checked.signer,
        unsigned=checked.unsigned,
    )
    transaction.apply(key, targets, after, theirs)
    return replace(result, status=UpdateStatus.UPDATED, findings=findings)


def _resolve_conflicts(
    merged: MergeResult, theirs: Files, conflicts: ConflictChoice | None
) -> dict[str, FileState]:
    files = dict(merged.files)  # files with conflicts are still the local ones
    for conflict in merged.conflicts if conflicts == "theirs" else ():
        if conflict.clashing_path and conflict.clashing_path not in theirs:
            files.pop(conflict.clashing_path, None)
        if conflict.path in theirs:
            files[conflict.path] = theirs[conflict.path]
        else:
            files.pop(conflict.path, None)
    return files
