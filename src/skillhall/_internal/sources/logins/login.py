"""A login: user and password, or user and token."""

from __future__ import annotations

from base64 import b64encode
from typing import NamedTuple

from skillhall._internal.settings import Secret


class Login(NamedTuple):
    """User and password of one host."""

    user: str
    password: Secret

    @property
    def authorization(self) -> str:
        """Value of the Authorization header (RFC 7617)."""
        pair = f"{self.user}:{self.password.reveal()}".encode()
        return f"Basic {b64encode(pair).decode('ascii')}"
