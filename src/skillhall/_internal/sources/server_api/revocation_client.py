"""Fetches the lists of revocations of servers, all at the same time."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.net.addresses import ANY_ADDRESS, AddressPolicy
from skillhall._internal.net.connection import NetworkSettings
from skillhall._internal.net.fetch import FetchOptions, fetch
from skillhall._internal.policy.trust.revocations import LIST_PATH, MAX_LIST_SIZE
from skillhall.errors import SkillhallError, SourceNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MAX_ENVELOPE_SIZE = MAX_LIST_SIZE * 2  # Base64 takes four characters for three bytes


class ListQuery(NamedTuple):
    """A server to ask, with the ETag of the list that is known."""

    server: str
    policy: AddressPolicy = ANY_ADDRESS
    etag: str = ""


class ListResponse(NamedTuple):
    """The response of a server. Without `data`, there is no list, or it has not changed."""

    server: str
    data: bytes = b""
    etag: str = ""


def start_fetching(
    requests: Iterable[ListQuery], seconds: float
) -> Callable[[], list[ListResponse]]:
    """Ask servers in the background; return a function that waits for the responses.

    It returns at the latest after `seconds` from now. Servers that did not answer by then, or that
    cannot be reached, are missing in its result.
    """
    deadline = time.monotonic() + seconds
    responses: list[ListResponse] = []
    # Daemons: a lookup of a host name cannot be interrupted, and must not delay the exit.
    threads = [
        threading.Thread(target=_fetch, args=(request, seconds, responses), daemon=True)
        for request in requests
    ]
    for thread in threads:
        thread.start()

    def wait() -> list[ListResponse]:
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return [*responses]

    return wait


def _fetch(request: ListQuery, seconds: float, responses: list[ListResponse]) -> None:
    try:
        fetched = fetch(
            request.server + LIST_PATH,
            max_bytes=_MAX_ENVELOPE_SIZE,
            policy=request.policy,
            options=FetchOptions(etag=request.etag, accept="application/json"),
            network=NetworkSettings(total=seconds, idle=seconds),
        )
        responses.append(ListResponse(request.server, fetched.data, fetched.etag))
    except SourceNotFound:  # it publishes no list
        responses.append(ListResponse(request.server))
    except (SkillhallError, OSError, ValueError):
        return
