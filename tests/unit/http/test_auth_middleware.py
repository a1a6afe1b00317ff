import pytest

from skillhall._internal.http.credentials import MAX_FAILURES, WINDOW, Failures
from skillhall._internal.http.http_error import Refused


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def exhausted(failures: Failures, address: str) -> None:
    for _ in range(MAX_FAILURES):
        failures.note(address)


def test_too_many_failures_from_one_address_are_refused_until_the_window_is_over() -> None:
    clock = Clock()
    failures = Failures("tokens", clock)
    exhausted(failures, "192.0.2.1")
    clock.now = 100.0
    with pytest.raises(Refused) as refusal:
        failures.note("192.0.2.1")
    assert refusal.value.headers == ((b"retry-after", b"%d" % (WINDOW - 100)),)
    clock.now = WINDOW
    failures.note("192.0.2.1")


def test_failures_of_one_address_are_not_counted_against_another() -> None:
    failures = Failures("tokens", Clock())
    exhausted(failures, "192.0.2.1")
    failures.note("192.0.2.2")


def test_addresses_without_end_take_no_memory_without_end() -> None:
    failures = Failures("tokens", Clock())
    for number in range(10_100):
        failures.note(str(number))
    assert len(failures) == 10_000
