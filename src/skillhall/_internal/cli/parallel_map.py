"""Applies a function to many items, on all cores if that is faster."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
from contextlib import ExitStack, contextmanager
from functools import partial
from selectors import EVENT_READ, DefaultSelector
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from skillhall._internal.cli.progress import scan_progress, transfer_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import NoReturn, Self

    from skillhall._internal.authoring.validate import MapBatches

    Progress = Callable[[str, int, int], None]

_T = TypeVar("_T")
_R = TypeVar("_R")
MIN_ITEMS = 500  # starting processes takes as long as checking a few hundred skills
_BATCH_SIZE = 64
_MAX_BATCHES = 8192  # the numbers of all batches must fit into a pipe, which holds at least 64 KiB
_STEP = "checking skills"
_BATCH = Struct("I")  # the number of a batch
_LENGTH = Struct("Q")  # of its results


def parallel_map(
    function: Callable[[_T], _R],
    items: Sequence[_T],
    progress: Progress | None = None,
    step: str = _STEP,
) -> Iterator[_R]:
    """Call `function` with each item and yield the results in order.

    Results must be picklable. `progress` gets the step, the number of results so far and their
    total.
    """
    return map_batches(partial(_map_batch, function), items, progress, step)


class SkillChecking(NamedTuple):
    """Progress display of a check of many skills, and its use of the cores."""

    progress: Callable[[int], None] | None
    map_batches: MapBatches


@contextmanager
def skill_checking() -> Iterator[SkillChecking]:
    """Show the progress of a scan, then of the checks, which use all cores."""
    with ExitStack() as scan, transfer_progress() as bar:

        def map_all(
            function: Callable[[Sequence[_T]], list[_R]], items: Sequence[_T], /
        ) -> Iterator[_R]:
            scan.close()  # its spinner has a thread, and processes are forked without threads
            return map_batches(function, items, bar)

        yield SkillChecking(scan.enter_context(scan_progress()), map_all)


def _map_batch(function: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    return [function(item) for item in items]


def map_batches(
    function: Callable[[Sequence[_T]], list[_R]],
    items: Sequence[_T],
    progress: Progress | None = None,
    step: str = _STEP,
) -> Iterator[_R]:
    """Call `function` with batches of items; yield the result of each item in order."""
    done, total = 0, len(items)
    is_long = total >= MIN_ITEMS
    size = max(_BATCH_SIZE, -(-total // _MAX_BATCHES))
    batches = [items[start : start + size] for start in range(0, total, size)]
    for results in _map_on_all_cores(function, batches) if is_long else map(function, batches):
        for result in results:
            yield result
            done += 1
            if progress is not None and is_long:
                progress(step, done, total)


def _map_on_all_cores(
    function: Callable[[Sequence[_T]], list[_R]], batches: Sequence[Sequence[_T]]
) -> Iterator[list[_R]]:
    """Yield the results of each batch in order.

    Batches of killed processes are mapped here.
    """
    cores = _count_cores()
    finished: dict[int, list[_R]] = {}
    number = 0
    if cores > 1:
        with _ProcessGroup(cores, function, batches) as processes:
            for done, results in processes.read_results():
                finished[done] = results
                while number in finished:
                    yield finished.pop(number)
                    number += 1
    for rest in range(number, len(batches)):
        yield finished.pop(rest) if rest in finished else function(batches[rest])


def _count_cores() -> int:
    """Return the number of cores for forked processes; 1 if forking is not safe."""
    # On macOS, system libraries may have started threads. A fork copies only the calling thread,
    # so locks of the others would never be released.
    if not sys.platform.startswith("linux") or threading.active_count() > 1:
        return 1
    return len(os.sched_getaffinity(0))


class _ProcessGroup:
    """Forked processes that map batches; they inherit the function and the items.

    `concurrent.futures` would need two threads and a fourth process, and its import alone takes
    as much time as checking a hundred skills.
    """

    def __init__(
        self, count: int, function: Callable[[Any], list[Any]], batches: Sequence[Sequence[Any]]
    ) -> None:
        self._count = count
        self._function = function
        self._batches = batches
        self._pipes: dict[int, int] = {}  # with the results, by process

    def __enter__(self) -> Self:
        # A pipe with the numbers of all batches: each process takes the next one.
        numbers, writer = os.pipe()
        os.write(writer, b"".join(map(_BATCH.pack, range(len(self._batches)))))
        os.close(writer)
        # Collections would examine all items again and again. In the new processes, this would also
        # copy the memory that they share.
        gc.freeze()
        for _ in range(self._count):
            results, writer = os.pipe()
            process = os.fork()
            if not process:
                self._work(numbers, (*self._pipes.values(), results), writer)
            os.close(writer)
            self._pipes[process] = results
        os.close(numbers)
        return self

    def __exit__(self, *_: object) -> None:
        gc.unfreeze()
        for process, pipe in self._pipes.items():
            os.close(pipe)
            os.kill(process, signal.SIGKILL)  # if it still works, its results are not needed
            os.waitpid(process, 0)

    def _work(self, numbers: int, pipes: Sequence[int], results: int) -> NoReturn:
        """Write the results of batches until there are no more; never returns."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles Ctrl+C
            # Writing must fail when the main process has ended, even if it was killed.
            for pipe in pipes:
                os.close(pipe)
            with open(results, "wb") as file:
                while number := os.read(numbers, _BATCH.size):
                    batch = self._batches[_BATCH.unpack(number)[0]]
                    data = pickle.dumps(self._function(batch), pickle.HIGHEST_PROTOCOL)
                    file.write(number + _LENGTH.pack(len(data)) + data)
                    file.flush()
        finally:
            # After an error, too: the main process maps the batch again, and raises it.
            os._exit(0)

    def read_results(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield the number and results of each batch, in any order, until all are done."""
        with DefaultSelector() as selector:
            for pipe in self._pipes.values():
                selector.register(pipe, EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select():
                    head = _read_exactly(key.fd, _BATCH.size + _LENGTH.size)
                    length = _LENGTH.unpack_from(head, _BATCH.size)[0] if head else 0
                    data = _read_exactly(key.fd, length)
                    if data:
                        # Written by a process that this one forked.
                        yield _BATCH.unpack_from(head)[0], pickle.loads(data)  # noqa: S301
                    else:
                        selector.unregister(key.fd)


def _read_exactly(descriptor: int, size: int) -> bytes:
    """Read this many bytes; nothing if the process ended before it wrote them."""
    data = b""
    while len(data) < size:
        chunk = os.read(descriptor, size - len(data))
        if not chunk:
            return b""
        data += chunk
    return data
