"""Which repositories a server's own git tokens may be sent to: those that its operator names.

Clients of a server name repositories too: in a query, in an import, as one to follow. If the
operator's tokens went there, every client could read whatever the operator may read.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.net.url import WebUrl
from skillhall._internal.sources.git.remote import parse_endpoint
from skillhall._internal.sources.git.source import to_git_ref
from skillhall._internal.sources.ref import GitHubRef, GitRef, parse_source_ref
from skillhall.errors import ConfigInvalid, SourceRejected

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings

TOKEN_REPOS_VARIABLE = "SKILLHALL_GIT_TOKEN_REPOS"  # noqa: S105 - not a secret
_WILDCARD = "/*"  # every repository below an address


class TokenScope(NamedTuple):
    """The operator's repositories, by their addresses."""

    repositories: frozenset[str] = frozenset()
    url_prefixes: tuple[str, ...] = ()  # addresses whose repositories are all meant, with a slash

    @classmethod
    def from_settings(cls, settings: Settings) -> TokenScope:
        """The configured repository, and those in the variable. Raises: ConfigInvalid."""
        repositories, parents = _configured_repositories(settings), []
        for text in settings.server.git_token_repos:
            full = text if ":" in text else f"{settings.github_url}/{text}"
            address = _normalize_url(full.removesuffix(_WILDCARD))
            if not address:
                problem = f"{text[:200]!r} is not the https address of a repository"
                hint = "use https://host/owner/repo, or https://host/owner/* for all of an owner"
                raise ConfigInvalid(TOKEN_REPOS_VARIABLE, problem, hint)
            if full.endswith(_WILDCARD):
                parents.append(f"{address}/")
            else:
                repositories.add(address)
        return cls(frozenset(repositories), tuple(parents))

    def includes(self, url: str) -> bool:
        """Whether tokens may be sent to the repository at this URL."""
        address = _normalize_url(url)
        return address in self.repositories or address.startswith(self.url_prefixes)


def reject_ssh(url: str, source_text: str) -> None:
    """Raises: SourceRejected for ssh, which would use the keys of the server's own user."""
    if parse_endpoint(url).scheme == "ssh":
        raise SourceRejected("scheme", source_text, "'ssh' is for the operator only", "use https")


def _configured_repositories(settings: Settings) -> set[str]:
    found = set()
    if settings.prompts.repo:
        with suppress(SourceRejected):  # reported where the setting is used
            allowed = bool(settings.allowed_networks)
            reference = parse_source_ref(settings.prompts.repo, allow_loopback_http=allowed)
            if isinstance(reference, GitHubRef | GitRef):
                found.add(_normalize_url(to_git_ref(reference, settings.github_url).url))
    return found - {""}


def _normalize_url(url: str) -> str:
    """One spelling for each repository; empty for addresses that servers may read differently."""
    try:
        web = WebUrl.parse(url)
    except SourceRejected:
        return ""
    path = web.path.rstrip("/").removesuffix(".git")
    segments = path.split("/")[1:]
    if "%" in path or not segments or not all(one.strip(".") for one in segments):
        return ""
    return f"{web.scheme}://{web.authority}{path}"
