"""Sends the requests of a scenario and returns their recordings."""

import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.compatibility.compare import value_at
from tests.compatibility.normalize import TEXT, Normalizer, etag
from tests.compatibility.program import Response, Server

# Headers that clients rely on. Of those in _PRESENT the value differs from run to run.
_HEADERS = (
    "allow",
    "cache-control",
    "content-disposition",
    "content-security-policy",
    "content-type",
    "location",
    "referrer-policy",
    "vary",
    "www-authenticate",
    "x-content-type-options",
    "x-frame-options",
)
_PRESENT = ("mcp-session-id", "retry-after", "x-request-id")
_METRIC = re.compile(r"^(skillhall_\w+?)(_bucket)?(?:\{(.*)\})? \S+$")
_LABEL = re.compile(r'(\w+)="(?:[^"\\]|\\.)*"')
_IS_ID = re.compile(r"[0-9a-f]{16,32}")
_DESCRIPTION = re.compile(r"^description: .*$", re.MULTILINE)
BOUNDARY = "recorded-boundary"


@dataclass(frozen=True)
class Zip:
    """A request body: a zip file with these files."""

    files: Mapping[str, str]

    def data(self) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, text in self.files.items():
                archive.writestr(zipfile.ZipInfo(name), text)
        return buffer.getvalue()


@dataclass(frozen=True)
class Form:
    """A request body: a multipart form with fields and one file."""

    fields: Mapping[str, str]
    filename: str
    content: bytes

    def data(self) -> bytes:
        lines = []
        for name, value in self.fields.items():
            head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"'
            lines.append(f"{head}\r\n\r\n{value}\r\n".encode())
        head = (
            f"--{BOUNDARY}\r\nContent-Disposition: form-data; "
            f'name="file"; filename="{self.filename}"\r\nContent-Type: application/octet-stream'
        )
        lines += [f"{head}\r\n\r\n".encode(), self.content, f"\r\n--{BOUNDARY}--\r\n".encode()]
        return b"".join(lines)


Body = dict[str, Any] | list[Any] | bytes | Zip | Form | None


@dataclass(frozen=True)
class Call:
    """A request, and the values of its response that later requests use.

    `{name}` in a path, a header or a body is replaced with a saved value, which comes from the
    JSON body (`data.id`) or from a header (`header etag`).
    """

    name: str
    method: str
    path: str
    body: Body = None
    headers: Mapping[str, str] = field(default_factory=dict)
    save: Mapping[str, str] = field(default_factory=dict)
    prose: frozenset[str] = frozenset()
    kind: str = ""  # "stream" reads the first event, "announce" sends no body
    times: int = 1  # number of requests; the last response is recorded

    @property
    def content_type(self) -> str:
        if isinstance(self.body, Zip):
            return "application/zip"
        if isinstance(self.body, Form):
            return f"multipart/form-data; boundary={BOUNDARY}"
        return "application/json"

    def recorded_body(self) -> Any:  # noqa: ANN401 - JSON
        if isinstance(self.body, Zip):
            return {"zip": dict(self.body.files)}
        if isinstance(self.body, Form):
            return {"form": dict(self.body.fields), "file": self.body.filename}
        return self.body.decode() if isinstance(self.body, bytes) else self.body


class Recorder:
    """Sends calls to one server and keeps the values that they save."""

    def __init__(self, server: Server, normalizer: Normalizer, values: Mapping[str, str]) -> None:
        self._server = server
        self._normalizer = normalizer
        self._values = dict(values)

    def run(self, calls: tuple[Call, ...]) -> list[dict[str, Any]]:
        """Return the requests and responses of a topic, in order."""
        return [self._step(call) for call in calls]

    def _step(self, call: Call) -> dict[str, Any]:
        response = self._send(call)
        for name, path in call.save.items():
            self._save(name, _saved_value(response, path) or f"no-{name}")
        request: dict[str, Any] = {"method": call.method, "path": call.path}
        if call.times > 1:
            request["times"] = call.times
        if call.headers:
            request["headers"] = dict(call.headers)
        if call.body is not None:
            request["body"] = call.recorded_body()
        return {"name": call.name, "request": request, "response": self._recorded(call, response)}

    def _send(self, call: Call) -> Response:
        path = self._fill(call.path)
        headers = {name: self._fill(value) for name, value in call.headers.items()}
        if call.kind == "stream":
            return self._server.first_event(path, headers)
        if call.kind == "announce":
            return self._server.announce(call.method, path, 200 * 2**20)
        data = self._data(call)
        if data is not None:
            headers.setdefault("Content-Type", call.content_type)
        for _ in range(call.times - 1):
            self._server.request(call.method, path, data, headers)
        return self._server.request(call.method, path, data, headers)

    def _data(self, call: Call) -> bytes | None:
        if call.body is None or isinstance(call.body, bytes):
            return call.body
        if isinstance(call.body, Zip | Form):
            return call.body.data()
        return self._fill(json.dumps(call.body)).encode()

    def _fill(self, text: str) -> str:
        for name, value in self._values.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def _save(self, name: str, value: str) -> None:
        self._values[name] = value
        if _IS_ID.fullmatch(value):
            self._normalizer.names.setdefault(value, name)

    def _recorded(self, call: Call, response: Response) -> dict[str, Any]:
        headers = {
            name: self._normalizer.text(response.headers[name])
            for name in _HEADERS
            if name in response.headers
        }
        headers |= {name: "<SET>" for name in _PRESENT if name in response.headers}
        if "etag" in response.headers:
            headers["etag"] = etag(response.headers["etag"])
        recorded: dict[str, Any] = {"status": response.status, "headers": headers}
        if response.body:
            recorded |= self._body(call, response)
        return recorded

    def _body(self, call: Call, response: Response) -> dict[str, Any]:
        media_type = response.headers.get("content-type", "").partition(";")[0]
        if media_type == "application/json":
            return {"json": self._normalizer.value(json.loads(response.body), call.prose)}
        if media_type == "text/html":
            return {"html": True}
        if call.path == "/metrics":
            return {"metrics": metrics(response.body.decode())}
        if response.body.startswith(b"PK"):
            return {"zip": self._zip(response.body, call.prose)}
        text = response.body.decode("utf-8")
        if media_type == "text/event-stream":
            return {"event": self._event(text, call.prose)}
        return {"text": self._normalizer.text(text)}

    def _zip(self, data: bytes, prose: frozenset[str]) -> dict[str, str]:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            texts = [archive.read(name).decode("utf-8") for name in names]
        if "description" in prose:
            texts = [_DESCRIPTION.sub(f"description: {TEXT}", text) for text in texts]
        return dict(zip(names, map(self._normalizer.text, texts), strict=True))

    def _event(self, text: str, prose: frozenset[str]) -> dict[str, Any]:
        lines = [line.partition(": ") for line in text.splitlines() if line]
        fields: dict[str, Any] = {name: value for name, _, value in lines}
        if "data" in fields:
            fields["data"] = self._normalizer.value(json.loads(fields["data"]), prose)
        return fields


def metrics(text: str) -> dict[str, list[str]]:
    """Return the names of the metrics with their labels."""
    labels_by_name: dict[str, set[str]] = {}
    for line in text.splitlines():
        match = _METRIC.match(line)
        if match:
            labels = {label.group(1) for label in _LABEL.finditer(match.group(3) or "")}
            name = match.group(1) + (match.group(2) or "")
            labels_by_name.setdefault(name, set()).update(labels)
    return {name: sorted(labels) for name, labels in sorted(labels_by_name.items())}


def _saved_value(response: Response, path: str) -> str:
    if path.startswith("header "):
        return response.headers.get(path.removeprefix("header "), "")
    return value_at(json.loads(response.body), path)
