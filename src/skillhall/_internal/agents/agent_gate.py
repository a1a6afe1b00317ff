"""Opens the gate for the skills that agents of this machine get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.catalog.trust.cached_gate import CachedGate
from skillhall._internal.catalog.trust.gate import OpenGate
from skillhall._internal.policy.trust.trust_action import LOAD_EVERYTHING

if TYPE_CHECKING:
    from skillhall._internal.catalog.trust.gate import SkillGate
    from skillhall._internal.catalog.trust.trust_gate import TrustGate
    from skillhall._internal.policy.trust.trust_action import TrustPolicy
    from skillhall._internal.settings import Settings


def open_gate(
    settings: Settings,
    policy: TrustPolicy = LOAD_EVERYTHING,
    *,
    can_ask: bool = False,
    trust_project: bool = False,
) -> SkillGate:
    """Return the gate for a profile's policy, by default for a program that uses the library.

    If the policy loads everything, only policy files, revocations and `skillhall untrust` hold a
    skill. Without them, no approvals are read and no files are hashed.
    """
    settings = settings._replace(trust_project=trust_project or settings.trust_project)

    def open_restricted() -> TrustGate:
        # Not needed without rules, or if all skills are approved; the import takes 10 ms of CPU.
        from skillhall._internal.agents.project_gate import open_trust_gate  # noqa: PLC0415

        return open_trust_gate(settings, policy, can_ask=can_ask)

    if policy != LOAD_EVERYTHING:
        return CachedGate(settings, policy, open_restricted)
    return OpenGate(settings.trust_rule_files, open_restricted)
