"""Fake GitHub on one port: git repositories, API, archives and plain files."""

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
    """Running host; every commit has the same id in git and in the API."""

    git: GitServer
    github: GitHubApiServer
    files: dict[str, bytes] = field(default_factory=dict)  # by path, for plain downloads
    repos: dict[str, GitRepo] = field(default_factory=dict)
    outage_route: Route | None = None  # replaces every response

    def url(self, path: str = "") -> str:
        return self.git.url(path).rstrip("/")

    def environment(self) -> dict[str, str]:
        """Environment variables that make this host GitHub."""
        return {
            "SKILLHALL_GITHUB_URL": self.url(),
            "SKILLHALL_GITHUB_API_URL": self.url(_API.strip("/")),
            "SKILLHALL_ALLOW_NETWORKS": "127.0.0.0/8",
        }

    def commit(
        self, name: str, files: Mapping[str, bytes | RepoFile], ref: str = "refs/heads/main"
    ) -> str:
        """Commit exactly these files to the repository `owner/name`; return the id."""
        entries = {
            path: file if isinstance(file, RepoFile) else RepoFile(file)
            for path, file in files.items()
        }
        repo = self._repo(name)
        modes = {path: file.mode for path, file in entries.items()}
        commit = repo.commit({path: file.data for path, file in entries.items()}, modes, ref=ref)
        repository = self.github.repositories[name]
        repository.commits[commit] = entries
        _, kind, short = ref.split("/", 2)
        repository.refs[short] = commit
        if kind == "tags":
            repository.tags.add(short)
        return commit

    def make_private(self, name: str, token: str) -> None:
        """Require the token for the repository."""
        self.github.private.add(name)
        self.github.tokens.add(token)
        self.git.token = token

    def _repo(self, name: str) -> GitRepo:
        if name not in self.repos:
            self.repos[name] = GitRepo(self.git.root / f"{name}.git")
            self.github.repositories[name] = Repository()
        return self.repos[name]

    def find_route(self, request: ReceivedRequest) -> Route | None:
        """Return the route for a request that is not for git."""
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
    """Run a fake GitHub without repositories; git's files are below `root`."""
    with run_git_server(root) as git:
        host = GitHubServer(git, GitHubApiServer(HttpServer(git.port), HttpServer(git.port), _API))
        git.override = host.find_route
        yield host
