"""Prometheus metrics of requests, threads, streams and sources."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Sized
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from skillhall._internal.background import PoolStatus
from skillhall._internal.prompt_server.prompt_model import SourceStatus

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Clients choose the names of these sources. A common label limits the number of series.
_SHARED_LABELS = {"override": "(overrides)", "upload": "(uploads)"}
# Upper bounds of the histogram's buckets, in seconds.
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Metrics of one server. Only the event loop updates them, so there is no lock."""

    def __init__(
        self,
        source_status: Callable[[], Sequence[SourceStatus]],
        pool_status: Callable[[], Sequence[PoolStatus]] = tuple,
        open_streams: Sized = (),
    ) -> None:
        self._source_status = source_status
        self._pool_status = pool_status
        self._open_streams = open_streams
        self._other_pools: list[Callable[[], PoolStatus]] = []
        self._requests: dict[tuple[str, str, int], int] = {}
        # Requests in each bucket and seconds in total, by route.
        self._buckets = defaultdict[str, list[int]](lambda: [0] * (len(_BOUNDS) + 1))
        self._seconds = defaultdict[str, float](float)
        self._in_flight = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def add_pool(self, status: Callable[[], PoolStatus]) -> None:
        """Include another thread pool in the metrics."""
        self._other_pools.append(status)

    def request_started(self) -> None:
        """Count a request in flight."""
        self._in_flight += 1

    def request_finished(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a finished request and its duration."""
        self._in_flight -= 1
        key = (route, method, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        self._buckets[route][bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[route] += seconds

    def render(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Return no metrics: series appear with the first request."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        labels = ("route", "method", "status")
        requests = CounterMetricFamily("skillhall_requests", "Requests handled.", labels=labels)
        for (route, method, status), count in self._requests.copy().items():
            requests.add_metric((route, method, str(status)), count)
        yield requests
        yield self._collect_durations()
        yield GaugeMetricFamily(
            "skillhall_requests_in_flight", "Requests in progress.", self._in_flight
        )
        yield GaugeMetricFamily(
            "skillhall_event_streams", "Open streams of live events.", len(self._open_streams)
        )
        yield from self._collect_pools()
        yield from self._collect_sources()

    def _collect_durations(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(
            "skillhall_request_seconds", "Seconds until the response was sent.", labels=("route",)
        )
        for route, counts in self._buckets.copy().items():
            cumulative = accumulate(counts)  # in Prometheus, a bucket includes all smaller ones
            bounds = (*map(str, _BOUNDS), "+Inf")
            buckets = [*zip(bounds, cumulative, strict=True)]
            family.add_metric((route,), buckets, self._seconds[route])
        return family

    def _collect_pools(self) -> Iterator[Metric]:
        labels = ("pool",)
        limit = GaugeMetricFamily("skillhall_pool_threads", "Limit on threads.", labels=labels)
        busy = GaugeMetricFamily(
            "skillhall_pool_threads_busy",
            "Threads with work, including work of abandoned requests.",
            labels=labels,
        )
        waiting = GaugeMetricFamily(
            "skillhall_pool_waiting", "Calls that wait for a thread.", labels=labels
        )
        rejected = CounterMetricFamily(
            "skillhall_pool_rejected", "Calls refused because of a limit.", labels=labels
        )
        for status in (*self._pool_status(), *(read() for read in self._other_pools)):
            limit.add_metric((status.name,), status.threads)
            busy.add_metric((status.name,), status.busy)
            waiting.add_metric((status.name,), status.waiting)
            rejected.add_metric((status.name,), status.rejected)
        yield limit
        yield busy
        yield waiting
        yield rejected

    def _collect_sources(self) -> Iterator[Metric]:
        prompts = GaugeMetricFamily("skillhall_prompts", "Prompts loaded.", labels=("source",))
        stale = GaugeMetricFamily(
            "skillhall_source_stale", "1 if a cached version is served.", labels=("source",)
        )
        skipped = GaugeMetricFamily(
            "skillhall_skipped", "Skills, prompts and files not served.", labels=("source",)
        )
        by_label: dict[str, list[SourceStatus]] = {}
        for status in self._source_status():
            label = _SHARED_LABELS.get(status.role, status.source)
            by_label.setdefault(label, []).append(status)
        for label, statuses in by_label.items():
            prompts.add_metric((label,), sum(status.prompts for status in statuses))
            stale.add_metric((label,), int(any(status.stale for status in statuses)))
            skipped.add_metric((label,), sum(len(status.skipped) for status in statuses))
        yield prompts
        yield stale
        yield skipped
