"""Checks for revoked skills: asks servers for their lists, and reads lists from files.

The servers are those of the lock files, and those that the policies of the machine and of the user
name. If a server does not respond, its last list is used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.catalog.trust.policy_loader import LoadedPolicies, load_policies
from skillhall._internal.installer.lock import LockEntry
from skillhall._internal.installer.project import Project
from skillhall._internal.net.addresses import ANY_ADDRESS, build_address_policy
from skillhall._internal.policy.trust.policies import Policies
from skillhall._internal.policy.trust.revocations import (
    LIST_TYPE,
    Revocation,
    RevocationList,
    parse_revocation_list,
)
from skillhall._internal.skill.signatures.envelope import is_envelope, read_envelope
from skillhall._internal.skill.signatures.statement import SignatureInvalid
from skillhall._internal.sources.opener import parse_source_ref
from skillhall._internal.sources.server_api.revocation_client import (
    ListQuery,
    ListResponse,
    start_fetching,
)
from skillhall._internal.storage.revocation_store import (
    FILE_SERVER,
    RevocationStore,
    StoredList,
)
from skillhall._internal.storage.trust_store import TrustStore
from skillhall._internal.strict_json import InvalidJson, parse_json
from skillhall.errors import ConfigInvalid, SkillhallError

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings

WAIT_SECONDS: Final = 2.0  # for all servers together
DAILY: Final = timedelta(days=1)
RETRY: Final = timedelta(hours=1)  # until a server that did not answer is asked again


class RevokedInstall(NamedTuple):
    """An installed skill that is revoked."""

    path: str
    revocation: Revocation

    def describe(self) -> str:
        """Return one line about it, for the user."""
        return f"{self.path} is revoked: {self.revocation.describe()}"


def format_now() -> str:
    """Return the current time in the format of lists."""
    return _format_time(datetime.fromtimestamp(time.time(), UTC))


def _format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def refresh_revocations(settings: Settings, sources: Iterable[str] = ()) -> list[str]:
    """Ask all servers, including those of `sources`; return warnings. Waits at most two seconds."""
    check = RevocationCheck(settings)
    return check.start([*check.find_servers(), *find_source_servers(sources)])()


def start_daily_refresh(settings: Settings) -> Callable[[], list[str]]:
    """Ask the servers that have not answered for a day, in the background.

    The returned function waits for them and returns warnings. Of the servers in the lock file of
    the project, which may come from a stranger, only those of approved skills are asked.
    """
    check = RevocationCheck(settings)
    return check.start(check.find_servers(only_approved=True), DAILY)


def find_source_servers(sources: Iterable[str]) -> list[str]:
    """Return the URLs of the servers among sources of skills."""
    servers = []
    for source in sources:
        with suppress(SkillhallError):
            reference = parse_source_ref(source, allow_loopback_http=True)
            servers.append(reference.server_url)
    return [server for server in servers if server]


def find_revoked_installs(settings: Settings) -> list[RevokedInstall]:
    """Return the skills of the lock files that are revoked. Raises: ConfigInvalid, OSError."""
    revoked = RevocationStore(settings.data_directory).read().by_digest
    if not revoked:
        return []
    return [
        RevokedInstall(key, revoked[entry.digest])
        for project in _open_projects(settings)
        for key, entry in _read_entries(project).items()
        if entry.digest in revoked
    ]


def list_revocations(settings: Settings) -> list[dict[str, str]]:
    """Return all known revocations, each with its server. Raises: ConfigInvalid, OSError."""
    return [
        {"server": server, **revocation._asdict()}
        for server, one in RevocationStore(settings.data_directory).read().lists.items()
        if one.revocations is not None
        for revocation in one.revocations.revoked
    ]


def list_servers(settings: Settings) -> list[dict[str, object]]:
    """Return the servers that were asked, and their lists. Raises: ConfigInvalid, OSError."""
    now = format_now()
    return [
        {
            "server": server,
            "answered": one.answered,
            "signer": one.signer,
            "number": None if one.revocations is None else one.revocations.number,
            "issued": None if one.revocations is None else one.revocations.issued,
            "expires": None if one.revocations is None else one.revocations.expires,
            "expired": one.revocations is not None and one.revocations.is_expired(now),
        }
        for server, one in RevocationStore(settings.data_directory).read().lists.items()
    ]


class RevocationCheck:
    """One check of the servers that this machine knows."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store = RevocationStore(settings.data_directory)
        loaded = load_policies(settings.policy_files) if settings.has_policy else None
        self._loaded = loaded or LoadedPolicies(Policies())
        self._policy_servers = self._loaded.policies.servers

    def find_servers(self, *, only_approved: bool = False) -> list[str]:
        """Return the URLs of the servers in lock files and policies."""
        approved = self._find_approved_servers() if only_approved else set()
        servers = [*self._policy_servers]
        for project in _open_projects(self._settings):
            found = find_source_servers(one.source for one in _read_entries(project).values())
            is_trusted = project.is_user or not only_approved
            servers += [one for one in found if is_trusted or one in approved]
        return [*dict.fromkeys(servers)]

    def start(
        self, servers: Iterable[str], max_age: timedelta = timedelta(0)
    ) -> Callable[[], list[str]]:
        """Ask servers whose last answer is older than `max_age`, in the background.

        The returned function waits for them, stores their lists and returns warnings.
        """
        now = datetime.fromtimestamp(time.time(), UTC)
        try:
            known = self._store.read().lists
        except (SkillhallError, OSError) as error:
            warning = str(error)
            return lambda: [warning]
        requests = []
        for server in dict.fromkeys(servers):
            last = known.get(server, StoredList())
            answered, asked = (_format_time(now - age) for age in (max_age, min(max_age, RETRY)))
            if not max_age or (last.answered <= answered and last.asked <= asked):
                is_chosen = server in self._policy_servers
                proxies = self._settings.proxies
                policy = build_address_policy(self._settings.allowed_networks, proxies)
                if is_chosen:
                    policy = replace(ANY_ADDRESS, proxies=proxies)
                requests.append(ListQuery(server, policy, last.etag))
        wait = start_fetching(requests, WAIT_SECONDS)
        return lambda: self._finish(requests, wait(), _format_time(now))

    def read_file(self, data: bytes, name: str, server: str) -> StoredList:
        """Store the list in a file as that of `server`, which is "" if it is not known.

        Raises: ConfigInvalid, OSError.
        """
        revocations, signer = self._open_list(data, name, self._policy_servers.get(server, ()))
        stored = StoredList("", "", "", signer, revocations)
        try:
            self._store.put(server or FILE_SERVER, stored)
        except ConfigInvalid as error:
            hint = "" if server else "use --server URL to name the server that it comes from"
            raise ConfigInvalid(name, error.problem, hint) from None
        return stored

    def _finish(
        self, requests: Sequence[ListQuery], responses: Sequence[ListResponse], now: str
    ) -> list[str]:
        warnings = []
        by_server = {response.server: response for response in responses}
        for request in requests:
            try:
                self._store.put(
                    request.server, self._read(request, by_server.get(request.server), now)
                )
            except ConfigInvalid as error:
                warnings.append(f"{error}; the last list is used")
                with suppress(SkillhallError, OSError):
                    self._store.put(request.server, StoredList(now))
            except OSError as error:
                warnings.append(f"the list of revocations cannot be stored: {error.strerror}")
        with suppress(SkillhallError, OSError):
            warnings += [
                f"the list of revocations of {server} has expired; the server did not respond"
                for server in self._store.read().find_expired(now)
            ]
        return warnings

    def _read(self, request: ListQuery, response: ListResponse | None, now: str) -> StoredList:
        """Return what to store about a server. Raises: ConfigInvalid."""
        if response is None:
            return StoredList(now)
        if not response.data:
            return StoredList(now, now)
        signers = self._policy_servers.get(request.server, ())
        revocations, signer = self._open_list(response.data, request.server, signers)
        return StoredList(now, now, response.etag, signer, revocations)

    def _open_list(
        self, data: bytes, name: str, signers: tuple[str, ...]
    ) -> tuple[RevocationList, str]:
        """Return a list and who signed it. Raises: ConfigInvalid, which names the field."""
        try:
            value = parse_json(data, unique_keys=True)
        except InvalidJson as error:
            raise ConfigInvalid(name, f"the list is not valid JSON: {error}") from None
        signer, names = "", []
        if is_envelope(value):
            try:
                signed = read_envelope(value, LIST_TYPE)
                names = self._loaded.find_document_signers(signed)
            except SignatureInvalid as error:
                raise ConfigInvalid(name, str(error)) from None
            signer, data = ", ".join(names), signed.statement
        if signers and not {*signers} & {*names}:
            raise ConfigInvalid(name, f"the list is not signed by {' or '.join(signers)}")
        return parse_revocation_list(data, name), signer

    def _find_approved_servers(self) -> set[str]:
        try:
            records = TrustStore(self._settings.data_directory).read()
        except (SkillhallError, OSError):
            return set()
        project = os.path.realpath(self._settings.working_directory)
        sources = {one.source for one in records.approvals if one.applies_in(project)}
        return {*find_source_servers(sources)}


def _open_projects(settings: Settings) -> list[Project]:
    return [Project.from_settings(settings, user=is_user) for is_user in (True, False)]


def _read_entries(project: Project) -> dict[str, LockEntry]:
    # A broken lock file is reported by the commands that need it.
    with suppress(SkillhallError, OSError):
        return dict(project.read_lock().entries)
    return {}
