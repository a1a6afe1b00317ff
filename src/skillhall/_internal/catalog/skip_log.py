"""Log warnings about skills, prompts and files that a source holds but does not serve."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from skillhall._internal.skill.risks.excerpt import escape_invisible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.policy.skipped_items import SkippedItem

LOG = logging.getLogger("skillhall.skipped")
MAX_LINES = 50  # at once; the page of sources lists the rest


def log_skipped(source: str, skipped: Sequence[SkippedItem]) -> None:
    """One warning for each entry, up to a limit. Names and paths are untrusted text."""
    for one in skipped[:MAX_LINES]:
        told = f"{source}: skipped {one.path or '(unnamed)'} ({one.code.value}): {one.message}"
        LOG.warning("%s", escape_invisible(told))
    more = len(skipped) - MAX_LINES
    if more > 0:
        LOG.warning(
            "%s", escape_invisible(f"{source}: skipped {more} more; /sources/skipped lists them")
        )
