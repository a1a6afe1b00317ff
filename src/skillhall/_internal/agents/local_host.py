"""The machine that an agent runs on, as far as skills ask about it."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings


@dataclass(frozen=True, slots=True)
class LocalHost:
    """This machine; of its environment the names alone are known."""

    variable_names: frozenset[str] = frozenset()
    platform: str = sys.platform

    @classmethod
    def from_settings(cls, settings: Settings) -> LocalHost:
        """The machine of these settings."""
        return cls(settings.variable_names)

    def has_program(self, name: str) -> bool:
        """Whether a program of that name is on the search path; a path is none."""
        return "/" not in name and "\\" not in name and shutil.which(name) is not None

    def has_environment_variable(self, name: str) -> bool:
        """Whether the environment has that variable, and not an empty one."""
        return name in self.variable_names
