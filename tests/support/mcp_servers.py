"""Scripted MCP servers for tests: honest entries to start from, and real servers that play them."""

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
    "version": 1.1,  # as most readers of YAML have it
}


def make_entry(
    files: Mapping[str, bytes] = PDF,
    folder: str = "skill://pdf",
    frontmatter: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """What an honest server announces."""
    name = folder.rpartition("/")[2]
    return {
        "uri": f"{folder}/SKILL.md",
        "frontmatter": dict(frontmatter or {**FRONTMATTER, "name": name}),
        "resources": [make_resource(f"{folder}/{path}", data) for path, data in files.items()],
    }


def make_resource(uri: str, data: bytes) -> dict[str, Any]:
    """One file of an entry."""
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return {"uri": uri, "digest": digest, "size": len(data)}


def make_contents(
    files: Mapping[str, bytes] = PDF, folder: str = "skill://pdf"
) -> dict[str, dict[str, str]]:
    """What an honest server hands out: text where it is text."""
    return {f"{folder}/{path}": _content(f"{folder}/{path}", data) for path, data in files.items()}


def _content(uri: str, data: bytes) -> dict[str, str]:
    try:
        return {"uri": uri, "text": data.decode()}
    except UnicodeDecodeError:
        return {"uri": uri, "blob": b64encode(data).decode()}


def make_script(**changes: Any) -> Script:  # noqa: ANN401 - any part of a script
    """A server with one honest skill, and changes."""
    script: dict[str, Any] = {"skills": [make_entry()], "contents": make_contents(), **changes}
    return cast("Script", script)


def plain_skill(name: str, folder: str = "") -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """The entry and the contents of a skill with nothing but its SKILL.md."""
    place = f"skill://{folder}{name}"
    files = {"SKILL.md": make_skill_md(name)}
    front = {"name": name, "description": "Reads PDF files."}
    return make_entry(files, place, front), make_contents(files, place)


def write_script(script: Script, path: Path) -> list[str]:
    """The command that plays the script, which is written to a place."""
    path.write_text(json.dumps(script), encoding="utf-8")
    return [sys.executable, "-I", str(PROGRAM), str(path)]


def add_server(sandbox: CliSandbox, script: Script, label: str = LABEL) -> None:
    """Have the person of a sandbox name a server that is a command."""
    command = write_script(script, sandbox.sources / f"{label}.json")
    told = sandbox.run("mcp-servers", "add", "--overwrite", label, "--", *command)
    assert told.code == 0, told


@dataclass
class ScriptedHttpServer:
    """A scripted server by http: what it was asked, and odd ways to answer."""

    script: Script
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)  # headers, body, method
    token: str = ""
    is_streaming: bool = False  # whether it answers by events
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None  # in place of the answer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@contextmanager
def run_scripted_server(script: Script) -> Iterator[ScriptedHttpServer]:
    """The server in a thread, until the block is left."""
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
        """Say nothing: tests look at what is said."""


def _split(data: bytes) -> list[bytes]:
    """JSON over two lines of an event, as a server may write it."""
    return [data[:1], data[1:]]
