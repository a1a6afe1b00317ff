"""Reader of repositories: git, or GitHub's API where git is not available."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.sources.git.remote import GitAccess, parse_endpoint
from skillhall._internal.sources.git.source import read_git_level, resolve_commit
from skillhall._internal.sources.github.github_ref import GitHubRef
from skillhall._internal.sources.github.source import read_github_level, resolve_github_commit
from skillhall.errors import SourceUnavailable

if TYPE_CHECKING:
    from skillhall._internal.sources.git.git_ref import GitRef
    from skillhall._internal.sources.github.client import GitHubAccess
    from skillhall._internal.sources.repo_layout import FileTree

_SCAN = PROMPT_REPOSITORY.scan_policy


@dataclass(frozen=True, slots=True)
class RepositoryReader:
    """Reads repositories. GitHub's API rejects other hosts.

    Both methods raise what `read_git` raises.
    """

    access: GitAccess | GitHubAccess
    github_url: str

    def resolve_commit(self, reference: GitRef) -> str:
        """Return the current commit of the ref."""
        if isinstance(self.access, GitAccess):
            return resolve_commit(reference, self.access)
        return resolve_github_commit(self._to_github_ref(reference), self.access)

    def read_prompts(self, reference: GitRef, text: str) -> FileTree:
        """Read the prompts at the reference; `text` names it."""
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
            raise SourceUnavailable(host, problem, "install git, and leave SKILLHALL_GIT out")
        return GitHubRef(owner, repository, reference.path, reference.ref)
