"""Logins that the user stored: in `~/.netrc`, in git's credential helpers or in a keyring.

They are only looked up for a host that asks for credentials, because helpers may be slow. Nothing
prompts for input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Protocol, cast

from skillhall._internal.settings import Secret
from skillhall._internal.sources.git.process import ask_credential_helpers
from skillhall._internal.sources.logins.login import Login
from skillhall._internal.sources.logins.netrc_file import find_netrc_login

if TYPE_CHECKING:
    from skillhall._internal.net.url import WebUrl
    from skillhall._internal.settings import Settings
    from skillhall._internal.sources.base import SourceContext

_BASIC = re.compile(r"(?:^|,)\s*basic\b", re.IGNORECASE)


class _KeyringCredential(Protocol):
    username: str
    password: str


class _Keyring(Protocol):
    def get_credential(self, service: str, username: str | None, /) -> _KeyringCredential | None:
        """Return the stored credential of a service."""


def open_stored_logins(context: SourceContext) -> StoredLogins | None:
    """Return the user's logins for the hosts of one source; `None` if they must not be used."""
    is_allowed = context.with_credentials and context.settings.use_stored_logins
    return StoredLogins(context.settings) if is_allowed else None


@dataclass(slots=True)
class StoredLogins:
    """The user's logins for the hosts of one source; implements `CredentialProvider`."""

    settings: Settings
    _found: dict[tuple[str, str, int], Login | None] = field(default_factory=dict)  # by origin
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, url: WebUrl, challenge: str | None) -> str:
        """Return the login for a host that accepts a password. Raises: ConfigInvalid."""
        if challenge is None:
            login = self._found.get(url.origin)
        elif challenge and not _BASIC.search(challenge):
            login = None
        else:
            login = self.find(url)
        return "" if login is None else login.authorization

    def find(self, url: WebUrl) -> Login | None:
        """Return the login for the host of a URL. Raises: ConfigInvalid."""
        with self._lock:
            if url.origin not in self._found:
                self._found[url.origin] = (
                    find_netrc_login(url.host, self.settings)
                    or _find_git_login(url, self.settings)
                    or _find_keyring_login(url)
                )
            return self._found[url.origin]


def _find_git_login(url: WebUrl, settings: Settings) -> Login | None:
    """Ask the credential helpers in the user's git configuration."""
    if not settings.use_git:
        return None
    request = f"protocol={url.scheme}\nhost={url.authority}\n\n"
    output = ask_credential_helpers(request.encode("ascii")).decode(errors="replace")
    fields = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
    password = fields.get("password", "")
    return Login(fields.get("username", ""), Secret(password)) if password else None


def _find_keyring_login(url: WebUrl) -> Login | None:
    """Ask the package `keyring`, if it is installed."""
    try:
        keyring = cast("_Keyring", import_module("keyring"))
        found = keyring.get_credential(f"{url.scheme}://{url.authority}/", None)
        found = found or keyring.get_credential(url.authority, None)
    except Exception:  # noqa: BLE001 - backends raise any exception, also if there is no keyring
        return None
    if found is None or not found.password:
        return None
    return Login(found.username or "", Secret(found.password))
