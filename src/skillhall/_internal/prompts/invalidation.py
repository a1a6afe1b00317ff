"""What servers tell each other about repositories: one of them has news."""

from __future__ import annotations

import contextlib
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from skillhall._internal.prompts.repo_source import to_canonical_url
from skillhall._internal.storage.ports import REPOSITORY_CHANGED
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillhall._internal.storage.ports import Outbox
    from skillhall._internal.storage.records import Event

MAX_URLS = 20  # of one repository


class RepositoryInvalidator:
    """Tells the other servers, and hears what they tell."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._server_id = secrets.token_hex(8)  # of this server, which knows what it told

    def publish(self, urls: Sequence[str], branch: str) -> None:
        """Tell that a repository has news; without a database, others find out in their time."""
        addresses = sorted({to_canonical_url(url) for url in urls[:MAX_URLS] if url.isprintable()})
        if not addresses or not branch.isprintable():
            return
        data = {"addresses": "\n".join(addresses), "branch": branch, "by": self._server_id}
        with contextlib.suppress(SkillhallError):
            self._outbox.publish(
                REPOSITORY_CHANGED, data, datetime.now(UTC).isoformat(timespec="seconds")
            )

    def handle_events(
        self, events: Sequence[Event], expire: Callable[[Sequence[str], str], object]
    ) -> None:
        """Let those repositories expire that other servers tell of."""
        for event in events:
            if event.kind == REPOSITORY_CHANGED and event.data.get("by") != self._server_id:
                addresses, branch = event.data.get("addresses"), event.data.get("branch")
                expire(str(addresses).split("\n"), str(branch))
