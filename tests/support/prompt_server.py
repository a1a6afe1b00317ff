"""Fake prompt server that uses the envelope of `/api/v1` and can misbehave."""

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

PROMPTS = "/api/v1/prompts"
META = {"timestamp": "2026-01-01T00:00:00Z", "requestId": "1", "version": "v1"}
DEADLINE = 120  # seconds


class PromptRequest(NamedTuple):
    """Received request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    request_line: str


Responder: TypeAlias = Callable[[BaseHTTPRequestHandler], None]


def respond_raw(status: int, body: bytes, **headers: str) -> Responder:
    """Respond with any status and body."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return send


def respond(data: object, **meta: object) -> Responder:
    """Respond with data in the envelope; `meta` is added to its `meta`."""
    envelope = {"success": True, "data": data, "meta": {**META, **meta}}
    return respond_raw(200, json.dumps(envelope).encode())


def respond_error(status: int, code: str, message: str) -> Responder:
    error = {"code": code, "message": message}
    return respond_raw(
        status, json.dumps({"success": False, "error": error, "meta": META}).encode()
    )


def respond_truncated(handler: BaseHTTPRequestHandler) -> None:
    """Send a response that is cut off."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"success": true')


def make_file(path: str, data: bytes | str) -> dict[str, str]:
    """Make a file of a response; a string is sent as its content, valid or not."""
    content = b64encode(data).decode() if isinstance(data, bytes) else data
    return {"path": path, "content": content}


@dataclass
class FakePromptServer:
    """Running server with the prompts that were added, in that order."""

    url: str
    closed: threading.Event
    prompts: list[dict[str, Any]] = field(default_factory=list)
    token: str = ""
    source: str = "built-in"
    meta: dict[str, object] = field(default_factory=dict)  # added to the listing's `meta`
    overrides: dict[str, Responder] = field(default_factory=dict)  # by path
    requests: list[PromptRequest] = field(default_factory=list)

    def add_prompt(
        self,
        name: str,
        text: str = "Do it.\n",
        *files: dict[str, str],
        description: str = "Does it.",
        arguments: list[dict[str, Any]] | None = None,
    ) -> None:
        """Add a prompt, or replace the one with the same name."""
        prompt = {"name": name, "description": description, "text": text, "files": list(files)}
        if arguments is not None:
            prompt["arguments"] = arguments
        for number, other in enumerate(self.prompts):
            if other["name"] == name:
                self.prompts[number] = prompt
                return
        self.prompts.append(prompt)

    def remove_prompt(self, name: str) -> None:
        self.prompts = [prompt for prompt in self.prompts if prompt["name"] != name]

    def never_respond(self, _handler: BaseHTTPRequestHandler) -> None:
        """Send nothing until the server closes."""
        self.closed.wait(DEADLINE)

    def find_responder(self, request: PromptRequest) -> Responder:
        if request.path in self.overrides:
            return self.overrides[request.path]
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return respond_error(401, "UNAUTHORIZED", "Authentication required")
        source = request.query.get("source") or request.query.get("repo") or self.source
        if request.method == "GET" and request.path == PROMPTS:
            keys = ("name", "description", "arguments")
            listed = [{k: p[k] for k in keys if k in p} for p in self.prompts]
            return respond({"prompts": listed, "source": source}, **self.meta)
        if request.path == f"{PROMPTS}/refresh":
            loaded = len(self.prompts)
            return respond({"refreshed": True, "promptsLoaded": loaded, "source": source})
        if request.path == f"{PROMPTS}/sources":
            count = len(request.body["files"])
            data = {"source": request.body["source"], "fileCount": count, "status": "ingested"}
            return respond({**data, "contentHash": request.body["contentHash"]})
        return self._respond_prompt(
            unquote(request.path.removeprefix(f"{PROMPTS}/")), request, source
        )

    def _respond_prompt(self, name: str, request: PromptRequest, source: str) -> Responder:
        prompt = next((prompt for prompt in self.prompts if prompt["name"] == name), None)
        if prompt is None:
            return respond_error(400, "VALIDATION_ERROR", f"Prompt not found: {name}")
        arguments = request.body["arguments"]
        declared = prompt.get("arguments", ())
        required = [argument["name"] for argument in declared if argument.get("required")]
        if missing := [name for name in required if not arguments.get(name)]:
            message = f"Missing required arguments: {', '.join(missing)}"
            return respond_error(400, "VALIDATION_ERROR", message)
        text = prompt["text"]
        for key, value in arguments.items():
            text = text.replace(f"{{{{{key}}}}}", value)
        content = {"type": "text", "text": text}
        messages = [{"role": "user", "content": content}]
        data = {"description": prompt["description"], "messages": messages, "source": source}
        return respond({**data, "files": prompt["files"]} if prompt["files"] else data)


@contextmanager
def run_prompt_server() -> Iterator[FakePromptServer]:
    """Run a server without prompts."""

    class Handler(BaseHTTPRequestHandler):
        timeout = DEADLINE

        def do_GET(self) -> None:
            self._respond()

        def do_POST(self) -> None:
            self._respond()

        def _respond(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = PromptRequest(
                self.command,
                parts.path,
                dict(parse_qsl(parts.query)),
                {name.lower(): value for name, value in self.headers.items()},
                json.loads(body) if body else None,
                self.requestline,
            )
            site.requests.append(request)
            site.find_responder(request)(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its signature
            """Log nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
            """Ignore clients that disconnect early."""

    with Server(("127.0.0.1", 0), Handler) as server:
        site = FakePromptServer(f"http://127.0.0.1:{server.server_port}", threading.Event())
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield site
        finally:
            site.closed.set()
            server.shutdown()
            thread.join(DEADLINE)
