"""Revocations: digests of skills that no agent may use, and their published list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.strict_json import InvalidJson, JsonObject, render_json
from skillhall.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable

LIST_PATH: Final = "/.well-known/agent-skills/revoked.json"  # on a server
LIST_TYPE: Final = "application/vnd.skillhall.revocations+json"  # of a signed list
MAX_LIST_SIZE: Final = 4 * 1024 * 1024  # bytes; enough for about ten thousand revocations
_MAX_NUMBER = 2**53 - 1  # that every JSON parser reads exactly
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TIME = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\dZ")


class Revocation(NamedTuple):
    """A revoked digest, and why. `instead` names a version to use, such as `pdf@4`."""

    digest: str
    skill: str = ""
    reason: str = ""
    at: str = ""
    instead: str = ""

    def describe(self) -> str:
        """Return why the skill is revoked, and what to use instead."""
        instead = f"; use {self.instead} instead" if self.instead else ""
        return f"{self.reason or 'no reason was given'}{instead}"


class RevocationEntry(NamedTuple):
    """An entry in a server's history of revocations: it revokes or restores a digest."""

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
        """The public part of the entry, without the actor."""
        return Revocation(self.digest, self.skill, self.reason, self.at, self.instead)


def is_digest(text: str) -> bool:
    """Whether a text is the digest of a skill."""
    return _DIGEST.fullmatch(text) is not None


def find_revoked(entries: Iterable[RevocationEntry]) -> list[RevocationEntry]:
    """Return the latest entries of digests that are revoked, by number."""
    latest: dict[str, RevocationEntry] = {}
    for entry in sorted(entries):
        latest[entry.digest] = entry
    return sorted(entry for entry in latest.values() if entry.is_revoked)


class RevocationList(NamedTuple):
    """The list that a server publishes. A later list has a higher number."""

    number: int
    issued: str
    expires: str
    revoked: tuple[Revocation, ...] = ()

    def is_expired(self, now: str) -> bool:
        """Whether the list may be outdated; `now` has the same format as its times."""
        return self.expires <= now


_REVOCATION_FIELDS = Revocation._fields


def build_revocation_list(
    entries: Iterable[RevocationEntry], issued: str, expires: str
) -> RevocationList:
    """Return the list of current revocations, from all entries of a server."""
    known = [*entries]
    number = max((entry.number for entry in known), default=0)
    revoked = tuple(entry.revocation for entry in find_revoked(known))
    return RevocationList(number, issued, expires, revoked)


def serialize_revocation_list(revocations: RevocationList) -> dict[str, object]:
    """Return a list as JSON values."""
    revoked = [one._asdict() for one in revocations.revoked]
    return {**revocations._asdict(), "revoked": revoked}


def render_revocation_list(revocations: RevocationList) -> bytes:
    """Render a list as JSON."""
    return render_json(serialize_revocation_list(revocations)) + b"\n"


def parse_revocation_list(data: bytes, name: str) -> RevocationList:
    """Parse a list; `name` is its file or URL. Raises: ConfigInvalid, which names the field."""
    if len(data) > MAX_LIST_SIZE:
        raise ConfigInvalid(name, f"the list is larger than {MAX_LIST_SIZE} bytes")
    try:
        return read_revocation_list(JsonObject.parse(data))
    except InvalidJson as error:
        raise ConfigInvalid(name, str(error)) from None


def read_revocation_list(record: JsonObject) -> RevocationList:
    """Read a list from a JSON object. Raises: InvalidJson.

    Unknown fields are ignored, so that later versions can add some.
    """
    number = record.require("number", int)
    if number > _MAX_NUMBER:
        raise record.build_error("number", f"is larger than {_MAX_NUMBER}")
    issued, expires = record.require("issued", str), record.require("expires", str)
    for field, text in (("issued", issued), ("expires", expires)):
        if not is_time(text):
            raise record.build_error(field, "is not a time in UTC, such as 2026-11-18T09:30:00Z")
    revoked = tuple(map(_read_revocation, record.require_objects("revoked")))
    return RevocationList(number, issued, expires, revoked)


def _read_revocation(record: JsonObject) -> Revocation:
    given = (field for field in _REVOCATION_FIELDS if field in record.fields)
    texts = {field: record.require(field, str) for field in given}
    if not is_digest(texts.get("digest", "")):
        raise record.build_error("digest", "is not sha256: and 64 hexadecimal digits")
    return Revocation(**texts)


def is_time(text: str) -> bool:
    """Whether a text is a time in the format of lists. Such times sort as text."""
    return _TIME.fullmatch(text) is not None
