"""Rules of clients about traits, and what a client makes of a skill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from tomllib import loads
from typing import NamedTuple

from skillhall._internal.policy.portability.traits import Trait


class Outcome(StrEnum):
    """What a client makes of a skill."""

    LOADS = "loads"
    LOSS = "loss"  # it loads the skill without the value of a field
    DROPPED = "dropped"


class TraitText(NamedTuple):
    """What a trait is, and how to repair it."""

    text: str
    repair: str


class ClientRule(NamedTuple):
    """What a client makes of skills with a trait."""

    trait: Trait
    outcome: Outcome  # never `LOADS`
    field: str  # the field that is wrong or lost; "" if it is the file or the YAML
    source: str  # where the program decides this


class SkillClient(NamedTuple):
    """A program that loads skills, in the version that its rules describe."""

    id: str
    label: str
    kind: str  # agent, library, installer or guide
    package: str
    registry: str  # pypi or npm
    version: str
    checked: str  # the date of the last comparison with the program
    rules: tuple[ClientRule, ...]


class ClientTable(NamedTuple):
    """All clients by id, and the texts of the traits."""

    clients: Mapping[str, SkillClient]
    texts: Mapping[Trait, TraitText]


class ClientVerdict(NamedTuple):
    """What one client makes of one skill, and why."""

    client: SkillClient
    outcome: Outcome
    reasons: tuple[ClientRule, ...]
    agent: str = ""  # the id of an agent that is judged by the client guide


def parse_client_table(text: str) -> ClientTable:
    """Parse the TOML of `clients.toml`."""
    document = loads(text)
    texts = {Trait(trait): TraitText(**row) for trait, row in document["traits"].items()}
    clients = [_build_client(row) for row in document["clients"]]
    return ClientTable({client.id: client for client in clients}, texts)


def _build_client(row: dict[str, object]) -> SkillClient:
    rules = row.pop("rules")
    parsed = tuple(
        ClientRule(Trait(r["trait"]), Outcome(r["outcome"]), r.get("field", ""), r["source"])
        for r in (rules if isinstance(rules, list) else ())
    )
    return SkillClient(**{key: str(value) for key, value in row.items()}, rules=parsed)


def judge_portability(
    traits: Iterable[Trait], clients: Iterable[SkillClient]
) -> tuple[ClientVerdict, ...]:
    """Return what each client makes of a skill with these traits."""
    found = frozenset(traits)
    return tuple(_judge_client(found, client) for client in clients)


def _judge_client(traits: frozenset[Trait], client: SkillClient) -> ClientVerdict:
    applying = [rule for rule in client.rules if rule.trait in traits]
    # A skill that is dropped loses everything; only the reasons for that are of interest.
    dropping = tuple(rule for rule in applying if rule.outcome is Outcome.DROPPED)
    if dropping:
        return ClientVerdict(client, Outcome.DROPPED, dropping)
    return ClientVerdict(client, Outcome.LOSS if applying else Outcome.LOADS, tuple(applying))


def count_outcomes(verdicts: Sequence[ClientVerdict]) -> dict[Outcome, int]:
    """Return how many clients load, lose or drop a skill."""
    return {one: sum(verdict.outcome is one for verdict in verdicts) for one in Outcome}


def group_verdicts(verdicts: Iterable[ClientVerdict]) -> list[tuple[ClientVerdict, ...]]:
    """Put clients together that treat a skill alike for the same reasons, dropped ones first."""
    groups: dict[tuple[object, ...], list[ClientVerdict]] = {}
    for verdict in verdicts:
        reasons = tuple((rule.trait, rule.field) for rule in verdict.reasons)
        groups.setdefault((verdict.outcome, reasons), []).append(verdict)
    order = [*reversed(Outcome)]
    return sorted(map(tuple, groups.values()), key=lambda group: order.index(group[0].outcome))
