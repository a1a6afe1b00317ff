import pytest

from skillhall._internal.http.credentials import FAILURE_WINDOW, MAX_FAILURES, FailedSignIns
from skillhall._internal.http.http_error import HttpError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def record_max_failures(failures: FailedSignIns, address: str) -> None:
    for _ in range(MAX_FAILURES):
        failures.record(address)


def test_too_many_failures_block_an_address_until_the_window_ends() -> None:
    clock = Clock()
    failures = FailedSignIns("tokens", clock)
    record_max_failures(failures, "192.0.2.1")
    clock.now = 100.0
    with pytest.raises(HttpError) as caught:
        failures.record("192.0.2.1")
    assert caught.value.headers == ((b"retry-after", b"%d" % (FAILURE_WINDOW - 100)),)
    clock.now = FAILURE_WINDOW
    failures.record("192.0.2.1")


def test_failures_are_counted_per_address() -> None:
    failures = FailedSignIns("tokens", Clock())
    record_max_failures(failures, "192.0.2.1")
    failures.record("192.0.2.2")


def test_number_of_remembered_addresses_is_limited() -> None:
    failures = FailedSignIns("tokens", Clock())
    for number in range(10_100):
        failures.record(str(number))
    assert len(failures) == 10_000
