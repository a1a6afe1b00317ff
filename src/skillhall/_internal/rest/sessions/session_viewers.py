"""Viewers of sessions: who has the board of a session open on this server."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_NAMES = 20  # that are sent to each viewer


class SessionViewers:
    """The open streams of each session. Use it in the event loop only.

    `OpenStreams` limits their number.
    """

    def __init__(self) -> None:
        self._by_session: dict[str, dict[object, tuple[str, Callable[[], None]]]] = {}

    @contextmanager
    def join(self, session: str, name: str, on_change: Callable[[], None]) -> Iterator[object]:
        """Add a viewer, who is notified when others come or leave; yield the viewer's key."""
        key = object()
        self._by_session.setdefault(session, {})[key] = name, on_change
        self._notify(session)
        try:
            yield key
        finally:
            del self._by_session[session][key]
            self._notify(session)
            if not self._by_session[session]:
                del self._by_session[session]

    def list_others(self, session: str, key: object) -> dict[str, int]:
        """Return the names of the other viewers, sorted, with their numbers of open boards."""
        viewers = self._by_session[session]
        names = Counter(name for other, (name, _) in viewers.items() if other is not key)
        return dict(sorted(names.items())[:MAX_NAMES])

    def _notify(self, session: str) -> None:
        for _, on_change in self._by_session[session].values():
            on_change()
