import os
import sys
import threading

import pytest

from skillhall._internal.background import run_low_priority


def test_low_priority_work_returns_its_result() -> None:
    assert run_low_priority(lambda: 7) == 7


def test_low_priority_work_raises_its_error() -> None:
    with pytest.raises(ZeroDivisionError):
        run_low_priority(lambda: 1 // 0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux threads have a priority")
def test_only_the_worker_thread_has_a_lower_priority() -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = priority()
    lowest = 19
    assert run_low_priority(priority) > before or before == lowest
    assert priority() == before
