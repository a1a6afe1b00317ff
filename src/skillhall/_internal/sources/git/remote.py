"""Git remotes: verified addresses, credentials and the git configuration for both.

The host is resolved and checked once, here; git gets the IP address and resolves nothing itself.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.net.addresses import (
    PUBLIC_ONLY,
    parse_host,
    resolve_allowed_addresses,
    resolve_host,
)
from skillhall._internal.net.connection import NetworkSettings, limit_resolver
from skillhall._internal.net.fetch import fetch
from skillhall._internal.net.url import WebUrl, authority_of, checked_characters
from skillhall._internal.sources.git.failures import GitCommandError, to_source_error
from skillhall._internal.sources.source_text import GITHUB_HOST
from skillhall.errors import SourceNotFound, SourceRejected, SourceUnavailable, TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.net.addresses import AddressPolicy, IpAddress, Resolver
    from skillhall._internal.settings import Secret
    from skillhall._internal.sources.git.process import GitProgress
    from skillhall.errors import SkillhallError

_MIB = 1024 * 1024
_MAX_REDIRECT_RESPONSE = 32 * _MIB  # bytes; the new URL may list all branches
_SSH_PORT = 22
_SSH = re.compile(r"ssh://(?:([A-Za-z_][\w.-]*)@)?([^/@]+?)(?::([0-9]{1,5}))?/(?!-).+", re.ASCII)
_SCP = re.compile(r"([A-Za-z_][\w.-]*)@([^/:@]+)():(?!-).+", re.ASCII)
_REFS = "/info/refs"


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
    has_withheld_credentials: bool = False  # credentials exist, but not for this repository

    def without_credentials(self) -> GitAccess:
        """Return a copy without tokens and keys, for repositories named by clients."""
        return replace(self, tokens={}, ssh_agent_socket="", has_withheld_credentials=True)


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
    """Return the cache key of a repository, which differs for each token."""
    token = token_for(endpoint, access)
    secret = hashlib.sha256(token.reveal().encode()).hexdigest() if token else ""
    return hashlib.sha256(f"1\n{endpoint.url}\n{secret}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Remote:
    """Remote repository whose IP addresses were checked."""

    endpoint: Endpoint
    addresses: tuple[IpAddress, ...]
    token: Secret | None
    access: GitAccess

    @property
    def secrets(self) -> tuple[str, ...]:
        """The token in plain text and as git encodes it; empty if there is none."""
        return () if self.token is None else (self.token.reveal(), _encode_basic_auth(self.token))

    def build_configuration(self, *, partial: bool = True) -> list[str]:
        """Return the git configuration for this remote.

        With `partial`, git fetches commits and trees without the contents of files.
        """
        lines = [f"remote.origin.url={self.endpoint.url}"]
        lines.append(f"protocol.{self.endpoint.scheme}.allow=always")
        if partial:
            lines += ["remote.origin.promisor=true", "remote.origin.partialclonefilter=blob:none"]
        if self.endpoint.scheme != "ssh":
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
            variables |= {"SSH_AUTH_SOCK": socket} if socket else {}
        elif self.token is not None:
            # Unlike arguments, the environment is not visible to other users of the system.
            origin = f"{self.endpoint.scheme}://{self.endpoint.authority}/"
            header = f"Authorization: Basic {_encode_basic_auth(self.token)}"
            variables["GIT_CONFIG_COUNT"] = "1"
            variables["GIT_CONFIG_KEY_0"] = f"http.{origin}.extraHeader"
            variables["GIT_CONFIG_VALUE_0"] = header
        return variables


def _encode_basic_auth(token: Secret) -> str:
    # The token is the password; git hosts accept it with this user name.
    return base64.b64encode(f"x-access-token:{token.reveal()}".encode()).decode("ascii")


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
    resolve = limit_resolver(_build_network_settings(access, deadline))
    addresses = resolve_allowed_addresses(endpoint.host, endpoint.port, access.policy, resolve)
    if endpoint.scheme == "http" and not all(map(access.policy.is_explicitly_allowed, addresses)):
        raise SourceRejected("scheme", endpoint.url, "'http' is not safe", "use https")
    token = token_for(endpoint, access) if with_token else None
    return Remote(endpoint, addresses, token, access)


class RemoteRepository:
    """Repository to read until a deadline; its host is resolved on first use."""

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
