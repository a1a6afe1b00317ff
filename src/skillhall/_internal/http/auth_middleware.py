"""Checks host, origin and access token of every request. Routes check its permissions."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from urllib.parse import SplitResult, quote, urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from skillhall._internal.http.credentials import (
    CHALLENGE_HEADERS,
    SESSION_COOKIE,
    Credential,
    Credentials,
    client_address,
    read_cookie,
)
from skillhall._internal.http.errors import error_response
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import (
    CREDENTIAL_KEY,
    HEAD_TOO_LARGE_MESSAGE,
    HEADERS_KEY,
    OVERSIZED_HEAD_KEY,
    REQUEST_ID_KEY,
    TOKEN_ID_KEY,
)
from skillhall._internal.http.request_revocation import OpenRequests
from skillhall._internal.http.thread_pool import Work, WorkerPools
from skillhall._internal.http.users import JOIN_PATH
from skillhall._internal.policy.trust.revocations import LIST_PATH
from skillhall._internal.settings import ServerSettings
from skillhall.errors import SkillhallError

# The list of revocations must reach every machine that has a copy of a skill.
PUBLIC_PATHS = frozenset(
    {"/healthz", "/readyz", "/api/v1/openapi.json", "/api/v1/openapi", LIST_PATH}
)
SIGNED_PATHS = frozenset({"/api/v1/webhooks/git"})  # authenticated by a signature
SIGN_IN_PATH = "/sign-in"  # exchanges a token or password for a session cookie
OIDC_PATH = "/sign-in/oidc"  # leads to the identity provider
OIDC_CALLBACK_PATH = f"{OIDC_PATH}/callback"  # where the provider sends the browser back
SIGN_IN_PATHS = frozenset({SIGN_IN_PATH, JOIN_PATH, OIDC_PATH, OIDC_CALLBACK_PATH})
PUBLIC_PREFIX = "/static/"  # styles and scripts, which the sign-in page needs
API_PREFIXES = ("/api/", "/mcp", "/metrics", "/.well-known/")  # never redirected to sign-in
ORIGIN_CHECKED_PREFIXES = ("/mcp",)  # cross-origin pages may not even read
SOURCE_QUERY_PREFIX = "/api/v1/prompts"  # a query may make the server fetch a repository

_MAX_CACHED_HOSTS = 64

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SAME_SITE_VALUES = (b"same-origin", b"none")  # none: the user opened the URL
_LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_CHECKED_HEADERS = frozenset({b"host", b"origin", b"sec-fetch-site", b"authorization", b"cookie"})
_DUPLICATE_HEADER = b"\0"  # value of a header that occurs more than once; matches nothing
_CLOSE_HEADERS = ((b"connection", b"close"),)


class AuthMiddleware:
    """Passes authorized requests on and rejects all others."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        credentials: Credentials | None = None,
        pools: WorkerPools | None = None,
    ) -> None:
        self._app = app
        self._allowed_hosts = frozenset(name.lower() for name in settings.allowed_hosts)
        self._public_url = urlsplit(settings.public_url)
        self._public_hosts = _host_variants(self._public_url)
        self._credentials = credentials or Credentials(settings)
        self._pools = pools or WorkerPools()
        self._open_requests = OpenRequests(self._credentials)
        self._known_hosts: set[tuple[bytes, tuple[str, int]]] = set()  # cache of accepted hosts

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Run the app if the request is authorized, else send an error or a redirect."""
        if scope["type"] != "http":
            return self._app(scope, receive, send)
        try:
            credential = self._check_request(scope)
        except _UnknownCookieError as unknown:
            return self._load_cookie(unknown.value, scope, receive, send)
        except SkillhallError as error:
            return _reject(error, scope)(scope, receive, send)
        if credential is None:
            return self._app(scope, receive, send)
        return self._pass_on(credential, scope, receive, send)

    async def _load_cookie(self, value: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Look for a sign-in in the database, then run the app or send an error."""
        try:
            load = partial(self._credentials.load_cookie, value, scope)
            loaded = await self._pools[Work.DATABASE].run_for(client_address(scope), load)
            credential = _require_credential(loaded)
        except SkillhallError as error:
            await _reject(error, scope)(scope, receive, send)
        else:
            await self._pass_on(credential, scope, receive, send)

    def _pass_on(
        self, credential: Credential, scope: Scope, receive: Receive, send: Send
    ) -> Awaitable[None]:
        scope[CREDENTIAL_KEY] = credential
        owner = credential.token or credential.user
        if owner is not None:
            scope[TOKEN_ID_KEY] = owner.id
        elif credential.sign_in is None:
            return self._app(scope, receive, send)  # the operator's token cannot be revoked
        return self._open_requests.handle(credential, self._app, scope, receive, send)

    def _check_request(self, scope: Scope) -> Credential | None:
        """Return the credential, or None if none is required.

        Raises: HttpError, _UnknownCookieError.
        """
        if OVERSIZED_HEAD_KEY in scope:
            raise HttpError("head_too_large", HEAD_TOO_LARGE_MESSAGE, headers=_CLOSE_HEADERS)
        headers = scope[HEADERS_KEY]
        if len(headers) < len(scope["headers"]):
            headers = _mark_duplicate_headers(scope)
        if not self._is_allowed_host(headers.get(b"host"), scope):
            raise HttpError("misdirected", "unknown host name in the Host header")
        path = scope["path"]
        if path in SIGNED_PATHS:
            return None
        if self._is_forbidden_cross_origin(headers, scope):
            raise HttpError("cross_origin", "cross-origin request rejected")
        if not self._credentials.is_required:
            return None
        if _is_public(scope):
            scope[CREDENTIAL_KEY] = None  # it is not checked, so nothing else is allowed
            return None
        return self._authenticate(headers, scope)

    def _is_allowed_host(self, host: bytes | None, scope: Scope) -> bool:
        """Whether the Host header names this server. Protects against DNS rebinding."""
        server = scope["server"]
        if host is None or (host, server) in self._known_hosts:
            return host is not None
        text = host.decode("latin-1").lower()
        if text in self._public_hosts:
            return True
        name, port = text, str(_DEFAULT_PORTS.get(scope["scheme"], 80))
        if not name.endswith("]") and ":" in name:
            name, _, port = name.rpartition(":")
        if not name or not port.isascii() or not port.isdigit():
            return False
        address = str(server[0])
        own_names = {*_LOOPBACK_HOSTS, f"[{address}]" if ":" in address else address}
        # Six digits exceed any port, and `int` raises an error for very long numbers.
        is_own = name in own_names and int(port[:6]) == server[1]
        if not is_own and self._allowed_hosts.isdisjoint({name, f"{name}:{int(port[:6])}"}):
            return False
        if len(self._known_hosts) < _MAX_CACHED_HOSTS:  # case variants could fill the cache
            self._known_hosts.add((host, server))
        return True

    def _is_forbidden_cross_origin(self, headers: Mapping[bytes, bytes], scope: Scope) -> bool:
        """Whether the request comes from a page of another origin that must not send it."""
        origin = headers.get(b"origin")
        if scope["path"].startswith(ORIGIN_CHECKED_PREFIXES):
            return origin is not None and not self._is_own_origin(origin, headers[b"host"], scope)
        # The query may name a repository, which the server fetches even on GET.
        has_source = scope["query_string"] and scope["path"].startswith(SOURCE_QUERY_PREFIX)
        if scope["method"] in _SAFE_METHODS and not has_source:
            return False
        if _parse_bearer_token(headers.get(b"authorization")) is not None:
            return False  # browsers add cookies by themselves, but never a token
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
        token = _parse_bearer_token(headers.get(b"authorization"))
        credential = self._credentials.authenticate_token(token, scope)
        if token is None:
            cookie = read_cookie(headers.get(b"cookie"), SESSION_COOKIE)
            credential = self._credentials.authenticate_cookie(cookie)
            if credential is None and self._credentials.must_load_cookie(cookie, scope):
                raise _UnknownCookieError(cookie)
        return _require_credential(credential)


class _UnknownCookieError(Exception):
    """Only the database can tell whether a cookie is valid."""

    def __init__(self, value: str) -> None:
        self.value = value


def _require_credential(credential: Credential | None) -> Credential:
    """Return the credential. Raises: HttpError if it is None."""
    if credential is None:
        message = "bearer token missing or invalid"
        raise HttpError("unauthenticated", message, headers=CHALLENGE_HEADERS)
    return credential


def _reject(error: SkillhallError, scope: Scope) -> Response:
    if error.code == "unauthenticated" and is_browser_request(scope):
        return _redirect_to_sign_in(scope)
    return error_response(error, scope[REQUEST_ID_KEY])


def _is_public(scope: Scope) -> bool:
    """Whether the path needs no credential."""
    path = scope["path"]
    if path in SIGN_IN_PATHS:
        return True
    is_public_path = path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIX)
    return is_public_path and scope["method"] in _SAFE_METHODS


def is_browser_request(scope: Scope) -> bool:
    """Whether a browser requests a page, and can be redirected to sign in."""
    if scope["path"].startswith(API_PREFIXES):
        return False
    headers = scope[HEADERS_KEY]
    return b"text/html" in headers.get(b"accept", b"") or b"hx-request" in headers


def _redirect_to_sign_in(scope: Scope) -> Response:
    """Return a redirect to the sign-in page.

    After signing in, the user returns to the requested path, or to "/" if the method is unsafe.
    htmx would insert the page of an ordinary redirect into the current page, so it gets a header.
    """
    if b"hx-request" in scope[HEADERS_KEY]:
        return Response(status_code=401, headers={"hx-redirect": SIGN_IN_PATH})
    path = scope["raw_path"].decode("latin-1") if scope["method"] in _SAFE_METHODS else "/"
    location = f"{SIGN_IN_PATH}?next={quote(path, safe='/')}"
    return Response(status_code=303, headers={"location": location})


def _host_variants(public: SplitResult) -> frozenset[str]:
    """Return the Host values for the public URL, with and without the default port."""
    name = public.netloc.rpartition("@")[2].lower()
    default = f":{_DEFAULT_PORTS.get(public.scheme, 80)}"
    plain = name.removesuffix(default)
    has_port = ":" in plain.rpartition("]")[2]
    return frozenset({name, plain} | (set() if has_port else {plain + default})) - {"", default}


def _mark_duplicate_headers(scope: Scope) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in _CHECKED_HEADERS:
            headers[name] = _DUPLICATE_HEADER if name in headers else value
    return headers


def _parse_bearer_token(authorization: bytes | None) -> bytes | None:
    if authorization is None:
        return None
    scheme, _, token = authorization.partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else None
