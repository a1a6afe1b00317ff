"""Credentials: the operator's token, access tokens and session cookies.

The operator's token is `SKILLHALL_AUTH_TOKEN`; access tokens are in the database.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, NamedTuple, Protocol

from starlette.types import Scope

from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import TOKEN_ID_KEY
from skillhall._internal.settings import ServerSettings

if TYPE_CHECKING:
    from skillhall._internal.wiring.database import Token  # imports the database driver

SESSION_COOKIE = "skillhall_session"
SESSION_LIFETIME = 30 * 24 * 3600  # seconds
MAX_FAILURES = 30  # per client address and window
FAILURE_WINDOW = 900.0  # seconds
_MAX_ADDRESSES = 10_000  # remembered at once
_COOKIE_PARTS = 4  # of a session cookie
_SIGNING_PURPOSE = b"skillhall web session 2"


class AcceptedTokens(Protocol):
    """The access tokens that are currently accepted."""

    def find(self, token: bytes) -> Token | None:
        """Return the accepted token with this value, or None."""

    def find_by_id(self, identity: str) -> Token | None:
        """Return the accepted token with this id, or None."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change, in any thread."""


class Credential(NamedTuple):
    """The token that authenticated a request, directly or through a cookie.

    `token` is None for the operator's token, which is valid as long as the server runs.
    """

    token: Token | None = None


class Credentials:
    """Authenticates tokens and cookies.

    If the operator has set no token, requests need no credential.
    """

    def __init__(
        self,
        settings: ServerSettings,
        tokens: AcceptedTokens | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`tokens` are accepted in addition to the operator's token."""
        token = settings.auth_token.reveal() if settings.auth_token else None
        self._operator_token_digest = None if token is None else _sha256(token.encode("utf-8"))
        # A cookie reveals nothing about the token, and a new token invalidates all cookies.
        self._signing_key = hmac.digest((token or "").encode("utf-8"), _SIGNING_PURPOSE, "sha256")
        self._uses_https = settings.public_url.startswith("https://")
        self._tokens = tokens
        self._failed_sign_ins = FailedSignIns("tokens", clock)
        self._now = now

    @property
    def is_required(self) -> bool:
        """Whether requests need a credential."""
        return self._operator_token_digest is not None

    def authenticate_token(self, token: bytes | None, scope: Scope) -> Credential | None:
        """Return the credential of a token, or None if the token is missing or invalid.

        Raises: HttpError after too many invalid tokens from the same address.
        """
        if token is None:
            return None
        if hmac.compare_digest(_sha256(token), self._operator_token_digest or b""):
            return Credential()
        stored = self._tokens.find(token) if self._tokens else None
        if stored is not None:
            return Credential(stored)
        self._failed_sign_ins.record(client_address(scope))
        return None

    def authenticate_cookie(self, cookies: bytes | None) -> Credential | None:
        """Return the credential of the session cookie in a Cookie header.

        None if the cookie is missing, invalid or expired, or its token was revoked.
        """
        parts = read_cookie(cookies, SESSION_COOKIE).split(".")
        if len(parts) != _COOKIE_PARTS:
            return None
        expiry, nonce, identity, signature = parts
        if not expiry.isascii() or not expiry.isdigit() or int(expiry[:12]) < self._now():
            return None
        credential = Credential(self._find(identity) if identity else None)
        if identity and credential.token is None:
            return None
        expected = self._sign(expiry, nonce, credential).encode("ascii")
        is_valid = hmac.compare_digest(signature.encode("utf-8", "replace"), expected)
        return credential if is_valid else None

    def is_valid(self, credential: Credential) -> bool:
        """Whether the credential would still be accepted."""
        token = credential.token
        return token is None or self._find(token.id) == token

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when credentials may have become invalid, in any thread."""
        if self._tokens is not None:
            self._tokens.subscribe(listener)

    def build_session_cookie(self, credential: Credential) -> bytes:
        """Return the Set-Cookie value that signs a user in."""
        expiry, nonce = str(int(self._now()) + SESSION_LIFETIME), secrets.token_urlsafe(16)
        identity = credential.token.id if credential.token else ""
        signature = self._sign(expiry, nonce, credential)
        value = f"{expiry}.{nonce}.{identity}.{signature}"
        return self.build_cookie(SESSION_COOKIE, value, SESSION_LIFETIME)

    def build_cookie(self, name: str, value: str, seconds: int) -> bytes:
        """Return a Set-Cookie value for this site only, hidden from scripts.

        With 0 seconds, the browser deletes the cookie.
        """
        secure = "; Secure" if self._uses_https else ""
        text = f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
        return text.encode("ascii")

    def _find(self, identity: str) -> Token | None:
        return None if self._tokens is None else self._tokens.find_by_id(identity)

    def _sign(self, expiry: str, nonce: str, credential: Credential) -> str:
        # The digest is signed, since an id could be reused for another token.
        digest = credential.token.digest if credential.token else ""
        text = f"{expiry}.{nonce}.{digest}"
        return hmac.new(self._signing_key, text.encode(), "sha256").hexdigest()


class FailedSignIns:
    """Rate limit for invalid tokens or signatures, per client address.

    Valid ones are never delayed.
    """

    def __init__(self, plural_noun: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._plural_noun = plural_noun  # for the message
        self._clock = clock
        self._lock = threading.Lock()  # the sign-in page runs in threads, the middleware does not
        self._windows: dict[str, tuple[float, int]] = {}  # start and number of failures

    def __len__(self) -> int:
        return len(self._windows)

    def record(self, address: str) -> None:
        """Count a failure. Raises: HttpError if there were too many."""
        now = self._clock()
        with self._lock:
            start, count = self._windows.pop(address, (now, 0))
            if now - start >= FAILURE_WINDOW:
                start, count = now, 0
            self._windows[address] = (start, count + 1)
            if len(self._windows) > _MAX_ADDRESSES:
                del self._windows[next(iter(self._windows))]
        if count >= MAX_FAILURES:
            wait = b"%d" % max(1, int(start + FAILURE_WINDOW - now))
            message = f"too many invalid {self._plural_noun} from this address"
            raise HttpError("too_many_requests", message, headers=((b"retry-after", wait),))


def read_cookie(cookies: bytes | None, name: str) -> str:
    """Return the value of a cookie, or ""."""
    # Parsed by hand: other servers on the same host may have set cookies that parsers reject.
    for pair in (cookies or b"").decode("latin-1").split(";"):
        key, _, value = pair.strip().partition("=")
        if key == name:
            return value
    return ""


def client_address(scope: Scope) -> str:
    """Return the client's IP address, or its /64 network for IPv6.

    A single client usually controls all addresses of a /64 network.
    """
    text = scope["client"][0] if scope.get("client") else ""
    try:
        address = ip_address(text)
    except ValueError:
        return str(text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return address.exploded[:19]
    return text


def client_id(scope: Scope) -> str:
    """Return what identifies a client for limits: its access token, else its address."""
    return str(scope.get(TOKEN_ID_KEY) or client_address(scope))


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
