"""Watching: looks for changes while somebody listens, as often as that is cheap."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio.to_thread import run_sync

from skillhall._internal.cache import SHARE
from skillhall._internal.mcp.errors import LOG
from skillhall._internal.mcp.subscriptions import Change
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillhall._internal.mcp.prompt_handlers import PromptSupply
    from skillhall._internal.mcp.skill_index import Stock
    from skillhall._internal.mcp.subscriptions import News

INTERVAL = 2.0  # seconds between two looks, at least


class Seen(NamedTuple):
    """What a look saw."""

    skills: str
    prompts: str
    files: Mapping[str, str]  # digests by address

    def changed_to(self, other: Seen) -> Change:
        """What is not as it was."""
        uris = [uri for uri, digest in other.files.items() if self.files.get(uri, digest) != digest]
        skills, prompts = self.skills != other.skills, self.prompts != other.prompts
        return Change(skills, prompts, tuple(uris))


class Watch:
    """Compares what there is with what listeners know."""

    def __init__(
        self,
        stock: Stock,
        prompts: PromptSupply,
        news: News,
        interval: float = INTERVAL,
        share: float = SHARE,
    ) -> None:
        self._stock = stock
        self._prompts = prompts
        self._news = news
        self._interval = interval
        self._share = share
        self._seen: Seen | None = None
        # A look that began before a subscription must not replace the state it was promised.
        self._looking = anyio.Lock()

    async def begin(self, uris: Sequence[str] = ()) -> None:
        """Remember how things are, before the first listener is promised to hear of changes."""
        if not self._unknown(uris) and self._seen is not None:
            return
        async with self._looking:
            unknown = self._unknown(uris)
            if unknown or self._seen is None:
                seen = await run_sync(self._look, unknown)
                known = self._seen or seen
                self._seen = known._replace(files={**seen.files, **known.files})

    def _unknown(self, uris: Sequence[str]) -> list[str]:
        known = self._seen
        return [uri for uri in uris if known is None or uri not in known.files]

    async def run(self) -> None:
        """Look, and tell, until cancelled."""
        pause = self._interval
        while True:
            await anyio.sleep(pause)
            begun = time.monotonic()
            if self._news.is_heard:
                await self._look_and_tell()
            else:
                self._seen = None
            pause = max(self._interval, self._share * (time.monotonic() - begun))

    async def _look_and_tell(self) -> None:
        async with self._looking:
            try:
                seen = await run_sync(self._look, self._news.uris, abandon_on_cancel=True)
            except (SkillhallError, OSError) as error:  # the next look may see more
                LOG.warning("changes cannot be looked for: %s", error)
                return
            known, self._seen = self._seen or seen, seen
        change = known.changed_to(seen)
        if any(change):
            await self._news.tell(change)

    def _look(self, uris: Sequence[str]) -> Seen:
        revision = self._stock.renewed().offer.revision
        prompts = self._prompts.current() or self._prompts.snapshot()
        return Seen(revision, prompts.digest, {uri: self._stock.digest(uri) for uri in uris})
