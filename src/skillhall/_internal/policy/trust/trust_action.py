"""Trust actions: what happens to a skill that was found in a project.

This is a separate module because every listing imports the profiles, which need nothing else of
`trust_decision`.
"""

from enum import StrEnum
from typing import NamedTuple


class TrustAction(StrEnum):
    """Action before a model can get a skill, from loosest to strictest."""

    LOAD = "load"
    WARN = "warn"  # load it, with a warning
    ASK = "ask"  # hold it until the user has answered
    HOLD = "hold"
    BLOCK = "block"


STRICTNESS = {action: number for number, action in enumerate(TrustAction)}


class TrustPolicy(NamedTuple):
    """The actions for skills that no rule approves or blocks."""

    new: TrustAction = TrustAction.LOAD
    changed: TrustAction = TrustAction.LOAD


LOAD_EVERYTHING = TrustPolicy()
ASK_ABOUT_PROJECTS = TrustPolicy(TrustAction.ASK, TrustAction.ASK)
