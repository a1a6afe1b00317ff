"""`skillhall trust` and `untrust`: approvals of skills that others have written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import click

from skillhall._internal.authoring.skill_review import ApprovalRecord, SkillReview
from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.trust.gate import HeldSkill
from skillhall._internal.cli.catalog_loader import find_skill, load_with_progress
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.eval_overview import find_evals
from skillhall._internal.cli.commands.trust_question import serialize_held
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.options import (
    DefaultCommandGroup,
    confirm,
    flag,
    json_command,
    yes_option,
)
from skillhall._internal.cli.param_types import complete_skill
from skillhall._internal.cli.search_options import SearchOptions, read_settings
from skillhall._internal.cli.terminal import format_count, print_message
from skillhall._internal.policy.trust.policies import SkillEvidence
from skillhall._internal.policy.trust.trust_decision import EVERYWHERE
from skillhall._internal.skill.finding import Code
from skillhall._internal.wiring.project_review import open_review

_SHORT_DIGEST = len("sha256:") + 12


command = DefaultCommandGroup(
    "trust",
    help="Show skills that others have written, and ask whether agents may use them.\n\n"
    "Without NAME, show all new and changed skills of this project. An approval covers the current "
    "files: after a change, you are asked again.",
    epilog="Example: skillhall trust pdf-tools",
)

names_argument = click.argument(
    "names", nargs=-1, metavar="[NAME]...", shell_complete=complete_skill
)
everywhere_option = flag(
    "-g", "--global", "everywhere", help="Apply to all projects, not only this one."
)


class JudgedSkills(NamedTuple):
    """The skills of the default folders, and the review that judges them."""

    review: SkillReview
    catalog: Catalog

    def judge(self, names: Sequence[str]) -> list[HeldSkill]:
        """Return the decisions about named skills. Raises: SkillNotFound, ConfigInvalid."""
        return self.review.gate.judge_all([find_skill(self.catalog, name) for name in names])

    def judge_all(self) -> list[HeldSkill]:
        """Return the decisions about all skills. Raises: ConfigInvalid."""
        return self.review.gate.judge_all(self.catalog)

    def serialize_again(self, judged: Sequence[HeldSkill]) -> list[dict[str, object]]:
        """Return skills for JSON output, with the decisions after a new record."""
        return serialize_held(self.review.gate.judge_all([one.skill for one in judged]))


def find_judged_skills(via: str, linked_folders: Sequence[str] = ()) -> JudgedSkills:
    """Load the skills of the default folders, for the command `via`."""
    review = open_review(read_settings(), via)
    linked = (*review.gate.find_linked_folders(), *linked_folders)
    return JudgedSkills(review, load_with_progress(SearchOptions(), linked_folders=linked))


@command.set_default
@json_command("", "skillhall trust pdf-tools")
@names_argument
@yes_option
@click.option("--digest", metavar="DIGEST", help="Approve only if the skill has this digest.")
@everywhere_option
@flag("--mine", help="Mark these skills as your own, so that edits need no approval.")
@flag("--link", help="Follow links in these skills that lead out of the searched folders.")
def approve_skills(
    *,
    names: tuple[str, ...],
    yes: bool,
    digest: str | None,
    everywhere: bool,
    mine: bool,
    link: bool,
) -> CommandResult:
    """Show the skills NAME, or all that are not approved, and ask whether to approve them."""
    if (mine or digest or link) and not names:
        raise click.UsageError("--digest, --mine and --link need a NAME")
    found = find_judged_skills("skillhall trust", _find_link_targets(names) if link else ())
    judged = found.judge(names) if names else found.judge_all()
    chosen = judged if names else [one for one in judged if one.is_undecided]
    if digest:
        _check_digest(chosen, digest)
    if not yes:
        for one in chosen:
            for line in found.review.describe(one):
                print_message(line)
        if chosen:
            confirm(f"Approve {format_count(len(chosen), 'skill')}?")
    where = EVERYWHERE if everywhere else ""
    if mine:
        for one in chosen:
            found.review.approve_own(one.skill.name, one.skill.directory, where)
    else:
        found.review.approve(chosen, where, link=link)
    return CommandResult(
        {"approved": found.serialize_again(chosen)},
        lines=[one.skill.name for one in chosen],
        messages=[f"approved {format_count(len(chosen), 'skill')}"],
    )


def _check_digest(chosen: Sequence[HeldSkill], digest: str) -> None:
    for one in chosen:
        current = "" if one.hashed is None else one.hashed.digest
        if current != digest:
            raise CommandFailed(
                "not_approved",
                f"{one.skill.name} has a different digest: {current or 'unreadable'}",
            )


def _find_link_targets(names: Sequence[str]) -> list[str]:
    """Return the real folders of skills that are rejected because of a link."""
    catalog = load_with_progress(SearchOptions())
    targets = []
    for name in names:
        for rejected in catalog.explain(name).rejected:
            codes = {finding.code for finding, _ in rejected.findings}
            if Code.LINK_OUTSIDE in codes:
                folder = rejected.location
                is_folder = os.path.isdir(folder)  # noqa: PTH112
                target = folder if is_folder else os.path.dirname(folder)  # noqa: PTH120
                targets.append(os.path.realpath(target))
    return targets


@json_command("untrust", "skillhall untrust pdf-tools")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_skill)
@everywhere_option
@flag("--forget", help="Only withdraw the approval; the skill counts as new again.")
def untrust(*, names: tuple[str, ...], everywhere: bool, forget: bool) -> CommandResult:
    """Block the current version of the skills NAME for agents, here or in all projects."""
    found = find_judged_skills("skillhall untrust")
    chosen = found.judge(names)
    found.review.block(chosen, EVERYWHERE if everywhere else "", forget=forget)
    verb = "forgot" if forget else "blocked"
    return CommandResult(
        {verb: found.serialize_again(chosen)},
        lines=[one.skill.name for one in chosen],
        messages=[f"{verb} {format_count(len(chosen), 'skill')}"],
    )


@json_command("list", "skillhall trust list", group=command)
def list_states() -> CommandResult:
    """List the skills with their state, digest, scope and decision."""
    found = find_judged_skills("")
    judged = found.judge_all()
    rows = [_Row.build(found, one) for one in judged]
    due = found.review.find_due(judged)
    return CommandResult(
        {"skills": [row.serialize() for row in rows], "due": [one._asdict() for one in due]},
        headings=["skill", "reason", "state", "digest", "where", "since"],
        rows=[row.to_cells() for row in rows],
        warnings=[
            f"warning: {one.name} ({one.risk}) has been due for a review since {one.since[:10]}; "
            f"approve it again with: skillhall trust {one.name}"
            for one in due
        ],
    )


@json_command("show", "skillhall trust show pdf-tools", group=command)
@click.argument("name", shell_complete=complete_skill)
def show_state(*, name: str) -> CommandResult:
    """Show who wrote the skill NAME, who approved it, and whether agents may use it."""
    found = find_judged_skills("")
    [one] = found.judge([name])
    summary = found.review.gate.summarize(one.skill)
    evals = find_evals(one.skill)
    summary = summary.with_evals(evals.text) if evals else summary
    data = {**summary.serialize(), **_Row.build(found, one).serialize()}
    return CommandResult(data, lines=map(str, summary.lines_with_evals))


def serialize_evidence(evidence: SkillEvidence | None) -> dict[str, object]:
    """Return the risk level and the known signers for JSON output."""
    if evidence is None:
        return {"risk": "", "signer": ""}
    return {"risk": evidence.risk.value, "signer": evidence.signature.format_signers()}


class _Row(NamedTuple):
    """One skill with the latest record about its name."""

    judged: HeldSkill
    latest: ApprovalRecord | None
    base: ApprovalRecord | None

    @classmethod
    def build(cls, found: JudgedSkills, judged: HeldSkill) -> _Row:
        name, review = judged.skill.name, found.review
        return cls(judged, review.find_latest(name), review.find_base(name))

    def serialize(self) -> dict[str, object]:
        [data] = serialize_held([self.judged])
        latest = self.latest
        keys = ("where", "at", "by", "via", "source", "commit", "folder")
        record = {} if latest is None else {key: getattr(latest, key) for key in keys}
        return {**data, "action": self.judged.decision.action.value, **record}

    def to_cells(self) -> tuple[str, ...]:
        skill, decision, hashed = self.judged
        digest = "" if hashed is None else hashed.digest[:_SHORT_DIGEST]
        latest = self.latest
        where, since = ("", "") if latest is None else (latest.where, latest.at[:10])
        return skill.name, decision.rule, decision.state, digest, where, since
