"""Lists of revocations that this machine knows, by server: `revocations.json`.

A list is replaced only by one with the same or a higher number.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.trust.revocations import (
    Revocation,
    RevocationList,
    is_time,
    read_revocation_list,
    serialize_revocation_list,
)
from skillhall._internal.settings import REVOCATIONS_FILE
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.strict_json import InvalidJson, JsonObject, render_json
from skillhall.errors import ConfigInvalid, NotAFile, SkillFileNotFound, TooLarge, UnsafePath

FILE_SERVER: Final = "file"  # the server of a list whose origin is not named
MAX_FILE_SIZE: Final = 64 * 1024 * 1024  # bytes
_VERSION: Final = 1
_MODE: Final = 0o600
_FIX_HINT: Final = "delete the file; the next check fetches the lists again"


class StoredList(NamedTuple):
    """The latest list of a server, and when the server was last asked; "" means never."""

    asked: str = ""
    answered: str = ""
    etag: str = ""
    signer: str = ""  # a name from a policy
    revocations: RevocationList | None = None


_TEXT_FIELDS = ("asked", "answered", "etag", "signer")


@dataclass(frozen=True)
class KnownRevocations:
    """The lists of all servers."""

    lists: Mapping[str, StoredList]

    @cached_property
    def by_digest(self) -> Mapping[str, Revocation]:
        """All revocations, from all lists, by digest."""
        lists = [one.revocations for one in self.lists.values() if one.revocations is not None]
        return {revocation.digest: revocation for one in lists for revocation in one.revoked}

    @cached_property
    def reasons(self) -> Mapping[str, str]:
        """Why each digest is revoked, for `decide`."""
        return {digest: one.describe() for digest, one in self.by_digest.items()}

    def find_expired(self, now: str) -> list[str]:
        """Return the servers whose list has expired."""
        return [
            server
            for server, one in self.lists.items()
            if one.revocations is not None and one.revocations.is_expired(now)
        ]


NO_REVOCATIONS: Final = KnownRevocations({})


@dataclass(frozen=True, slots=True)
class RevocationStore:
    """The lists in a data folder; without a data folder, there are none."""

    directory: str

    @property
    def path(self) -> str:
        """The path of the file, which may not exist."""
        return os.path.join(self.directory, REVOCATIONS_FILE) if self.directory else ""

    def read(self) -> KnownRevocations:
        """Read the lists. Raises: ConfigInvalid, OSError."""
        if not self.directory or not os.path.lexists(self.path):
            return NO_REVOCATIONS
        try:
            with suppress(FileNotFoundError, SkillFileNotFound):
                with open_root(self.directory) as root:
                    data = read_below(root, RelativePath.parse(REVOCATIONS_FILE), MAX_FILE_SIZE)
                return KnownRevocations(parse_lists(data))
        except TooLarge:
            problem = f"larger than {MAX_FILE_SIZE} bytes"
            raise ConfigInvalid(REVOCATIONS_FILE, problem, _FIX_HINT) from None
        except (NotAFile, UnsafePath):
            raise ConfigInvalid(REVOCATIONS_FILE, "not a regular file", _FIX_HINT) from None
        return NO_REVOCATIONS

    def put(self, server: str, new: StoredList) -> None:
        """Store the list of a server. Without a list, only the times are stored.

        Raises: ConfigInvalid if the list is older than the stored one, OSError.
        """
        if not self.directory:
            return
        os.makedirs(self.directory, exist_ok=True)
        with WritableFolder(self.directory) as folder, folder.lock():
            folder.recover()
            lists = dict(self.read().lists)
            lists[server] = _merge(server, lists.get(server, StoredList()), new)
            folder.write_file(REVOCATIONS_FILE, _render_lists(lists), _MODE)

    def merge(self, saved: bytes) -> bytes:
        """Return the newer list of each server, of a saved file and this machine, as a file.

        Raises: ConfigInvalid, OSError.
        """
        lists = dict(self.read().lists)
        for server, one in parse_lists(saved).items():
            with suppress(ConfigInvalid):  # its number is lower
                lists[server] = _merge(server, lists.get(server, StoredList()), one)
        return _render_lists(lists)


def _merge(server: str, old: StoredList, new: StoredList) -> StoredList:
    if new.revocations is None:
        return old._replace(asked=new.asked, answered=new.answered or old.answered)
    known = old.revocations
    if known is not None and new.revocations.number < known.number:
        number, last = new.revocations.number, known.number
        problem = f"its number {number} is lower than the last known number {last}"
        raise ConfigInvalid(server, f"the list of revocations is rejected: {problem}")
    if known is not None and new.revocations.issued < known.issued:
        return old._replace(asked=new.asked, answered=new.answered)  # an older copy of it
    return new


def _render_lists(lists: Mapping[str, StoredList]) -> bytes:
    servers = {
        server: {
            **one._asdict(),
            "revocations": None
            if one.revocations is None
            else serialize_revocation_list(one.revocations),
        }
        for server, one in sorted(lists.items())
    }
    return render_json({"version": _VERSION, "servers": servers}) + b"\n"


def parse_lists(data: bytes) -> dict[str, StoredList]:
    """Parse the file. Raises: ConfigInvalid, which names the field."""
    try:
        document = JsonObject.parse(data)
        if document.require("version", int) != _VERSION:
            raise ConfigInvalid(REVOCATIONS_FILE, f"version is not {_VERSION}", "update Skillhall")
        return {server: _parse_list(one) for server, one in document.require_map("servers")}
    except InvalidJson as error:
        raise ConfigInvalid(REVOCATIONS_FILE, str(error), _FIX_HINT) from None


def _parse_list(record: JsonObject) -> StoredList:
    texts = {field: record.require(field, str) for field in _TEXT_FIELDS}
    for field in ("asked", "answered"):
        if texts[field] and not is_time(texts[field]):
            raise record.build_error(field, "is not a time")
    revocations = None
    if record.fields.get("revocations") is not None:
        fields = record.require("revocations", dict)
        location = f"{record.location}.revocations"
        revocations = read_revocation_list(JsonObject(fields, location))
    return StoredList(**texts, revocations=revocations)
