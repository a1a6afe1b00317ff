"""Log warnings about skills, prompts and files that a source holds but does not serve."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from skillhall._internal.skill.risks.excerpt import escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.policy.skipped_items import Skipped

LOG = logging.getLogger("skillhall.skipped")
MAX_LINES = 50  # at once; the page of sources lists the rest


def log_skipped(place: str, skipped: Sequence[Skipped]) -> None:
    """One warning for each entry, up to a limit. Names and paths are untrusted text."""
    for one in skipped[:MAX_LINES]:
        told = f"{place}: skipped {one.path or '(unnamed)'} ({one.code.value}): {one.message}"
        LOG.warning("%s", escaped(told))
    more = len(skipped) - MAX_LINES
    if more > 0:
        LOG.warning("%s", escaped(f"{place}: skipped {more} more; /sources/skipped lists them"))
