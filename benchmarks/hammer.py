"""Many clients of a server while commits are pushed: no response may mix two commits."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.server_concurrency import CLIENTS, LoadResult, run_clients, run_loaded_server

_SHOWN = 5  # wrong responses


def run(seconds: float) -> bool:
    """Print the results and return whether every response was right."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        run_loaded_server(Path(folder)) as (server, stocks),
    ):
        end = time.monotonic() + seconds
        tally = run_clients(server, stocks, lambda _: time.monotonic() < end)
    print("\n".join(_lines(tally, seconds)), flush=True)
    return tally.passed


def _lines(tally: LoadResult, seconds: float) -> Iterator[str]:
    total = tally.responses.total()
    yield f"hammer, {seconds:g} s: {CLIENTS} clients, {total} requests, {tally.pushes} pushes"
    for (kind, status), count in sorted(tally.responses.items()):
        yield f"  {kind:<16} {status}  {count:>7}"
    for problem in (*tally.inconsistent[:_SHOWN], *tally.unexpected[:_SHOWN]):
        yield f"  {problem}"
    verdict = "PASS" if tally.passed else "FAIL"
    yield f"torn answers: {len(tally.inconsistent)}, unexpected: {len(tally.unexpected)} {verdict}"
