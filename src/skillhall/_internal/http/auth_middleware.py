"""Who may ask at all: the right name, the right origin, the right token. It protects every path."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from skillhall._internal.http.credentials import Keys
from skillhall._internal.http.errors import error_answer
from skillhall._internal.http.http_error import Refused
from skillhall._internal.http.request import HEAD_TOO_LARGE, HEADERS, OVERSIZED, REQUEST_ID
from skillhall._internal.http.response import Answer
from skillhall._internal.http.token_revocation import OpenRequests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping
    from urllib.parse import SplitResult

    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillhall._internal.http.credentials import Credential
    from skillhall._internal.settings import ServerSettings

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/api/v1/openapi.json", "/api/v1/openapi"})
SIGNED_PATHS = frozenset({"/api/v1/webhooks/git"})  # their signature says who asks
SIGN_IN = "/sign-in"  # the page that takes a token from a person, and gives a cookie for it
OPEN_FOLDER = "/static/"  # what every page needs, that one too
MACHINES = ("/api/", "/mcp", "/metrics", "/.well-known/")  # whoever asks there is no person
ORIGIN_ALWAYS = ("/mcp",)  # what paths begin with where a foreign page may not even read
SOURCE_BY_QUERY = "/api/v1/prompts"  # what paths begin with where a query makes the server fetch

_MAX_NAMES = 64

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITE = (b"same-origin", b"none")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PORTS = {"http": 80, "https": 443}
_WANTED = frozenset({b"host", b"origin", b"sec-fetch-site", b"authorization", b"cookie"})
_AMBIGUOUS = b"\0"  # stands for a header that came more than once
_CLOSE = ((b"connection", b"close"),)
_CHALLENGE = ((b"www-authenticate", b"Bearer"),)


class _Place(NamedTuple):
    """A host, in small letters, and its port."""

    host: str
    port: int | None

    @classmethod
    def parse(cls, text: str, default_port: int) -> _Place | None:
        """The place that a Host header names, or None."""
        host, port = text, str(default_port)
        if not host.endswith("]") and ":" in host:
            host, _, port = host.rpartition(":")
        if not host or not port.isascii() or not port.isdigit():
            return None
        return cls(host, int(port[:6]))


class Guard:
    """Lets through what may be answered, and refuses the rest in our own shape."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, keys: Keys | None = None) -> None:
        self._app = app
        self._hosts = frozenset(name.lower() for name in settings.allowed_hosts)
        self._public = urlsplit(settings.public_url)
        self._public_names = _names(self._public)
        self._keys = keys or Keys(settings)
        self._open_requests = OpenRequests(self._keys)
        self._known: set[tuple[bytes, tuple[str, int]]] = set()  # hosts that were found right

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer for the app, or let it answer."""
        if scope["type"] == "http":
            try:
                credential = self._check(scope)
            except Refused as refusal:
                if refusal.code == "unauthenticated" and is_person(scope):
                    return _to_sign_in(scope).send(send)
                return error_answer(refusal, scope[REQUEST_ID]).send(send)
            if credential is not None and credential.token is not None:
                return self._open_requests.answer(credential, self._app, scope, receive, send)
        return self._app(scope, receive, send)

    def _check(self, scope: Scope) -> Credential | None:
        """The credential, where one is needed. Raises: Refused."""
        if OVERSIZED in scope:
            raise Refused("head_too_large", HEAD_TOO_LARGE, headers=_CLOSE)
        headers = scope[HEADERS]
        if len(headers) < len(scope["headers"]):
            headers = _without_doubles(scope)
        if not self._is_our_name(headers.get(b"host"), scope):
            raise Refused("misdirected", "this server is not known by that name")
        path = scope["path"]
        if path in SIGNED_PATHS:
            return None
        if self._is_foreign(headers, scope):
            raise Refused("cross_origin", "pages of other sites may not do that")
        if not self._keys.are_needed or _is_open(scope):
            return None
        return self._authenticate(headers, scope)

    def _is_our_name(self, host: bytes | None, scope: Scope) -> bool:
        """Whether Host names this server; a page that points its own name here says another."""
        server = scope["server"]
        if host is None or (host, server) in self._known:
            return host is not None
        text = host.decode("latin-1").lower()
        if text in self._public_names:
            return True
        place = _Place.parse(text, _PORTS.get(scope["scheme"], 80))
        if place is None or not self._is_known(place, str(server[0]), server[1]):
            return False
        if len(self._known) < _MAX_NAMES:  # one name can be written in many ways
            self._known.add((host, server))
        return True

    def _is_known(self, place: _Place, address: str, port: int) -> bool:
        own = f"[{address}]" if ":" in address else address
        if (place.host in _LOOPBACK or place.host == own) and place.port == port:
            return True
        return not self._hosts.isdisjoint({place.host, f"{place.host}:{place.port}"})

    def _is_foreign(self, headers: Mapping[bytes, bytes], scope: Scope) -> bool:
        """Whether a page of another site asks for more than it may."""
        origin = headers.get(b"origin")
        if scope["path"].startswith(ORIGIN_ALWAYS):
            return origin is not None and not self._is_own(origin, headers[b"host"], scope)
        if _bearer(headers.get(b"authorization")) is not None:
            return False
        if scope["method"] in _SAFE_METHODS and not _names_source(scope):
            return False
        site = headers.get(b"sec-fetch-site")
        if site is not None:
            return site not in _OWN_SITE
        return origin is not None and not self._is_own(origin, headers[b"host"], scope)

    def _is_own(self, origin: bytes, host: bytes, scope: Scope) -> bool:
        text = origin.lower().decode("latin-1")
        if text == f"{scope['scheme']}://{host.decode('latin-1').lower()}":
            return True
        scheme, _, name = text.partition("://")
        return scheme == self._public.scheme and name in self._public_names

    def _authenticate(self, headers: Mapping[bytes, bytes], scope: Scope) -> Credential:
        given = _bearer(headers.get(b"authorization"))
        found = self._keys.fits(given, scope)
        if given is None:
            found = self._keys.admits(headers.get(b"cookie"))
        if found is None:
            raise Refused("unauthenticated", "a valid bearer token is needed", headers=_CHALLENGE)
        return found


def _names_source(scope: Scope) -> bool:
    """Whether the query may name a repository, which the server would fetch even for a GET."""
    return bool(scope["query_string"]) and scope["path"].startswith(SOURCE_BY_QUERY)


def _is_open(scope: Scope) -> bool:
    """Whether nobody needs to be known there."""
    path = scope["path"]
    if path == SIGN_IN:
        return True
    is_open = path in OPEN_PATHS or path.startswith(OPEN_FOLDER)
    return is_open and scope["method"] in _SAFE_METHODS


def is_person(scope: Scope) -> bool:
    """Whether a browser asks for a page, which a person can sign in for."""
    if scope["path"].startswith(MACHINES):
        return False
    headers = scope[HEADERS]
    return b"text/html" in headers.get(b"accept", b"") or b"hx-request" in headers


def _to_sign_in(scope: Scope) -> Answer:
    """To the page that asks for the token, and back from there if that changes nothing."""
    if b"hx-request" in scope[HEADERS]:
        return Answer(401, ((b"hx-redirect", SIGN_IN.encode()),), (b"",))
    back = scope["raw_path"].decode("latin-1") if scope["method"] in _SAFE_METHODS else "/"
    return Answer(303, ((b"location", f"{SIGN_IN}?next={quote(back, safe='/')}".encode()),), (b"",))


def _names(public: SplitResult) -> frozenset[str]:
    """What Host says to a client of the public address, with and without the usual port."""
    name = public.netloc.rpartition("@")[2].lower()
    usual = f":{_PORTS.get(public.scheme, 80)}"
    plain = name.removesuffix(usual)
    has_port = ":" in plain.rpartition("]")[2]
    return frozenset({name, plain} | (set() if has_port else {plain + usual})) - {"", usual}


def _without_doubles(scope: Scope) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in _WANTED:
            found[name] = _AMBIGUOUS if name in found else value
    return found


def _bearer(authorization: bytes | None) -> bytes | None:
    if authorization is None:
        return None
    scheme, _, given = authorization.partition(b" ")
    return given.strip() if scheme.lower() == b"bearer" else None
