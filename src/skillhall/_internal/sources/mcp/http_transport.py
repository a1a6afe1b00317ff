"""A line to an MCP server by http: one POST for each message, answered by JSON or by events.

The address is one that a person named. A host is looked up once and dialled as it was checked; an
answer leads nowhere else, and is read no further than its message.
"""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Final, cast

from skillhall._internal.net.addresses import AddressPolicy, is_loopback
from skillhall._internal.net.connection import Call, Network, Patience, Wire, open_line, told_of
from skillhall._internal.sources.mcp.transport import (
    MODERN,
    CallRefused,
    is_answer,
    parsed,
    written,
)
from skillhall._version import VERSION
from skillhall.errors import (
    ConfigInvalid,
    NotAuthenticated,
    RateLimited,
    SkillhallError,
    SourceUnavailable,
    TooLarge,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator, Mapping

    from skillhall._internal.net.url import WebUrl
    from skillhall._internal.settings import Secret
    from skillhall._internal.sources.mcp.transport import Message

_HERE = AddressPolicy.allowing("127.0.0.0/8", "::1/128").allowed
_JSON, _EVENTS = "application/json", "text/event-stream"
_CHUNK: Final = 64 * 1024  # bytes
_WORD = re.compile(r"[\x21-\x7e]{1,4096}")
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_SESSION = "Mcp-Session-Id"
_SECONDS = re.compile(r"[0-9]{1,6}")
_ACCEPTED = 202
_OK, _REDIRECTS, _FAULTS = range(200, 300), range(300, 400), range(500, 600)
_CLOSED_TO_US, _TOO_MANY = {401, 403}, 429
_SMALL: Final = 64 * 1024  # bytes of an answer that says nothing
_WAIT: Final = 60  # seconds, if a server asks to wait and does not say how long
_FAREWELL = Network(overall=3, idle=3)
_NO_VARIABLE = "a variable, and name it with --token-variable"
_UNREADABLE = "its answer cannot be read"
_IS_IT_ONE = "is it the address of an MCP server, as in https://host/mcp?"


@dataclass(slots=True)
class HttpLine:
    """One server and how to speak to it; `to` is the way to make one."""

    host: str
    url: WebUrl
    policy: AddressPolicy
    token: str = field(default="", repr=False)
    variable: str = ""  # that the token came from
    version: str = ""
    session: str = field(default="", repr=False)

    @classmethod
    def to(
        cls, url: WebUrl, policy: AddressPolicy, token: Secret | None = None, variable: str = ""
    ) -> HttpLine:
        """The line to an address, on which nothing is said yet. Raises: ConfigInvalid."""
        shown = "" if token is None else token.reveal()
        if shown and not _WORD.fullmatch(shown):
            raise ConfigInvalid(variable, "it is not one word of ASCII characters")
        # Who names this machine by its own name means it; other names must not lead here.
        allowed = (*policy.allowed, *_HERE) if is_loopback(url.host) else policy.allowed
        return cls(url.host, url, AddressPolicy(allowed), shown, variable)

    def ask(self, request: Message, at_most: int, patience: Patience) -> Message:
        """The response to a request. Raises: as `Line` says."""
        with self._exchange(self._post(request), at_most, patience) as response:
            self._judge(response)
            self.session = self._session_of(response)
            message = self._answer(response, request, at_most)
            if message is not None:
                return message
            if response.status not in _OK:
                problem = f"it answers with status {response.status}"
                raise CallRefused(self.host, problem, status=response.status)
        raise SourceUnavailable(self.host, _UNREADABLE, _IS_IT_ONE)

    def tell(self, notification: Message, patience: Patience) -> None:
        """Send what has no response. Raises: as `Line` says."""
        with self._exchange(self._post(notification), _SMALL, patience) as response:
            self._judge(response)

    def close(self, *, at_once: bool = False) -> None:
        """Tell the server that its session is over, if there is one; it need not listen."""
        if self.session and not at_once:
            farewell = self._written("DELETE", {}, b"")
            with suppress(SkillhallError), self._exchange(farewell, _SMALL, Patience(_FAREWELL)):
                self.session = ""

    @contextmanager
    def _exchange(self, data: bytes, at_most: int, patience: Patience) -> Iterator[HTTPResponse]:
        """The answer to what is sent, its body not read yet. Raises: as `Line` says."""
        call = Call(self.url, patience, Network())
        with told_of(self.host), closing(open_line(call, self.policy)) as line:
            line.settimeout(patience.next())
            line.sendall(data)
            # Of a socket, http.client uses `makefile` only.
            wire = cast("socket.socket", Wire(line, call, at_most))
            with closing(HTTPResponse(wire, method="POST")) as response:
                response.begin()
                yield response

    def _post(self, message: Message) -> bytes:
        headers = {"Accept": f"{_JSON}, {_EVENTS}", "Content-Type": _JSON}
        if self.version == MODERN:
            headers["Mcp-Method"] = str(message["method"])
            params = message.get("params")
            if message["method"] == "resources/read" and isinstance(params, dict):
                headers["Mcp-Name"] = _header(str(params["uri"]))
        return self._written("POST", headers, written(message))

    def _written(self, method: str, more: Mapping[str, str], body: bytes) -> bytes:
        headers = {
            "Host": self.url.authority,
            "User-Agent": f"skillhall/{VERSION}",
            "Accept-Encoding": "identity",
            "Connection": "close",
            "Content-Length": str(len(body)),
            **more,
            "MCP-Protocol-Version": self.version,
            _SESSION: self.session,
            "Authorization": f"Bearer {self.token}" if self.token else "",
        }
        lines = [f"{name}: {text}" for name, text in headers.items() if text]
        return "\r\n".join([f"{method} {self.url.target} HTTP/1.1", *lines, "", ""]).encode() + body

    def _judge(self, response: HTTPResponse) -> None:
        """Refuse what is wrong with the answer as such. Raises: SkillhallError."""
        status = response.status
        if status in _CLOSED_TO_US:
            raise NotAuthenticated(self.host, self.variable or _NO_VARIABLE)
        if status in _REDIRECTS:
            hint = "name the address that it redirects to"
            raise SourceUnavailable(self.host, "it redirects", hint, status=status)
        if status == _TOO_MANY:
            asked = response.headers.get("Retry-After", "")
            raise RateLimited(self.host, int(asked) if _SECONDS.fullmatch(asked) else _WAIT)
        if status in _FAULTS:
            raise SourceUnavailable(self.host, f"it answers with status {status}", status=status)

    def _session_of(self, response: HTTPResponse) -> str:
        given = response.headers.get(_SESSION, "")
        return given if _WORD.fullmatch(given) else self.session

    def _answer(self, response: HTTPResponse, request: Message, at_most: int) -> Message | None:
        """The response to the request, if the answer holds one. Raises: TooLarge, OSError."""
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if response.status == _ACCEPTED or kind not in {_JSON, _EVENTS}:
            return None
        pieces = _bounded(response, self.host, at_most)
        for data in _events(pieces) if kind == _EVENTS else [b"".join(pieces)]:
            message = parsed(data)
            if message is None:
                return None
            if message.get("id") is None and "error" in message:
                message["id"] = request["id"]  # refused before it was read
            if is_answer(message, request):
                return message
        return None


def _bounded(response: HTTPResponse, host: str, at_most: int) -> Iterator[bytes]:
    """The body, piece by piece as it comes. Raises: TooLarge, SourceUnavailable, OSError."""
    # Counted here: some versions of http.client forget to, and would wait for more.
    announced, count = response.length, 0
    while announced is None or count < announced:
        piece = response.read1(_CHUNK)
        if not piece:
            break
        count += len(piece)
        if count > at_most:
            raise TooLarge(host, at_most)
        yield piece
    if announced is not None and count < announced:
        raise SourceUnavailable(host, "its answer ends too early")


def _events(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each server-sent event."""
    data: list[bytes] = []
    for line in _lines(pieces):
        if line.startswith(b"data:"):
            data.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line:
            if any(data):  # an empty one only says that the server is there
                yield b"\n".join(data)
            data = []


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = bytearray()
    for piece in pieces:
        looked = len(rest)
        rest += piece
        while (end := rest.find(b"\n", looked)) >= 0:
            yield bytes(rest[:end]).removesuffix(b"\r")
            del rest[: end + 1]
            looked = 0


def _header(text: str) -> str:
    """The text as a header may hold it, in the protocol's own way if it is not plain."""
    if _PLAIN.fullmatch(text) and not text.startswith("=?"):
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="
