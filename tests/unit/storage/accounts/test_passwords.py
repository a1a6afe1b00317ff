"""Passwords: hashed, compared, refused if they are easy to guess."""

import pytest

from skillhall._internal.storage.accounts import passwords
from skillhall._internal.storage.accounts.passwords import (
    check_new_password,
    hash_password,
    verify_password,
)
from skillhall.errors import Busy, FieldRefused

GOOD = "purple ladder winter"


def test_password_is_compared_with_its_salted_hash() -> None:
    first, second = hash_password(GOOD), hash_password(GOOD)
    assert first != second
    assert first.startswith("scrypt$16384$8$5$")
    assert GOOD not in first
    assert verify_password(GOOD, first)
    assert not verify_password(f"{GOOD} ", first)


@pytest.mark.parametrize("stored", ["", "x", "scrypt$1$2", "plain$1$8$1$00$00", "scrypt$a$8$1$0$0"])
def test_no_password_matches_an_account_without_one(stored: str) -> None:
    assert not verify_password("", stored)
    assert not verify_password(GOOD, stored)


def test_unknown_user_costs_as_much_as_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[passwords.PasswordHash] = []
    compute = passwords._compute_key  # noqa: SLF001 - the cost is what is tested

    def record(password: str, parameters: passwords.PasswordHash) -> bytes:
        seen.append(parameters)
        return compute(password, parameters)

    monkeypatch.setattr(passwords, "_compute_key", record)
    stored = hash_password(GOOD)
    verify_password(GOOD, stored)
    verify_password(GOOD, "")
    assert {parameters[:3] for parameters in seen} == {(16384, 8, 5)}


@pytest.mark.parametrize(
    "password",
    [
        "",
        "short",
        "password1234",
        "aaaaaaaaaaaaaaa",
        "123456789012345",
        "dev1dev1dev1dev1",
        "x" * 201,
    ],
)
def test_weak_password_is_refused(password: str) -> None:
    with pytest.raises(FieldRefused, match="password: "):
        check_new_password(password, "dev1")


@pytest.mark.parametrize(
    "password", [GOOD, "Tr0ub4dor&3xyz", "größer als ein Haus", "k7#Qz!mP2wLx"]
)
def test_password_that_is_hard_to_guess_is_accepted(password: str) -> None:
    check_new_password(password, "dev1")


def test_long_password_is_not_hashed() -> None:
    assert not verify_password("x" * 201, hash_password(GOOD))


def test_number_of_hashes_at_once_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_MAX_WAIT", 0)
    slots = passwords._SLOTS  # noqa: SLF001 - it is full in practice when many people sign in
    with slots, slots, slots, slots, pytest.raises(Busy):
        verify_password(GOOD, "")
    assert not verify_password(GOOD, "")
