"""Repositories and folders that prompts come from, configured or requested."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.prompt_server.folder_reader import read_folder
from skillhall._internal.prompt_server.prompt_model import Stale
from skillhall._internal.prompt_server.prompt_snapshot import PromptSnapshot
from skillhall._internal.prompt_server.refreshing_source import format_utc
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.git.git_ref import GitRef
from skillhall._internal.sources.git.remote import GitAccess, cache_key, parse_endpoint
from skillhall._internal.sources.git.source import read_git_level, resolve_commit
from skillhall._internal.sources.github.github_ref import GitHubRef
from skillhall._internal.sources.github.source import read_github_level, resolve_github_commit
from skillhall._internal.sources.local_ref import LocalRef
from skillhall._internal.sources.opener import parse_source_ref
from skillhall._internal.sources.source_text import is_valid_ref
from skillhall._internal.sources.token_scope import reject_ssh
from skillhall.errors import (
    SourceNotFound,
    SourceRejected,
    SourceUnavailable,
    UnsafePath,
    without_credentials,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.prompt_server.checkout import CheckoutStore
    from skillhall._internal.settings import Secret
    from skillhall._internal.sources.github.client import GitHubAccess
    from skillhall._internal.sources.repo_layout import FileTree

_SCAN = PROMPT_REPOSITORY.scan_policy
DEFAULT_BRANCH = "main"  # if no branch is named; falls back to HEAD
_HOST_AND_PATH = re.compile(
    r"(?:[a-z+]+://)?(?:[^@/]*@)?(\[[^\]]*\]|[^/:]+)(?::[0-9]+(?=/))?[:/]+(.+)", re.IGNORECASE
)


class GitHosts(NamedTuple):
    """Settings for parsing source references."""

    github_url: str
    allow_loopback_http: bool = False


@dataclass(frozen=True, slots=True)
class RepositoryReader:
    """Reads repositories with git, or with GitHub's API where git is not available.

    Both methods raise the same errors as `read_git`.
    """

    access: GitAccess | GitHubAccess
    github_url: str

    def resolve_commit(self, reference: GitRef) -> str:
        """Return the current commit of the ref."""
        if isinstance(self.access, GitAccess):
            return resolve_commit(reference, self.access)
        return resolve_github_commit(self._to_github_ref(reference), self.access)

    def read_prompts(self, reference: GitRef, text: str) -> FileTree:
        """Read the prompts at the reference; `text` names the source in errors."""
        if isinstance(self.access, GitAccess):
            return read_git_level(reference, self.access, _SCAN, source_text=text)
        github = self._to_github_ref(reference)
        return read_github_level(github, self.access, _SCAN, source_text=text)

    def _to_github_ref(self, reference: GitRef) -> GitHubRef:
        name = reference.url.removeprefix(f"{self.github_url}/").removesuffix(".git")
        owner, _, repository = name.partition("/")
        if name == reference.url or not repository or "/" in repository:
            host = parse_endpoint(reference.url).authority
            problem = "without git, only GitHub repositories can be read"
            raise SourceUnavailable(host, problem, "install git, and unset SKILLHALL_GIT")
        return GitHubRef(owner, repository, reference.path, reference.ref)


@dataclass(frozen=True, slots=True)
class Repository:
    """Folder of a repository at a branch, with its name in responses."""

    reference: GitRef
    source: str
    may_fall_back: bool = False  # to HEAD, if the branch does not exist

    def key(self, access: GitAccess) -> tuple[str, ...]:
        """Return a cache key. It depends on the token, because tokens differ in access."""
        return self.clone_key(access), self.reference.ref, self.reference.path, self.source

    def clone_key(self, access: GitAccess) -> str:
        """Return the key of the repository in the clone cache."""
        return cache_key(parse_endpoint(self.reference.url), access)

    def with_token(self, access: GitAccess, token: Secret | None) -> GitAccess:
        """Return `access` with only this token, for this host; unchanged if it is None."""
        if token is None:
            return access
        return replace(access, tokens={parse_endpoint(self.reference.url).authority: token})

    def with_path_and_branch(self, path: str, branch: str) -> Repository:
        """Return another folder or branch of the same repository. Raises: SourceRejected."""
        reference = replace(
            self.reference,
            path=validate_path(path) if path else self.reference.path,
            ref=validate_branch(branch) if branch else self.reference.ref,
        )
        return Repository(reference, self.source, may_fall_back=self.may_fall_back and not branch)

    def is_affected_by_push(self, urls: Sequence[str], branch: str) -> bool:
        """Whether a push to the branch may change this source."""
        ref = branch.removeprefix("refs/heads/")
        is_ours = not ref or self.may_fall_back or ref == self.reference.ref
        return is_ours and parse_host_and_path(self.reference.url) in map(parse_host_and_path, urls)

    def fetch(
        self,
        previous: PromptSnapshot | None,
        reader: RepositoryReader,
        checkouts: CheckoutStore,
        cache_bytes: int,
    ) -> PromptSnapshot:
        """Read the repository; return `previous` if its commit is unchanged.

        Raises: as `read_git`.
        """
        reference, findings = self.reference, tuple[Finding, ...]()
        try:
            commit = reader.resolve_commit(reference) if previous else ""
        except SourceNotFound:
            reference, findings = self._fall_back_to_head()
            commit = reader.resolve_commit(reference)
        if previous is not None and previous.commit == commit:
            return previous
        try:
            tree = reader.read_prompts(reference, reference.text)
        except SourceNotFound:
            # Only a missing branch is replaced by HEAD, not a missing folder.
            if reference != self.reference or self._has_branch(reader):
                raise
            head, findings = self._fall_back_to_head()
            tree = reader.read_prompts(head, reference.text)
        # Reuse the checkout if no file changed, so that the paths of its skills stay valid.
        checkout = previous.find_same_checkout(tree.files) if previous is not None else None
        snapshot = PromptSnapshot(
            self.source,
            checkout or checkouts.put(tree),
            commit=tree.commit,
            source_findings=(*tree.findings, *findings),
            response_cache_bytes=cache_bytes,
        )
        stale = Stale(tree.stale, format_utc(tree.checked_at)) if tree.stale else None
        return snapshot.with_stale(stale)

    def _has_branch(self, reader: RepositoryReader) -> bool:
        try:
            reader.resolve_commit(self.reference)
        except SourceNotFound:
            return False
        return True

    def _fall_back_to_head(self) -> tuple[GitRef, tuple[Finding, ...]]:
        """Return HEAD in place of the missing default branch, with a finding."""
        if not self.may_fall_back:
            raise SourceNotFound(self.reference.text)
        head = replace(self.reference, ref="")
        message = f"the branch {self.reference.ref!r} does not exist; the default branch is used"
        return head, (Finding(Code.BRANCH_MISSING, message, hint="name the branch"),)


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """Folder on this machine; only the settings can name one, not a request."""

    path: str
    source: str

    def fetch(self, previous: PromptSnapshot | None, checkouts: CheckoutStore) -> PromptSnapshot:
        """Read the folder; return `previous` if nothing changed.

        Raises: SourceNotFound, TooLarge, OSError.
        """
        tree = read_folder(self.path, self.source)
        checkout = previous.find_same_checkout(tree.files) if previous is not None else None
        if checkout and previous is not None and previous.source_findings == tree.findings:
            return previous
        checkout = checkout or checkouts.put(tree)
        return PromptSnapshot(self.source, checkout, source_findings=tree.findings)


def parse_repository(text: str, path: str, branch: str, hosts: GitHosts) -> Repository:
    """Parse the text that names a repository. Raises: SourceRejected."""
    reference = parse_source_ref(text, allow_loopback_http=hosts.allow_loopback_http)
    git = reference.repository
    if git is None:
        reason: Literal["path", "url"] = "path" if isinstance(reference, LocalRef) else "url"
        raise SourceRejected(reason, text, "it is not a git repository")
    is_default = branch in ("", DEFAULT_BRANCH)
    if (path and git.path) or (not is_default and git.ref):
        problem = "the path or branch is named twice"
        raise SourceRejected("url", text, problem, "name it either in the URL or separately")
    ref = git.ref or validate_branch(branch)
    parsed = GitRef(git.git_url(hosts.github_url), validate_path(path or git.path), ref)
    return Repository(parsed, without_credentials(text), may_fall_back=is_default and not git.ref)


def parse_requested_repository(text: str, path: str, branch: str, hosts: GitHosts) -> Repository:
    """Parse a requested repository, which must not use ssh. Raises: SourceRejected."""
    repository = parse_repository(text, path, branch, hosts)
    reject_ssh(repository.reference.url, text)
    return repository


def validate_path(path: str) -> str:
    """Normalize a path in a repository. Raises: SourceRejected."""
    inner = path.strip("/")
    if inner in ("", "."):
        return ""
    try:
        return RelativePath.parse(inner).text
    except UnsafePath as error:
        raise SourceRejected("path", path, f"invalid path: {error.reason}") from None


def validate_branch(branch: str) -> str:
    """Return a valid branch, tag or commit; `main` if empty. Raises: SourceRejected."""
    if branch and not is_valid_ref(branch):
        raise SourceRejected("ref", branch, "it is not a valid git ref name")
    return branch or DEFAULT_BRANCH


def parse_host_and_path(url: str) -> tuple[str, str]:
    """Return host and path of a repository URL, ignoring scheme, user and port.

    The host is "" if the URL has none; the path is then the complete text.
    """
    match = _HOST_AND_PATH.fullmatch(url[:4096].strip())
    if match is None:
        return "", url
    return match[1].lower(), match[2].strip("/").removesuffix(".git").casefold()


def to_canonical_url(url: str) -> str:
    """Return an https URL of host and path, without port and credentials."""
    return "https://{}/{}".format(*parse_host_and_path(url))
