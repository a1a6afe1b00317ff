"""Token scope: the repositories that a server's git tokens may be sent to.

Clients of a server can name repositories, too: in a query, an import or a followed repository. If
tokens were sent for all of these, every client could read the operator's private repositories.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.net.url import WebUrl
from skillhall._internal.policy.access.access_scopes import AccessScope
from skillhall._internal.sources.base import OpenedSource, SourceContext
from skillhall._internal.sources.git.remote import parse_endpoint
from skillhall._internal.sources.opener import parse_source_ref
from skillhall.errors import ConfigInvalid, ScopeRequired, SourceRejected, without_credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.settings import Secret, Settings

TOKEN_REPOS_VARIABLE = "SKILLHALL_GIT_TOKEN_REPOS"  # noqa: S105 - not a secret
_WILDCARD = "/*"  # every repository below a URL


class TokenScope(NamedTuple):
    """Repositories that the operator's tokens may be sent to."""

    repositories: frozenset[str] = frozenset()
    url_prefixes: tuple[str, ...] = ()  # from wildcards, with a final slash

    @classmethod
    def from_settings(cls, settings: Settings) -> TokenScope:
        """Collect the configured repositories. Raises: ConfigInvalid."""
        repositories, prefixes = set(), []
        with suppress(SourceRejected):  # an invalid setting is reported where it is used
            allowed = bool(settings.allowed_networks)
            repository = parse_source_ref(settings.prompts.repo, allow_loopback_http=allowed)
            if repository.repository is not None:
                url = repository.repository.git_url(settings.github_url)
                repositories.add(_normalize_url(url))
        for text in settings.server.git_token_repos:
            pattern = text if ":" in text else f"{settings.github_url}/{text}"
            url = _normalize_url(pattern.removesuffix(_WILDCARD))
            if not url:
                problem = f"{text[:200]!r} is not the https URL of a repository"
                hint = (
                    "use https://host/owner/repo, or https://host/owner/* for all repositories"
                    " of an owner"
                )
                raise ConfigInvalid(TOKEN_REPOS_VARIABLE, problem, hint)
            if pattern.endswith(_WILDCARD):
                prefixes.append(f"{url}/")
            else:
                repositories.add(url)
        return cls(frozenset(repositories - {""}), tuple(prefixes))

    def includes(self, url: str) -> bool:
        """Whether tokens may be sent to the repository at this URL."""
        url = _normalize_url(url)
        return url in self.repositories or url.startswith(self.url_prefixes)


def open_client_source(text: str, settings: Settings, *, allow_tokens: bool = True) -> OpenedSource:
    """Open a repository or URL on behalf of a client of the server.

    Local sources are rejected, and the operator's credentials are used for the operator's
    repositories only, and only if the client may use them.
    Raises: SourceRejected, ScopeRequired, ConfigInvalid, and as `open_source`.
    """
    reference = parse_source_ref(text, allow_loopback_http=bool(settings.allowed_networks))
    if not reference.is_remote:
        problem = "a server accepts only repositories and URLs"
        raise SourceRejected("path", text, problem, "upload a file or an archive instead")
    is_in_scope = False
    if reference.repository is not None:
        url = reference.repository.git_url(settings.github_url)
        reject_ssh(url, text)
        is_in_scope = TokenScope.from_settings(settings).includes(url)
        if is_in_scope and not allow_tokens:
            reject_token_use(url, settings.tokens)
    # Logins stored for other programs are credentials of the operator, like tokens.
    may_sign_in = is_in_scope and allow_tokens
    return reference.open(SourceContext(settings, with_credentials=may_sign_in))


def reject_token_use(url: str, tokens: Mapping[str, Secret]) -> None:
    """Reject a repository that would get the server's credentials. Raises: ScopeRequired."""
    endpoint = parse_endpoint(url)
    if endpoint.scheme == "ssh" or endpoint.authority in tokens:
        action = f"use the server's git token for {without_credentials(url)}"
        raise ScopeRequired(AccessScope.ADMIN.value, action)


def reject_ssh(url: str, source_text: str) -> None:
    """Reject ssh URLs: they would use the ssh keys of the server's user.

    Raises: SourceRejected.
    """
    if parse_endpoint(url).scheme == "ssh":
        problem = "'ssh' is reserved for the operator of the server"
        raise SourceRejected("scheme", source_text, problem, "use https")


def _normalize_url(url: str) -> str:
    """Normalize the URL of a repository; "" if it is invalid or ambiguous.

    A path is ambiguous if hosts may resolve it differently, as in `a/%62` and `a/../b`.
    """
    try:
        web = WebUrl.parse(url)
    except SourceRejected:
        return ""
    path = web.path.rstrip("/").removesuffix(".git")
    segments = path.split("/")[1:]
    if "%" in path or not segments or not all(segment.strip(".") for segment in segments):
        return ""
    return f"{web.scheme}://{web.authority}{path}"
