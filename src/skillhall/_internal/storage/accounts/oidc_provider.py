"""Identity provider: OpenID Connect, authorization code flow with PKCE.

The operator configured the issuer. Plain http is accepted only from this machine and allowed
networks, redirects are not followed, and nothing in a response is trusted until the ID token is
verified. Errors never contain text from the provider, which may repeat a secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, quote_plus, urlencode

from skillhall._internal.net.addresses import build_address_policy
from skillhall._internal.net.connection import (
    ConnectionRequest,
    NetworkSettings,
    Timeout,
    limit_size,
    parse_response_json,
    read_chunks,
    send_request,
    serialize_request,
)
from skillhall._internal.net.url import WebUrl
from skillhall._internal.policy.access.roles import Role
from skillhall._internal.settings import ProxySettings
from skillhall._internal.storage.accounts.user_accounts import MAX_SUBJECT_LENGTH
from skillhall.errors import ConfigInvalid, IdentityRefused, ProviderUnavailable, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from skillhall._internal.net.addresses import AddressPolicy
    from skillhall._internal.settings import OidcSettings

# Only asymmetric algorithms: with others, anyone who knows the public key or secret could sign.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
MAX_RESPONSE_BYTES: Final = 1024 * 1024
_METADATA_PATH = "/.well-known/openid-configuration"
_METADATA_LIFETIME = 600.0  # seconds
_KEY_INTERVAL = 30.0  # seconds between requests for keys, if a token has an unknown one
_LEEWAY = 60  # seconds that clocks may differ
_NETWORK = NetworkSettings(total=10, idle=10)
_OK, _CLIENT_ERRORS = 200, range(400, 500)
_MAX_CODE_LENGTH = 4096
_REFUSED_ROLE = "refuse"


class SignInAttempt(NamedTuple):
    """Attempt to sign in at the provider. The browser stores it in a cookie."""

    state: str
    nonce: str
    verifier: str  # of PKCE
    return_path: str
    code: str  # of the link that connects an account with the identity; "" without a link

    def encode(self) -> str:
        """Encode the attempt for its cookie."""
        return _encode(json.dumps(self).encode())


class ProviderIdentity(NamedTuple):
    """Person who signed in at the provider."""

    issuer: str
    subject: str
    name: str  # preferred user name; "" if the provider gives none
    display: str
    role: Role | None  # None: people without an account are refused
    has_role_claim: bool = False  # whether the provider assigns the role


class _Metadata(NamedTuple):
    authorization_url: str
    token_url: WebUrl
    keys_url: WebUrl
    uses_basic: bool  # whether the client secret is sent in a header


@dataclass(slots=True)
class OidcProvider:
    """The identity provider of a server. Create it with `from_settings`."""

    settings: OidcSettings
    policy: AddressPolicy
    roles: Mapping[str, Role]  # by value of the claim
    default_role: Role | None
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _metadata: tuple[float, _Metadata] | None = None
    _keys: tuple[float, dict[str, Any]] | None = None

    @classmethod
    def from_settings(
        cls,
        settings: OidcSettings,
        networks: Iterable[str],
        proxies: ProxySettings = ProxySettings(),  # noqa: B008 - a tuple
    ) -> OidcProvider:
        """Return the configured provider, without connecting. Raises: ConfigInvalid."""
        if not settings.client_id:
            raise ConfigInvalid("SKILLHALL_OIDC_CLIENT_ID", "it is not set")
        try:
            host = WebUrl.parse(settings.issuer).host
        except SourceError as error:
            problem = getattr(error, "problem", str(error))
            raise ConfigInvalid("SKILLHALL_OIDC_ISSUER", problem) from None
        policy = build_address_policy(networks, proxies).with_named_loopback(host)
        roles = {}
        for entry in settings.roles:
            value, _, role = entry.rpartition("=")
            roles[value] = _parse_role("SKILLHALL_OIDC_ROLES", role)
        default = None
        if settings.unknown != _REFUSED_ROLE:
            default = _parse_role("SKILLHALL_OIDC_UNKNOWN", settings.unknown)
        return cls(settings, policy, roles, default)

    @property
    def host(self) -> str:
        """Host of the issuer, for display."""
        return WebUrl.parse(self.settings.issuer).host

    def start(
        self, redirect_url: str, return_path: str, code: str = ""
    ) -> tuple[str, SignInAttempt]:
        """Return the URL where the person signs in, and the attempt.

        Raises: ProviderUnavailable.
        """
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        attempt = SignInAttempt(state, nonce, verifier, return_path, code)
        challenge = hashlib.sha256(attempt.verifier.encode("ascii")).digest()
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect_url,
            "scope": self.settings.scope,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": _encode(challenge),
            "code_challenge_method": "S256",
        }
        url = self._load_metadata().authorization_url
        return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}", attempt

    @staticmethod
    def decode_attempt(text: str) -> SignInAttempt:
        """Return the attempt in a cookie. Raises: IdentityRefused."""
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            return SignInAttempt(*map(str, json.loads(base64.urlsafe_b64decode(padded))))
        except (ValueError, TypeError, RecursionError):
            raise IdentityRefused("the sign-in did not start in this browser") from None

    def finish(
        self, answer: Mapping[str, str], attempt: SignInAttempt, redirect_url: str
    ) -> ProviderIdentity:
        """Return the person who signed in, from the query of the provider's redirect.

        Raises: IdentityRefused, ProviderUnavailable.
        """
        if not attempt.state or not _is_equal(answer.get("state", ""), attempt.state):
            raise IdentityRefused("the sign-in did not start in this browser")
        if answer.get("iss", self.settings.issuer) != self.settings.issuer:
            raise IdentityRefused("another identity provider responded")
        code = answer.get("code", "")
        if "error" in answer or not code or len(code) > _MAX_CODE_LENGTH:
            raise IdentityRefused("the identity provider did not sign you in")
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_url,
            "code_verifier": attempt.verifier,
        }
        reply = self._exchange(fields)
        claims = self._verify(str(reply.get("id_token", "")), attempt.nonce)
        return self._read_identity(claims)

    def _exchange(self, fields: dict[str, str]) -> dict[str, Any]:
        metadata, secret = self._load_metadata(), self.settings.client_secret
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if secret is not None and metadata.uses_basic:
            pair = f"{quote_plus(self.settings.client_id)}:{quote_plus(secret.reveal())}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
        else:
            fields["client_id"] = self.settings.client_id
            if secret is not None:
                fields["client_secret"] = secret.reveal()
        return self._request(metadata.token_url, headers, urlencode(fields).encode("ascii"))

    def _verify(self, token: str, nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token. Raises: IdentityRefused, ProviderUnavailable."""
        import jwt  # noqa: PLC0415 - loads `cryptography`; servers without a provider need neither

        try:
            header = jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in ALGORITHMS:
                raise IdentityRefused("the ID token has no acceptable signature")
            key = jwt.PyJWK.from_dict(self._find_key(str(header.get("kid", ""))), algorithm).key
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self.settings.client_id,
                issuer=self.settings.issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            kind = type(error).__name__
            raise IdentityRefused(f"the ID token is not valid ({kind})") from None
        has_others = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if has_others and claims.get("azp") != self.settings.client_id:
            raise IdentityRefused("the ID token is for another client")
        if not _is_equal(str(claims.get("nonce", "")), nonce):
            raise IdentityRefused("the ID token belongs to another sign-in")
        return claims

    def _find_key(self, key_id: str) -> dict[str, Any]:
        """Return the provider's JSON Web Key with this id. Raises: IdentityRefused."""
        for is_retry in (False, True):
            found = [
                key
                for key in self._load_keys(must_be_new=is_retry).get("keys", ())
                if isinstance(key, dict)
                and key.get("use", "sig") == "sig"
                and (not key_id or key.get("kid") == key_id)
            ]
            if len(found) == 1:
                return found[0]
        raise IdentityRefused("the ID token is signed with an unknown key")

    def _read_identity(self, claims: Mapping[str, Any]) -> ProviderIdentity:
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_LENGTH:
            raise IdentityRefused("the ID token has no subject")
        name, display = claims.get("preferred_username", ""), claims.get("name", "")
        role = self.default_role
        if self.settings.role_claim:
            value = claims.get(self.settings.role_claim)
            values = value if isinstance(value, list) else [value]
            granted = {
                self.roles[item] for item in values if isinstance(item, str) and item in self.roles
            }
            if not granted and role is None:
                raise IdentityRefused("none of your groups has a role on this server")
            role = next((one for one in reversed(Role) if one in granted), role)
        return ProviderIdentity(
            self.settings.issuer,
            subject,
            name if isinstance(name, str) else "",
            display if isinstance(display, str) else "",
            role,
            bool(self.settings.role_claim),
        )

    def _load_metadata(self) -> _Metadata:
        with self._lock:
            if self._metadata is None or self.clock() - self._metadata[0] > _METADATA_LIFETIME:
                url = WebUrl.parse(self.settings.issuer.rstrip("/") + _METADATA_PATH)
                self._metadata = self.clock(), self._parse_metadata(self._request(url))
            return self._metadata[1]

    def _parse_metadata(self, data: Mapping[str, Any]) -> _Metadata:
        if data.get("issuer") != self.settings.issuer:
            raise ProviderUnavailable(self.host, "its issuer differs from SKILLHALL_OIDC_ISSUER")
        methods = data.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        try:
            return _Metadata(
                # Without a fragment or credentials, so that the query can be appended.
                WebUrl.parse(str(data["authorization_endpoint"])).without_query
                + _query_of(str(data["authorization_endpoint"])),
                WebUrl.parse(str(data["token_endpoint"])),
                WebUrl.parse(str(data["jwks_uri"])),
                "client_secret_basic" in methods,
            )
        except (KeyError, SourceError, TypeError):
            raise ProviderUnavailable(self.host, "its configuration is malformed") from None

    def _load_keys(self, *, must_be_new: bool) -> dict[str, Any]:
        metadata = self._load_metadata()
        with self._lock:
            max_age = _KEY_INTERVAL if must_be_new else _METADATA_LIFETIME
            if self._keys is None or self.clock() - self._keys[0] > max_age:
                self._keys = self.clock(), self._request(metadata.keys_url)
            return self._keys[1]

    def _request(
        self, url: WebUrl, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> dict[str, Any]:
        """Send a request and return the JSON object.

        Raises: IdentityRefused, ProviderUnavailable.
        """
        method = "GET" if body is None else "POST"
        try:
            data = serialize_request(
                method, url, {"Accept": "application/json", **(headers or {})}, body
            )
            request = ConnectionRequest(url, Timeout(_NETWORK), _NETWORK)
            with send_request(request, self.policy, data, MAX_RESPONSE_BYTES) as response:
                if body is not None and response.status in _CLIENT_ERRORS:
                    raise IdentityRefused("the identity provider rejected the sign-in")
                if response.status != _OK:
                    problem = f"it responded with status {response.status}"
                    raise ProviderUnavailable(self.host, problem)
                chunks = read_chunks(response, url.host)
                content = b"".join(limit_size(chunks, MAX_RESPONSE_BYTES, url.host))
            value = parse_response_json(content)
        except SourceError as error:
            raise ProviderUnavailable(self.host, getattr(error, "problem", str(error))) from None
        except ValueError:
            raise ProviderUnavailable(self.host, "its response is malformed") from None
        if not isinstance(value, dict):
            raise ProviderUnavailable(self.host, "its response is malformed")
        return value


def _parse_role(variable: str, text: str) -> Role:
    try:
        return Role(text.strip())
    except ValueError:
        hint = f"use one of: {', '.join(Role)}"
        raise ConfigInvalid(variable, f"{text!r} is not a role", hint) from None


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def _is_equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _query_of(url: str) -> str:
    query = WebUrl.parse(url).query
    return f"?{quote(query, safe='=&%')}" if query else ""
