"""Builds the trust gate of a server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillhall._internal.agents.project_gate import open_trust_gate
from skillhall._internal.catalog.trust.server_gate import ServerGate
from skillhall._internal.policy.profiles import LOCAL_SKILLS

if TYPE_CHECKING:
    from skillhall._internal.settings import Settings
    from skillhall._internal.wiring.database import DatabaseServices


def open_server_gate(settings: Settings, services: DatabaseServices | None = None) -> ServerGate:
    """Return the gate for the skills of a server, which may have revoked some."""
    gate = replace(open_trust_gate(settings, LOCAL_SKILLS.trust_policy), is_server=True)
    if services is None:
        return ServerGate(gate)
    cache = services.revocations
    return ServerGate(gate, lambda: cache.revoked)
