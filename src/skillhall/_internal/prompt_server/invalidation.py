"""Cache invalidation between servers: events about changed repositories."""

from __future__ import annotations

import contextlib
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from skillhall._internal.prompt_server.repo_source import to_canonical_url
from skillhall._internal.storage.records import REPOSITORY_CHANGED
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.storage.records import Event
    from skillhall._internal.storage.sql.events.event_rows import SqlOutbox

MAX_URLS = 20  # per repository


class RepositoryInvalidator:
    """Publishes changes to repositories to other servers, and handles theirs."""

    def __init__(self, outbox: SqlOutbox) -> None:
        self._outbox = outbox
        self._server_id = secrets.token_hex(8)  # recognizes the server's own events

    def publish(self, urls: Sequence[str], branch: str) -> None:
        """Publish that a repository changed.

        If the database is unavailable, other servers notice the change by polling.
        """
        # Events join URLs with newlines, so URLs with control characters are dropped.
        canonical_urls = sorted(
            {to_canonical_url(url) for url in urls[:MAX_URLS] if url.isprintable()}
        )
        if not canonical_urls or not branch.isprintable():
            return
        data = {"addresses": "\n".join(canonical_urls), "branch": branch, "by": self._server_id}
        with contextlib.suppress(SkillhallError):
            self._outbox.publish(
                REPOSITORY_CHANGED, data, datetime.now(UTC).isoformat(timespec="seconds")
            )

    def handle_events(
        self, events: Sequence[Event], expire: Callable[[Sequence[str], str], object]
    ) -> None:
        """Expire the repositories that other servers reported as changed."""
        for event in events:
            if event.kind == REPOSITORY_CHANGED and event.data.get("by") != self._server_id:
                urls, branch = event.data.get("addresses"), event.data.get("branch")
                expire(str(urls).split("\n"), str(branch))
