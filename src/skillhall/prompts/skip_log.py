"""Log warnings about prompts, skills and files that a source holds but does not serve."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from skillhall.skill.risks.excerpts import escaped

if TYPE_CHECKING:
    from skillhall.prompts.snapshot import Contents

LOG = logging.getLogger("skillhall.prompts")
MAX_LINES = 50  # for one commit; the page of sources lists the rest


def log_skipped(contents: Contents) -> None:
    """One warning for each skipped entry, up to a limit. Names and paths are untrusted text."""
    place = contents.source
    if contents.commit:
        place = f"{place} at {contents.commit[:12]}"
    for one in contents.skipped[:MAX_LINES]:
        told = f"{place}: skipped {one.path or '(unnamed)'} ({one.code.value}): {one.message}"
        LOG.warning("%s", escaped(told))
    more = len(contents.skipped) - MAX_LINES
    if more > 0:
        LOG.warning("%s", escaped(f"{place}: skipped {more} more; /sources/skipped lists them"))
