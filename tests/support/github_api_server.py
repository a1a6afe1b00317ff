"""Fake GitHub: its API, and the second host that serves its archives.

`GitHubApiServer.find_route` returns the route for a request, without any network code.
"""

import gzip
import hashlib
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.archives import TarEntry, make_tar, pax
from tests.support.http_server import (
    HttpServer,
    ReceivedRequest,
    Route,
    redirect,
    respond,
    run_http_server,
)

FILE, EXECUTABLE, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
RESET = 1_900_000_000


class RepoFile(NamedTuple):
    """File of a commit; the data of a link is its target."""

    data: bytes
    mode: str = FILE

    @property
    def sha(self) -> str:
        if self.mode == SUBMODULE:
            return self.data.decode()
        return hashlib.sha1(b"blob %d\x00%s" % (len(self.data), self.data)).hexdigest()  # noqa: S324 - git's


Files = Mapping[str, RepoFile]


class Repository:
    """Commits by id, and refs."""

    def __init__(self, default: str = "main") -> None:
        self.default = default
        self.refs: dict[str, str] = {}
        self.tags: set[str] = set()  # refs that are tags, not branches
        self.commits: dict[str, Files] = {}
        self.archives: dict[str, bytes] = {}  # replace generated archives
        self.is_truncated = False

    def commit(self, files: Mapping[str, bytes | RepoFile], ref: str = "main") -> str:
        """Commit these files, move the ref, and return the commit's id."""
        entries = {
            path: file if isinstance(file, RepoFile) else RepoFile(file)
            for path, file in sorted(files.items())
        }
        text = repr([(path, file.mode, file.sha) for path, file in entries.items()])
        sha = hashlib.sha1(text.encode()).hexdigest()  # noqa: S324 - as long as git's
        self.commits[sha] = entries
        self.refs[ref] = sha
        return sha

    def find(self, ref: str) -> str | None:
        """Return the commit id of a ref."""
        ref = self.default if ref == "HEAD" else ref
        if ref in self.refs:
            return self.refs[ref]
        return next((sha for sha in self.commits if len(ref) > 6 and sha.startswith(ref)), None)

    def archive(self, sha: str, top: str) -> bytes:
        """Return the archive in GitHub's format."""
        return self.archives.get(sha) or archive_of(self.commits[sha], sha, top)


def archive_of(files: Files, sha: str, top: str) -> bytes:
    members = [pax({"comment": sha}, kind=b"g"), TarEntry(f"{top}/", b"", b"5")]
    for path, file in files.items():
        name = f"{top}/{path}"
        if file.mode == LINK:
            members.append(TarEntry(name, b"", b"2", link=file.data))
        elif file.mode == SUBMODULE:
            members.append(TarEntry(f"{name}/", b"", b"5"))
        else:
            mode = b"0000775\x00" if file.mode == EXECUTABLE else b"0000664\x00"
            members.append(TarEntry(name, file.data, mode=mode))
    return gzip.compress(make_tar(*members), mtime=0)


def load_git_repository(folder: Path, owner_and_name: str = "acme/skills") -> Repository:
    """Load a real git repository, with archives made by git."""

    def git(*arguments: str) -> bytes:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True, timeout=120).stdout

    content = cache(partial(git, "cat-file"))  # many files have the same content
    repository = Repository(git("symbolic-ref", "--short", "HEAD").decode().strip())
    refs = git("for-each-ref", "--format=%(refname:short) %(objectname)").decode()
    for name, sha in (line.split() for line in refs.splitlines()):
        repository.refs[name] = sha
        files = {}
        for line in git("ls-tree", "-r", "-z", sha).decode().split("\0")[:-1]:
            (mode, kind, blob), path = line.partition("\t")[0].split(), line.partition("\t")[2]
            is_blob = kind == "blob"
            files[path] = RepoFile(content(kind, blob) if is_blob else blob.encode(), mode)
        repository.commits[sha] = files
        top = f"{owner_and_name.replace('/', '-')}-{sha[:7]}"
        repository.archives[sha] = git("archive", "--format=tar.gz", f"--prefix={top}/", sha)
    return repository


@dataclass
class GitHubApiServer:
    """GitHub's API for repositories by `owner/name`."""

    api: HttpServer
    archives: HttpServer
    prefix: str = ""  # of the API's paths, such as "/api/v3" of a self-hosted server
    repositories: dict[str, Repository] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)  # valid tokens
    is_rate_limited: bool = False
    outage_route: Route | None = None  # replaces every response
    route_overrides: dict[str, Route] = field(default_factory=dict)  # by path

    @property
    def api_url(self) -> str:
        return self.api.url(self.prefix)

    @property
    def requested_targets(self) -> list[str]:
        """Targets of all API requests, after the name of the repository."""
        return ["/".join(request.target.split("/")[4:]) for request in self.api.requests]

    def find_route(self, request: ReceivedRequest) -> Route:
        """Return the route for a request, with the limits and permissions of its token."""
        path = unquote(urlsplit(request.target).path).removeprefix(self.prefix)
        if self.outage_route is not None:
            return self.outage_route
        if path in self.route_overrides:
            return self.route_overrides[path]
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token and token not in self.tokens:
            return _message("401 Unauthorized", "Bad credentials")
        if self.is_rate_limited:
            headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(RESET)}
            return _message("403 Forbidden", "API rate limit exceeded", headers)
        return self._dispatch(path, request, is_known=bool(token))

    def _dispatch(self, path: str, request: ReceivedRequest, *, is_known: bool) -> Route:
        parts = path.strip("/").split("/")
        if len(parts) == 4 and parts[2] == "legacy.tar.gz":
            return self._archive(parts)
        if len(parts) < 4 or parts[0] != "repos":
            return _missing()
        name, verb, rest = "/".join(parts[1:3]), parts[3], "/".join(parts[4:])
        if name in self.renamed:
            target = request.target.replace(f"/repos/{name}/", f"/repos/{self.renamed[name]}/")
            return redirect(self.api.url(target), "301 Moved Permanently")
        repository = self.repositories.get(name)
        if repository is None or (name in self.private and not is_known):
            return _missing()
        verbs: dict[str, Callable[[Repository, str, ReceivedRequest], Route]] = {
            "commits": _commit,
            "git": _git_object,
            "contents": _contents,
        }
        if verb == "tarball":
            sha = repository.find(rest)
            return redirect(self.archives.url(f"/{name}/legacy.tar.gz/{sha}?token=short-lived"))
        return verbs[verb](repository, rest, request) if verb in verbs else _missing()

    def _archive(self, parts: list[str]) -> Route:
        owner, name, _, sha = parts
        data = self.repositories[f"{owner}/{name}"].archive(sha, f"{owner}-{name}-{sha[:7]}")
        return respond(body=data, headers={"Content-Type": "application/x-gzip"})


def _message(status: str, text: str, headers: Mapping[str, str] | None = None) -> Route:
    return respond(status, json.dumps({"message": text}).encode(), headers or {})


def _missing() -> Route:
    return _message("404 Not Found", "Not Found")


def _commit(repository: Repository, ref: str, request: ReceivedRequest) -> Route:
    if not repository.commits:
        return _message("409 Conflict", "Git Repository is empty.")
    sha = repository.find(ref)
    if sha is None:
        return _message("422 Unprocessable Entity", f"No commit found for SHA: {ref}")
    headers = {"ETag": f'"{sha}"', "Content-Type": "application/vnd.github.sha; charset=utf-8"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return respond("304 Not Modified", headers=headers)
    assert request.headers["accept"] == "application/vnd.github.sha"
    return respond(body=sha.encode(), headers=headers)


def _git_object(repository: Repository, rest: str, request: ReceivedRequest) -> Route:
    kind, _, sha = rest.partition("/")
    if kind == "trees" and sha in repository.commits:
        assert parse_qs(urlsplit(request.target).query) == {"recursive": ["1"]}
        tree = {"sha": sha, "tree": tree_of(repository.commits[sha])}
        if repository.is_truncated:
            tree["tree"] = tree_of(repository.commits[sha])[:1]
        return respond(body=json.dumps({**tree, "truncated": repository.is_truncated}).encode())
    if kind == "ref" and sha.removeprefix("tags/") in repository.tags:
        tag = repository.refs[sha.removeprefix("tags/")]
        return respond(body=json.dumps({"ref": f"refs/{sha}", "object": {"sha": tag}}).encode())
    blobs = {file.sha: file for files in repository.commits.values() for file in files.values()}
    if kind == "blobs" and sha in blobs:
        assert "raw" in request.headers["accept"]
        return respond(body=blobs[sha].data)
    return _missing()


def tree_of(files: Files) -> list[dict[str, object]]:
    """Return the entries of a tree, including folders."""
    folders = {path.rpartition("/")[0] for path in files} - {""}
    entries: list[dict[str, object]] = [
        {"path": folder, "mode": "040000", "type": "tree", "sha": "0" * 40} for folder in folders
    ]
    for path, file in files.items():
        entry: dict[str, object] = {"path": path, "mode": file.mode, "sha": file.sha}
        is_commit = file.mode == SUBMODULE
        entries.append(
            entry | ({"type": "commit"} if is_commit else {"type": "blob", "size": len(file.data)})
        )
    return sorted(entries, key=lambda entry: str(entry["path"]))


def _contents(repository: Repository, path: str, request: ReceivedRequest) -> Route:
    [ref] = parse_qs(urlsplit(request.target).query).get("ref", ["HEAD"])
    file = repository.commits.get(repository.find(ref) or "", {}).get(path)
    return _missing() if file is None else respond(body=file.data)


@contextmanager
def run_github_api_server(prefix: str = "") -> Iterator[GitHubApiServer]:
    """Run a fake GitHub without repositories; archives are on another port."""
    with run_http_server() as api, run_http_server() as archives:
        site = GitHubApiServer(api, archives, prefix)
        api.default_route = archives.default_route = site.find_route
        yield site
