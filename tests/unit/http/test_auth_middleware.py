import pytest

from skillhall._internal.http.credentials import FAILURE_WINDOW, MAX_FAILURES, FailedSignIns
from skillhall._internal.http.http_error import HttpError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def exhausted(failures: FailedSignIns, address: str) -> None:
    for _ in range(MAX_FAILURES):
        failures.record(address)


def test_too_many_failures_from_one_address_are_refused_until_the_window_is_over() -> None:
    clock = Clock()
    failures = FailedSignIns("tokens", clock)
    exhausted(failures, "192.0.2.1")
    clock.now = 100.0
    with pytest.raises(HttpError) as refusal:
        failures.record("192.0.2.1")
    assert refusal.value.headers == ((b"retry-after", b"%d" % (FAILURE_WINDOW - 100)),)
    clock.now = FAILURE_WINDOW
    failures.record("192.0.2.1")


def test_failures_of_one_address_are_not_counted_against_another() -> None:
    failures = FailedSignIns("tokens", Clock())
    exhausted(failures, "192.0.2.1")
    failures.record("192.0.2.2")


def test_addresses_without_end_take_no_memory_without_end() -> None:
    failures = FailedSignIns("tokens", Clock())
    for number in range(10_100):
        failures.record(str(number))
    assert len(failures) == 10_000
