"""OpenTelemetry spans around tool calls, if this process has it set up; else nothing happens."""

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
    """A span; what is put into the mapping meanwhile becomes attributes of it too."""
    noticed: dict[str, str | int] = {}
    # Whoever set tracing up has imported it; looking there costs nothing for all the others.
    api = sys.modules.get(_TRACE_MODULE)
    if api is None:
        yield noticed
        return
    with api.get_tracer("skillhall", VERSION).start_as_current_span(name) as current:
        try:
            yield noticed
        finally:
            current.set_attributes({**attributes, **noticed})
