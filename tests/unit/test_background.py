import os
import sys
import threading

import pytest

from skillhall._internal.background import run_low_priority


def test_what_the_work_returns_comes_back() -> None:
    assert run_low_priority(lambda: 7) == 7


def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_low_priority(lambda: 1 // 0)


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own there")
def test_the_work_stands_back_and_whoever_waits_does_not() -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = priority()
    assert run_low_priority(priority) > before
    assert priority() == before
