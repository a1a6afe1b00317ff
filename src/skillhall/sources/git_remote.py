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

from skillhall.errors import SourceRejected, SourceUnavailable
from skillhall.sources.addresses import PUBLIC, checked_addresses, look_up, parse_host
from skillhall.sources.fetch import fetch
from skillhall.sources.reference import GITHUB, GitRef, WebUrl, checked_characters
from skillhall.sources.wire import Network, bounded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall.settings import Secret
    from skillhall.sources.addresses import Address, AddressPolicy, Resolver
    from skillhall.sources.git_program import Progress

_MIB = 1024 * 1024
_PROBE = 32 * _MIB  # bytes; a host that redirects may name all its branches at the new place
_SSH_PORT = 22
_SSH = re.compile(r"ssh://(?:([A-Za-z_][\w.-]*)@)?([^/@]+?)(?::([0-9]{1,5}))?/(?!-).+", re.ASCII)
_SCP = re.compile(r"([A-Za-z_][\w.-]*)@([^/:@]+)():(?!-).+", re.ASCII)
_REFS = "/info/refs"


@dataclass(frozen=True, slots=True)
class GitLimits:
    """How long reading a repository may take, and how many bytes may come."""

    overall: float = 120.0  # seconds
    size: int = 500 * _MIB


@dataclass(frozen=True, slots=True)
class GitAccess:
    """What git may reach, with which tokens, and where copies are kept."""

    cache_directory: str
    policy: AddressPolicy = PUBLIC
    tokens: Mapping[str, Secret] = field(default_factory=dict)  # by host, or host:port
    limits: GitLimits = GitLimits()
    resolve: Resolver = look_up
    certificates: str = ""  # a file with whom to trust; empty trusts whom the system trusts
    ssh_agent: str = ""  # the socket of a person's own agent, for ssh only
    progress: Progress | None = None
    github: str = GITHUB  # the host that GITHUB_TOKEN is for
    is_withheld: bool = False  # whether the operator's credentials are kept from this repository

    def without_credentials(self) -> GitAccess:
        """The same without tokens and keys, for a repository that a client names."""
        return replace(self, tokens={}, ssh_agent="", is_withheld=True)


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
    addresses: tuple[Address, ...]
    token: Secret | None
    certificates: str = ""
    ssh_agent: str = ""
    github: str = GITHUB
    is_withheld: bool = False

    def configuration(self, *, partial: bool = True) -> list[str]:
        """The settings of a run that talks to it; a partial one may lack contents of files."""
        lines = [f"remote.origin.url={self.endpoint.url}"]
        lines.append(f"protocol.{self.endpoint.scheme}.allow=always")
        if partial:
            lines += ["remote.origin.promisor=true", "remote.origin.partialclonefilter=blob:none"]
        if self.endpoint.scheme != "ssh":
            dialled = ",".join(map(str, self.addresses))
            lines.append(f"http.curloptResolve={self.endpoint.host}:{self.endpoint.port}:{dialled}")
        if self.certificates:
            lines.append(f"http.sslCAInfo={self.certificates}")
        return lines

    def environment(self) -> dict[str, str]:
        """The variables of such a run: the token is here, and nowhere else."""
        variables = {"GIT_ALLOW_PROTOCOL": self.endpoint.scheme}
        if self.endpoint.scheme == "ssh":
            variables["GIT_SSH_COMMAND"] = shlex.join(_ssh_command(self))
            variables |= {"SSH_AUTH_SOCK": self.ssh_agent} if self.ssh_agent else {}
        elif self.token is not None:
            place = f"{self.endpoint.scheme}://{self.endpoint.authority}/"
            variables["GIT_CONFIG_COUNT"] = "1"
            variables["GIT_CONFIG_KEY_0"] = f"http.{place}.extraHeader"
            variables["GIT_CONFIG_VALUE_0"] = f"Authorization: Basic {encoded(self.token)}"
        return variables


def encoded(token: Secret) -> str:
    """The token as a password, in the form that hosts of git take from any user."""
    return base64.b64encode(f"x-access-token:{token.reveal()}".encode()).decode("ascii")


def _ssh_command(remote: Remote) -> list[str]:
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
    endpoint: Endpoint, access: GitAccess, until: float, *, with_token: bool = True
) -> Remote:
    """The remote behind a URL, looked up and judged.

    Plain http only to addresses that the policy allows by name.
    Raises: SourceRejected, SourceUnavailable.
    """
    resolve = bounded(_network(access, until))
    addresses = checked_addresses(endpoint.host, endpoint.port, access.policy, resolve)
    if endpoint.scheme == "http" and not all(map(access.policy.allows_by_name, addresses)):
        raise SourceRejected("scheme", endpoint.url, "'http' is not safe", "use https")
    token = token_for(endpoint, access) if with_token else None
    return Remote(
        endpoint,
        addresses,
        token,
        access.certificates,
        access.ssh_agent,
        access.github,
        access.is_withheld,
    )


def follow_redirect(remote: Remote, access: GitAccess, until: float) -> Remote:
    """Where a host that redirects sends us, each step judged; another host sees no token.

    Raises: SourceRejected, SourceUnavailable, SourceNotFound, RateLimited, TooLarge.
    """
    endpoint = remote.endpoint
    question = f"{endpoint.url}{_REFS}?service=git-upload-pack"
    found = fetch(question, at_most=_PROBE, policy=access.policy, network=_network(access, until))
    url = found.url.removesuffix(_REFS)
    if url in (found.url, endpoint.url):
        error = SourceUnavailable(endpoint.host, "it redirects to a place that is no repository")
        error.hint = "use the repository's present address"
        raise error
    moved = parse_endpoint(GitRef(url).url)
    is_same = (moved.scheme, moved.authority) == (endpoint.scheme, endpoint.authority)
    return open_remote(moved, access, until, with_token=is_same)


def _network(access: GitAccess, until: float) -> Network:
    return Network(access.resolve, overall=max(until - time.monotonic(), 0.0))
