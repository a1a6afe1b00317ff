"""A deterministic server with OpenAI's embeddings API, on a real HTTP server.

The vector of a text is the sum of one pseudorandom direction for each word. Words with the same
meaning share a direction, so that paraphrases are similar.
"""

import base64
import json
import random
import re
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeAlias

DIMENSIONS = 64
PAUSE_TIMEOUT = 60  # seconds
MODEL = "words-64"
_WORD = re.compile(r"[a-z0-9]{3,}")
_MEANINGS = {
    "workbook": "spreadsheet",
    "excel": "spreadsheet",
    "sum": "total",
    "totals": "total",
    "slides": "presentation",
    "deck": "presentation",
    "picture": "image",
    "photo": "image",
}

Json: TypeAlias = dict[str, Any]
# Changes the document of a response; bytes replace the complete body.
Distortion: TypeAlias = Callable[[Json], "Json | bytes"]


class EmbeddingsRequest(NamedTuple):
    """One request, with its texts."""

    path: str
    model: str
    texts: list[str]
    authorization: str


@dataclass
class EmbeddingsServer:
    """A running server; its fields may be changed at any time."""

    url: str
    dimensions: int = DIMENSIONS
    requests: list[EmbeddingsRequest] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)  # of the next responses; then 200
    retry_after: str = ""
    formats: tuple[str, ...] = ("base64", "float")  # that are accepted
    rejected_word: str = ""  # a request with it gets the status 400
    distort: Distortion = lambda document: document
    release_event: threading.Event | None = None  # until it is set, nothing is sent

    @property
    def embedded_texts(self) -> list[str]:
        """All texts that were received, in order."""
        return [text for request in self.requests for text in request.texts]

    @contextmanager
    def pause_responses(self) -> Iterator[threading.Event]:
        """Send nothing until the event is set or the block ends."""
        self.release_event = threading.Event()
        try:
            yield self.release_event
        finally:
            self.release_event.set()
            self.release_event = None

    def respond(self, request: Json) -> tuple[int, bytes]:
        """Return the status and body of a response."""
        texts = request["input"]
        if self.statuses and (status := self.statuses.pop(0)) != 200:
            return status, b'{"error": {"message": "your key is sk-secret"}}'
        is_rejected = self.rejected_word and any(self.rejected_word in text for text in texts)
        if is_rejected or request["encoding_format"] not in self.formats:
            return 400, b'{"error": {"message": "no"}}'
        rows = [
            {
                "object": "embedding",
                "index": index,
                "embedding": _encode(
                    embed_words(text, self.dimensions), request["encoding_format"]
                ),
            }
            for index, text in enumerate(texts)
        ]
        # The API does not promise an order.
        document = self.distort({"object": "list", "data": rows[::-1], "model": request["model"]})
        return 200, document if isinstance(document, bytes) else json.dumps(document).encode()


def embed_words(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Return the vector of a text."""
    vector = [0.001] * dimensions
    for word in _WORD.findall(text.lower()):
        generator = random.Random(_MEANINGS.get(word, word))  # noqa: S311 - reproducible
        vector = [number + generator.gauss(0, 1) for number in vector]
    return vector


def _encode(vector: list[float], encoding: str) -> object:
    if encoding == "float":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


@contextmanager
def embeddings_server() -> Iterator[EmbeddingsServer]:
    """Run a server in a thread until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers.get("Authorization", "")
            running.requests.append(
                EmbeddingsRequest(self.path, request["model"], request["input"], key)
            )
            if running.release_event is not None:
                running.release_event.wait(PAUSE_TIMEOUT)
            status, body = running.respond(request)
            with suppress(OSError):  # the client may have disconnected
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if running.retry_after:
                    self.send_header("Retry-After", running.retry_after)
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running = EmbeddingsServer(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
