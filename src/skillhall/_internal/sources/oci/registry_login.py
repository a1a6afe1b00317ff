"""Sign-in at registries: a password, or a token of the service that the registry names.

A password is sent to the registry, or to the token service of its own host. A service elsewhere is
asked without one, even if there is a login for its host: the registry gets the token, and could
use it at another registry. The token is for reading one repository, whatever the registry asks for.
"""

from __future__ import annotations

import re
from threading import Lock
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from skillhall._internal.net.addresses import is_loopback
from skillhall._internal.net.fetch import FetchOptions
from skillhall._internal.net.url import PORTS, WebUrl
from skillhall._internal.sources.logins.stored_logins import open_stored_logins
from skillhall._internal.sources.oci.docker_config import find_docker_login
from skillhall._internal.strict_json import InvalidJson, JsonObject
from skillhall.errors import SourceNotFound, SourceUnavailable

if TYPE_CHECKING:
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.bounded_download import BoundedDownload
    from skillhall._internal.sources.logins.login import Login
    from skillhall._internal.sources.oci.oci_ref import OciRef

# Hosts of token services that belong to a registry at another host.
TOKEN_HOSTS: Final = {
    "registry-1.docker.io": "auth.docker.io",
    "registry.gitlab.com": "gitlab.com",
}
_MAX_RESPONSE: Final = 1024 * 1024  # bytes of a response with a token
_TOKEN = re.compile(r"[\x21-\x7e]{1,16000}")
_BEARER = re.compile(r"(?:^|,)\s*bearer\s+(.*)", re.IGNORECASE)
_BASIC = re.compile(r"(?:^|,)\s*basic\b", re.IGNORECASE)
_PARAMETER = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"', re.IGNORECASE)


class RegistryLogin:
    """Credentials for one repository; implements `CredentialProvider`."""

    def __init__(
        self, reference: OciRef, context: SourceContext, download: BoundedDownload
    ) -> None:
        self.has_login = False  # whether a login of the user was sent
        self._reference = reference
        self._context = context
        self._download = download
        self._stored = open_stored_logins(context)
        self._authorization = ""
        self._lock = Lock()

    def __call__(self, url: WebUrl, challenge: str | None) -> str:
        """Return the Authorization header for the registry. Raises: as `open_registry`."""
        if challenge is None:
            return self._authorization
        with self._lock:
            if bearer := _BEARER.search(challenge):
                parameters = {key.lower(): value for key, value in _PARAMETER.findall(bearer[1])}
                token = self._fetch_token(url, parameters)
                self._authorization = f"Bearer {token}"
            elif not challenge or _BASIC.search(challenge):
                login = self._find_login(url)
                self._authorization = login.authorization if login else ""
            return self._authorization

    def _fetch_token(self, registry: WebUrl, parameters: dict[str, str]) -> str:
        """Request a token for reading the repository. Raises: as `open_registry`."""
        if "realm" not in parameters:
            raise SourceUnavailable(registry.host, "it names no service for tokens")
        realm = WebUrl.parse(parameters["realm"])
        scope = quote(f"repository:{self._reference.image}:pull")
        query = f"service={quote(parameters.get('service', ''), safe='')}&scope={scope}"
        # The query of the realm is left out: it could ask for more.
        is_safe = realm.scheme == "https" or is_loopback(realm.host)
        is_own = is_safe and _is_own_service(realm, registry)
        login = self._find_login(registry) if is_own else None
        options = FetchOptions(accept="application/json")
        options = options.with_authorization(login.authorization if login else "")
        url = f"{realm.scheme}://{realm.authority}{realm.path}?{query}"
        try:
            data = self._download.fetch(url, _MAX_RESPONSE, options).data
            document = JsonObject.parse(data)
            name = "token" if "token" in document.fields else "access_token"
            return document.require_match(name, _TOKEN)
        except (InvalidJson, SourceNotFound):
            problem = "its response with a token is malformed"
            raise SourceUnavailable(realm.host, problem) from None

    def _find_login(self, registry: WebUrl) -> Login | None:
        """Return the user's login for the registry. Raises: ConfigInvalid."""
        if self._stored is None:
            return None
        name = self._reference.host
        login = find_docker_login(name, self._context.settings) or self._stored.find(registry)
        self.has_login = self.has_login or login is not None
        return login


def _is_own_service(service: WebUrl, registry: WebUrl) -> bool:
    """Whether a token service belongs to the registry, so that it may get the same password."""
    known = TOKEN_HOSTS.get(registry.host)
    is_known = known is not None and service.origin == ("https", known, PORTS["https"])
    return is_known or service.origin == registry.origin
