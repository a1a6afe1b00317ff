"""The time as texts have it. Writing it out costs more than an answer's other parts together."""

from __future__ import annotations

import time


class _Now:
    second = millisecond = -1
    day_and_time = text = ""


def timestamp() -> str:
    """Now in UTC, to the millisecond."""
    now = int(time.time() * 1000)
    if now == _Now.millisecond:
        return _Now.text
    second, rest = divmod(now, 1000)
    if second != _Now.second:
        _Now.day_and_time = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _Now.second = second
    text = _Now.text = f"{_Now.day_and_time}.{rest:03d}Z"
    _Now.millisecond = now
    return text
