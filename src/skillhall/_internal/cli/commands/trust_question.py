"""Asks about skills that the user has not approved, or reports that they are held."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import NamedTuple

import click

from skillhall._internal.agents.agent_gate import open_gate
from skillhall._internal.catalog.catalog import Catalog, CatalogSkill
from skillhall._internal.catalog.trust.gate import (
    Clearance,
    HeldSkill,
    SkillGate,
    clear_with_fallbacks,
)
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import Command, can_ask, flag
from skillhall._internal.cli.terminal import format_count, print_message, sanitize_line
from skillhall._internal.policy.profiles import Profile
from skillhall._internal.policy.trust.trust_action import TrustAction
from skillhall._internal.settings import Settings

_MAX_NAMES = 10  # of skills in a question or message


class TrustOptions(NamedTuple):
    """Options for skills that are not approved."""

    trust_project: bool = False
    require_trusted: bool = False


def trust_options(function: Command) -> Command:
    """Add --trust-project and --require-trusted, passed on as `trust`."""

    @wraps(function)
    def run(
        *, trust_project: bool, require_trusted: bool, **others: object
    ) -> CommandResult | int | None:
        return function(trust=TrustOptions(trust_project, require_trusted), **others)

    trust_project = flag(
        "--trust-project", help="Use the skills of this project without approval, this time only."
    )
    require_trusted = flag("--require-trusted", help="Fail if a skill is not approved.")
    return trust_project(require_trusted(run))


def open_command_gate(settings: Settings, profile: Profile, trust: TrustOptions) -> SkillGate:
    """Return the gate for a command, which asks only on a terminal."""
    return open_gate(
        settings, profile.trust_policy, can_ask=can_ask(), trust_project=trust.trust_project
    )


def clear_for_model(
    gate: SkillGate, skills: Sequence[CatalogSkill], catalog: Catalog, settings: Settings
) -> Clearance:
    """Clear skills of a catalog, after asking about those that are not approved."""
    clearance = clear_with_fallbacks(gate, skills, catalog.shadowed)
    if ask_about_held(clearance.held, settings):
        return clear_with_fallbacks(gate, skills, catalog.shadowed)
    return clearance


def ask_about_held(held: Sequence[HeldSkill], settings: Settings) -> bool:
    """Ask whether to use the held skills; return whether they are approved now."""
    asked = [one for one in held if one.decision.action is TrustAction.ASK]
    if not asked:
        return False
    # Most commands ask nothing.
    from skillhall._internal.wiring.project_review import open_review

    review = open_review(settings, "question")
    count = format_count(len(asked), "skill")
    examined = review.gate.examine_all(asked[:_MAX_NAMES])
    names = _format_names(asked, ["" if one is None else one.risk.value for one in examined])
    print_message(f"This project contains {count} that you have not approved: {names}.")
    while True:
        answer = click.prompt(
            "Use them? [y]es, [N]o, [s]how", default="n", show_default=False, err=True
        )
        if answer.strip().lower() in ("s", "show"):
            for one in asked:
                for line in review.describe(one):
                    print_message(line)
            continue
        if answer.strip().lower() not in ("y", "yes"):
            review.decline(asked)
            return False
        review.approve(asked)
        return True


def report_held(
    held: Sequence[HeldSkill], problem: str, warnings: Sequence[str], trust: TrustOptions
) -> None:
    """Print one line about held skills. Raises: CommandFailed with --require-trusted."""
    print_warnings(warnings)
    if problem:
        print_message(f"warning: {problem}; skills that need an approval are held")
    held = [one for one in held if one.is_undecided]
    if not held:
        return
    verb, them = ("is", "it") if len(held) == 1 else ("are", "them")
    message = f"{format_count(len(held), 'skill')} {verb} not approved: {_format_names(held)}"
    if trust.require_trusted:
        raise CommandFailed("not_approved", message, f"review {them} with: skillhall trust")
    print_message(f"{message}. Agents do not get {them}; review {them} with: skillhall trust")


def print_warnings(warnings: Sequence[str]) -> None:
    """Print warnings about policies, and about skills used without an approval."""
    for warning in warnings:
        print_message(f"warning: {sanitize_line(warning)}")


def serialize_held(held: Sequence[HeldSkill]) -> list[dict[str, object]]:
    """Return the held skills for JSON output."""
    return [
        {
            "name": one.skill.name,
            "location": one.skill.location,
            "state": one.decision.state.value,
            "digest": "" if one.hashed is None else one.hashed.digest,
            "reason": one.decision.rule,
        }
        for one in held
    ]


def _format_names(held: Sequence[HeldSkill], levels: Sequence[str] = ()) -> str:
    shown = held[:_MAX_NAMES]
    pairs = zip(shown, levels or [""] * len(shown), strict=True)
    names = ", ".join(_format_name(one, level) for one, level in pairs)
    rest = len(held) - _MAX_NAMES
    return f"{names} and {rest} more" if rest > 0 else names


def _format_name(one: HeldSkill, level: str) -> str:
    name, state = sanitize_line(one.skill.name), one.decision.state.value
    marks = ", ".join(filter(None, (level, "" if state == "new" else state)))
    return f"{name} ({marks})" if marks else name
