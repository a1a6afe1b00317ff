"""Tokens and session cookies."""

from skillhall._internal.http.credentials import (
    SESSION_COOKIE,
    SESSION_LIFETIME,
    Credential,
    Credentials,
    read_cookie,
)
from skillhall._internal.settings import Secret, ServerSettings
from tests.support.servers import MemoryTokens

TOKEN = "correct-horse"  # noqa: S105 - of tests alone
SCOPE = {"client": ("192.0.2.1", 1)}
OPERATOR = Credential()


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def make_credentials(
    token: str = TOKEN, clock: Clock | None = None, public_url: str = ""
) -> Credentials:
    settings = ServerSettings(auth_token=Secret(token), public_url=public_url)
    return Credentials(settings, now=clock or Clock())


def cookie(header: bytes) -> bytes:
    return header.partition(b";")[0]


def test_cookie_is_valid_until_it_expires() -> None:
    clock = Clock()
    credentials = make_credentials(clock=clock)
    value = cookie(credentials.build_session_cookie(OPERATOR))
    assert credentials.authenticate_cookie(value)
    clock.now += SESSION_LIFETIME + 1
    assert not credentials.authenticate_cookie(value)


def test_cookie_with_other_token_or_expiry_is_rejected() -> None:
    value = cookie(make_credentials().build_session_cookie(OPERATOR))
    assert not make_credentials("other").authenticate_cookie(value)
    later = value.replace(f"{SESSION_COOKIE}=".encode(), f"{SESSION_COOKIE}=9".encode())
    for wrong in (later, value[:-1], b"", b"x", None, f"{SESSION_COOKIE}=..".encode(), b'"\xff=;;'):
        assert not make_credentials().authenticate_cookie(wrong)


def test_cookie_hides_the_token_and_is_protected() -> None:
    header = (
        make_credentials(public_url="https://hall.example").build_session_cookie(OPERATOR).decode()
    )
    assert TOKEN not in header
    assert header.endswith("; HttpOnly; SameSite=Strict; Secure")
    assert "Secure" not in make_credentials().build_session_cookie(OPERATOR).decode()


def test_only_the_right_token_is_accepted() -> None:
    assert make_credentials().authenticate_token(TOKEN.encode(), SCOPE)
    assert not make_credentials().authenticate_token(b"wrong", SCOPE)
    assert not make_credentials().authenticate_token(None, SCOPE)


def test_cookie_is_invalid_after_its_token_is_revoked() -> None:
    stored = MemoryTokens("laptop", "phone")
    credentials = Credentials(ServerSettings(auth_token=Secret(TOKEN)), stored, now=Clock())
    cookies = {}
    for name in ("laptop", "phone"):
        credential = credentials.authenticate_token(name.encode(), SCOPE)
        assert credential is not None
        cookies[name] = cookie(credentials.build_session_cookie(credential))
        assert credentials.authenticate_cookie(cookies[name]) == credential
    stored.revoke("laptop")
    assert credentials.authenticate_cookie(cookies["laptop"]) is None
    assert credentials.authenticate_cookie(cookies["phone"])
    assert credentials.authenticate_cookie(cookie(credentials.build_session_cookie(OPERATOR)))


def test_cookie_cannot_be_transferred_to_another_token() -> None:
    stored = MemoryTokens("laptop", "phone")
    credentials = Credentials(ServerSettings(auth_token=Secret(TOKEN)), stored, now=Clock())
    laptop, phone = stored.find(b"laptop"), stored.find(b"phone")
    assert laptop
    assert phone
    value = cookie(credentials.build_session_cookie(Credential(laptop)))
    for other in (phone.id, "", "00000000"):
        assert (
            credentials.authenticate_cookie(value.replace(laptop.id.encode(), other.encode()))
            is None
        )


def test_cookie_is_read_by_name() -> None:
    assert read_cookie(b"a=1; b=2", "b") == "2"
    assert read_cookie(b'x={"a": [1]}; y; b=2', "b") == "2"
    assert read_cookie(b"a=1", "b") == ""
