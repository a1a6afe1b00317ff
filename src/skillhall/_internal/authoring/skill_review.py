"""Review of skills that need an approval: shows them and records the decisions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeAlias

from skillhall._internal.authoring.skill_examination import examine_skill
from skillhall._internal.catalog.catalog import CatalogSkill
from skillhall._internal.catalog.skill_content import (
    ALL_FILES_SCAN,
    open_skill_bundle,
    with_bundle,
)
from skillhall._internal.catalog.trust.gate import HeldSkill
from skillhall._internal.catalog.trust.trust_gate import TrustGate
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.trust.trust_decision import ApprovalDecision, TrustState
from skillhall._internal.storage.content_store import ContentStore
from skillhall._internal.storage.trust_store import Approval
from skillhall.errors import SkillhallError, SkillNotApproved

_MAX_DIFF_LINES = 200
_MAX_STORED = 256 * 1024  # bytes of a file that is stored to show later changes
_UTC_CLOCK = partial(datetime.now, UTC)
ApprovalRecord: TypeAlias = Approval


class DueReview(NamedTuple):
    """An approved skill that should be reviewed again."""

    name: str
    risk: str
    since: str


@dataclass(frozen=True, slots=True)
class SkillReview:
    """Shows skills to the user who decides about them, and records the decisions."""

    gate: TrustGate
    data_directory: str
    user: str
    via: str  # the command
    clock: Callable[[], datetime] = _UTC_CLOCK

    def approve(self, judged: Sequence[HeldSkill], where: str = "", *, link: bool = False) -> None:
        """Approve the files that were judged, for this project or for `where`.

        With `link`, links may lead out of the searched folders to these skills.
        Raises: SkillNotApproved if they cannot be read, ConfigInvalid, OSError.
        """
        for one in judged:
            self._store_contents(one.skill)
        self._record(judged, where, ApprovalDecision.APPROVE, link=link)

    def decline(self, judged: Sequence[HeldSkill]) -> None:
        """Record that the user declined these files; they are not asked about again.

        Errors are ignored.
        """
        with suppress(SkillhallError, OSError):
            self._record(judged, "", ApprovalDecision.DECLINE)

    def block(self, judged: Sequence[HeldSkill], where: str = "", *, forget: bool = False) -> None:
        """Block the files that were judged, or drop the records about them.

        Raises: as `approve`.
        """
        decision = ApprovalDecision.FORGET if forget else ApprovalDecision.BLOCK
        self._record(judged, where, decision)
        own = self.gate.store.read().find_own_folders(self.gate.project)
        mine = [one for one in judged if os.path.realpath(one.skill.directory) in own]
        for one in mine:
            self.approve_own(
                one.skill.name, one.skill.directory, where, decision=ApprovalDecision.FORGET
            )

    def approve_own(
        self,
        name: str,
        folder: str,
        where: str = "",
        *,
        decision: ApprovalDecision = ApprovalDecision.APPROVE,
    ) -> None:
        """Record that the user is writing the skill in a folder. Raises: as `approve`."""
        real = os.path.realpath(folder)
        record = Approval("", name, where or self.gate.project, decision, folder=real)
        self.gate.store.add([self._sign(record)])

    def find_latest(self, name: str) -> ApprovalRecord | None:
        """Return the latest record about a skill. Raises: ConfigInvalid, OSError."""
        return self.gate.store.read().find_latest(name, self.gate.project)

    def find_base(self, name: str) -> ApprovalRecord | None:
        """Return the version that was approved last. Raises: ConfigInvalid, OSError."""
        return self.gate.store.read().find_base(name, self.gate.project)

    def describe(self, one: HeldSkill) -> Iterator[str]:
        """Yield the lines on which the user decides: files, findings and changes."""
        skill, hashed = one.skill, one.hashed
        yield f"{skill.name} ({one.decision.state}): {skill.description}"
        yield f"  location: {skill.location}"
        if hashed is None:
            yield f"  {one.decision.rule}"
            return
        yield f"  digest: {hashed.digest}"
        for path, file in hashed.files.items():
            yield f"  {path} ({file.size} bytes{', executable' if file.executable else ''})"
        for finding, effect in examine_skill(skill, LENIENT).findings:
            if effect is not Effect.ACCEPT:
                line = f":{finding.line}" if finding.line else ""
                where = finding.path.removeprefix(skill.directory).lstrip("/\\")
                yield f"  {where}{line}: {effect}[{finding.code}]: {finding.message}"
        if one.decision.state is TrustState.CHANGED:
            yield from self._describe_changes(one)

    def _describe_changes(self, one: HeldSkill) -> Iterator[str]:
        """Yield the differences from the version that was approved last."""
        base = self.find_base(one.skill.name)
        if base is None or one.hashed is None:
            return
        yield f"  changed since {base.at[:10]} ({base.digest}):"
        before, after = base.files, one.hashed.files
        contents = ContentStore(self.data_directory)
        for path in sorted({*before, *after}):
            old, new = before.get(path), after.get(path)
            if old != new:
                verb = "added" if old is None else "removed" if new is None else "changed"
                yield f"  {verb}: {path}"
                if old is not None and new is not None:
                    yield from _diff(one.skill, path, contents.find(old.sha256))

    def _record(
        self,
        judged: Sequence[HeldSkill],
        where: str,
        decision: ApprovalDecision,
        *,
        link: bool = False,
    ) -> None:
        records = []
        for one in judged:
            if one.hashed is None:
                raise SkillNotApproved(one.skill.name, one.decision.rule)
            record = Approval(
                one.hashed.digest,
                one.skill.name,
                where or self.gate.project,
                decision,
                origin=one.skill.source,
                folder=one.skill.folder_handle.path if link else "",
                files=one.hashed.files,
            )
            records.append(self._sign(record))
        # Approving the same files again renews the date of the review.
        self.gate.store.add(records, renew=True)

    def find_due(self, judged: Sequence[HeldSkill]) -> list[DueReview]:
        """Return the approved skills whose next review is due under a policy.

        Raises: ConfigInvalid, OSError.
        """
        loaded = self.gate.load_policies()
        if loaded is None or not loaded.policies.has_review_dates:
            return []
        due = []
        approved = [one for one in judged if one.decision.state is TrustState.APPROVED]
        for one, evidence in zip(approved, self.gate.examine_all(approved), strict=True):
            base = self.find_base(one.skill.name)
            days = None if evidence is None else loaded.policies.find_review_days(evidence.risk)
            if base is None or evidence is None or days is None:
                continue
            with suppress(ValueError):  # a record that was edited by hand
                date = datetime.fromisoformat(base.at) + timedelta(days=days)
                if date <= self.clock():
                    due.append(DueReview(one.skill.name, evidence.risk.value, date.isoformat()))
        return due

    def _sign(self, record: Approval) -> Approval:
        at = self.clock().isoformat(timespec="seconds")
        return record._replace(by=self.user, at=at, via=self.via)

    def _store_contents(self, skill: CatalogSkill) -> None:
        """Store the approved files, so that a later change can be shown as a diff."""
        with suppress(SkillhallError, OSError):
            for file in open_skill_bundle(skill, ALL_FILES_SCAN).files.values():
                if file.size <= _MAX_STORED:
                    ContentStore(self.data_directory).put(file.read())


def _diff(skill: CatalogSkill, path: str, old: bytes | None) -> Iterator[str]:
    if old is None:
        return
    new = with_bundle(skill, ALL_FILES_SCAN, lambda bundle: bundle.files[path].read())
    before, after = (data.decode("utf-8", "replace").splitlines() for data in (old, new))
    for line in islice(unified_diff(before, after, lineterm="", n=1), 2, _MAX_DIFF_LINES):
        yield f"    {line}"
