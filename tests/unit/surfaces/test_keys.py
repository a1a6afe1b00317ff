"""The cookie that a person gets for the token."""

from skillhall.settings import Secret, ServerSettings
from skillhall.surfaces.keys import LIFETIME, SESSION, Keys, cookie_in

TOKEN = "correct-horse"  # noqa: S105 - of tests alone
SCOPE = {"client": ("192.0.2.1", 1)}


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def keys(token: str = TOKEN, clock: Clock | None = None, public_url: str = "") -> Keys:
    settings = ServerSettings(auth_token=Secret(token), public_url=public_url)
    return Keys(settings, now=clock or Clock())


def cookie(header: bytes) -> bytes:
    return header.partition(b";")[0]


def test_a_cookie_opens_until_its_time_is_over() -> None:
    clock = Clock()
    one = keys(clock=clock)
    given = cookie(one.session_cookie())
    assert one.admits(given)
    clock.now += LIFETIME + 1
    assert not one.admits(given)


def test_a_cookie_of_another_token_or_with_another_time_does_not_open() -> None:
    given = cookie(keys().session_cookie())
    assert not keys("other").admits(given)
    later = given.replace(f"{SESSION}=".encode(), f"{SESSION}=9".encode())
    for wrong in (later, given[:-1], b"", b"x", None, f"{SESSION}=..".encode(), b'"\xff=;;'):
        assert not keys().admits(wrong)


def test_the_token_is_not_in_the_cookie_and_no_script_or_site_gets_it() -> None:
    header = keys(public_url="https://hall.example").session_cookie().decode()
    assert TOKEN not in header
    assert header.endswith("; HttpOnly; SameSite=Strict; Secure")
    assert "Secure" not in keys().session_cookie().decode()


def test_only_the_token_fits() -> None:
    assert keys().fits(TOKEN.encode(), SCOPE)
    assert not keys().fits(b"wrong", SCOPE)
    assert not keys().fits(None, SCOPE)


def test_a_cookie_is_found_by_its_name() -> None:
    assert cookie_in(b"a=1; b=2", "b") == "2"
    assert cookie_in(b'x={"a": [1]}; y; b=2', "b") == "2"
    assert cookie_in(b"a=1", "b") == ""
