"""Git remotes: verified addresses, credentials and the git configuration for both.

The host is resolved and checked once, here; git gets the IP address and resolves nothing itself.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.net.addresses import (
    PUBLIC_ONLY,
    is_loopback,
    parse_host,
    resolve_allowed_addresses,
    resolve_host,
    resolve_proxied_addresses,
)
from skillhall._internal.net.connection import (
    NetworkSettings,
    limit_proxied_resolver,
    limit_resolver,
)
from skillhall._internal.net.fetch import fetch
from skillhall._internal.net.proxies import find_proxy
from skillhall._internal.net.url import WebUrl, authority_of, checked_characters
from skillhall._internal.sources.git.failures import GitCommandError, to_source_error
from skillhall._internal.sources.logins.login import Login
from skillhall._internal.sources.source_text import GITHUB_HOST
from skillhall.errors import SourceNotFound, SourceRejected, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.net.addresses import AddressPolicy, IpAddress, Resolver
    from skillhall._internal.net.proxies import Proxy
    from skillhall._internal.settings import Secret
    from skillhall._internal.sources.git.process import GitProgress
    from skillhall._internal.sources.logins.stored_logins import StoredLogins
    from skillhall.errors import SkillhallError

_MIB = 1024 * 1024
_MAX_REDIRECT_RESPONSE = 32 * _MIB  # bytes; the new URL may list all branches
_SSH_PORT = 22
_SSH = re.compile(r"ssh://(?:([A-Za-z_][\w.-]*)@)?([^/@]+?)(?::([0-9]{1,5}))?/(?!-).+", re.ASCII)
_SCP = re.compile(r"([A-Za-z_][\w.-]*)@([^/:@]+)():(?!-).+", re.ASCII)
_REFS = "/info/refs"
_TOKEN_USER = "x-access-token"  # noqa: S105 - not a secret


@dataclass(frozen=True, slots=True)
class GitLimits:
    """Limits on the time and size of reading a repository."""

    total_seconds: float = 120.0
    max_bytes: int = 500 * _MIB


@dataclass(frozen=True, slots=True)
class GitAccess:
    """Address policy, credentials and cache directory for git."""

    cache_directory: str
    policy: AddressPolicy = PUBLIC_ONLY
    tokens: Mapping[str, Secret] = field(default_factory=dict)  # by host, or host:port
    limits: GitLimits = GitLimits()
    resolve: Resolver = resolve_host
    ca_file: str = ""  # trusted certificates; "" uses the system's
    ssh_agent_socket: str = ""  # of the user's agent, for ssh only
    progress: GitProgress | None = None
    github_host: str = GITHUB_HOST  # the host that GITHUB_TOKEN is for
    logins: StoredLogins | None = None
    has_withheld_credentials: bool = False  # credentials exist, but not for this repository

    def without_credentials(self) -> GitAccess:
        """Return a copy without tokens and keys, for repositories named by clients."""
        return replace(
            self, tokens={}, ssh_agent_socket="", logins=None, has_withheld_credentials=True
        )


class Endpoint(NamedTuple):
    """Parsed URL of a repository."""

    url: str
    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host, with the port if it is not the scheme's default."""
        return authority_of(self.host, self.port, self.scheme)


def parse_endpoint(url: str) -> Endpoint:
    """Parse and check the URL of a repository. Raises: SourceRejected."""
    checked_characters(url)
    match = _SSH.fullmatch(url) or _SCP.fullmatch(url)
    if match:
        return Endpoint(url, "ssh", parse_host(match[2]), int(match[3] or _SSH_PORT))
    web = WebUrl.parse(url)
    if web.query or web.fragment:
        raise SourceRejected("url", url, "it has a query or a fragment")
    return Endpoint(url, web.scheme, web.host, web.port)


def token_for(endpoint: Endpoint, access: GitAccess) -> Secret | None:
    """Return the token for an endpoint, if there is one; ssh uses keys instead."""
    return None if endpoint.scheme == "ssh" else access.tokens.get(endpoint.authority)


def cache_key(endpoint: Endpoint, access: GitAccess) -> str:
    """Return the cache key of a repository, which depends on the credentials.

    Whether a stored login is needed is not known yet: with stored logins, the key is another one.
    """
    token = token_for(endpoint, access)
    secret = hashlib.sha256(token.reveal().encode()).hexdigest() if token else ""
    if token is None and access.logins is not None and endpoint.scheme != "ssh":
        secret = "stored"  # noqa: S105 - not a secret
    return hashlib.sha256(f"1\n{endpoint.url}\n{secret}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Remote:
    """Remote repository whose IP addresses were checked."""

    endpoint: Endpoint
    addresses: tuple[IpAddress, ...]
    login: Login | None
    access: GitAccess
    proxy: Proxy | None = None

    @property
    def has_stored_login(self) -> bool:
        """Whether the login is not a token of the settings."""
        return self.login is not None and self.login.user != _TOKEN_USER

    @property
    def secrets(self) -> tuple[str, ...]:
        """The password in plain text and as git encodes it, and that of the proxy, if any."""
        secrets = [] if self.login is None else [self.login.password.reveal()]
        if self.login is not None:
            secrets.append(self.login.authorization.removeprefix("Basic "))
        if self.proxy is not None and self.proxy.user_info:
            secrets.append(self.proxy.user_info.partition(":")[2] or self.proxy.user_info)
        return tuple(secrets)

    def build_configuration(self, *, partial: bool = True) -> list[str]:
        """Return the git configuration for this remote.

        With `partial`, git fetches commits and trees without the contents of files.
        """
        lines = [f"remote.origin.url={self.endpoint.url}"]
        lines.append(f"protocol.{self.endpoint.scheme}.allow=always")
        if partial:
            lines += ["remote.origin.promisor=true", "remote.origin.partialclonefilter=blob:none"]
        if self.endpoint.scheme != "ssh" and self.addresses:
            name, addresses = f"{self.endpoint.host}:{self.endpoint.port}", self.addresses
            lines.append(f"http.curloptResolve={name}:{','.join(map(str, addresses))}")
        if self.access.ca_file:
            lines.append(f"http.sslCAInfo={self.access.ca_file}")
        return lines

    def build_environment(self) -> dict[str, str]:
        """Return the environment for git, the only way in which it gets the token."""
        variables = {"GIT_ALLOW_PROTOCOL": self.endpoint.scheme}
        if self.endpoint.scheme == "ssh":
            variables["GIT_SSH_COMMAND"] = shlex.join(_build_ssh_command(self))
            socket = self.access.ssh_agent_socket
            return variables | ({"SSH_AUTH_SOCK": socket} if socket else {})
        # Unlike arguments, the environment is not visible to other users of the system.
        settings = {}
        if self.login is not None:
            settings["extraHeader"] = f"Authorization: {self.login.authorization}"
        if self.proxy is not None:
            # Otherwise, git would first ask the proxy without its password.
            settings |= {"proxy": self.proxy.url, "proxyAuthMethod": "basic"}
        if settings:
            variables["GIT_CONFIG_COUNT"] = str(len(settings))
        for number, (name, value) in enumerate(settings.items()):
            # A setting of this URL has priority over `http.proxy`, which is empty.
            origin = f"{self.endpoint.scheme}://{self.endpoint.authority}/"
            variables[f"GIT_CONFIG_KEY_{number}"] = f"http.{origin}.{name}"
            variables[f"GIT_CONFIG_VALUE_{number}"] = value
        return variables


def _build_ssh_command(remote: Remote) -> list[str]:
    """Build the ssh command for a checked address; the host's key must be known."""
    host, port = remote.endpoint.host, remote.endpoint.port
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "HostName": str(remote.addresses[0]),
        "HostKeyAlias": host if port == _SSH_PORT else f"[{host}]:{port}",
        "ForwardAgent": "no",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
        "ControlMaster": "no",  # a master connection would outlive this process
        # ssh gives up on a silent host after 30 seconds, even if this process was killed. The clone
        # would stay locked otherwise, because git inherits the lock.
        "ConnectTimeout": "30",
        "ServerAliveInterval": "15",
        "ServerAliveCountMax": "2",
    }
    return ["ssh", *(f"-o{name}={value}" for name, value in options.items())]


def open_remote(
    endpoint: Endpoint, access: GitAccess, deadline: float, *, with_token: bool = True
) -> Remote:
    """Resolve the host of an endpoint and check its addresses.

    Plain http is accepted only from networks that the policy explicitly allows.
    Raises: SourceRejected, SourceUnavailable.
    """
    network, policy = _build_network_settings(access, deadline), access.policy
    host, port = endpoint.host, endpoint.port
    proxy = find_proxy(endpoint.scheme, host, port, policy.proxies)
    if proxy is None:
        addresses = resolve_allowed_addresses(host, port, policy, limit_resolver(network))
    else:
        resolve = limit_proxied_resolver(network)
        addresses = resolve_proxied_addresses(host, port, policy, resolve)
    is_allowed = bool(addresses) and all(map(policy.is_explicitly_allowed, addresses))
    if endpoint.scheme == "http" and not is_allowed:
        raise SourceRejected("scheme", endpoint.url, "'http' is not safe", "use https")
    token = token_for(endpoint, access) if with_token else None
    # The token is the password; git hosts accept it with this user name.
    login = None if token is None else Login(_TOKEN_USER, token)
    return Remote(endpoint, addresses, login, access, proxy)


class RemoteRepository:
    """Repository to be read before a deadline; its host is resolved on first use."""

    def __init__(self, endpoint: Endpoint, access: GitAccess, source_text: str) -> None:
        self.endpoint = endpoint
        self.access = access
        self.source_text = source_text  # names the repository in errors
        self.deadline = time.monotonic() + access.limits.total_seconds
        self._remote: Remote | None = None
        self._lookup_error: SourceUnavailable | None = None

    def check_host(self) -> None:
        """Reject a disallowed host before a cache folder is created.

        Raises: SourceRejected.
        """
        try:
            self._remote = open_remote(self.endpoint, self.access, self.deadline)
        except SourceUnavailable as error:
            self._lookup_error = error  # raised later, if there is no cached version

    def open(self) -> Remote:
        """Return the remote with checked addresses. Raises: as `open_remote`."""
        if self._lookup_error is not None:
            raise self._lookup_error
        if self._remote is None:
            self._remote = open_remote(self.endpoint, self.access, self.deadline)
        return self._remote

    def sign_in(self) -> Remote | None:
        """Return the remote with the user's stored login; `None` if there is none.

        Raises: ConfigInvalid.
        """
        remote, logins = self.open(), self.access.logins
        endpoint = remote.endpoint
        is_safe = endpoint.scheme == "https" or is_loopback(endpoint.host)
        # Like a token, a login is not for a host that the repository was moved to.
        is_named = endpoint.authority == self.endpoint.authority and endpoint.scheme != "ssh"
        if logins is None or remote.login is not None or not (is_safe and is_named):
            return None
        login = logins.find(WebUrl.parse(endpoint.url))
        if login is None:
            return None
        self._remote = replace(remote, login=login)
        return self._remote

    def follow_redirect(self) -> Remote:
        """Return the remote that a redirect leads to; a different host gets no token.

        Raises: SourceRejected, SourceUnavailable, RateLimited.
        """
        endpoint = self.open().endpoint
        try:
            result = fetch(
                f"{endpoint.url}{_REFS}?service=git-upload-pack",
                max_bytes=_MAX_REDIRECT_RESPONSE,
                policy=self.access.policy,
                network=_build_network_settings(self.access, self.deadline),
            )
        except (SourceNotFound, TooLarge):
            # The token is not sent, so a private repository is not found.
            raise self.to_source_error(GitCommandError("returned error: 301")) from None
        url = result.url.removesuffix(_REFS)
        if url in (result.url, endpoint.url):
            problem = "it redirects to a URL without a repository"
            raise SourceUnavailable(endpoint.host, problem, "use the repository's new URL")
        moved = parse_endpoint(url)
        is_same = (moved.scheme, moved.authority) == (endpoint.scheme, endpoint.authority)
        self._remote = open_remote(moved, self.access, self.deadline, with_token=is_same)
        return self._remote

    def to_source_error(self, failure: GitCommandError) -> SkillhallError:
        """Return the source error for a failed git command."""
        return to_source_error(failure, self.open(), self.source_text)


def _build_network_settings(access: GitAccess, deadline: float) -> NetworkSettings:
    return NetworkSettings(access.resolve, total=max(deadline - time.monotonic(), 0.0))
