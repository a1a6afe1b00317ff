"""The time as texts have it. Writing it out costs more than an answer's other parts together."""

from __future__ import annotations

import time


class _Second:
    number = -1
    text = ""


def timestamp() -> str:
    """Now in UTC, to the millisecond."""
    now = time.time()
    second = int(now)
    if second != _Second.number:
        _Second.text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _Second.number = second
    return f"{_Second.text}.{int((now - second) * 1000):03d}Z"
