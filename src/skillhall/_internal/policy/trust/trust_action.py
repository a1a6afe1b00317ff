"""What happens to a skill that was found in a project, as a field of profiles.

A module of its own: every listing imports the profiles, and `trust` has more than they need.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class TrustAction(StrEnum):
    """What happens to a skill that a model could get, from loose to strict."""

    LOAD = "load"
    WARN = "warn"  # load it, with a warning
    ASK = "ask"  # hold it until the user has answered
    HOLD = "hold"
    BLOCK = "block"


STRICTNESS = {action: number for number, action in enumerate(TrustAction)}


class TrustPolicy(NamedTuple):
    """The actions for skills that a rule finds neither approved nor blocked."""

    new: TrustAction = TrustAction.LOAD
    changed: TrustAction = TrustAction.LOAD


LOAD_EVERYTHING = TrustPolicy()
ASK_ABOUT_PROJECTS = TrustPolicy(TrustAction.ASK, TrustAction.ASK)
