"""Polls for changes while there are subscribers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio.to_thread import run_sync

from skillhall._internal.cache import TTL_FACTOR
from skillhall._internal.mcp.errors import LOG
from skillhall._internal.mcp.subscriptions import CatalogChange
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.mcp.prompt_handlers import PromptSource
    from skillhall._internal.mcp.skill_index import SkillIndex
    from skillhall._internal.mcp.subscriptions import Subscriptions

MIN_POLL_INTERVAL = 2.0  # seconds


class ObservedState(NamedTuple):
    """The state of the skills, prompts and subscribed files at one poll."""

    skills_revision: str
    prompts_digest: str
    file_states: Mapping[str, str]  # by URI

    def diff(self, other: ObservedState) -> CatalogChange:
        """Return what changed between this state and `other`."""
        uris = [
            uri
            for uri, digest in other.file_states.items()
            if self.file_states.get(uri, digest) != digest
        ]
        return CatalogChange(
            self.skills_revision != other.skills_revision,
            self.prompts_digest != other.prompts_digest,
            tuple(uris),
        )


class ChangePoller:
    """Compares the current state with the last one and notifies subscribers."""

    def __init__(
        self,
        index: SkillIndex,
        prompts: PromptSource,
        subscriptions: Subscriptions,
        min_interval: float = MIN_POLL_INTERVAL,
        ttl_factor: float = TTL_FACTOR,
    ) -> None:
        self._index = index
        self._prompts = prompts
        self._subscriptions = subscriptions
        self._min_interval = min_interval
        self._ttl_factor = ttl_factor
        self._baseline: ObservedState | None = None
        # A poll that began before a subscription must not replace the subscription's baseline.
        self._poll_lock = anyio.Lock()

    async def record_baseline(self, uris: Sequence[str] = ()) -> None:
        """Record the current state, so that later changes are noticed for new subscribers."""
        if self._baseline is not None and not self._find_unknown(uris):
            return
        async with self._poll_lock:
            unknown = self._find_unknown(uris)
            if unknown or self._baseline is None:
                observed = await run_sync(self._observe, unknown)
                known = self._baseline or observed
                file_states = {**observed.file_states, **known.file_states}
                self._baseline = known._replace(file_states=file_states)

    def _find_unknown(self, uris: Sequence[str]) -> list[str]:
        known = self._baseline
        return [uri for uri in uris if known is None or uri not in known.file_states]

    async def run(self) -> None:
        """Poll and notify until cancelled. Slow polls are followed by longer pauses."""
        pause = self._min_interval
        while True:
            await anyio.sleep(pause)
            started = time.monotonic()
            if self._subscriptions.has_subscribers:
                await self._poll_and_notify()
            else:
                self._baseline = None
            pause = max(self._min_interval, self._ttl_factor * (time.monotonic() - started))

    async def _poll_and_notify(self) -> None:
        async with self._poll_lock:
            try:
                observed = await run_sync(
                    self._observe, self._subscriptions.subscribed_uris, abandon_on_cancel=True
                )
            except (SkillhallError, OSError) as error:  # retried with the next poll
                LOG.warning("cannot poll for changes: %s", error)
                return
            known, self._baseline = self._baseline or observed, observed
        change = known.diff(observed)
        if any(change):
            await self._subscriptions.notify(change)

    def _observe(self, uris: Sequence[str]) -> ObservedState:
        revision = self._index.refresh().skill_view.revision
        file_states = {uri: self._index.compute_file_state(uri) for uri in uris}
        return ObservedState(revision, self._prompts.current().digest, file_states)
