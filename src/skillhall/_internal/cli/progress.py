"""Progress display on stderr for long scans and transfers."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillhall._internal.cli.terminal import build_console, is_smart_terminal, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from rich.progress import Progress, TaskID
    from rich.status import Status

SPINNER_DELAY = 0.5  # seconds before anything is shown


@contextmanager
def scan_progress(
    stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int], None] | None]:
    """Yield a callback for the number of skills found; `None` without a terminal."""
    stream = stream or sys.stderr
    if not is_smart_terminal(stream):
        yield None
        return
    spinner: Status | None = None
    start_time = clock()
    finished_count, last_count = 0, 0  # each root restarts the count

    def update(count: int) -> None:
        nonlocal spinner, finished_count, last_count
        if count < last_count:
            finished_count += last_count
        last_count = count
        if clock() - start_time < SPINNER_DELAY:
            return
        text = f"{finished_count + count:,} skills found…"
        if spinner is None:
            from rich.status import Status as RichStatus

            spinner = RichStatus(text, console=build_console(stream))
            spinner.start()
        else:
            spinner.update(text)

    try:
        yield update
    finally:
        if spinner is not None:
            spinner.stop()


@contextmanager
def transfer_progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield a callback for a step, its progress and total; `None` without a terminal."""
    if not is_smart_terminal(sys.stderr):
        yield None
        return
    tasks: dict[str, TaskID] = {}
    bars: Progress | None = None

    def update(step: str, done: int, total: int) -> None:
        nonlocal bars
        if bars is None:
            from rich.progress import Progress as RichProgress

            bars = RichProgress(console=build_console(sys.stderr), transient=True)
            bars.start()
        if step not in tasks:
            tasks[step] = bars.add_task(sanitize_line(step), total=None)
        # A total of 0 means unknown.
        bars.update(tasks[step], completed=done, total=total or None)

    try:
        yield update
    finally:
        if bars is not None:
            bars.stop()
