"""Scripted MCP servers: valid entries, and servers that follow a script."""

import hashlib
import json
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from tests.support import mcp_scripted_server as mcp_script
from tests.support.cli_sandbox import CliSandbox
from tests.support.mcp_scripted_server import Script, build_response
from tests.support.skills import make_skill_md

DEADLINE = 120  # seconds
PROGRAM = Path(mcp_script.__file__)
LABEL = "acme"
URI = "skill://pdf/SKILL.md"
PDF: Mapping[str, bytes] = {
    "SKILL.md": make_skill_md("pdf", license="MIT", version="1.10"),
    "references/forms.md": b"# Forms\r\n",
    "assets/dot.png": b"\x89PNG\x00\xff",
}
FRONTMATTER = {
    "name": "pdf",
    "description": "Reads PDF files.",
    "license": "MIT",
    "version": 1.1,  # as most YAML parsers read 1.10
}


def make_entry(
    files: Mapping[str, bytes] = PDF,
    folder: str = "skill://pdf",
    frontmatter: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Build a valid entry."""
    name = folder.rpartition("/")[2]
    return {
        "uri": f"{folder}/SKILL.md",
        "frontmatter": dict(frontmatter or {**FRONTMATTER, "name": name}),
        "resources": [make_resource(f"{folder}/{path}", data) for path, data in files.items()],
    }


def make_resource(uri: str, data: bytes) -> dict[str, Any]:
    """Build a file of an entry."""
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return {"uri": uri, "digest": digest, "size": len(data)}


def make_contents(
    files: Mapping[str, bytes] = PDF, folder: str = "skill://pdf"
) -> dict[str, dict[str, str]]:
    """Build the contents of files: text where possible, else base64."""
    return {f"{folder}/{path}": _content(f"{folder}/{path}", data) for path, data in files.items()}


def _content(uri: str, data: bytes) -> dict[str, str]:
    try:
        return {"uri": uri, "text": data.decode()}
    except UnicodeDecodeError:
        return {"uri": uri, "blob": b64encode(data).decode()}


def make_script(**changes: Any) -> Script:  # noqa: ANN401 - any part of a script
    """Build the script of a server with one valid skill, with changes."""
    script: dict[str, Any] = {"skills": [make_entry()], "contents": make_contents(), **changes}
    return cast("Script", script)


def plain_skill(name: str, folder: str = "") -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """Build the entry and the contents of a skill with only a SKILL.md."""
    uri = f"skill://{folder}{name}"
    files = {"SKILL.md": make_skill_md(name)}
    front = {"name": name, "description": "Reads PDF files."}
    return make_entry(files, uri, front), make_contents(files, uri)


def write_script(script: Script, path: Path) -> list[str]:
    """Write a script and return the command of its server."""
    path.write_text(json.dumps(script), encoding="utf-8")
    return [sys.executable, "-I", str(PROGRAM), str(path)]


def add_server(sandbox: CliSandbox, script: Script, label: str = LABEL) -> None:
    """Add a scripted server to the configuration of a sandbox."""
    command = write_script(script, sandbox.sources / f"{label}.json")
    result = sandbox.run("mcp-servers", "add", "--overwrite", label, "--", *command)
    assert result.code == 0, result


@dataclass
class ScriptedHttpServer:
    """Scripted HTTP server: received requests and unusual responses."""

    script: Script
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)  # headers, body, method
    token: str = ""
    is_streaming: bool = False  # responds with server-sent events
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None  # replaces the response

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@contextmanager
def run_scripted_server(script: Script) -> Iterator[ScriptedHttpServer]:
    """Run the server in a thread."""
    state = ScriptedHttpServer(script)

    class Handler(_Handler):
        server_state = state

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join(DEADLINE)


class _Handler(BaseHTTPRequestHandler):
    server_state: ScriptedHttpServer

    def do_POST(self) -> None:
        state = self.server_state
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): text for name, text in self.headers.items()}
        state.requests.append({"method": body["method"], "headers": headers, "body": body})
        if state.token and headers.get("authorization") != f"Bearer {state.token}":
            self._send(401, b"{}", {})
        elif state.body is not None or state.status != 200:
            self._send(state.status, state.body or b"", state.headers)
        elif "id" not in body:
            self._send(202, b"", {})
        else:
            self._send_result(build_response(state.script, body))

    def do_DELETE(self) -> None:
        self.server_state.requests.append({"method": "DELETE", "headers": {}, "body": {}})
        self._send(200, b"", {})

    def _send_result(self, data: bytes) -> None:
        state = self.server_state
        if not state.is_streaming:
            self._send(
                200, data, {"Content-Type": "application/json; charset=utf-8", **state.headers}
            )
            return
        noise = b': hello\r\nid: 1\r\ndata:\r\n\r\ndata: {"jsonrpc": "2.0", "method": "x"}\r\n\r\n'
        parts = b"\r\n".join(b"data: " + line for line in _split(data))
        headers = {"Content-Type": "text/event-stream", **state.headers}
        self._send(200, noise + b"event: message\r\n" + parts + b"\r\n\r\n", headers)

    def _send(self, status: int, data: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, text in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing, because tests check the output."""


def _split(data: bytes) -> list[bytes]:
    """Split JSON into two lines of an event, as servers may do."""
    return [data[:1], data[1:]]
