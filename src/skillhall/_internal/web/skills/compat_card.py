"""The portability of a skill on its page: which agents and libraries load it, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.authoring.portability import load_client_table
from skillhall._internal.policy.portability.client_rules import Outcome, group_verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.policy.portability.client_rules import ClientVerdict, TraitText


class CompatRow(NamedTuple):
    """Clients that treat a skill alike, and why."""

    outcome: str  # a key of the texts
    clients: str
    fields: tuple[str, ...]  # that are lost
    reasons: tuple[TraitText, ...]


class CompatCard(NamedTuple):
    """How many clients load a skill as it is, and what the others make of it."""

    loaded: int
    total: int
    rows: tuple[CompatRow, ...]


def build_compat_card(verdicts: Sequence[ClientVerdict]) -> CompatCard:
    """Return the card."""
    texts = load_client_table().texts
    others = [one for one in verdicts if one.outcome is not Outcome.LOADS]
    rows = tuple(
        CompatRow(
            group[0].outcome.value,
            ", ".join(f"{one.client.label} {one.client.version}" for one in group),
            tuple(sorted({rule.field for rule in group[0].reasons if rule.field})),
            tuple(texts[trait] for trait in dict.fromkeys(r.trait for r in group[0].reasons)),
        )
        for group in group_verdicts(others)
    )
    return CompatCard(len(verdicts) - len(others), len(verdicts), rows)
