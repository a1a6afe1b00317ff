"""Credentials: the operator's token, access tokens, passwords and the cookies of sign-ins.

The operator's token is `SKILLHALL_AUTH_TOKEN`; all others are in the database.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, NamedTuple, Protocol

from starlette.types import Scope

from skillhall._internal.cache import LruCache
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import HEADERS_KEY, REQUEST_ID_KEY, TOKEN_ID_KEY
from skillhall._internal.policy.access.access_scopes import OPERATOR, AccessScope
from skillhall._internal.policy.access.actor import USER_OWNER_PREFIX, Actor, Via
from skillhall._internal.policy.access.roles import Role
from skillhall._internal.settings import ServerSettings
from skillhall.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from skillhall._internal.wiring.database import (  # imports the database driver
        NewSignIn,
        SignIn,
        Token,
        User,
    )

SESSION_COOKIE = "skillhall_session"
SESSION_LIFETIME = 30 * 24 * 3600  # seconds
MAX_FAILURES = 30  # per client address and window
FAILURE_WINDOW = 900.0  # seconds
_MAX_ADDRESSES = 10_000  # remembered at once
_MAX_UNKNOWN_COOKIES = 10_000  # remembered at once
_COOKIE_VALUE = re.compile(r"[A-Za-z0-9_-]{43}")  # 256 bits in base64
_ALL_SCOPES = tuple(AccessScope)
_OPERATOR_PURPOSE = b"skillhall operator"
CHALLENGE_HEADERS = ((b"www-authenticate", b"Bearer"),)


class AcceptedTokens(Protocol):
    """The access tokens that are not revoked."""

    def find(self, text: bytes) -> Token | None:
        """Return the token with this value, or None."""

    def find_by_id(self, identity: str) -> Token | None:
        """Return the token with this id, or None."""

    def record_use(self, identity: str) -> None:
        """Record that a token was used. Never blocks."""

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Call `subscriber` after every change and expiry, in any thread."""


class BrowserSignIns(Protocol):
    """The sign-ins of browsers that have not ended."""

    def find(self, text: bytes) -> SignIn | None:
        """Return the sign-in with this cookie, or None. Never blocks."""

    def find_by_id(self, identity: str) -> SignIn | None:
        """Return the sign-in with this id, or None. Never blocks."""

    def load(self, cookie: bytes) -> SignIn | None:
        """Return the sign-in with this cookie, even if another server just created it."""

    def create(
        self, token: str, address: str, agent: str, lifetime: float, actor: Actor
    ) -> NewSignIn:
        """Create a sign-in with a token, or of a user. `lifetime` is in seconds."""

    def list(self, owner: str) -> Sequence[SignIn]:
        """Return the sign-ins of an owner, the latest first."""

    def end(self, owner: str, identity: str, actor: Actor) -> bool:
        """End a sign-in of an owner; return whether it existed."""

    def record_use(self, identity: str) -> None:
        """Record that a sign-in was used. Never blocks."""

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Call `subscriber` after every change and expiry, in any thread."""


class KnownUsers(Protocol):
    """The users of this server."""

    @property
    def may_exist(self) -> bool:
        """Whether there are users. True if this is not known."""

    def find(self, text: bytes) -> User | None:
        """Return the user with this name, or None. Never blocks."""

    def find_by_id(self, identity: str) -> User | None:
        """Return the user with this id, or None. Never blocks."""

    def try_refresh(self) -> None:
        """Read the users again. Never raises."""

    def record_use(self, identity: str) -> None:
        """Record that a user was seen. Never blocks."""

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Call `subscriber` after every change, in any thread."""


class Credential(NamedTuple):
    """The token or user that authenticated a request, directly or through a sign-in.

    Both are None for the operator's token, which is valid as long as the server runs. With both,
    the user is the owner of the token.
    """

    token: Token | None = None
    sign_in: SignIn | None = None
    user: User | None = None

    @property
    def scopes(self) -> Collection[str]:
        """What the credential allows."""
        return _ALL_SCOPES if self.token is None else self.token.scopes

    @property
    def role(self) -> Role:
        """The role of the owner. Owners who are not users are limited by scopes only."""
        return Role.ADMINISTRATOR if self.user is None else Role(self.user.role)

    @property
    def owner(self) -> str:
        """The user, or the owner of the token."""
        if self.user is not None:
            return self.user.name
        return OPERATOR if self.token is None else self.token.owner

    @property
    def label(self) -> str:
        """Label of the token; "" if there is none, or it is the operator's."""
        return "" if self.token is None else self.token.label


class Credentials:
    """Authenticates tokens, passwords and cookies.

    If the operator has set no token and there are no users, requests need no credential.
    """

    def __init__(  # noqa: PLR0913 - one for each kind of credential, and the clocks
        self,
        settings: ServerSettings,
        tokens: AcceptedTokens | None = None,
        sign_ins: BrowserSignIns | None = None,
        users: KnownUsers | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`tokens` are accepted in addition to the operator's token."""
        token = settings.auth_token.reveal() if settings.auth_token else None
        self._operator_token = b"" if token is None else token.encode("utf-8")
        self._operator_token_digest = None if token is None else _sha256(self._operator_token)
        self._uses_https = settings.public_url.startswith("https://")
        self._tokens = tokens
        self._sign_ins = sign_ins
        self._users = users
        self._has_provider = bool(settings.oidc.issuer)
        self._failed_sign_ins = FailedSignIns("tokens", clock)
        self._failed_passwords = FailedSignIns("passwords", clock)
        self._failed_accounts = FailedSignIns("passwords", clock, "for this user")
        self._unknown_cookies = LruCache[str, str](_MAX_UNKNOWN_COOKIES)
        # Called with the name of the known user or token, or "". Must not block.
        self.on_failure: Callable[[Scope, str], None] = lambda _scope, _name: None
        self._now = now

    @property
    def is_required(self) -> bool:
        """Whether requests need a credential."""
        return self._operator_token_digest is not None or self._has_provider or self.has_users

    @property
    def has_users(self) -> bool:
        """Whether there are users, as far as is known."""
        return self._users is not None and self._users.may_exist

    def authenticate_token(self, token: bytes | None, scope: Scope) -> Credential | None:
        """Return the credential of a token, or None if the token is missing or invalid.

        Raises: HttpError if the token has expired or its owner is disabled, and after too many
        invalid tokens from the same address.
        """
        if token is None:
            return None
        if hmac.compare_digest(_sha256(token), self._operator_token_digest or b""):
            return Credential()
        stored = self._tokens.find(token) if self._tokens else None
        if stored is None or self._tokens is None:
            self.on_failure(scope, "")
            self._failed_sign_ins.record(client_address(scope))
            return None
        if stored.is_expired(self._now()):
            self.on_failure(scope, stored.label)
            raise HttpError(
                "unauthenticated", "the access token has expired", headers=CHALLENGE_HEADERS
            )
        user = self._find_user(stored.user)
        if stored.user is not None and user is None:
            self.on_failure(scope, stored.label)
            message = "the owner of the access token is disabled"
            raise HttpError("unauthenticated", message, headers=CHALLENGE_HEADERS)
        self._record_use(stored, None, user)
        return Credential(stored, None, user)

    def authenticate_password(
        self, name: str, password: str, verify: Callable[[str, str], bool], scope: Scope
    ) -> Credential | None:
        """Return the credential of a user, or None if the name or the password is wrong.

        `verify` compares a password with its hash, slowly. Raises: HttpError after too many wrong
        passwords from the same address or for the same user, Busy.
        """
        address, account = client_address(scope), name.lower()
        self._failed_passwords.check(address)
        self._failed_accounts.check(account)
        user = self._users.find(name.encode("utf-8", "replace")) if self._users else None
        is_right = verify(password, "" if user is None else user.password)
        if user is None or user.disabled is not None or not is_right:
            # Only names that exist: others may be passwords, entered in the wrong field.
            self.on_failure(scope, "" if user is None else user.name)
            self._failed_passwords.record(address)
            self._failed_accounts.record(account)
            return None
        self._record_use(None, None, user)
        return Credential(user=user)

    def authenticate_cookie(self, value: str) -> Credential | None:
        """Return the credential of a session cookie. Never blocks.

        None if the cookie is missing, invalid or expired, or its token was revoked, or if only
        `load_cookie` can tell.
        """
        if self._sign_ins is None or not _COOKIE_VALUE.fullmatch(value):
            return None
        sign_in = self._sign_ins.find(value.encode("ascii"))
        return None if sign_in is None else self._accept(sign_in)

    def must_load_cookie(self, value: str, scope: Scope) -> bool:
        """Whether a session cookie may belong to a sign-in that this server does not know yet.

        False after too many invalid cookies from the same address: servers learn about new
        sign-ins within a second anyway, and guesses must not keep the database busy.
        """
        return (
            self._sign_ins is not None
            and _COOKIE_VALUE.fullmatch(value) is not None
            and self._sign_ins.find(value.encode("ascii")) is None
            and self._unknown_cookies.get(value) is None
            and not self._failed_sign_ins.is_blocked(client_address(scope))
        )

    def load_cookie(self, value: str, scope: Scope) -> Credential | None:
        """Like `authenticate_cookie`, but reads the database if necessary.

        Raises: HttpError after too many invalid cookies from the same address,
        DatabaseUnavailable.
        """
        sign_in = self._sign_ins.load(value.encode("ascii")) if self._sign_ins else None
        if sign_in is not None:
            if self._users is not None and sign_in.user is not None:
                self._users.try_refresh()  # another server may have just added the user
            return self._accept(sign_in)
        # A browser sends the cookie of an ended sign-in many times; it counts once.
        self._unknown_cookies.put(value, value)
        self._failed_sign_ins.record(client_address(scope))
        return None

    def limit_failures(self, scope: Scope, *, is_failure: bool = False) -> None:
        """Check or count the failed attempts of an address, such as invalid links.

        Raises: HttpError after too many failures.
        """
        if is_failure:
            self._failed_passwords.record(client_address(scope))
        self._failed_passwords.check(client_address(scope))

    def is_valid(self, credential: Credential) -> bool:
        """Whether the credential would still be accepted."""
        try:
            return self._is_known(credential)
        except DatabaseUnavailable:  # for more than 15 minutes
            return False

    def _is_known(self, credential: Credential) -> bool:
        token, sign_in, user = credential
        if token is not None and (
            token.is_expired(self._now()) or self._find_token(token.id) != token
        ):
            return False
        if user is not None and self._find_user(user.id) != user:
            return False
        if sign_in is None:
            return True
        return not sign_in.is_expired(self._now()) and self._find_sign_in(sign_in.id) == sign_in

    def on_change(self, subscriber: Callable[[], None]) -> None:
        """Call `subscriber` when credentials may have become invalid, in any thread."""
        for source in (self._tokens, self._sign_ins, self._users):
            if source is not None:
                source.subscribe(subscriber)

    def sign_in(
        self, credential: Credential, scope: Scope, lifetime: int = SESSION_LIFETIME
    ) -> bytes:
        """Create a sign-in and return the Set-Cookie value. `lifetime` is in seconds.

        Raises: HttpError, DatabaseUnavailable, DatabaseFull.
        """
        user = credential.user
        if user is not None and self._users is not None and self._find_user(user.id) is None:
            self._users.try_refresh()  # the user was just added
        address = str(scope["client"][0]) if scope.get("client") else ""
        agent = scope[HEADERS_KEY].get(b"user-agent", b"").decode("latin-1")
        request = str(scope.get(REQUEST_ID_KEY, ""))
        actor = Actor(credential.owner, credential.label, Via.WEB, address, request)
        created = self._require_sign_ins().create(
            self._token_id(credential), address, agent, lifetime, actor
        )
        return self.build_cookie(SESSION_COOKIE, created.cookie, lifetime)

    def list_sign_ins(self, credential: Credential) -> Sequence[SignIn]:
        """Return the sign-ins of the user, or with the token. Raises: DatabaseUnavailable."""
        return self._require_sign_ins().list(self._owner_id(credential))

    def end_sign_in(self, credential: Credential, identity: str, actor: Actor) -> bool:
        """End a sign-in of the user, or with the token; return whether it existed.

        Raises: DatabaseUnavailable, DatabaseFull.
        """
        return self._require_sign_ins().end(self._owner_id(credential), identity, actor)

    def build_cookie(self, name: str, value: str, seconds: int, same_site: str = "Strict") -> bytes:
        """Return a Set-Cookie value for this site only, hidden from scripts.

        With 0 seconds, the browser deletes the cookie.
        """
        secure = "; Secure" if self._uses_https else ""
        text = f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}"
        return text.encode("ascii")

    def _accept(self, sign_in: SignIn) -> Credential | None:
        """Return the credential of a sign-in, unless it, its token or its user is invalid."""
        token = self._find_token(sign_in.token)
        is_operator = token is None and self._is_operator(sign_in)
        owner = sign_in.user if token is None else token.user
        user = self._find_user(owner)
        if user is None and (owner is not None or (token is None and not is_operator)):
            return None
        credential = Credential(token, sign_in, user)
        if not self.is_valid(credential):
            return None
        self._record_use(token, sign_in, user)
        return credential

    def _is_operator(self, sign_in: SignIn) -> bool:
        has_token = self._operator_token_digest is not None
        return has_token and sign_in.user is None and sign_in.token == self._operator_id

    def _record_use(self, token: Token | None, sign_in: SignIn | None, user: User | None) -> None:
        for source, record in (
            (self._tokens, token),
            (self._sign_ins, sign_in),
            (self._users, user),
        ):
            if source is not None and record is not None:
                source.record_use(record.id)

    def _token_id(self, credential: Credential) -> str:
        """Return the token id that is recorded in sign-ins with a credential."""
        return self._owner_id(credential) if credential.token is None else credential.token.id

    def _owner_id(self, credential: Credential) -> str:
        """Return whose sign-ins are listed: those of the user, else those with the token."""
        token, user = credential.token, credential.user
        if user is not None:
            return f"{USER_OWNER_PREFIX}{user.id}"
        return self._operator_id if token is None else token.id

    @cached_property
    def _operator_id(self) -> str:
        """Id of the operator's token in sign-ins. Another token has another id.

        It is slow to compute, so that the token cannot be guessed from it.
        """
        key = hashlib.scrypt(self._operator_token, salt=_OPERATOR_PURPOSE, n=2**14, r=8, p=1)
        return f"operator-{key.hex()[:16]}"

    def _find_token(self, identity: str) -> Token | None:
        return None if self._tokens is None else self._tokens.find_by_id(identity)

    def _find_user(self, identity: str | None) -> User | None:
        """Return the user with this id, unless the user is disabled."""
        if self._users is None or identity is None:
            return None
        user = self._users.find_by_id(identity)
        return None if user is None or user.disabled is not None else user

    def _find_sign_in(self, identity: str) -> SignIn | None:
        return None if self._sign_ins is None else self._sign_ins.find_by_id(identity)

    def _require_sign_ins(self) -> BrowserSignIns:
        if self._sign_ins is None:
            raise HttpError("not_found", "this server has no sign-ins")
        return self._sign_ins


class FailedSignIns:
    """Rate limit for invalid tokens, passwords or signatures, per client address or user.

    Valid tokens and signatures are never delayed.
    """

    def __init__(
        self,
        plural_noun: str,
        clock: Callable[[], float] = time.monotonic,
        place: str = "from this address",
    ) -> None:
        self._message = f"too many invalid {plural_noun} {place}"
        self._clock = clock
        self._lock = threading.Lock()  # the sign-in page runs in threads, the middleware does not
        self._windows: dict[str, tuple[float, int]] = {}  # start and number of failures

    def __len__(self) -> int:
        return len(self._windows)

    def is_blocked(self, address: str) -> bool:
        """Whether there were too many failures from an address."""
        start, count = self._windows.get(address, (0.0, 0))
        return count >= MAX_FAILURES and self._clock() - start < FAILURE_WINDOW

    def check(self, address: str) -> None:
        """Check that there were not too many failures. Raises: HttpError."""
        if self.is_blocked(address):
            raise self._build_error(self._windows[address][0])

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
            raise self._build_error(start)

    def _build_error(self, start: float) -> HttpError:
        wait = b"%d" % max(1, int(start + FAILURE_WINDOW - self._clock()))
        return HttpError("too_many_requests", self._message, headers=((b"retry-after", wait),))


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
    """Return the id of a client for limits: its access token, else its address."""
    return str(scope.get(TOKEN_ID_KEY) or client_address(scope))


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
