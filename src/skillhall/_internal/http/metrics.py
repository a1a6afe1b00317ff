"""Figures for Prometheus: requests, and how the sources stand."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from skillhall._internal.prompts.prompt_model import SourceStatus

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
# Clients name these sources: a label for each would let them add series without end.
_SHARED_LABELS = {"override": "(overrides)", "upload": "(uploads)"}
_BUCKET_BOUNDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)


class _Durations:
    """How long the requests of one route took."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BUCKET_BOUNDS) + 1)
        self.total = 0.0


class Metrics:
    """The figures of one server. They are counted in the event loop alone, so without locks."""

    def __init__(self, source_status: Callable[[], Sequence[SourceStatus]]) -> None:
        self._source_status = source_status
        self._requests: dict[tuple[str, str, int], int] = {}
        self._durations: dict[str, _Durations] = {}
        self._in_flight = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def request_started(self) -> None:
        """A request came in."""
        self._in_flight += 1

    def request_finished(self, route: str, method: str, status: int, seconds: float) -> None:
        """It was answered."""
        self._in_flight -= 1
        key = (route, method, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        durations = self._durations.get(route)
        if durations is None:
            durations = self._durations[route] = _Durations()
        durations.counts[bisect_left(_BUCKET_BOUNDS, seconds)] += 1
        durations.total += seconds

    def render(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing is known before it happens."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The figures of this moment."""
        labels = ("route", "method", "status")
        requests = CounterMetricFamily("skillhall_requests", "Requests answered.", labels=labels)
        for (route, method, status), count in self._requests.copy().items():
            requests.add_metric((route, method, str(status)), count)
        yield requests
        yield self._collect_durations()
        yield GaugeMetricFamily(
            "skillhall_requests_in_flight", "Requests being answered.", self._in_flight
        )
        yield from self._collect_sources()

    def _collect_durations(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(
            "skillhall_request_seconds", "Seconds until the answer was sent.", labels=("route",)
        )
        for route, durations in self._durations.copy().items():
            buckets, so_far = [], 0
            for bound, count in zip(
                (*map(str, _BUCKET_BOUNDS), "+Inf"), durations.counts, strict=True
            ):
                so_far += count
                buckets.append((bound, so_far))
            family.add_metric((route,), buckets, durations.total)
        return family

    def _collect_sources(self) -> Iterator[Metric]:
        prompts = GaugeMetricFamily("skillhall_prompts", "Prompts loaded.", labels=("source",))
        stale = GaugeMetricFamily(
            "skillhall_source_stale", "1 if an older copy is served.", labels=("source",)
        )
        skipped = GaugeMetricFamily(
            "skillhall_skipped", "Skills, prompts and files not served.", labels=("source",)
        )
        by_label: dict[str, list[SourceStatus]] = {}
        for one in self._source_status():
            by_label.setdefault(_SHARED_LABELS.get(one.role, one.source), []).append(one)
        for label, those in by_label.items():
            prompts.add_metric((label,), sum(one.prompts for one in those))
            stale.add_metric((label,), int(any(one.stale for one in those)))
            skipped.add_metric((label,), sum(len(one.skipped) for one in those))
        yield prompts
        yield stale
        yield skipped
