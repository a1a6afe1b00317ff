"""Portability of skills: what agents and libraries would make of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from skillhall._internal.authoring.fix import Fixer, FixResult, fix, read_validated_file
from skillhall._internal.authoring.validate import ValidationResult, validate
from skillhall._internal.hints import find_close_names
from skillhall._internal.policy.portability.client_rules import (
    ClientTable,
    ClientVerdict,
    Outcome,
    SkillClient,
    count_outcomes,
    judge_portability,
    parse_client_table,
)
from skillhall._internal.policy.portability.portable_text import make_portable
from skillhall._internal.policy.portability.traits import find_traits
from skillhall._internal.policy.profiles import Profile
from skillhall._internal.settings import Settings
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall.errors import UnknownAgent

GUIDE_ID = "client-guide"


class PortabilityResult(NamedTuple):
    """What each client makes of one skill."""

    name: str
    path: str  # the folder; the file itself for a flat file
    location: str  # the SKILL.md
    verdicts: tuple[ClientVerdict, ...]


@cache
def load_client_table() -> ClientTable:
    """Return the table that ships with the package."""
    folder = files("skillhall._internal.policy.portability")
    return parse_client_table((folder / "clients.toml").read_text("utf-8"))


def list_compared_clients() -> tuple[SkillClient, ...]:
    """Return the clients that were compared with their programs."""
    return tuple(one for one in load_client_table().clients.values() if one.id != GUIDE_ID)


def judge_skill_md(
    data: bytes, folder: str, agents: Sequence[str] = ()
) -> tuple[ClientVerdict, ...]:
    """Return what each client makes of a SKILL.md in a folder of this name.

    `agents` are ids that have passed `check_agents`; without any, the answer is about every client
    that was compared with its program.
    """
    traits = find_traits(data, folder)
    if not agents:
        return judge_portability(traits, list_compared_clients())
    chosen = [_find_client(agent) for agent in dict.fromkeys(agents)]
    verdicts = judge_portability(traits, chosen)
    return tuple(
        verdict._replace(agent=agent) if verdict.client.id == GUIDE_ID != agent else verdict
        for agent, verdict in zip(dict.fromkeys(agents), verdicts, strict=True)
    )


def fix_portability(
    paths: Sequence[str],
    agents: Sequence[str],
    profile: Profile,
    settings: Settings,
    *,
    dry_run: bool = False,
) -> tuple[FixResult, ...]:
    """Rewrite the skills below `paths` that more clients would load, or with less loss.

    Raises: SkillFileNotFound.
    """

    def measure(data: bytes, location: Path) -> tuple[int, ...]:
        counts = count_outcomes(judge_skill_md(data, location.parent.name, agents))
        is_variant = location.name != SKILL_MD  # which few clients find
        return counts[Outcome.DROPPED], counts[Outcome.LOSS], is_variant

    return fix(paths, profile, settings, dry_run=dry_run, fixer=Fixer(make_portable, measure))


def _find_client(agent: str) -> SkillClient:
    clients = load_client_table().clients
    client = clients.get(agent)
    if client is not None:
        return client
    return clients[GUIDE_ID]  # not compared with its program


def check_agents(agents: Iterable[str], known_agents: Collection[str]) -> None:
    """Raise UnknownAgent for an id that is neither of a client nor one of `known_agents`."""
    known = (*load_client_table().clients, *known_agents)
    for agent in agents:
        if agent not in known:
            raise UnknownAgent(agent, find_close_names(agent, known))


def check_portability(
    paths: Sequence[str],
    names: Iterable[str],
    agents: Sequence[str],
    profile: Profile,
    settings: Settings,
) -> tuple[PortabilityResult, ...]:
    """Judge the skills below `paths`, or those of them with one of these names.

    Raises: SkillFileNotFound.
    """
    wanted = frozenset(names)
    report = validate(paths, profile, settings)
    results = (_judge_file(result, agents) for result in report.results)
    return tuple(
        result
        for result in results
        if result is not None and (not wanted or {result.name, Path(result.path).name} & wanted)
    )


def _judge_file(result: ValidationResult, agents: Sequence[str]) -> PortabilityResult | None:
    data, folder = read_validated_file(result), Path(result.location).parent.name
    if data is None:
        return None
    name = result.name or folder
    verdicts = judge_skill_md(data, folder, agents)
    return PortabilityResult(name, result.path, result.location, verdicts)


def name_client(verdict: ClientVerdict) -> str:
    """Return the name of the client and its version, for a report."""
    if verdict.agent:
        return f"{verdict.agent} (not compared; by the client guide)"
    return f"{verdict.client.label} {verdict.client.version}"


class PortabilityProblem(NamedTuple):
    """A trait of a skill, and the clients that drop the skill or lose a field because of it."""

    field: str  # "" if it is the file or the YAML
    outcome: Outcome
    text: str
    repair: str
    clients: tuple[str, ...]


def list_problems(verdicts: Iterable[ClientVerdict]) -> list[PortabilityProblem]:
    """Return the problems of a skill, each with all clients that have it."""
    texts = load_client_table().texts
    clients: dict[tuple[str, Outcome, str, str], list[str]] = {}
    for verdict in verdicts:
        for rule in verdict.reasons:
            key = (rule.field, rule.outcome, *texts[rule.trait])
            clients.setdefault(key, []).append(name_client(verdict))
    return [PortabilityProblem(*key, tuple(names)) for key, names in clients.items()]


def serialize_verdicts(verdicts: Iterable[ClientVerdict]) -> list[dict[str, object]]:
    """Return the verdicts as JSON, for the command line and REST."""
    texts = load_client_table().texts
    return [
        {
            "client": verdict.client.id,
            "label": verdict.client.label,
            "kind": verdict.client.kind,
            "version": verdict.client.version,
            "checked": verdict.client.checked,
            **({"agent": verdict.agent} if verdict.agent else {}),
            "outcome": verdict.outcome.value,
            "reasons": [
                {
                    "trait": rule.trait.value,
                    "field": rule.field,
                    "text": texts[rule.trait].text,
                    "repair": texts[rule.trait].repair,
                    "source": rule.source,
                }
                for rule in verdict.reasons
            ],
        }
        for verdict in verdicts
    ]
