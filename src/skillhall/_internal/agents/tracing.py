"""OpenTelemetry spans around tool calls, if the process uses OpenTelemetry."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillhall._version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TRACE_MODULE = "opentelemetry.trace"


@contextmanager
def span(name: str, attributes: Mapping[str, str | int]) -> Iterator[dict[str, str | int]]:
    """Open a span and yield a mapping for further attributes."""
    details: dict[str, str | int] = {}
    # A process that set up tracing has imported it; the others must not pay for the import.
    api = sys.modules.get(_TRACE_MODULE)
    if api is None:
        yield details
        return
    with api.get_tracer("skillhall", VERSION).start_as_current_span(name) as current:
        try:
            yield details
        finally:
            current.set_attributes({**attributes, **details})
