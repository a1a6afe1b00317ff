"""A scripted model behind a real HTTP server, in the formats of three providers.

The turn that it sends is chosen by the number of tool results since the last user message: none
selects the first turn of the script, one the second, and so on. Requests are recorded in a neutral
form, so that one assertion works for every client. A script can also be one function that returns
the turn for a request; `HttpFailure` makes the request fail.
"""

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeAlias

_NUMBERS = itertools.count(1)  # for the ids of calls
PAUSE_TIMEOUT = 30  # seconds
MAX_REQUESTS = 20  # a client that sends more is in a loop

Json: TypeAlias = Mapping[str, Any]


class ToolCall(NamedTuple):
    """A turn in which the model calls a tool."""

    tool: str
    arguments: dict[str, Any]


class HttpFailure(NamedTuple):
    """A request that fails with this status."""

    status: int
    retry_after: str = ""


class RawReply(NamedTuple):
    """An event of a stream that need not be in the format of the provider."""

    data: bytes


Turn: TypeAlias = ToolCall | str


class ModelRequest(NamedTuple):
    """One request to the model."""

    path: str
    system: str
    tools: dict[str, Json]  # the JSON Schemas of the parameters, by name
    user_messages: list[str]
    tool_results: list[str]  # since the last user message


ScriptFunction: TypeAlias = Callable[[ModelRequest], Turn | HttpFailure | RawReply]


@dataclass
class ModelServer:
    """A running server."""

    url: str
    script: Sequence[Turn] | ScriptFunction
    max_requests: int = MAX_REQUESTS
    requests: list[ModelRequest] = field(default_factory=list)
    status: int = 200
    release_event: threading.Event | None = (
        None  # until it is set, only the first part of a text is sent
    )

    @contextmanager
    def pause_replies(self) -> Iterator[threading.Event]:
        """Send only the first part of each text until the event is set or the block ends."""
        self.release_event = threading.Event()
        try:
            yield self.release_event
        finally:
            self.release_event.set()
            self.release_event = None

    def next_turn(self, request: ModelRequest) -> Turn | HttpFailure | RawReply:
        self.requests.append(request)
        if len(self.requests) > self.max_requests:
            return "This goes on for too long."
        if callable(self.script):
            return self.script(request)
        return self.script[min(len(request.tool_results), len(self.script) - 1)]


@contextmanager
def model_server(
    *script: Turn, function: ScriptFunction | None = None, max_requests: int = MAX_REQUESTS
) -> Iterator[ModelServer]:
    """Run a server in a thread until the block ends; `function` replaces the script."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            wire = next(wire for part, wire in FORMATS_BY_PATH.items() if part in self.path)
            if playing.status != 200:
                self._send("application/json", b'{"error": {"message": "no"}}', playing.status)
                return
            turn = playing.next_turn(wire.parse_request(self.path, request))
            if isinstance(turn, HttpFailure):
                error = b'{"error": {"message": "no"}}'
                self._send("application/json", error, turn.status, retry_after=turn.retry_after)
                return
            if isinstance(turn, RawReply):
                self._send("text/event-stream", b"data: " + turn.data + b"\n\n")
                return
            is_stream = bool(request.get("stream")) or "stream" in self.path
            if is_stream:
                pieces = [*map(_encode_event, wire.stream_reply(turn))]
                first = len(pieces[0]) if isinstance(turn, str) else 0
                self._send("text/event-stream", b"".join(pieces), first=first)
            else:
                self._send("application/json", json.dumps(wire.build_reply(turn)).encode())

        def _send(
            self, kind: str, body: bytes, status: int = 200, first: int = 0, retry_after: str = ""
        ) -> None:
            self.send_response(status)
            if retry_after:
                self.send_header("Retry-After", retry_after)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:first])
            if first and playing.release_event is not None:
                playing.release_event.wait(PAUSE_TIMEOUT)
            with suppress(OSError):  # the waiting client may have disconnected
                self.wfile.write(body[first:])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    playing = ModelServer(url, function or script, max_requests)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield playing
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class StreamEvent(NamedTuple):
    name: str  # "" if the format has no names
    data: object


class ProviderFormat(NamedTuple):
    """One provider's format."""

    parse_request: Callable[[str, Json], ModelRequest]
    build_reply: Callable[[Turn], Json]
    stream_reply: Callable[[Turn], Iterator[StreamEvent]]


def _encode_event(event: StreamEvent) -> bytes:
    data = event.data if isinstance(event.data, str) else json.dumps(event.data)
    name = f"event: {event.name}\n" if event.name else ""
    return f"{name}data: {data}\n\n".encode()


def _messages_since(messages: Sequence[Json], is_user: Callable[[Json], bool]) -> Sequence[Json]:
    last = max((at for at, one in enumerate(messages) if is_user(one)), default=-1)
    return messages[last + 1 :]


def _join_texts(content: Any) -> str:  # noqa: ANN401 - text or a list of parts
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(part.get("text", "") for part in content)


# OpenAI's chat completions, which many servers support.


def _read_openai(path: str, request: Json) -> ModelRequest:
    messages = request["messages"]
    latest = _messages_since(messages, lambda one: one["role"] == "user")
    return ModelRequest(
        path,
        "\n\n".join(
            _join_texts(m["content"]) for m in messages if m["role"] in ("system", "developer")
        ),
        {
            one["function"]["name"]: one["function"]["parameters"]
            for one in request.get("tools", [])
        },
        [_join_texts(one["content"]) for one in messages if one["role"] == "user"],
        [_join_texts(one["content"]) for one in latest if one["role"] == "tool"],
    )


def _openai_message(turn: Turn) -> Json:
    if isinstance(turn, str):
        return {"role": "assistant", "content": turn}
    function = {"name": turn.tool, "arguments": json.dumps(turn.arguments)}
    call = {"index": 0, "id": f"call-{next(_NUMBERS)}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


_OPENAI_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
_OPENAI = {"id": "c1", "created": 1, "model": "scripted"}


def _build_openai(turn: Turn) -> Json:
    reason = "stop" if isinstance(turn, str) else "tool_calls"
    choice = {"index": 0, "message": _openai_message(turn), "finish_reason": reason}
    return {**_OPENAI, "object": "chat.completion", "choices": [choice], "usage": _OPENAI_USAGE}


def _stream_openai(turn: Turn) -> Iterator[StreamEvent]:
    def chunk(delta: Json, reason: str | None = None) -> StreamEvent:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return StreamEvent("", {**_OPENAI, "object": "chat.completion.chunk", "choices": [choice]})

    if isinstance(turn, str):
        yield from (chunk({"content": f"{word} "}) for word in turn.split(" ")[:-1])
        yield chunk({"content": turn.split(" ")[-1]})
        yield chunk({}, "stop")
    else:
        yield chunk(_openai_message(turn))
        yield chunk({}, "tool_calls")
    usage = {"object": "chat.completion.chunk", "choices": [], "usage": _OPENAI_USAGE}
    yield StreamEvent("", {**_OPENAI, **usage})
    yield StreamEvent("", "[DONE]")


# Anthropic's messages.


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _read_anthropic(path: str, request: Json) -> ModelRequest:
    messages = request["messages"]
    spoken = [b["text"] for m in messages if m["role"] == "user" for b in _blocks(m) if "text" in b]
    latest = _messages_since(messages, lambda m: m["role"] == "user" and "text" in _blocks(m)[0])
    results = [b for m in latest for b in _blocks(m) if b["type"] == "tool_result"]
    return ModelRequest(
        path,
        _join_texts(request.get("system")),
        {one["name"]: one["input_schema"] for one in request.get("tools", [])},
        spoken,
        [_join_texts(block["content"]) for block in results],
    )


_ANTHROPIC_USAGE = {"input_tokens": 10, "output_tokens": 5}


def _build_anthropic(turn: Turn) -> Json:
    block: Json = {"type": "text", "text": turn}
    if not isinstance(turn, str):
        name, given = turn
        identity = f"call-{next(_NUMBERS)}"
        block = {"type": "tool_use", "id": identity, "name": name, "input": given}
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [block],
        "stop_reason": "end_turn" if isinstance(turn, str) else "tool_use",
        "stop_sequence": None,
        "usage": _ANTHROPIC_USAGE,
    }


def _stream_anthropic(turn: Turn) -> Iterator[StreamEvent]:
    def event(name: str, **fields: object) -> StreamEvent:
        return StreamEvent(name, {"type": name, **fields})

    message = _build_anthropic(turn)
    (block,) = message["content"]
    usage = {**_ANTHROPIC_USAGE, "output_tokens": 0}
    start = {**message, "content": [], "stop_reason": None, "usage": usage}
    yield event("message_start", message=start)
    if isinstance(turn, str):
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        delta: Json = {"type": "text_delta", "text": turn}
    else:
        yield event("content_block_start", index=0, content_block={**block, "input": {}})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": 5})
    yield event("message_stop")


# Google's generateContent.


def _read_google(path: str, request: Json) -> ModelRequest:
    contents = request["contents"]
    system = request.get("systemInstruction") or {"parts": []}
    declared = [d for one in request.get("tools", []) for d in one["functionDeclarations"]]
    latest = _messages_since(
        contents, lambda one: "text" in one["parts"][0] and one["role"] == "user"
    )
    responses = [
        p["functionResponse"] for m in latest for p in m["parts"] if "functionResponse" in p
    ]
    spoken = [m["parts"] for m in contents if m["role"] == "user"]
    return ModelRequest(
        path,
        _join_texts(system["parts"]),
        {one["name"]: one["parameters_json_schema"] for one in declared},
        [part["text"] for parts in spoken for part in parts if "text" in part],
        [next(iter(one["response"].values())) for one in responses],
    )


def _build_google(turn: Turn) -> Json:
    part: Json = {"text": turn}
    if not isinstance(turn, str):
        part = {"functionCall": {"name": turn.tool, "args": turn.arguments}}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}


def _stream_as_one_event(
    build_reply: Callable[[Turn], Json],
) -> Callable[[Turn], Iterator[StreamEvent]]:
    return lambda turn: iter([StreamEvent("", build_reply(turn))])


FORMATS_BY_PATH = {
    "/chat/completions": ProviderFormat(_read_openai, _build_openai, _stream_openai),
    "/messages": ProviderFormat(_read_anthropic, _build_anthropic, _stream_anthropic),
    "enerateContent": ProviderFormat(
        _read_google, _build_google, _stream_as_one_event(_build_google)
    ),
}
