"""GitHub under one roof on this machine: repositories by git, its API, archives and plain files."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.git_server import GitRepo, GitServer, run_git_server
from tests.support.github_api_server import GitHubApiServer, RepoFile, Repository
from tests.support.http_server import HttpServer, ReceivedRequest, Route, respond

_API = "/api/v3"


@dataclass
class GitHubServer:
    """A running host; every commit can be had from git and from the API, by the same id."""

    git: GitServer
    github: GitHubApiServer
    files: dict[str, bytes] = field(default_factory=dict)  # by path, for plain downloads
    repos: dict[str, GitRepo] = field(default_factory=dict)
    outage_route: Route | None = None  # the answer to everything

    def url(self, path: str = "") -> str:
        return self.git.url(path).rstrip("/")

    def environment(self) -> dict[str, str]:
        """The settings that make this host GitHub."""
        return {
            "SKILLHALL_GITHUB_URL": self.url(),
            "SKILLHALL_GITHUB_API_URL": self.url(_API.strip("/")),
            "SKILLHALL_ALLOW_NETWORKS": "127.0.0.0/8",
        }

    def commit(
        self, name: str, files: Mapping[str, bytes | RepoFile], ref: str = "refs/heads/main"
    ) -> str:
        """A commit of exactly these files in the repository `owner/name`; its id."""
        whole = {
            path: file if isinstance(file, RepoFile) else RepoFile(file)
            for path, file in files.items()
        }
        repo = self._repo(name)
        modes = {path: file.mode for path, file in whole.items()}
        commit = repo.commit({path: file.data for path, file in whole.items()}, modes, ref=ref)
        known = self.github.repositories[name]
        known.commits[commit] = whole
        known.refs[ref.split("/", 2)[2]] = commit
        return commit

    def make_private(self, name: str, token: str) -> None:
        """Let only those see the repository who bring the token."""
        self.github.private.add(name)
        self.github.tokens.add(token)
        self.git.token = token

    def _repo(self, name: str) -> GitRepo:
        if name not in self.repos:
            self.repos[name] = GitRepo(self.git.root / f"{name}.git")
            self.github.repositories[name] = Repository()
        return self.repos[name]

    def find_route(self, request: ReceivedRequest) -> Route | None:
        """The answer to whatever is not for git."""
        path = request.target.partition("?")[0]
        if self.outage_route is not None:
            return self.outage_route
        if path.startswith(f"{_API}/") or "/legacy.tar.gz/" in path:
            return self.github.find_route(request)
        if path in self.files:
            return respond(body=self.files[path])
        return None


@contextmanager
def run_github_server(root: Path) -> Iterator[GitHubServer]:
    """A running GitHub without repositories; git's own files lie below `root`."""
    with run_git_server(root) as git:
        host = GitHubServer(git, GitHubApiServer(HttpServer(git.port), HttpServer(git.port), _API))
        git.override = host.find_route
        yield host
