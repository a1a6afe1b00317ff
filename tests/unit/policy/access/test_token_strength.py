"""Tests of weak tokens."""

import secrets
import string

import pytest

from skillhall._internal.policy.access.token_strength import is_weak_token


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "password",
        "correct-horse",
        "a" * 64,
        "1234567890123456",
        "abcdefghijklmnopqrstuvwxyz",
        "passwordpassword1",
        "Password-Password-Password",
        "changeme-changeme-changeme",
        "skillhall-server-token",
        "my-secret-auth-token",
        "qwertyuiopasdfghjkl",
        "k3jV9-xQ2mZ7_wLb4Ty",
        "x1x1x1x1x1x1x1x1x1x1x1x1",
        "                    ",
    ],
)
def test_weak_token_is_detected(token: str) -> None:
    assert is_weak_token(token)


@pytest.mark.parametrize("size", [16, 24, 32])
def test_random_token_is_accepted(size: int) -> None:
    for _ in range(50):
        assert not is_weak_token(secrets.token_urlsafe(size))
        assert not is_weak_token(secrets.token_hex(size))
    letters = "".join(secrets.choice(string.ascii_lowercase) for _ in range(size + 8))
    assert not is_weak_token(letters)


def test_passphrase_is_accepted() -> None:
    assert not is_weak_token("correct-horse-battery-staple")
