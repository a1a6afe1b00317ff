"""Which entries of a lock a person means by a name."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from skillhall.errors import SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillhall._internal.installer.lock import LockEntry


def keys_called(entries: Mapping[str, LockEntry], names: Iterable[str]) -> list[str]:
    """The keys of the skills with these folder names or places, in order; all if none is given.

    Raises: SkillNotFound.
    """
    wanted = list(names)
    found: dict[str, None] = {}
    for name in wanted:
        keys = [key for key in entries if name in (key, key.rpartition("/")[2])]
        if not keys:
            known = sorted(key.rpartition("/")[2] for key in entries)
            raise SkillNotFound(name, get_close_matches(name, known))
        found.update(dict.fromkeys(keys))
    return sorted(found if wanted else entries)
