"""What an operator configures: read from the environment once, passed on as one value."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Settings(NamedTuple):
    """The settings of one process."""

    working_directory: str
    cache_directory: str
    use_index: bool = True

    @classmethod
    def read(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """The settings that the environment and the working directory give."""
        env = os.environ if environment is None else environment
        return cls(
            working_directory=os.getcwd(),
            cache_directory=env.get("SKILLHALL_CACHE_DIR") or _default_cache(env),
            use_index=env.get("SKILLHALL_INDEX", "on").lower() not in ("off", "0", "no", "false"),
        )


def _default_cache(env: Mapping[str, str]) -> str:
    if sys.platform == "win32":
        base = env.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = env.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "skillhall")
