"""The far end of a git connection: who it is, how git is told to reach exactly it, with what token.

The host is looked up once and judged here; git is given the address and looks nothing up itself.
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
from skillhall._internal.net.url import WebUrl, checked_characters
from skillhall._internal.sources.ref import GITHUB_HOST, GitRef
from skillhall.errors import SourceRejected, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.net.addresses import AddressPolicy, IpAddress, Resolver
    from skillhall._internal.settings import Secret
    from skillhall._internal.sources.git.process import GitProgress

_MIB = 1024 * 1024
_MAX_REDIRECT_RESPONSE = (
    32 * _MIB
)  # bytes; a host that redirects may name all its branches at the new place
_SSH_PORT = 22
_SSH = re.compile(r"ssh://(?:([A-Za-z_][\w.-]*)@)?([^/@]+?)(?::([0-9]{1,5}))?/(?!-).+", re.ASCII)
_SCP = re.compile(r"([A-Za-z_][\w.-]*)@([^/:@]+)():(?!-).+", re.ASCII)
_REFS = "/info/refs"


@dataclass(frozen=True, slots=True)
class GitLimits:
    """How long reading a repository may take, and how many bytes may come."""

    total_seconds: float = 120.0  # seconds
    max_bytes: int = 500 * _MIB


@dataclass(frozen=True, slots=True)
class GitAccess:
    """What git may reach, with which tokens, and where copies are kept."""

    cache_directory: str
    policy: AddressPolicy = PUBLIC_ONLY
    tokens: Mapping[str, Secret] = field(default_factory=dict)  # by host, or host:port
    limits: GitLimits = GitLimits()
    resolve: Resolver = resolve_host
    ca_file: str = ""  # a file with whom to trust; empty trusts whom the system trusts
    ssh_agent_socket: str = ""  # the socket of a person's own agent, for ssh only
    progress: GitProgress | None = None
    github_host: str = GITHUB_HOST  # the host that GITHUB_TOKEN is for
    has_withheld_credentials: bool = (
        False  # whether the operator's credentials are kept from this repository
    )

    def without_credentials(self) -> GitAccess:
        """The same without tokens and keys, for a repository that a client names."""
        return replace(self, tokens={}, ssh_agent_socket="", has_withheld_credentials=True)


class Endpoint(NamedTuple):
    """A repository's URL, taken apart."""

    url: str
    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """The host, and the port if it is an unusual one."""
        usual = {"https": 443, "http": 80, "ssh": _SSH_PORT}[self.scheme]
        return self.host if self.port == usual else f"{self.host}:{self.port}"


def parse_endpoint(url: str) -> Endpoint:
    """The checked URL of a repository. Raises: SourceRejected."""
    checked_characters(url)
    found = _SSH.fullmatch(url) or _SCP.fullmatch(url)
    if found:
        return Endpoint(url, "ssh", parse_host(found[2]), int(found[3] or _SSH_PORT))
    web = WebUrl.parse(url)
    if web.query or web.fragment:
        raise SourceRejected("url", url, "it has a query or a fragment")
    return Endpoint(url, web.scheme, web.host, web.port)


def token_for(endpoint: Endpoint, access: GitAccess) -> Secret | None:
    """The token that may be sent there; ssh has keys of its own."""
    return None if endpoint.scheme == "ssh" else access.tokens.get(endpoint.authority)


def cache_key(endpoint: Endpoint, access: GitAccess) -> str:
    """What a copy is kept under: what one token may read is nothing for another."""
    token = token_for(endpoint, access)
    secret = hashlib.sha256(token.reveal().encode()).hexdigest() if token else ""
    return hashlib.sha256(f"1\n{endpoint.url}\n{secret}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository that git may be sent to: its addresses were judged."""

    endpoint: Endpoint
    addresses: tuple[IpAddress, ...]
    token: Secret | None
    ca_file: str = ""
    ssh_agent_socket: str = ""
    github_host: str = GITHUB_HOST
    has_withheld_credentials: bool = False

    def build_configuration(self, *, partial: bool = True) -> list[str]:
        """The settings of a run that talks to it; a partial one may lack contents of files."""
        lines = [f"remote.origin.url={self.endpoint.url}"]
        lines.append(f"protocol.{self.endpoint.scheme}.allow=always")
        if partial:
            lines += ["remote.origin.promisor=true", "remote.origin.partialclonefilter=blob:none"]
        if self.endpoint.scheme != "ssh":
            dialled = ",".join(map(str, self.addresses))
            lines.append(f"http.curloptResolve={self.endpoint.host}:{self.endpoint.port}:{dialled}")
        if self.ca_file:
            lines.append(f"http.sslCAInfo={self.ca_file}")
        return lines

    def build_environment(self) -> dict[str, str]:
        """The variables of such a run: the token is here, and nowhere else."""
        variables = {"GIT_ALLOW_PROTOCOL": self.endpoint.scheme}
        if self.endpoint.scheme == "ssh":
            variables["GIT_SSH_COMMAND"] = shlex.join(_build_ssh_command(self))
            variables |= {"SSH_AUTH_SOCK": self.ssh_agent_socket} if self.ssh_agent_socket else {}
        elif self.token is not None:
            place = f"{self.endpoint.scheme}://{self.endpoint.authority}/"
            variables["GIT_CONFIG_COUNT"] = "1"
            variables["GIT_CONFIG_KEY_0"] = f"http.{place}.extraHeader"
            variables["GIT_CONFIG_VALUE_0"] = (
                f"Authorization: Basic {encode_basic_auth(self.token)}"
            )
        return variables


def encode_basic_auth(token: Secret) -> str:
    """The token as a password, in the form that hosts of git take from any user."""
    return base64.b64encode(f"x-access-token:{token.reveal()}".encode()).decode("ascii")


def _build_ssh_command(remote: Remote) -> list[str]:
    """The person's own ssh, to the address that was judged; the key must be known by name."""
    host, port = remote.endpoint.host, remote.endpoint.port
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "HostName": str(remote.addresses[0]),
        "HostKeyAlias": host if port == _SSH_PORT else f"[{host}]:{port}",
        "ForwardAgent": "no",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
        "ControlMaster": "no",  # one that stays would outlive us
        # A silent host ends it after 30 seconds, also if its starter was killed: git has our lock.
        "ConnectTimeout": "30",
        "ServerAliveInterval": "15",
        "ServerAliveCountMax": "2",
    }
    return ["ssh", *(f"-o{name}={value}" for name, value in options.items())]


def open_remote(
    endpoint: Endpoint, access: GitAccess, deadline: float, *, with_token: bool = True
) -> Remote:
    """The remote behind a URL, looked up and judged.

    Plain http only to addresses that the policy allows by name.
    Raises: SourceRejected, SourceUnavailable.
    """
    resolve = limit_resolver(_build_network_settings(access, deadline))
    addresses = resolve_allowed_addresses(endpoint.host, endpoint.port, access.policy, resolve)
    if endpoint.scheme == "http" and not all(map(access.policy.is_explicitly_allowed, addresses)):
        raise SourceRejected("scheme", endpoint.url, "'http' is not safe", "use https")
    token = token_for(endpoint, access) if with_token else None
    return Remote(
        endpoint,
        addresses,
        token,
        access.ca_file,
        access.ssh_agent_socket,
        access.github_host,
        access.has_withheld_credentials,
    )


def follow_redirect(remote: Remote, access: GitAccess, deadline: float) -> Remote:
    """Where a host that redirects sends us, each step judged; another host sees no token.

    Raises: SourceRejected, SourceUnavailable, SourceNotFound, RateLimited, TooLarge.
    """
    endpoint = remote.endpoint
    question = f"{endpoint.url}{_REFS}?service=git-upload-pack"
    found = fetch(
        question,
        max_bytes=_MAX_REDIRECT_RESPONSE,
        policy=access.policy,
        network=_build_network_settings(access, deadline),
    )
    url = found.url.removesuffix(_REFS)
    if url in (found.url, endpoint.url):
        error = SourceUnavailable(endpoint.host, "it redirects to a place that is no repository")
        error.hint = "use the repository's present address"
        raise error
    moved = parse_endpoint(GitRef(url).url)
    is_same = (moved.scheme, moved.authority) == (endpoint.scheme, endpoint.authority)
    return open_remote(moved, access, deadline, with_token=is_same)


def _build_network_settings(access: GitAccess, deadline: float) -> NetworkSettings:
    return NetworkSettings(access.resolve, total=max(deadline - time.monotonic(), 0.0))
