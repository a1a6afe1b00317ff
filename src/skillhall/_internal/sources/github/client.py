"""Questions to GitHub's API about one repository, and what its answers mean for a person."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skillhall._internal.net.addresses import PUBLIC
from skillhall._internal.net.connection import OVERALL, Network
from skillhall._internal.net.fetch import Fetched, Request, fetch, open_stream
from skillhall._internal.net.url import WebUrl
from skillhall._internal.sources.archive.source import REPOSITORY, Intake
from skillhall._internal.sources.archive.tar_format import walk_tar
from skillhall.errors import (
    NoSkillThere,
    RateLimited,
    SkillhallError,
    SourceNotFound,
    SourceUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillhall._internal.net.addresses import AddressPolicy
    from skillhall._internal.net.fetch import Progress
    from skillhall._internal.settings import Secret
    from skillhall._internal.sources.archive.tar_format import Member

SLOW = 120.0  # seconds for an archive
_MAX_ARCHIVE = 500 * 1024 * 1024  # bytes, packed
_UNAUTHORIZED, _EMPTY, _NO_SUCH_REF = 401, 409, 422


@dataclass(frozen=True, slots=True)
class GitHubAccess:
    """Where GitHub's API is, how it is reached, and what is kept of its answers."""

    api_url: str
    policy: AddressPolicy = PUBLIC
    tokens: Mapping[str, Secret] = field(default_factory=dict)  # by host, as in the settings
    cache_directory: str = ""  # nothing is kept without one
    network: Network = Network(overall=SLOW)  # noqa: RUF009 - frozen
    progress: Progress | None = None  # told while an archive comes

    @property
    def authority(self) -> str:
        """The API's host, as tokens are listed under it. Raises: SourceRejected."""
        return WebUrl.parse(self.api_url).authority

    @property
    def token(self) -> str:
        """The token for the API's host, if there is one. Raises: SourceRejected."""
        secret = self.tokens.get(self.authority)
        return secret.reveal() if secret else ""


@dataclass(frozen=True, slots=True)
class Api:
    """The API as far as one repository goes; `text` is how the person wrote its name."""

    access: GitHubAccess
    name: str  # owner/repo
    text: str
    failure: SkillhallError | None = None  # why nothing is asked any more

    @property
    def host(self) -> str:
        """The host, for messages."""
        return WebUrl.parse(self.access.api_url).host

    def ask(self, target: str, request: Request, at_most: int, *, ref: str = "") -> Fetched:
        """The answer to one question; `ref` is what it is about. Raises: Source errors."""
        network = self.access.network
        with self._worded(ref):
            return fetch(
                self._url(target),
                at_most=at_most,
                policy=self.access.policy,
                request=self._signed(request),
                network=replace(network, overall=min(network.overall, OVERALL)),
            )

    @contextmanager
    def archive(self, commit: str) -> Iterator[Iterator[Member]]:
        """What is in the archive of a commit, while it comes. Raises: as `ask`, ArchiveRejected."""
        opened = open_stream(
            self._url(f"tarball/{commit}"),
            at_most=_MAX_ARCHIVE,
            policy=self.access.policy,
            request=self._signed(Request()),
            network=self.access.network,
        )
        with self._worded(commit), opened as stream:
            intake = Intake(self.name, 0, REPOSITORY)
            yield walk_tar(intake.arriving(stream.watched(self.access.progress)), intake)

    def not_found(self, ref: str) -> SourceNotFound:
        """The error for a repository, or something in it, that is not there for us."""
        hint = (
            "check the spelling, and that the token in GITHUB_TOKEN may read it"
            if self.access.token
            else "check the spelling; a private repository needs a token in GITHUB_TOKEN"
        )
        return SourceNotFound(f"{self.name}@{ref}" if ref else self.name, hint)

    def unreadable(self) -> SourceUnavailable:
        """The error for an answer that makes no sense."""
        return SourceUnavailable(self.host, "its answer cannot be read")

    def _url(self, target: str) -> str:
        if self.failure is not None:
            raise self.failure
        return f"{self.access.api_url}/repos/{self.name}/{target}"

    def _signed(self, request: Request) -> Request:
        try:
            return replace(request, token=self.access.token)
        except ValueError:
            problem = "the token for it is not a line of ASCII characters"
            raise SourceUnavailable(
                self.host, problem, "check GITHUB_TOKEN", status=_UNAUTHORIZED
            ) from None

    @contextmanager
    def _worded(self, ref: str) -> Iterator[None]:
        try:
            yield
        except SourceNotFound:
            raise self.not_found(ref) from None
        except RateLimited as error:
            if self.access.token or error is self.failure:
                raise
            hint = "try again then, or set GITHUB_TOKEN: with a token the limit is much higher"
            raise RateLimited(error.host, error.seconds, hint) from None
        except SourceUnavailable as error:
            raise self._reworded(error, ref) from None

    def _reworded(self, error: SourceUnavailable, ref: str) -> SkillhallError:
        if error.status == _NO_SUCH_REF:
            return self.not_found(ref)
        if error.status == _EMPTY:  # a repository without a commit
            return NoSkillThere(self.text)
        if error.status == _UNAUTHORIZED and self.access.token and "token" not in error.problem:
            hint = "check GITHUB_TOKEN: it may be mistyped, expired or revoked"
            return SourceUnavailable(error.host, "it refuses the token", hint, status=error.status)
        return error
