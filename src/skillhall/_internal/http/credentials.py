"""What opens the server: the operator's token, and the cookie that a person gets for it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skillhall._internal.http.http_error import HttpError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope

    from skillhall._internal.settings import ServerSettings
    from skillhall._internal.wiring.database import Token

SESSION_COOKIE = "skillhall_session"
SESSION_LIFETIME = 30 * 24 * 3600  # seconds that a person stays signed in
MAX_FAILURES = 30
FAILURE_WINDOW = 900.0  # seconds in which failures add up
_MAX_ADDRESSES = 10_000
_COOKIE_PARTS = 4  # of a session cookie
_SIGNING_PURPOSE = b"skillhall web session 2"


class AcceptedTokens(Protocol):
    """The tokens of the database that are accepted at this moment."""

    def find(self, token: bytes) -> Token | None:
        """The accepted token with this text."""

    def find_by_id(self, identity: str) -> Token | None:
        """The accepted token with this id."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change, in any thread."""


class NoTokens:
    """No tokens but the operator's."""

    def find(self, token: bytes) -> None:
        """None, whatever the token is."""

    def find_by_id(self, identity: str) -> None:
        """None, whatever the id is."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Nothing ever changes."""


class Credential(NamedTuple):
    """What a request was authenticated with, directly or through a cookie.

    Without a stored token it is the operator's token, which is valid while the server runs.
    """

    token: Token | None = None


class Credentials:
    """Compares tokens and cookies with the one token; without one, everything is open."""

    def __init__(
        self,
        settings: ServerSettings,
        tokens: AcceptedTokens | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`others` knows further tokens, which clients have of their own."""
        token = settings.auth_token.reveal() if settings.auth_token else None
        self._operator_token_digest = None if token is None else _sha256(token.encode("utf-8"))
        # Whoever steals a cookie learns nothing about the token; a new token ends all sessions.
        self._signing_key = hmac.digest((token or "").encode("utf-8"), _SIGNING_PURPOSE, "sha256")
        self._uses_https = settings.public_url.startswith("https://")
        self._tokens = tokens or NoTokens()
        self._failed_sign_ins = FailedSignIns("tokens", clock)
        self._now = now

    @property
    def is_required(self) -> bool:
        """Whether there is a token at all."""
        return self._operator_token_digest is not None

    def authenticate_token(self, token: bytes | None, scope: Scope) -> Credential | None:
        """The credential of a right token; a wrong one counts. Raises: Refused after too many."""
        if token is None:
            return None
        if hmac.compare_digest(_sha256(token), self._operator_token_digest or b""):
            return Credential()
        stored = self._tokens.find(token)
        if stored is not None:
            return Credential(stored)
        self._failed_sign_ins.record(client_address(scope))
        return None

    def authenticate_cookie(self, cookies: bytes | None) -> Credential | None:
        """The credential of a session cookie, until it expires or its token is revoked."""
        parts = read_cookie(cookies, SESSION_COOKIE).split(".")
        expiry, nonce, identity, mark = (
            parts if len(parts) == _COOKIE_PARTS else [""] * _COOKIE_PARTS
        )
        if not expiry.isascii() or not expiry.isdigit() or int(expiry[:12]) < self._now():
            return None
        credential = Credential(self._tokens.find_by_id(identity)) if identity else Credential()
        if identity and credential.token is None:
            return None
        wanted = self._sign(expiry, nonce, credential)
        is_right = hmac.compare_digest(mark.encode("utf-8", "replace"), wanted.encode("ascii"))
        return credential if is_right else None

    def is_valid(self, credential: Credential) -> bool:
        """Whether the credential would still be accepted."""
        token = credential.token
        return token is None or self._tokens.find_by_id(token.id) == token

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when credentials may have become invalid, in any thread."""
        self._tokens.subscribe(listener)

    def build_session_cookie(self, credential: Credential) -> bytes:
        """The header that signs a person in, for as long as the credential is valid."""
        expiry, nonce = str(int(self._now()) + SESSION_LIFETIME), secrets.token_urlsafe(16)
        identity = credential.token.id if credential.token else ""
        mark = self._sign(expiry, nonce, credential)
        return self.build_cookie(
            SESSION_COOKIE, f"{expiry}.{nonce}.{identity}.{mark}", SESSION_LIFETIME
        )

    def build_cookie(self, name: str, value: str, seconds: int) -> bytes:
        """A header that sets a cookie which scripts and other sites never get; 0 removes it."""
        secure = "; Secure" if self._uses_https else ""
        text = f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
        return text.encode("ascii")

    def _sign(self, expiry: str, nonce: str, credential: Credential) -> str:
        # The digest, not the id alone: an id may be used again one day.
        digest = credential.token.digest if credential.token else ""
        text = f"{expiry}.{nonce}.{digest}"
        return hmac.new(self._signing_key, text.encode(), "sha256").hexdigest()


class FailedSignIns:
    """Rate limit for wrong tokens or signatures, per client address; never delays valid ones."""

    def __init__(self, plural_noun: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._plural_noun = plural_noun  # in the plural, for the message
        self._clock = clock
        self._lock = threading.Lock()  # sign-ins are checked in threads, bearer tokens are not
        self._windows: dict[
            str, tuple[float, int]
        ] = {}  # when the window began, and how many since

    def __len__(self) -> int:
        return len(self._windows)

    def record(self, address: str) -> None:
        """One more. Raises: Refused if there were too many."""
        with self._lock:
            self._record(address)

    def _record(self, address: str) -> None:
        now = self._clock()
        began, count = self._windows.pop(address, (now, 0))
        if now - began >= FAILURE_WINDOW:
            began, count = now, 0
        self._windows[address] = (began, count + 1)
        if len(self._windows) > _MAX_ADDRESSES:
            del self._windows[next(iter(self._windows))]
        if count >= MAX_FAILURES:
            wait = b"%d" % max(1, int(began + FAILURE_WINDOW - now))
            message = f"too many wrong {self._plural_noun} from this address"
            raise HttpError("too_many_requests", message, headers=((b"retry-after", wait),))


def read_cookie(cookies: bytes | None, name: str) -> str:
    """The value of a cookie; "" without one."""
    # Other servers of the same host leave cookies here too, in whatever form they like.
    for pair in (cookies or b"").decode("latin-1").split(";"):
        key, _, value = pair.strip().partition("=")
        if key == name:
            return value
    return ""


def client_address(scope: Scope) -> str:
    """The client's address; of IPv6 its network, for everybody owns 2^64 of them."""
    text = scope["client"][0] if scope.get("client") else ""
    try:
        address = ip_address(text)
    except ValueError:
        return str(text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return address.exploded[:19]
    return text


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
