"""Client that sends the original client's requests and expects the same responses.

It was written from the requests and responses of that client, so that an incompatible change fails
a test. It knows nothing about Skillhall.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

API = "/api/v1"
INGEST = f"{API}/prompts/sources"
GIT_TOKEN_HEADER = "X-Dot-AI-Git-Token"  # noqa: S105 - the name of a header
UNESCAPED = "$&+=:@"  # in a path segment; everything else is percent-encoded
DEADLINE = 30  # seconds


class ApiError(Exception):
    """Response with a status of 400 or more."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message


class Response(NamedTuple):
    """Decompressed response."""

    status: int
    headers: HTTPMessage
    body: bytes


class Override(NamedTuple):
    """Another source for one run: a repository or an uploaded source."""

    repo: str = ""
    path: str = ""
    branch: str = ""
    token: str = ""
    source: str = ""

    @property
    def query(self) -> dict[str, str]:
        if self.source:
            return {"source": self.source}
        parameters = {"repo": self.repo, "path": self.path, "branch": self.branch}
        return {name: text for name, text in parameters.items() if text and self.repo}

    @property
    def headers(self) -> dict[str, str]:
        return {GIT_TOKEN_HEADER: self.token} if self.repo and self.token else {}


SERVER_DEFAULT = Override()


@dataclass
class OriginalClient:
    """Requests of the original client, with the fields that it reads."""

    port: int
    token: str = ""
    uploaded: dict[str, str] = field(default_factory=dict)  # content hash by source

    # Requests

    def send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Response:
        """Send one request. A POST always has a JSON body; gzip is always accepted."""
        all_headers = {"Accept-Encoding": "gzip", "User-Agent": "Go-http-client/1.1", **headers}
        if body is not None:
            all_headers["Content-Type"] = "application/json"
        if self.token:
            all_headers["Authorization"] = f"Bearer {self.token}"
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)) as connection:
            connection.request(method, path, body, all_headers)
            response = connection.getresponse()
            data = response.read()
        if response.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        return Response(response.status, response.headers, data)

    def call(
        self,
        method: str,
        path: str,
        override: Override = SERVER_DEFAULT,
        body: object = None,
    ) -> Any:  # noqa: ANN401 - JSON
        """Return the `data` of a successful response. Raises: ApiError."""
        target = f"{path}?{urlencode(override.query)}" if override.query else path
        data = None if method == "GET" else json.dumps(body if body is not None else {}).encode()
        response = self.send(method, target, data, override.headers)
        envelope = json.loads(response.body)
        check_meta(envelope["meta"])
        if response.status >= 400:
            assert envelope["success"] is False
            error = envelope["error"]
            raise ApiError(response.status, error["code"], error["message"])
        assert envelope["success"] is True
        return envelope["data"]

    def tools(self) -> list[Any]:
        data = self.call("GET", f"{API}/tools")
        assert data["total"] == len(data["tools"])
        assert isinstance(data["categories"], list)
        assert isinstance(data["tags"], list)
        tools: list[Any] = data["tools"]
        return tools

    def prompts(self, override: Override = SERVER_DEFAULT) -> tuple[dict[str, Any], str]:
        """Return the listed prompts by name, and the source."""
        data = self.call("GET", f"{API}/prompts", override)
        return {item["name"]: item for item in data["prompts"]}, data["source"]

    def render(
        self, name: str, override: Override = SERVER_DEFAULT, body: object = None
    ) -> dict[str, Any]:
        data: dict[str, Any] = self.call(
            "POST", f"{API}/prompts/{quote(name, safe=UNESCAPED)}", override, body
        )
        return data

    def refresh(self) -> int:
        """Refresh the server's repository; return the number of prompts."""
        return int(self.call("POST", f"{API}/prompts/refresh")["promptsLoaded"])

    # A local folder as a source

    def upload(self, source: str, folder: Path) -> str:
        """Upload every file of a folder, with octal modes; return the status."""
        files, digest = _pack_folder(folder)
        body = {"source": source, "contentHash": digest, "files": files}
        data = self.call("POST", INGEST, body=body)
        assert (data["contentHash"], data["fileCount"]) == (digest, len(files))
        self.uploaded[source] = digest
        return str(data["status"])

    def ensure_uploaded(self, source: str, folder: Path) -> None:
        """Upload a folder unless its files are unchanged."""
        if self.uploaded.get(source) != _pack_folder(folder)[1]:
            self.upload(source, folder)

    def generate_from_folder(self, source: str, folder: Path, target: Path) -> list[str]:
        """Upload if needed and generate. If the server forgot the source, upload again."""
        self.ensure_uploaded(source, folder)
        override = Override(source=source)
        try:
            self.prompts(override)
        except ApiError as error:
            if not is_upload_needed(error):
                raise
            self.upload(source, folder)
        return self.generate(target, override)

    # Skills

    def generate(self, target: Path, override: Override = SERVER_DEFAULT) -> list[str]:
        """Write a folder for each prompt; return the names of those that failed."""
        self.tools()
        prompts, _ = self.prompts(override)
        failed = []
        for name, summary in prompts.items():
            folder = target / f"dot-ai-{name}"
            folder.mkdir(parents=True)
            text: str = summary["description"]
            files: list[dict[str, str]] = []
            try:
                rendered = self.render(name, override)
                text = "\n\n".join(item["content"]["text"] for item in rendered["messages"])
                files = rendered.get("files") or []
            except ApiError:
                failed.append(name)
            (folder / "SKILL.md").write_text(text, encoding="utf-8")
            for file in files:
                path = folder / file["path"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(base64.b64decode(file["content"], validate=True))
        return failed


def check_meta(meta: Mapping[str, Any]) -> None:
    """Check the fields that every response has."""
    assert meta["version"] == "v1"
    assert isinstance(meta["requestId"], str)
    assert meta["timestamp"].endswith("Z")
    assert len(meta["timestamp"]) == len("2026-01-01T00:00:00.000Z")


def is_upload_needed(error: ApiError) -> bool:
    """Whether an error asks to upload the source again."""
    return error.status == 400 and "upload" in error.message.lower() and INGEST in error.message


def _pack_folder(folder: Path) -> tuple[list[dict[str, str]], str]:
    """Return the files with octal modes, and a digest of all of them."""
    files, digest = [], hashlib.sha256()
    for path in sorted(item for item in folder.rglob("*") if item.is_file()):
        data, mode = path.read_bytes(), f"{path.stat().st_mode & 0o777:04o}"
        name = path.relative_to(folder).as_posix()
        files.append({"path": name, "content": base64.b64encode(data).decode(), "mode": mode})
        digest.update(f"{name}\0{mode}\0{len(data)}\0".encode() + data)
    return files, f"sha256:{digest.hexdigest()}"
