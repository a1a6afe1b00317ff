"""The cookie that a person gets for the token."""

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


def keys(token: str = TOKEN, clock: Clock | None = None, public_url: str = "") -> Credentials:
    settings = ServerSettings(auth_token=Secret(token), public_url=public_url)
    return Credentials(settings, now=clock or Clock())


def cookie(header: bytes) -> bytes:
    return header.partition(b";")[0]


def test_a_cookie_opens_until_its_time_is_over() -> None:
    clock = Clock()
    one = keys(clock=clock)
    given = cookie(one.build_session_cookie(OPERATOR))
    assert one.authenticate_cookie(given)
    clock.now += SESSION_LIFETIME + 1
    assert not one.authenticate_cookie(given)


def test_a_cookie_of_another_token_or_with_another_time_does_not_open() -> None:
    given = cookie(keys().build_session_cookie(OPERATOR))
    assert not keys("other").authenticate_cookie(given)
    later = given.replace(f"{SESSION_COOKIE}=".encode(), f"{SESSION_COOKIE}=9".encode())
    for wrong in (later, given[:-1], b"", b"x", None, f"{SESSION_COOKIE}=..".encode(), b'"\xff=;;'):
        assert not keys().authenticate_cookie(wrong)


def test_the_token_is_not_in_the_cookie_and_no_script_or_site_gets_it() -> None:
    header = keys(public_url="https://hall.example").build_session_cookie(OPERATOR).decode()
    assert TOKEN not in header
    assert header.endswith("; HttpOnly; SameSite=Strict; Secure")
    assert "Secure" not in keys().build_session_cookie(OPERATOR).decode()


def test_only_the_token_fits() -> None:
    assert keys().authenticate_token(TOKEN.encode(), SCOPE)
    assert not keys().authenticate_token(b"wrong", SCOPE)
    assert not keys().authenticate_token(None, SCOPE)


def test_a_cookie_is_valid_until_its_own_token_is_revoked() -> None:
    stored = MemoryTokens("laptop", "phone")
    one = Credentials(ServerSettings(auth_token=Secret(TOKEN)), stored, now=Clock())
    cookies = {}
    for name in ("laptop", "phone"):
        credential = one.authenticate_token(name.encode(), SCOPE)
        assert credential is not None
        cookies[name] = cookie(one.build_session_cookie(credential))
        assert one.authenticate_cookie(cookies[name]) == credential
    stored.revoke("laptop")
    assert one.authenticate_cookie(cookies["laptop"]) is None
    assert one.authenticate_cookie(cookies["phone"])
    assert one.authenticate_cookie(cookie(one.build_session_cookie(OPERATOR)))


def test_a_cookie_cannot_be_moved_to_another_token() -> None:
    stored = MemoryTokens("laptop", "phone")
    one = Credentials(ServerSettings(auth_token=Secret(TOKEN)), stored, now=Clock())
    laptop, phone = stored.find(b"laptop"), stored.find(b"phone")
    assert laptop
    assert phone
    given = cookie(one.build_session_cookie(Credential(laptop)))
    for other in (phone.id, "", "00000000"):
        assert one.authenticate_cookie(given.replace(laptop.id.encode(), other.encode())) is None


def test_a_cookie_is_found_by_its_name() -> None:
    assert read_cookie(b"a=1; b=2", "b") == "2"
    assert read_cookie(b'x={"a": [1]}; y; b=2', "b") == "2"
    assert read_cookie(b"a=1", "b") == ""
