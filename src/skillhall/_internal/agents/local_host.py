"""Facts about this machine that skills can require."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LocalHost:
    """This machine. Only the names of environment variables are known, not their values."""

    variable_names: frozenset[str] = frozenset()
    platform: str = sys.platform

    def has_program(self, name: str) -> bool:
        """Whether a program with this name is on the search path. Paths are not accepted."""
        return "/" not in name and "\\" not in name and shutil.which(name) is not None

    def has_environment_variable(self, name: str) -> bool:
        """Whether the environment variable is set and not empty."""
        return name in self.variable_names
