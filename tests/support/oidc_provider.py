"""OpenID provider on a loopback socket. It signs everyone in, and can be made to misbehave."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID = "skillhall-tests"
CLIENT_SECRET = "client-secret-of-tests"  # noqa: S105 - only for tests


def make_key() -> rsa.RSAPrivateKey:
    """Return a new key."""
    return rsa.generate_private_key(65537, 2048)


@dataclass
class Provider:
    """Running provider, and the person that it signs in."""

    url: str = ""
    person: dict[str, Any] = field(default_factory=dict)
    wrong: dict[str, Any] = field(default_factory=dict)  # claims that replace the right ones
    algorithm: str = "RS256"
    is_down: bool = False
    changes_state: bool = False
    requests: list[str] = field(default_factory=list)
    grants: dict[str, dict[str, str]] = field(default_factory=dict)  # by code
    key: rsa.RSAPrivateKey = field(default_factory=make_key)
    signing_key: rsa.RSAPrivateKey | None = None  # another one than the published

    def reset(self) -> None:
        """Sign in a new person, correctly."""
        self.person = {"sub": secrets.token_hex(8), "preferred_username": "dev"}
        self.wrong, self.algorithm, self.signing_key = {}, "RS256", None
        self.is_down = self.changes_state = False

    def describe(self) -> dict[str, object]:
        """Return the configuration."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
        }

    def list_keys(self) -> dict[str, object]:
        """Return the public keys."""
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**key, "kid": "1", "use": "sig"}]}

    def authorize(self, query: dict[str, str]) -> str:
        """Return where the browser goes after it signed in."""
        code = secrets.token_urlsafe(16)
        self.grants[code] = query
        state = "another" if self.changes_state else query["state"]
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': state})}"

    def grant(self, fields: dict[str, str], authorization: str) -> dict[str, object] | None:
        """Return the tokens for a code, or None."""
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        query = self.grants.pop(fields["code"], None)
        if query is None or authorization != f"Basic {expected}":
            return None
        digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if challenge != query["code_challenge"] or fields["redirect_uri"] != query["redirect_uri"]:
            return None
        now = int(time.time())
        right = {"iss": self.url, "aud": CLIENT_ID, "iat": now, "exp": now + 300}
        claims = {**right, "nonce": query["nonce"], **self.person, **self.wrong}
        keys: dict[str, Any] = {"HS256": CLIENT_SECRET.ljust(32, "-"), "none": None}
        key = keys.get(self.algorithm, self.signing_key or self.key)
        token = jwt.encode(claims, key, self.algorithm, {"kid": "1"})
        return {"access_token": "unused", "token_type": "Bearer", "id_token": token}


@contextmanager
def run_provider() -> Iterator[Provider]:
    """Run a provider until the block ends."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            provider.requests.append(parts.path)
            if provider.is_down:
                self.send_error(503)
            elif parts.path == "/.well-known/openid-configuration":
                self._send_json(provider.describe())
            elif parts.path == "/keys":
                self._send_json(provider.list_keys())
            else:
                query = {key: values[0] for key, values in parse_qs(parts.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(query))
                self.end_headers()

        def do_POST(self) -> None:
            provider.requests.append("/token")
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            reply = provider.grant(dict(parse_qsl(body)), self.headers["Authorization"] or "")
            self._send_json(reply or {"error": "invalid_grant"}, 200 if reply else 400)

        def _send_json(self, value: object, status: int = 200) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        # Not the name of the servers of tests, so that browsers take it for another site.
        provider.url = f"http://localhost:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
