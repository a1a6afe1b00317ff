"""Facts about this machine that skills can require."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings


@dataclass(frozen=True, slots=True)
class LocalHost:
    """This machine. Only the names of environment variables are known, not their values."""

    variable_names: frozenset[str] = frozenset()
    platform: str = sys.platform

    @classmethod
    def from_settings(cls, settings: Settings) -> LocalHost:
        """Return the machine described by the settings."""
        return cls(settings.variable_names)

    def has_program(self, name: str) -> bool:
        """Whether a program with this name is on the search path. Paths are not accepted."""
        return "/" not in name and "\\" not in name and shutil.which(name) is not None

    def has_environment_variable(self, name: str) -> bool:
        """Whether the environment variable is set and not empty."""
        return name in self.variable_names
