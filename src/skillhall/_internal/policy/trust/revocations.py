"""Revocations: digests of skills that no agent may use, and the published list of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Revocation(NamedTuple):
    """A revoked digest, and why. `instead` names a version to use, such as `pdf@4`."""

    digest: str
    skill: str = ""
    reason: str = ""
    at: str = ""
    instead: str = ""


class RevocationEntry(NamedTuple):
    """An entry of a server's history of revocations: it revokes a digest, or takes that back."""

    number: int
    digest: str
    skill: str
    reason: str
    at: str
    instead: str
    by: str
    is_revoked: bool

    @property
    def revocation(self) -> Revocation:
        """The public part of the entry, without the person."""
        return Revocation(self.digest, self.skill, self.reason, self.at, self.instead)


def is_digest(text: str) -> bool:
    """Whether a text is the digest of a skill."""
    return _DIGEST.fullmatch(text) is not None


def find_revoked(entries: Iterable[RevocationEntry]) -> list[RevocationEntry]:
    """Return the digests that are revoked now, by number: the latest entry of each counts."""
    latest: dict[str, RevocationEntry] = {}
    for entry in sorted(entries):
        latest[entry.digest] = entry
    return sorted(entry for entry in latest.values() if entry.is_revoked)
