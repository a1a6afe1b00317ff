"""A feed: one source that is looked at again when its time is over, by one thread at a time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from skillhall._internal.background import run_gently
from skillhall._internal.catalog.skip_log import log_skipped
from skillhall._internal.prompts.prompt_model import Stale
from skillhall._internal.prompts.prompt_snapshot import Snapshot
from skillhall._internal.sources.folder.candidate import reason
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.prompts.prompt_snapshot import Contents

    # What is there now; given what was there, which is returned if nothing is new.
    Look: TypeAlias = Callable[[Contents | None], "Looked"]

PATIENCE = 30.0  # seconds after a failure until the next look that nobody asks for
_NEVER = float("-inf")


class Clock(NamedTuple):
    """How time is told: durations by the one, moments by the other, in seconds."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time


class Looked(NamedTuple):
    """What a look found; `stale` says why it is an older copy, which was new at `seen`."""

    contents: Contents
    stale: str = ""
    seen: float = 0.0  # seconds since 1970


@dataclass(frozen=True, slots=True)
class _Flight:
    """One look; others wait for it to land."""

    number: int
    landed: Future[Snapshot] = field(default_factory=Future)


class Feed:
    """The snapshots of one source. How to look is given with each call, and not kept."""

    def __init__(self, ttl: float, clock: Clock, *, rests: bool = False) -> None:
        """`rests` is for a source without which one can live: a failure is not repeated at once."""
        self.ttl = ttl
        self.checked = ""  # when the last look was
        self._clock = clock
        self._rests = rests
        self._gate = threading.Lock()
        self._due = _NEVER
        self._expired = 0  # how often somebody said that there is news
        self._kept: Snapshot | None = None
        self._failure = ""  # in words: an exception would keep the token of its call alive
        self._succeeded = 0.0
        self._logged: object = None  # the contents whose skipped prompts were logged last
        self._flight = _Flight(0)
        self._flight.landed.cancel()

    @property
    def kept(self) -> Snapshot | None:
        """The last good snapshot, if it can still be read."""
        kept = self._kept
        return kept if kept is not None and kept.contents.is_whole else None

    @property
    def failure(self) -> str:
        """Why the last look failed, if it did."""
        return self._failure

    @property
    def seconds_left(self) -> float:
        """How long until the next look is due."""
        return max(self._due - self._clock.monotonic(), 0.0)

    def expire(self) -> None:
        """Let the next call look, also if a look is under way that may have come too early."""
        self._expired += 1
        self._due = _NEVER

    def snapshot(self, look: Look) -> Snapshot:
        """What is there, as far as is known; only the first whose time is over looks again.

        Raises: SkillhallError, OSError if there is nothing yet and it cannot be read.
        """
        kept = self.kept
        flight = self._flight
        if kept is not None and (self.seconds_left or not flight.landed.done()):
            return kept
        if kept is None and self._rests and self._failure and self.seconds_left:
            raise SkillhallError(self._failure)
        return self._flown(look, flight.number - (not flight.landed.done()))

    def refresh(self, look: Look) -> Snapshot:
        """What is there now, by a look that begins after this call. Raises: as `snapshot`."""
        return self._flown(look, self._flight.number)

    def _flown(self, look: Look, after: int) -> Snapshot:
        """What a flight with a higher number than `after` finds: somebody's, or our own."""
        while True:
            with self._gate:
                flight = self._flight
                is_ours = flight.number <= after and flight.landed.done()
                if is_ours:
                    flight = self._flight = _Flight(flight.number + 1)
            if is_ours:
                self._fly(flight, look)
            if flight.number > after:
                return flight.landed.result()
            flight.landed.exception()  # waits for it, whatever it brings

    def _fly(self, flight: _Flight, look: Look) -> None:
        try:
            snapshot = self._looked(look)
        except BaseException as error:
            flight.landed.set_exception(error)
            raise
        flight.landed.set_result(snapshot)

    def _looked(self, look: Look) -> Snapshot:
        kept, expired = self.kept, self._expired
        try:
            looked = run_gently(lambda: look(kept.contents if kept else None))
        except (SkillhallError, OSError) as error:
            self._failure = words(error)
            self._set_due(PATIENCE, expired)
            if kept is None:
                raise
            snapshot = replace(kept, stale=Stale(self._failure, moment(self._succeeded)))
        else:
            self._failure = ""
            self._log_skipped(looked.contents)
            snapshot = self._taken(looked, expired)
        self._kept = snapshot
        return snapshot

    def _taken(self, looked: Looked, expired: int) -> Snapshot:
        if looked.stale:
            self._succeeded = looked.seen
            self._set_due(min(self.ttl, PATIENCE), expired)
            return Snapshot(looked.contents, Stale(looked.stale, moment(looked.seen)))
        self._succeeded = self._clock.now()
        self._set_due(self.ttl, expired)
        return Snapshot(looked.contents)

    def _log_skipped(self, contents: Contents) -> None:
        """Log what is skipped, once per commit; a folder has none, but a digest of its files."""
        version = contents.commit, contents.digest, contents.skipped
        if version != self._logged:
            self._logged = version
            log_skipped(contents.place, contents.skipped)

    def _set_due(self, seconds: float, expired: int) -> None:
        self._due = self._clock.monotonic() + seconds
        if self._expired != expired:
            self._due = _NEVER
        self.checked = moment(self._clock.now())


def words(error: Exception) -> str:
    """What went wrong, without paths of this machine."""
    return f"the cache: {reason(error)}" if isinstance(error, OSError) else str(error)


def moment(seconds: float) -> str:
    """The ISO time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
