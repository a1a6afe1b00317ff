"""Trust services of a server: revocations and inventories."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.policy.trust.security_checklist import (
    ChecklistAnswer,
    ChecklistFacts,
    answer_checklist,
)
from skillhall._internal.skill_store.trust.inventory_overview import (
    InventoryOverview,
    InventoryQuery,
    build_overview,
)
from skillhall.errors import FieldRefused, SkillhallError, StaleVersionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.policy.access.actor import Actor
    from skillhall._internal.policy.trust.revocations import RevocationEntry
    from skillhall._internal.skill_store.collection import Collection
    from skillhall._internal.skill_store.trust.revocation_list import PublishedRevocations
    from skillhall._internal.storage.inventories import Inventories
    from skillhall._internal.storage.server_revocations import Revocations


@dataclass(frozen=True, slots=True)
class ServerTrust:
    """Revocations, the published list, and the inventories of machines."""

    collection: Collection
    revocations: Revocations
    published: PublishedRevocations
    inventories: Inventories
    refresh: Callable[[], None]  # reads the revocations again, after a change by this server

    def revoke(  # noqa: PLR0913 - the fields of a form
        self, actor: Actor, *, digest: str, skill: str, reason: str, instead: str, shown: str = ""
    ) -> RevocationEntry:
        """Revoke a digest, or the current files of a skill.

        If `shown` is set, it must be the digest of these files.
        Raises: FieldRefused, SkillNotFound, StaleVersionError if the files have another digest,
        DatabaseUnavailable, DatabaseFull.
        """
        if not digest and not skill:
            raise FieldRefused("digest", "must be set, unless 'skill' is set")
        digests = (digest,) if digest else self._find_digests(skill)
        if shown and shown not in digests:
            raise StaleVersionError(skill, digests[0])
        entries = self.revocations.revoke(
            actor, digests, skill=skill, reason=reason, instead=instead
        )
        self.refresh()
        return entries[0]

    def restore(self, actor: Actor, *, digest: str, skill: str = "", reason: str) -> bool:
        """Undo the revocation of a digest, or of the current files of a skill.

        Return whether it was revoked. Raises: FieldRefused, SkillNotFound, DatabaseUnavailable,
        DatabaseFull.
        """
        digests = (digest,) if digest or not skill else self._find_digests(skill)
        restored = [
            self.revocations.restore(actor, one, skill=skill, reason=reason) for one in digests
        ]
        self.refresh()
        return any(restored)

    def build_overview(self, query: InventoryQuery) -> InventoryOverview:
        """Return the skills on all machines. Raises: DatabaseUnavailable."""
        reports, collection = self.inventories.list(), self.collection
        approved: set[str] = set()
        if reports:
            for skill in collection.snapshot().skills.values():
                with suppress(SkillhallError, OSError):  # removed since the list was made
                    approved.update(collection.facts.get_digests(skill))
        revoked = collection.read_revoked().by_digest
        return build_overview(reports, revoked, approved, query)

    def answer_checklist(self) -> list[ChecklistAnswer]:
        """Answer the security checklist for this server. Raises: DatabaseUnavailable."""
        facts = ChecklistFacts(
            token=self.collection.settings.server.auth_token is not None,
            signs_list=self.published.is_signed,
            inventory=bool(self.inventories.list()),
        )
        return answer_checklist(facts)

    def answer_skill_checklist(self, skill: str) -> list[ChecklistAnswer]:
        """Answer the security checklist for a skill. Raises: SkillNotFound, SkillFileNotFound."""
        details = self.collection.details(skill)
        facts = ChecklistFacts(
            frozenset(judged.finding.code for judged in details.findings),
            approved=details.entry.revocation is None,
            pinned=True,  # the server has recorded its digest
            current=details.entry.revocation is None,
        )
        return answer_checklist(facts)

    def _find_digests(self, skill: str) -> tuple[str, ...]:
        return self.collection.facts.get_digests(self.collection.find(skill))
