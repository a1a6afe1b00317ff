"""Requests to a healthy server while something else hangs, compared with an idle one.

Two servers share a PostgreSQL. In each fault, the first one is measured: reads and sign-ins must
stay fast, writes too if they need nothing that hangs, and no request may take longer than the
configured timeout. Linux only, because it reads /proc.
"""

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.harness import BenchmarkError
from benchmarks.plan import SCALES, Plan
from benchmarks.report import Bar, Judged, Report, Row
from benchmarks.stalls_cluster import TIMEOUT, TOKEN_FORM, Change, Cluster, start_cluster

GIVE_UP = 2 * TIMEOUT  # seconds; a slower response is not waited for
MAX_FAILURES = 2  # of one kind of request in a phase
BAR = Bar(3.0, Judged.WALL)
LIMIT = Bar(1.0, Judged.WALL)  # of the longest request, in units of the timeout
PAUSE = 1.0  # seconds between two requests of a background client, which may be rejected at once
REQUESTS = 100  # of each kind in a phase
MAX_ROUNDS = 3
HANGING = 16  # repositories, chats, or writers of a frozen database
SAME_RECORD_WRITERS = 4


class Request(NamedTuple):
    """One kind of request, with the statuses that count as answered."""

    name: str
    method: str
    path: str
    statuses: tuple[int, ...]
    body: bytes | None = None
    headers: Mapping[str, str] = {}


class Client:
    """Connection to the measured server that is opened again after a failure."""

    def __init__(self, port: int, headers: Mapping[str, str]) -> None:
        self._port = port
        self._headers = headers
        self._connection: HTTPConnection | None = None

    def send(self, request: Request) -> tuple[float, int]:
        """Return the seconds and the status; status 0 if there was no response."""
        started = time.perf_counter()
        try:
            if self._connection is None:
                self._connection = HTTPConnection("127.0.0.1", self._port, timeout=GIVE_UP)
            headers = {**self._headers, **request.headers}
            self._connection.request(request.method, request.path, request.body, headers)
            response = self._connection.getresponse()
            response.read()
        except (OSError, HTTPException):
            self.close()
            return time.perf_counter() - started, 0
        return time.perf_counter() - started, response.status

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass
class Phase:
    """What was measured while a fault lasted, or before it."""

    seconds: dict[str, list[float]] = field(default_factory=dict)  # by kind
    longest: float = 0.0  # of any request that must end in time
    unexpected: list[str] = field(default_factory=list)

    def percentile(self, kind: str, share: float) -> float:
        """Return the time that this share of the requests did not exceed."""
        ordered = sorted(self.seconds[kind])
        return ordered[math.ceil(share * len(ordered)) - 1]


@dataclass(frozen=True)
class Fault:
    """Something that hangs, the requests that run into it, and what is measured meanwhile."""

    name: str
    start: Callable[[Cluster], AbstractContextManager[None]]
    background: Callable[[Cluster], Sequence[Request]] = lambda _: ()
    can_write: bool = True
    has_limit: bool = True  # whether the background requests must end within the timeout


def run(plan: Plan) -> Iterator[Report]:
    """Yield one report for each fault."""
    if not Path("/proc/self/stat").exists():
        print("stalls: skipped, it needs Linux", file=sys.stderr)
        return
    is_small = plan.scale is SCALES["small"]
    rounds = 1 if is_small else min(plan.rounds, MAX_ROUNDS)
    with TemporaryDirectory() as folder, start_cluster(Path(folder)) as cluster:
        faults = _list_faults(cluster, is_small=is_small)
        _measure(cluster)  # warm-up
        phases = [[_measure_fault(cluster, fault) for fault in faults] for _ in range(rounds)]
    for number, fault in enumerate(faults):
        yield _report(fault, [results[number] for results in phases])


def _list_faults(cluster: Cluster, *, is_small: bool) -> list[Fault]:
    faults = []
    for name, change in (("block change", cluster.block), ("skill import", cluster.skill)):
        statements = cluster.count_statements(change)
        points = (1, statements) if is_small else range(1, statements + 1)
        faults += [
            Fault(
                f"other server frozen in a {name}, after statement {point} of {statements}",
                partial(Cluster.freeze_server, change=change, statement=point),
                partial(_same_record_requests, change=change),
            )
            for point in points
        ]
    return [
        *faults,
        Fault("frozen database", Cluster.freeze_database, _write_requests, can_write=False),
        Fault(
            f"{HANGING} repositories that never answer",
            Cluster.hang,
            lambda own: [Request("repository", "GET", path, ()) for path in own.repositories],
            has_limit=False,  # fetches have their own timeout
        ),
        Fault("model that never answers", Cluster.hang, _chat_requests, has_limit=False),
    ]


def _same_record_requests(_: Cluster, change: Change) -> list[Request]:
    return [Request("same record", *change)] * SAME_RECORD_WRITERS


def _write_requests(cluster: Cluster) -> list[Request]:
    return [Request("write", *cluster.block)] * HANGING


def _chat_requests(_: Cluster) -> list[Request]:
    chat = Request("chat", "POST", "/playground/send", (), b"message=Hello.", TOKEN_FORM)
    return [chat] * HANGING


def _measure_fault(cluster: Cluster, fault: Fault) -> tuple[Phase, Phase]:
    """Return an idle phase and the phase of the fault, measured right after it."""
    idle = _measure(cluster)
    session = cluster.new_session()  # before the fault, which may prevent it
    with fault.start(cluster):
        slow = _measure(cluster, fault, session)
    cluster.wait_until_recovered()
    return idle, slow


def _measure(cluster: Cluster, fault: Fault | None = None, session: str = "") -> Phase:
    phase = Phase()
    can_write = fault is None or fault.can_write
    requests = _list_requests(cluster, (session or cluster.new_session()) if can_write else "")
    background = fault.background(cluster) if fault else ()
    client = Client(cluster.healthy.port, cluster.headers)
    with _running(cluster, background, phase, has_limit=fault is None or fault.has_limit):
        failures = dict.fromkeys((request.name for request in requests), 0)
        for _ in range(REQUESTS):
            for request in requests:
                if failures[request.name] < MAX_FAILURES:
                    seconds, status = client.send(request)
                    if status not in request.statuses:
                        failures[request.name] += 1
                        seconds = GIVE_UP  # a failure is as bad as no response
                        phase.unexpected.append(f"{request.name}: {status}")
                    phase.seconds.setdefault(request.name, []).append(seconds)
                    phase.longest = max(phase.longest, seconds)
    client.close()
    if fault is None and phase.unexpected:
        raise BenchmarkError(f"an idle server answered with {phase.unexpected[0]}")
    return phase


def _list_requests(cluster: Cluster, session: str) -> list[Request]:
    requests = [
        Request("prompts", "GET", "/api/v1/prompts", (200,)),
        Request("skill", "GET", f"/api/v1/skills/{cluster.skill_id}", (200,)),
        Request("page", "GET", "/skills", (200,)),
        Request("sign-in", "POST", "/sign-in", (303,), cluster.sign_in_form, TOKEN_FORM),
    ]
    if session:
        requests.append(Request("write", *cluster.block_in(session)))
    return requests


@contextmanager
def _running(
    cluster: Cluster, requests: Sequence[Request], phase: Phase, *, has_limit: bool
) -> Iterator[None]:
    """Send each request again and again, in a thread of its own, until the block ends."""
    done = threading.Event()

    def repeat(request: Request) -> None:
        client = Client(cluster.healthy.port, cluster.headers)
        while not done.is_set():
            seconds, status = client.send(request)
            if has_limit:
                phase.longest = max(phase.longest, seconds)
                if status not in request.statuses:
                    phase.unexpected.append(f"{request.name}: {status}")
            done.wait(PAUSE)
        client.close()

    threads = [threading.Thread(target=repeat, args=[request], daemon=True) for request in requests]
    for thread in threads:
        thread.start()
    if threads:
        cluster.wait_until_steady()
    try:
        yield
    finally:
        done.set()
        if has_limit:  # the others end with the fault
            for thread in threads:
                thread.join()


def _report(fault: Fault, pairs: Sequence[tuple[Phase, Phase]]) -> Report:
    rows = []
    for kind in pairs[0][1].seconds:
        for name, share, bar in (("p50", 0.5, None), ("p99", 0.99, BAR)):
            times = [(i.percentile(kind, share), s.percentile(kind, share)) for i, s in pairs]
            rows.append(
                Row(
                    name=f"{kind}, {name}",
                    wall=median(slow / idle for idle, slow in times),
                    median_ms=median(slow for _, slow in times) * 1e3,
                    bar=bar,
                )
            )
    longest = max(slow.longest for _, slow in pairs)
    unexpected = Counter(text for _, slow in pairs for text in slow.unexpected)
    for text, number in unexpected.items():
        print(f"{fault.name}: {number} unexpected responses, {text}", file=sys.stderr)
    rows.append(
        Row(
            name=f"longest, timeout {TIMEOUT} s",
            wall=longest / TIMEOUT,
            median_ms=longest * 1e3,
            bar=LIMIT,
        )
    )
    return Report(fault.name, tuple(rows))
