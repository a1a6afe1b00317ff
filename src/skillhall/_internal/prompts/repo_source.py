"""Which repository prompts come from: what an operator configures, and what a call asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.prompts.folder_reader import read_folder
from skillhall._internal.prompts.prompt_snapshot import PromptContents
from skillhall._internal.prompts.refreshing_source import FetchedContents
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.git.remote import cache_key, parse_endpoint
from skillhall._internal.sources.git.source import to_git_ref
from skillhall._internal.sources.git.token_scope import reject_ssh
from skillhall._internal.sources.ref import (
    GitHubRef,
    GitRef,
    LocalRef,
    is_valid_ref,
    parse_source_ref,
)
from skillhall.errors import SourceNotFound, SourceRejected, UnsafePath, without_credentials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.prompts.checkout import CheckoutStore
    from skillhall._internal.prompts.repo_reader import RepositoryReader
    from skillhall._internal.settings import Secret
    from skillhall._internal.sources.git.source import GitAccess
    from skillhall._internal.sources.repo_layout import FileTree

DEFAULT_BRANCH = "main"  # the branch that is meant when none is named; the HEAD if there is none
_HOST_AND_PATH = re.compile(
    r"(?:[a-z+]+://)?(?:[^@/]*@)?(\[[^\]]*\]|[^/:]+)(?::[0-9]+(?=/))?[:/]+(.+)", re.IGNORECASE
)


class GitHosts(NamedTuple):
    """How texts that name repositories are read."""

    github_url: str
    allow_loopback_http: bool = False


@dataclass(frozen=True, slots=True)
class Repository:
    """A folder of a repository at a branch, and what answers call it."""

    reference: GitRef
    source: str
    may_fall_back: bool = False  # to the HEAD, if there is no such branch

    def key(self, access: GitAccess) -> tuple[str, ...]:
        """What tells it from others; what one token reads is nothing for another."""
        return self.clone_key(access), self.reference.ref, self.reference.path, self.source

    def clone_key(self, access: GitAccess) -> str:
        """What git's own copy is kept under."""
        return cache_key(parse_endpoint(self.reference.url), access)

    def with_token(self, access: GitAccess, token: Secret | None) -> GitAccess:
        """The access with a token for this repository's host alone."""
        if token is None:
            return access
        return replace(access, tokens={parse_endpoint(self.reference.url).authority: token})

    def with_path_and_branch(self, path: str, branch: str) -> Repository:
        """Another folder or branch of the same repository. Raises: SourceRejected."""
        place = replace(
            self.reference,
            path=validate_path(path) if path else self.reference.path,
            ref=validate_branch(branch) if branch else self.reference.ref,
        )
        return Repository(place, self.source, may_fall_back=self.may_fall_back and not branch)

    @property
    def canonical_url(self) -> str:
        """Where it lies, for whoever has the way there: host and path alone."""
        return to_canonical_url(self.reference.url)

    def is_affected_by_push(self, urls: Sequence[str], branch: str) -> bool:
        """Whether a push to that branch is news for us."""
        ref = branch.removeprefix("refs/heads/")
        is_ours = not ref or self.may_fall_back or ref == self.reference.ref
        return is_ours and parse_host_and_path(self.reference.url) in map(parse_host_and_path, urls)

    def fetch(
        self,
        previous: PromptContents | None,
        reader: RepositoryReader,
        checkouts: CheckoutStore,
        cache_bytes: int,
    ) -> FetchedContents:
        """What is there now; nothing is fetched if the commit is known. Raises: as `read_git`."""
        reference, notes = self.reference, tuple[Finding, ...]()
        try:
            commit = reader.resolve_commit(reference) if previous else ""
        except SourceNotFound:
            reference, notes = self._fall_back_to_head()
            commit = reader.resolve_commit(reference)
        if previous is not None and previous.commit == commit:
            return FetchedContents(previous)
        tree, notes = self._read_tree(reference, reader, notes)
        # Skills that a commit did not touch stay where those who list them know them to be.
        same = previous.find_same_checkout(tree.files) if previous is not None else None
        contents = PromptContents(
            self.source,
            same or checkouts.put(tree),
            commit=tree.commit,
            source_findings=(*tree.findings, *notes),
            response_cache_bytes=cache_bytes,
        )
        return FetchedContents(contents, tree.stale, tree.checked_at)

    def _read_tree(
        self, reference: GitRef, reader: RepositoryReader, findings: tuple[Finding, ...]
    ) -> tuple[FileTree, tuple[Finding, ...]]:
        try:
            return reader.read_prompts(reference, reference.text), findings
        except SourceNotFound:
            if reference != self.reference or self._has_branch(reader):
                raise
            other, findings = self._fall_back_to_head()
        return reader.read_prompts(other, reference.text), findings

    def _has_branch(self, reader: RepositoryReader) -> bool:
        try:
            reader.resolve_commit(self.reference)
        except SourceNotFound:
            return False
        return True

    def _fall_back_to_head(self) -> tuple[GitRef, tuple[Finding, ...]]:
        """The HEAD instead of a branch that nobody named and that is not there."""
        if not self.may_fall_back:
            raise SourceNotFound(self.reference.text)
        head = replace(self.reference, ref="")
        message = f"there is no branch {self.reference.ref!r}; the default branch is used"
        return head, (Finding(Code.BRANCH_MISSING, message, hint="name the branch"),)


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder of this machine, which only an operator can name."""

    path: str
    source: str

    def fetch(self, previous: PromptContents | None, checkouts: CheckoutStore) -> FetchedContents:
        """What is there now. Raises: SourceNotFound, TooLarge, OSError."""
        tree = read_folder(self.path, self.source)
        same = previous.find_same_checkout(tree.files) if previous is not None else None
        if previous is not None and same is not None and previous.source_findings == tree.findings:
            return FetchedContents(previous)
        return FetchedContents(
            PromptContents(self.source, same or checkouts.put(tree), source_findings=tree.findings)
        )


def parse_repository(text: str, path: str, branch: str, hosts: GitHosts) -> Repository | LocalRef:
    """What an operator's texts name: a repository, or a folder. Raises: SourceRejected."""
    reference = parse_source_ref(text, allow_loopback_http=hosts.allow_loopback_http)
    if isinstance(reference, LocalRef):
        return reference
    if not isinstance(reference, GitHubRef | GitRef):
        raise SourceRejected("url", text, "it names no git repository")
    git = to_git_ref(reference, hosts.github_url)
    is_default = branch in ("", DEFAULT_BRANCH)
    if (path and git.path) or (not is_default and git.ref):
        problem = "the path or branch is named twice"
        raise SourceRejected("url", text, problem, "name it in one place only")
    place = GitRef(git.url, validate_path(path or git.path), git.ref or validate_branch(branch))
    return Repository(place, without_credentials(text), may_fall_back=is_default and not git.ref)


def parse_requested_repository(text: str, path: str, branch: str, hosts: GitHosts) -> Repository:
    """What a call names: a repository by https, nothing else. Raises: SourceRejected."""
    found = parse_repository(text, path, branch, hosts)
    if isinstance(found, LocalRef):
        raise SourceRejected("path", text, "it names no git repository")
    reject_ssh(found.reference.url, text)
    return found


def validate_path(path: str) -> str:
    """A path below the top of a repository. Raises: SourceRejected."""
    inner = path.strip("/")
    if inner in ("", "."):
        return ""
    try:
        return RelativePath.parse(inner).text
    except UnsafePath as error:
        raise SourceRejected("path", path, f"of its path, {error.reason}") from None


def validate_branch(branch: str) -> str:
    """A branch, tag or commit; `main` if none is named. Raises: SourceRejected."""
    if branch and not is_valid_ref(branch):
        raise SourceRejected("ref", branch, "git has no such names for branches")
    return branch or DEFAULT_BRANCH


def parse_host_and_path(url: str) -> tuple[str, str]:
    """Host and path of a repository, whatever way leads there; ways differ in scheme and port."""
    found = _HOST_AND_PATH.fullmatch(url[:4096].strip())
    if found is None:
        return "", url
    return found[1].lower(), found[2].strip("/").removesuffix(".git").casefold()


def to_canonical_url(url: str) -> str:
    """Host and path as one address, without whatever else leads there."""
    return "https://{}/{}".format(*parse_host_and_path(url))
