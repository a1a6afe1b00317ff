"""OpenTelemetry spans around tool calls, if the process uses OpenTelemetry."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillhall._version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TRACE_MODULE = "opentelemetry.trace"


def is_traced() -> bool:
    """Whether the process uses OpenTelemetry, so that attributes are worth computing."""
    # A process that set up tracing has imported it; the others must not pay for the import.
    return _TRACE_MODULE in sys.modules


@contextmanager
def span(name: str, attributes: Mapping[str, str | int]) -> Iterator[dict[str, str | int]]:
    """Open a span and yield a mapping for further attributes.

    With `error.type` among them, or after an exception, the status of the span is an error.
    """
    details: dict[str, str | int] = {}
    if not is_traced():
        yield details
        return
    api = sys.modules[_TRACE_MODULE]
    tracer = api.get_tracer("skillhall", VERSION)
    # The message of an exception can contain text of the user, and is not recorded.
    with tracer.start_as_current_span(
        name, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield details
        except BaseException as error:
            details["error.type"] = type(error).__qualname__
            raise
        finally:
            current.set_attributes({**attributes, **details})
            if "error.type" in details:
                current.set_status(api.StatusCode.ERROR)
