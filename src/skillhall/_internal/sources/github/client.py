"""Client for one repository in GitHub's REST API."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skillhall._internal.net.addresses import PUBLIC_ONLY
from skillhall._internal.net.connection import DEFAULT_TOTAL_TIMEOUT, NetworkSettings
from skillhall._internal.net.fetch import FetchOptions, FetchResult, fetch, open_stream
from skillhall._internal.net.url import WebUrl
from skillhall._internal.sources.archive.source import REPOSITORY_LIMITS, ArchiveExtraction
from skillhall._internal.sources.archive.tar_format import iterate_tar_members
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
    from skillhall._internal.net.fetch import DownloadProgress
    from skillhall._internal.settings import Secret
    from skillhall._internal.sources.archive.tar_format import TarMember

ARCHIVE_TIMEOUT = 120.0  # seconds
_MAX_ARCHIVE = 500 * 1024 * 1024  # bytes, packed
_TOKEN_VARIABLE = "GITHUB_TOKEN"  # noqa: S105 - the name of a variable
_UNAUTHORIZED, _EMPTY_REPOSITORY, _NO_SUCH_REF = 401, 409, 422


@dataclass(frozen=True, slots=True)
class GitHubAccess:
    """URL, credentials, network settings and cache directory for GitHub's API."""

    api_url: str
    policy: AddressPolicy = PUBLIC_ONLY
    tokens: Mapping[str, Secret] = field(default_factory=dict)  # by host, as in the settings
    cache_directory: str = ""  # "" disables the cache
    network: NetworkSettings = NetworkSettings(total=ARCHIVE_TIMEOUT)  # noqa: RUF009 - frozen
    progress: DownloadProgress | None = None  # of an archive

    @property
    def authority(self) -> str:
        """The API's host and port, which select the token. Raises: SourceRejected."""
        return WebUrl.parse(self.api_url).authority

    @property
    def token(self) -> str:
        """The token for the API's host, or "". Raises: SourceRejected."""
        secret = self.tokens.get(self.authority)
        return secret.reveal() if secret else ""


@dataclass(frozen=True, slots=True)
class GitHubClient:
    """API client for one repository; `source_text` names it in errors."""

    access: GitHubAccess
    repository: str  # owner/repo
    source_text: str
    offline_error: SkillhallError | None = None  # raised instead of sending a request

    @property
    def host(self) -> str:
        """The host, for error messages."""
        return WebUrl.parse(self.access.api_url).host

    def get(
        self, target: str, options: FetchOptions, max_bytes: int, *, ref: str = ""
    ) -> FetchResult:
        """Fetch an API resource; errors name `ref`. Raises: SourceError, TooLarge."""
        access, network = self.access, self.access.network
        network = replace(network, total=min(network.total, DEFAULT_TOTAL_TIMEOUT))
        with self._translate_errors(ref):
            url, options = self._prepare(target, options)
            return fetch(
                url, max_bytes=max_bytes, policy=access.policy, options=options, network=network
            )

    @contextmanager
    def open_archive(self, commit: str) -> Iterator[Iterator[TarMember]]:
        """Stream the members of a commit's archive. Raises: as `get`, ArchiveRejected."""
        access = self.access
        url, options = self._prepare(f"tarball/{commit}", FetchOptions())
        opened = open_stream(
            url,
            max_bytes=_MAX_ARCHIVE,
            policy=access.policy,
            options=options,
            network=access.network,
        )
        with self._translate_errors(commit), opened as stream:
            extraction = ArchiveExtraction(self.repository, 0, REPOSITORY_LIMITS)
            chunks = stream.iterate_with_progress(self.access.progress)
            yield iterate_tar_members(extraction.gunzip_stream(chunks), extraction)

    def build_not_found_error(self, ref: str) -> SourceNotFound:
        """Return the error for a missing or private repository or ref."""
        text, has_token = f"{self.repository}@{ref}".removesuffix("@"), bool(self.access.token)
        return SourceNotFound(text, token_variable=_TOKEN_VARIABLE, has_token=has_token)

    def build_malformed_response_error(self) -> SourceUnavailable:
        """Return the error for an unexpected response."""
        return SourceUnavailable(self.host, "the response is malformed")

    def _prepare(self, target: str, options: FetchOptions) -> tuple[str, FetchOptions]:
        """Return the URL of a resource, and the options with the token."""
        if self.offline_error is not None:
            raise self.offline_error
        try:
            options = replace(options, token=self.access.token)
        except ValueError:
            problem = "the token is not a single line of printable ASCII characters"
            raise self._build_token_error(problem) from None
        return f"{self.access.api_url}/repos/{self.repository}/{target}", options

    @contextmanager
    def _translate_errors(self, ref: str) -> Iterator[None]:
        try:
            yield
        except SourceNotFound:
            raise self.build_not_found_error(ref) from None
        except RateLimited as error:
            if self.access.token or error is self.offline_error:
                raise
            variable = _TOKEN_VARIABLE
            raise RateLimited(error.host, error.seconds, token_variable=variable) from None
        except SourceUnavailable as error:
            status = error.status
            if status == _NO_SUCH_REF:
                raise self.build_not_found_error(ref) from None
            if status == _EMPTY_REPOSITORY:  # a repository without a commit
                raise NoSkillThere(self.source_text) from None
            if status == _UNAUTHORIZED and self.access.token and "token" not in error.problem:
                raise self._build_token_error("it rejected the token") from None
            raise

    def _build_token_error(self, problem: str) -> SourceUnavailable:
        return SourceUnavailable(
            self.host,
            problem,
            status=_UNAUTHORIZED,
            access="token_invalid",
            token_variable=_TOKEN_VARIABLE,
        )
