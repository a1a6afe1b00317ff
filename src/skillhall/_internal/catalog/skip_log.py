"""Log warnings about skills, prompts and files of a source that are not served."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from skillhall._internal.skill.risks.rule_engine import escape_invisible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.policy.skipped_items import SkippedItem

LOG = logging.getLogger("skillhall.skipped")
MAX_LINES = 50  # per call; the sources page lists the rest


def log_skipped(source: str, skipped: Sequence[SkippedItem]) -> None:
    """Log one warning for each item, up to a limit."""
    # Names and paths are untrusted: control characters could forge log lines.
    for item in skipped[:MAX_LINES]:
        line = f"{source}: skipped {item.path or '(unnamed)'} ({item.code.value}): {item.message}"
        LOG.warning("%s", escape_invisible(line))
    more = len(skipped) - MAX_LINES
    if more > 0:
        line = f"{source}: skipped {more} more; /sources/skipped lists them"
        LOG.warning("%s", escape_invisible(line))
