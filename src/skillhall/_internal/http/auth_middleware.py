"""Who may ask at all: the right name, the right origin, the right token. It protects every path."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from skillhall._internal.http.credentials import Credentials
from skillhall._internal.http.errors import error_response
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import (
    HEAD_TOO_LARGE_MESSAGE,
    HEADERS_KEY,
    OVERSIZED_HEAD_KEY,
    REQUEST_ID_KEY,
)
from skillhall._internal.http.response import ByteResponse
from skillhall._internal.http.token_revocation import OpenRequests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping
    from urllib.parse import SplitResult

    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillhall._internal.http.credentials import Credential
    from skillhall._internal.settings import ServerSettings

PUBLIC_PATHS = frozenset({"/healthz", "/readyz", "/api/v1/openapi.json", "/api/v1/openapi"})
SIGNED_PATHS = frozenset({"/api/v1/webhooks/git"})  # their signature says who asks
SIGN_IN_PATH = "/sign-in"  # the page that takes a token from a person, and gives a cookie for it
PUBLIC_PREFIX = "/static/"  # what every page needs, that one too
API_PREFIXES = ("/api/", "/mcp", "/metrics", "/.well-known/")  # whoever asks there is no person
ORIGIN_CHECKED_PREFIXES = ("/mcp",)  # what paths begin with where a foreign page may not even read
SOURCE_QUERY_PREFIX = (
    "/api/v1/prompts"  # what paths begin with where a query makes the server fetch
)

_MAX_CACHED_HOSTS = 64

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SAME_SITE_VALUES = (b"same-origin", b"none")
_LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_CHECKED_HEADERS = frozenset({b"host", b"origin", b"sec-fetch-site", b"authorization", b"cookie"})
_DUPLICATE_HEADER = b"\0"  # stands for a header that came more than once
_CLOSE_HEADERS = ((b"connection", b"close"),)
_CHALLENGE_HEADERS = ((b"www-authenticate", b"Bearer"),)


class _HostPort(NamedTuple):
    """A host, in small letters, and its port."""

    host: str
    port: int | None

    @classmethod
    def parse(cls, text: str, default_port: int) -> _HostPort | None:
        """The place that a Host header names, or None."""
        host, port = text, str(default_port)
        if not host.endswith("]") and ":" in host:
            host, _, port = host.rpartition(":")
        if not host or not port.isascii() or not port.isdigit():
            return None
        return cls(host, int(port[:6]))


class AuthMiddleware:
    """Lets through what may be answered, and refuses the rest in our own shape."""

    def __init__(
        self, app: ASGIApp, settings: ServerSettings, credentials: Credentials | None = None
    ) -> None:
        self._app = app
        self._allowed_hosts = frozenset(name.lower() for name in settings.allowed_hosts)
        self._public_url = urlsplit(settings.public_url)
        self._public_hosts = _host_variants(self._public_url)
        self._credentials = credentials or Credentials(settings)
        self._open_requests = OpenRequests(self._credentials)
        self._known_hosts: set[tuple[bytes, tuple[str, int]]] = set()  # hosts that were found right

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer for the app, or let it answer."""
        if scope["type"] == "http":
            try:
                credential = self._check_request(scope)
            except HttpError as refusal:
                if refusal.code == "unauthenticated" and is_browser_request(scope):
                    return _redirect_to_sign_in(scope).send(send)
                return error_response(refusal, scope[REQUEST_ID_KEY]).send(send)
            if credential is not None and credential.token is not None:
                return self._open_requests.handle(credential, self._app, scope, receive, send)
        return self._app(scope, receive, send)

    def _check_request(self, scope: Scope) -> Credential | None:
        """The credential, where one is needed. Raises: Refused."""
        if OVERSIZED_HEAD_KEY in scope:
            raise HttpError("head_too_large", HEAD_TOO_LARGE_MESSAGE, headers=_CLOSE_HEADERS)
        headers = scope[HEADERS_KEY]
        if len(headers) < len(scope["headers"]):
            headers = _mark_duplicate_headers(scope)
        if not self._is_allowed_host(headers.get(b"host"), scope):
            raise HttpError("misdirected", "this server is not known by that name")
        path = scope["path"]
        if path in SIGNED_PATHS:
            return None
        if self._is_forbidden_cross_origin(headers, scope):
            raise HttpError("cross_origin", "pages of other sites may not do that")
        if not self._credentials.is_required or _is_public(scope):
            return None
        return self._authenticate(headers, scope)

    def _is_allowed_host(self, host: bytes | None, scope: Scope) -> bool:
        """Whether Host names this server; a page that points its own name here says another."""
        server = scope["server"]
        if host is None or (host, server) in self._known_hosts:
            return host is not None
        text = host.decode("latin-1").lower()
        if text in self._public_hosts:
            return True
        place = _HostPort.parse(text, _DEFAULT_PORTS.get(scope["scheme"], 80))
        if place is None or not self._is_local_or_allowed(place, str(server[0]), server[1]):
            return False
        if len(self._known_hosts) < _MAX_CACHED_HOSTS:  # one name can be written in many ways
            self._known_hosts.add((host, server))
        return True

    def _is_local_or_allowed(self, host_port: _HostPort, address: str, port: int) -> bool:
        own = f"[{address}]" if ":" in address else address
        if (host_port.host in _LOOPBACK_HOSTS or host_port.host == own) and host_port.port == port:
            return True
        return not self._allowed_hosts.isdisjoint(
            {host_port.host, f"{host_port.host}:{host_port.port}"}
        )

    def _is_forbidden_cross_origin(self, headers: Mapping[bytes, bytes], scope: Scope) -> bool:
        """Whether a page of another site asks for more than it may."""
        origin = headers.get(b"origin")
        if scope["path"].startswith(ORIGIN_CHECKED_PREFIXES):
            return origin is not None and not self._is_own_origin(origin, headers[b"host"], scope)
        if _parse_bearer_token(headers.get(b"authorization")) is not None:
            return False
        if scope["method"] in _SAFE_METHODS and not _has_source_query(scope):
            return False
        site = headers.get(b"sec-fetch-site")
        if site is not None:
            return site not in _SAME_SITE_VALUES
        return origin is not None and not self._is_own_origin(origin, headers[b"host"], scope)

    def _is_own_origin(self, origin: bytes, host: bytes, scope: Scope) -> bool:
        text = origin.lower().decode("latin-1")
        if text == f"{scope['scheme']}://{host.decode('latin-1').lower()}":
            return True
        scheme, _, name = text.partition("://")
        return scheme == self._public_url.scheme and name in self._public_hosts

    def _authenticate(self, headers: Mapping[bytes, bytes], scope: Scope) -> Credential:
        given = _parse_bearer_token(headers.get(b"authorization"))
        found = self._credentials.authenticate_token(given, scope)
        if given is None:
            found = self._credentials.authenticate_cookie(headers.get(b"cookie"))
        if found is None:
            raise HttpError(
                "unauthenticated", "a valid bearer token is needed", headers=_CHALLENGE_HEADERS
            )
        return found


def _has_source_query(scope: Scope) -> bool:
    """Whether the query may name a repository, which the server would fetch even for a GET."""
    return bool(scope["query_string"]) and scope["path"].startswith(SOURCE_QUERY_PREFIX)


def _is_public(scope: Scope) -> bool:
    """Whether nobody needs to be known there."""
    path = scope["path"]
    if path == SIGN_IN_PATH:
        return True
    is_open = path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIX)
    return is_open and scope["method"] in _SAFE_METHODS


def is_browser_request(scope: Scope) -> bool:
    """Whether a browser asks for a page, which a person can sign in for."""
    if scope["path"].startswith(API_PREFIXES):
        return False
    headers = scope[HEADERS_KEY]
    return b"text/html" in headers.get(b"accept", b"") or b"hx-request" in headers


def _redirect_to_sign_in(scope: Scope) -> ByteResponse:
    """To the page that asks for the token, and back from there if that changes nothing."""
    if b"hx-request" in scope[HEADERS_KEY]:
        return ByteResponse(401, ((b"hx-redirect", SIGN_IN_PATH.encode()),), (b"",))
    back = scope["raw_path"].decode("latin-1") if scope["method"] in _SAFE_METHODS else "/"
    return ByteResponse(
        303, ((b"location", f"{SIGN_IN_PATH}?next={quote(back, safe='/')}".encode()),), (b"",)
    )


def _host_variants(public: SplitResult) -> frozenset[str]:
    """What Host says to a client of the public address, with and without the usual port."""
    name = public.netloc.rpartition("@")[2].lower()
    usual = f":{_DEFAULT_PORTS.get(public.scheme, 80)}"
    plain = name.removesuffix(usual)
    has_port = ":" in plain.rpartition("]")[2]
    return frozenset({name, plain} | (set() if has_port else {plain + usual})) - {"", usual}


def _mark_duplicate_headers(scope: Scope) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in _CHECKED_HEADERS:
            found[name] = _DUPLICATE_HEADER if name in found else value
    return found


def _parse_bearer_token(authorization: bytes | None) -> bytes | None:
    if authorization is None:
        return None
    scheme, _, given = authorization.partition(b" ")
    return given.strip() if scheme.lower() == b"bearer" else None
