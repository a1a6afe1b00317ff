"""Passwords: hashes with scrypt, and the rules for new ones."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from typing import NamedTuple, Self

from skillhall._internal.policy.access.token_strength import MIN_PASSWORD_LENGTH, is_weak_password
from skillhall.errors import Busy, FieldRefused

MAX_LENGTH = 200  # characters
_ALGORITHM = "scrypt"
_COST, _BLOCK_SIZE, _PARALLELISM = 2**14, 8, 5  # 16 MiB, about 0.2 seconds
_SALT_BYTES = 16
_MAX_WAIT = 5.0  # seconds to wait for one of the slots
_SLOTS = threading.BoundedSemaphore(4)  # hashes computed at the same time, to limit memory


class PasswordHash(NamedTuple):
    """Stored form of a password."""

    cost: int
    block_size: int
    parallelism: int
    salt: bytes
    key: bytes

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse a stored hash; None if it is empty or invalid."""
        try:
            algorithm, cost, block_size, parallelism, salt, key = text.split("$")
            numbers = int(cost), int(block_size), int(parallelism)
            parsed = cls(*numbers, bytes.fromhex(salt), bytes.fromhex(key))
        except ValueError:
            return None
        return parsed if algorithm == _ALGORITHM else None

    def __str__(self) -> str:
        numbers = (self.cost, self.block_size, self.parallelism)
        return "$".join([_ALGORITHM, *map(str, numbers), self.salt.hex(), self.key.hex()])


_UNKNOWN = PasswordHash(_COST, _BLOCK_SIZE, _PARALLELISM, b"\0" * _SALT_BYTES, b"")


def hash_password(password: str) -> str:
    """Return the stored form of a password. Raises: Busy."""
    salt = secrets.token_bytes(_SALT_BYTES)
    parameters = _UNKNOWN._replace(salt=salt)
    return str(parameters._replace(key=_compute_key(password, parameters)))


def verify_password(password: str, stored: str) -> bool:
    """Whether a password is the stored one.

    Takes the same time if none is stored, so that it does not reveal which users exist.
    Raises: Busy.
    """
    parsed = PasswordHash.parse(stored)
    if len(password) > MAX_LENGTH:
        return False
    key = _compute_key(password, parsed or _UNKNOWN)
    return parsed is not None and hmac.compare_digest(key, parsed.key)


def check_new_password(password: str, name: str) -> None:
    """Check that a new password of a user is hard to guess. Raises: FieldRefused."""
    if len(password) > MAX_LENGTH:
        raise FieldRefused("password", f"must have at most {MAX_LENGTH} characters")
    if len(password) < MIN_PASSWORD_LENGTH:
        raise FieldRefused("password", f"must have at least {MIN_PASSWORD_LENGTH} characters")
    if is_weak_password(password, name):
        hint = "use several unrelated words, or a password manager"
        raise FieldRefused("password", "is too easy to guess", hint)


def _compute_key(password: str, parameters: PasswordHash) -> bytes:
    if not _SLOTS.acquire(timeout=_MAX_WAIT):
        raise Busy("too many people are signing in", "try again in a moment", "overloaded")
    try:
        return hashlib.scrypt(
            password.encode("utf-8", "surrogatepass"),
            salt=parameters.salt,
            n=parameters.cost,
            r=parameters.block_size,
            p=parameters.parallelism,
        )
    finally:
        _SLOTS.release()
