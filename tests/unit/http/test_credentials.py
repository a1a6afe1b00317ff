"""Tokens, and the cookies of sign-ins."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillhall._internal.http.credentials import (
    MAX_FAILURES,
    SESSION_COOKIE,
    SESSION_LIFETIME,
    Credential,
    Credentials,
    read_cookie,
)
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.request import HEADERS_KEY
from skillhall._internal.policy.access.access_scopes import AccessScope
from skillhall._internal.policy.access.actor import SYSTEM_ACTOR
from skillhall._internal.settings import Secret, ServerSettings
from skillhall._internal.storage.sign_ins import SignIns
from tests.support.servers import MemoryTokens, open_sign_ins

TOKEN = "correct-horse"  # noqa: S105 - of tests alone
SCOPE: dict[str, Any] = {"client": ("192.0.2.1", 1), HEADERS_KEY: {b"user-agent": b"Fox\0/1"}}
OPERATOR = Credential()


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sign_ins(tmp_path: Path, clock: Clock) -> Iterator[SignIns]:
    with open_sign_ins(tmp_path, clock) as opened:
        yield opened


@pytest.fixture
def tokens() -> MemoryTokens:
    return MemoryTokens("laptop", "phone")


def make_credentials(
    sign_ins: SignIns | None = None,
    tokens: MemoryTokens | None = None,
    clock: Clock | None = None,
    token: str = TOKEN,
) -> Credentials:
    settings = ServerSettings(auth_token=Secret(token))
    return Credentials(settings, tokens, sign_ins, now=clock or Clock())


@pytest.fixture
def credentials(sign_ins: SignIns, tokens: MemoryTokens, clock: Clock) -> Credentials:
    return make_credentials(sign_ins, tokens, clock)


def sign_in(credentials: Credentials, token: str = TOKEN) -> str:
    """Sign in and return the value of the cookie."""
    credential = credentials.authenticate_token(token.encode(), SCOPE)
    assert credential is not None
    header = credentials.sign_in(credential, SCOPE)
    return read_cookie(header.partition(b";")[0], SESSION_COOKIE)


def test_cookie_is_valid_until_it_expires(credentials: Credentials, clock: Clock) -> None:
    cookie = sign_in(credentials)
    credential = credentials.authenticate_cookie(cookie)
    assert credential is not None
    assert credential.sign_in is not None
    assert (credential.sign_in.address, credential.sign_in.agent) == ("192.0.2.1", "Fox/1")
    clock.now += SESSION_LIFETIME - 1
    assert credentials.authenticate_cookie(cookie)
    clock.now += 1
    assert not credentials.authenticate_cookie(cookie)
    assert not credentials.is_valid(credential)


def test_cookie_is_random_and_only_its_digest_is_stored(
    credentials: Credentials, tmp_path: Path
) -> None:
    first, second = sign_in(credentials), sign_in(credentials)
    assert len({first, second}) == 2
    assert len(first) == 43  # 256 bits
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("sign-ins.db*"))
    assert first.encode() not in stored
    assert TOKEN.encode() not in stored


def test_cookie_of_the_operator_is_invalid_with_another_token(
    credentials: Credentials, sign_ins: SignIns, tokens: MemoryTokens
) -> None:
    operator, laptop = sign_in(credentials), sign_in(credentials, "laptop")
    restarted = make_credentials(sign_ins, tokens)
    assert restarted.authenticate_cookie(operator)
    changed = make_credentials(sign_ins, tokens, token="another-token")  # noqa: S106
    assert not changed.authenticate_cookie(operator)
    assert changed.list_sign_ins(OPERATOR) == []
    assert changed.authenticate_cookie(laptop)


@pytest.mark.parametrize(
    "cookie",
    ["", "x", "..", "\xff" * 43, "a" * 42, "a" * 44, "a" * 42 + "\n", "a" * 100_000, "1.2.3.4"],
)
def test_malformed_cookie_is_rejected_without_the_database(
    credentials: Credentials, cookie: str
) -> None:
    assert not credentials.authenticate_cookie(cookie)
    assert not credentials.must_load_cookie(cookie, SCOPE)


def test_changed_cookie_is_rejected(credentials: Credentials) -> None:
    cookie = sign_in(credentials)
    changed = ("B" if cookie[0] == "A" else "A") + cookie[1:]
    assert not credentials.authenticate_cookie(changed)
    assert not credentials.load_cookie(changed, SCOPE)


def test_cookie_is_protected() -> None:
    public = ServerSettings(public_url="https://hall.example")
    assert (
        Credentials(public).build_cookie("a", "b", 5)
        == b"a=b; Path=/; Max-Age=5; HttpOnly; SameSite=Strict; Secure"
    )
    assert b"Secure" not in make_credentials().build_cookie("a", "b", 5)


def test_only_the_right_token_is_accepted() -> None:
    assert make_credentials().authenticate_token(TOKEN.encode(), SCOPE)
    assert not make_credentials().authenticate_token(b"wrong", SCOPE)
    assert not make_credentials().authenticate_token(None, SCOPE)


def test_expired_token_is_rejected_with_the_reason(
    credentials: Credentials, tokens: MemoryTokens, clock: Clock
) -> None:
    tokens.add("ci", expires="2027-01-15T08:00:01+00:00")  # a second later
    cookie = sign_in(credentials, "ci")
    credential = credentials.authenticate_cookie(cookie)
    assert credential is not None
    clock.now += 1
    with pytest.raises(HttpError, match="expired") as raised:
        credentials.authenticate_token(b"ci", SCOPE)
    assert raised.value.code == "unauthenticated"
    assert not credentials.authenticate_cookie(cookie)
    assert not credentials.is_valid(credential)


def test_expired_token_does_not_count_as_a_guess(
    credentials: Credentials, tokens: MemoryTokens
) -> None:
    tokens.add("old", expires="2020-01-01T00:00:00+00:00")
    for _ in range(MAX_FAILURES + 2):
        with pytest.raises(HttpError, match="expired"):
            credentials.authenticate_token(b"old", SCOPE)


def test_cookie_is_invalid_after_its_token_is_revoked(
    credentials: Credentials, tokens: MemoryTokens
) -> None:
    laptop, phone, operator = (sign_in(credentials, token) for token in ("laptop", "phone", TOKEN))
    tokens.revoke("laptop")
    assert credentials.authenticate_cookie(laptop) is None
    assert credentials.authenticate_cookie(phone)
    assert credentials.authenticate_cookie(operator)


def test_ended_sign_in_is_invalid_at_once(credentials: Credentials) -> None:
    cookie, other = sign_in(credentials, "laptop"), sign_in(credentials, "laptop")
    credential = credentials.authenticate_cookie(cookie)
    assert credential is not None
    assert credential.sign_in is not None
    identity = credential.sign_in.id
    assert not credentials.end_sign_in(OPERATOR, identity, SYSTEM_ACTOR)  # of another token
    assert credentials.authenticate_cookie(cookie) == credential
    assert credentials.end_sign_in(credential, identity, SYSTEM_ACTOR)
    assert not credentials.authenticate_cookie(cookie)
    assert not credentials.is_valid(credential)
    assert not credentials.load_cookie(cookie, SCOPE)
    assert credentials.authenticate_cookie(other)


def test_sign_in_at_another_server_is_loaded(
    credentials: Credentials, tokens: MemoryTokens, tmp_path: Path, clock: Clock
) -> None:
    with open_sign_ins(tmp_path, clock) as other_sign_ins:
        other = make_credentials(other_sign_ins, tokens)
        other_sign_ins.close()  # it polls no more
        cookie = sign_in(credentials, "laptop")
        assert other.must_load_cookie(cookie, SCOPE)
        assert other.load_cookie(cookie, SCOPE)
        assert other.authenticate_cookie(cookie)
        assert not other.must_load_cookie(cookie, SCOPE)


def test_unknown_cookie_is_looked_up_once_and_guesses_are_limited(
    credentials: Credentials,
) -> None:
    guesses = [f"{number:043}" for number in range(MAX_FAILURES)]
    for guess in guesses:
        assert credentials.must_load_cookie(guess, SCOPE)
        assert not credentials.load_cookie(guess, SCOPE)
        assert not credentials.must_load_cookie(guess, SCOPE)
    assert not credentials.must_load_cookie("z" * 43, SCOPE)
    assert credentials.must_load_cookie("z" * 43, {**SCOPE, "client": ("192.0.2.2", 1)})
    with pytest.raises(HttpError) as raised:
        credentials.load_cookie("z" * 43, SCOPE)
    assert raised.value.code == "too_many_requests"
    assert credentials.authenticate_cookie(sign_in(credentials, "laptop"))


def test_uses_of_tokens_and_cookies_are_recorded(
    credentials: Credentials, tokens: MemoryTokens
) -> None:
    laptop = tokens.find(b"laptop")
    assert laptop is not None
    cookie = sign_in(credentials, "laptop")
    assert tokens.used == [laptop.id]
    credentials.authenticate_cookie(cookie)
    assert tokens.used == [laptop.id] * 2


def test_operator_has_all_scopes_and_a_token_its_own(tokens: MemoryTokens) -> None:
    tokens.add("ci", ("read",))
    assert [*OPERATOR.scopes] == [*AccessScope]
    assert Credential(tokens.find(b"ci")).scopes == ("read",)


def test_cookie_is_read_by_name() -> None:
    assert read_cookie(b"a=1; b=2", "b") == "2"
    assert read_cookie(b'x={"a": [1]}; y; b=2', "b") == "2"
    assert read_cookie(b"a=1", "b") == ""
