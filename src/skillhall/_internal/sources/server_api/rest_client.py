"""A server that a person names, and what it answers: JSON in the envelope of `/api/v1`.

The address is the person's own choice, so any is dialled. What comes back is not trusted: it has a
deadline and a size, leads nowhere else, and is JSON or nothing.
"""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import dataclass, field, replace
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, cast
from urllib.parse import urlencode

from skillhall._internal.net.addresses import AddressPolicy, is_loopback
from skillhall._internal.net.connection import Call, Network, Patience, Wire, open_line, told_of
from skillhall._internal.net.url import WebUrl
from skillhall._version import VERSION
from skillhall.errors import (
    ConfigInvalid,
    NotAuthenticated,
    ServerRefused,
    SourceRejected,
    SourceUnavailable,
    TooLarge,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from skillhall._internal.settings import Secret

MAX_ANSWER: Final = 128 * 1024 * 1024  # bytes; a skill of 100 MiB in base64 is a little more
TOKEN_VARIABLE: Final = "SKILLHALL_SERVER_TOKEN"  # noqa: S105 - the name of a variable
GIT_TOKEN_VARIABLE: Final = "SKILLHALL_GIT_TOKEN"  # noqa: S105 - the same
_ANY = AddressPolicy.allowing("0.0.0.0/0", "::/0")
_CHUNK = 256 * 1024  # bytes
_LINE = re.compile(r"[\x21-\x7e]{1,4096}")
_UNAUTHENTICATED = 401
_REDIRECTS = range(300, 400)
_OK = range(200, 300)
_UNREADABLE = "its answer cannot be read"


class Told(NamedTuple):
    """What a server answers, and what it says about the answer."""

    data: Mapping[str, object]
    meta: Mapping[str, object]


class Patient(NamedTuple):
    """How long we wait: to be heard at all, and for an answer, which may need a clone first."""

    connecting: Network = Network(overall=10, idle=10)
    answering: Network = Network(overall=180, idle=150)


PATIENT: Final = Patient()


@dataclass(frozen=True, slots=True)
class Server:
    """One server and how to speak to it; `at` is the way to make one."""

    url: WebUrl
    token: str = field(default="", repr=False)
    git_token: str = field(default="", repr=False)  # for a repository that it is asked to read
    patient: Patient = PATIENT
    max_answer: int = MAX_ANSWER

    @classmethod
    def at(cls, text: str, token: Secret | None = None, patient: Patient = PATIENT) -> Server:
        """The server at an http or https address. Raises: SourceRejected, ConfigInvalid."""
        url = WebUrl.parse(text.rstrip("/"))
        if url.query or url.fragment:
            raise SourceRejected("url", text, "a server's address has no query and no fragment")
        return cls(url, _checked(token, TOKEN_VARIABLE), patient=patient)

    def with_git_token(self, token: Secret) -> Server:
        """The same server with a token for a repository, if nobody can read it on the way there.

        Raises: ConfigInvalid.
        """
        if self.url.scheme != "https" and not is_loopback(self.url.host):
            return self
        return replace(self, git_token=_checked(token, GIT_TOKEN_VARIABLE))

    @property
    def host(self) -> str:
        """What messages call it."""
        return self.url.host

    @property
    def address(self) -> str:
        """The address without anything secret, in one spelling."""
        return self.url.place.rstrip("/")

    def get(self, path: str, query: Mapping[str, str]) -> Told:
        """An answer. Raises: SourceUnavailable, NotAuthenticated, ServerRefused."""
        return self._ask("GET", path, query, None)

    def post(self, path: str, query: Mapping[str, str], body: object) -> Told:
        """The answer to a JSON body. Raises: as `get`."""
        return self._ask("POST", path, query, json.dumps(body).encode())

    def unreadable(self, detail: str = "") -> SourceUnavailable:
        """What to raise for an answer that is not what was agreed."""
        problem = f"{_UNREADABLE}: {detail}" if detail else _UNREADABLE
        return SourceUnavailable(self.host, problem, "is it a Skillhall server, and of this age?")

    def _ask(self, method: str, path: str, query: Mapping[str, str], body: bytes | None) -> Told:
        target = self.url.path.rstrip("/") + path
        if any(query.values()):
            target += f"?{urlencode({key: text for key, text in query.items() if text})}"
        try:
            status, data = self._exchange(method, self._written(method, target, body))
        except TooLarge:
            problem = f"its answer is larger than {self.max_answer} bytes"
            raise SourceUnavailable(self.host, problem) from None
        return self._judged(status, data)

    def _written(self, method: str, target: str, body: bytes | None) -> bytes:
        lines = [
            f"{method} {target} HTTP/1.1",
            f"Host: {self.url.authority}",
            f"User-Agent: skillhall/{VERSION}",
            "Accept: application/json",
            "Accept-Encoding: identity",
            "Connection: close",
        ]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        if self.token:
            lines.append(f"Authorization: Bearer {self.token}")
        if self.git_token:
            lines.append(f"X-Skillhall-Git-Token: {self.git_token}")
        return "\r\n".join([*lines, "", ""]).encode("ascii") + (body or b"")

    def _exchange(self, method: str, written: bytes) -> tuple[int, bytes]:
        """The status and the body. Raises: SourceUnavailable, TooLarge."""
        with told_of(self.host):
            line = open_line(self._call(self.patient.connecting), _ANY)
        with closing(line), told_of(self.host):
            call = self._call(self.patient.answering)
            line.settimeout(call.patience.next())
            line.sendall(written)
            # Of a socket, http.client uses `makefile` only.
            wire = cast("socket.socket", Wire(line, call, self.max_answer))
            with closing(HTTPResponse(wire, method=method)) as response:
                response.begin()
                return response.status, self._body(response)

    def _call(self, network: Network) -> Call:
        return Call(self.url, Patience(network), network)

    def _body(self, response: HTTPResponse) -> bytes:
        pieces, count = [], 0
        while piece := response.read(_CHUNK):
            count += len(piece)
            if count > self.max_answer:
                raise TooLarge(self.host, self.max_answer)
            pieces.append(piece)
        if response.length:  # of what was announced, this is missing
            raise SourceUnavailable(self.host, "its answer ends too early")
        return b"".join(pieces)

    def _judged(self, status: int, data: bytes) -> Told:
        if status == _UNAUTHENTICATED:
            raise NotAuthenticated(self.host, TOKEN_VARIABLE)
        if status in _REDIRECTS:
            hint = "name the address that it redirects to"
            raise SourceUnavailable(self.host, "it redirects", hint, status=status)
        answer = _parsed(data)
        if isinstance(answer, dict) and answer.get("success") is True and status in _OK:
            found, meta = answer.get("data"), answer.get("meta")
            if isinstance(found, dict):
                return Told(found, meta if isinstance(meta, dict) else {})
        if isinstance(answer, dict) and isinstance(error := answer.get("error"), dict):
            raise ServerRefused(self.host, status, self._without_tokens(error.get("message")))
        if status not in _OK:
            raise SourceUnavailable(self.host, f"it answers with status {status}", status=status)
        raise self.unreadable()

    def _without_tokens(self, message: object) -> str:
        """A message of the server, which may repeat what it was sent."""
        text = message if isinstance(message, str) and message else "it gives no reason"
        for token in filter(None, (self.token, self.git_token)):
            text = text.replace(token, "***")
        return text


def _checked(token: Secret | None, variable: str) -> str:
    """The token as it can stand in a header. Raises: ConfigInvalid."""
    shown = "" if token is None else token.reveal()
    if shown and not _LINE.fullmatch(shown):
        raise ConfigInvalid(variable, "it is not one word of ASCII characters")
    return shown


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
