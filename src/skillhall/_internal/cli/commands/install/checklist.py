"""`skillhall checklist`: OWASP's questions about skills, answered with evidence."""

from __future__ import annotations

import click

from skillhall._internal.authoring.skill_examination import examine_skill
from skillhall._internal.catalog.trust.gate import HeldSkill
from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.commands.install.trust import find_judged_skills
from skillhall._internal.cli.options import json_command
from skillhall._internal.cli.param_types import complete_skill
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.installer.machine_inventory import is_locked
from skillhall._internal.installer.revocation_check import list_revocations
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.trust.policies import SkillEvidence
from skillhall._internal.policy.trust.security_checklist import (
    ChecklistAnswer,
    ChecklistFacts,
    answer_checklist,
    count_answers,
    serialize_answer,
)
from skillhall._internal.policy.trust.trust_decision import TrustState


@json_command("checklist", "skillhall checklist pdf-tools")
@click.argument("name", required=False, shell_complete=complete_skill)
def command(*, name: str | None) -> CommandResult:
    """Answer the questions of OWASP's Agentic Skills Top 10 for the skill NAME.

    Without NAME, show what Skillhall does in general. Each row has the evidence: a finding, a
    command, a setting, a guide, or a fact that was checked.
    """
    answers = answer_checklist()
    if name is not None:
        found = find_judged_skills("")
        [one] = found.judge([name])
        [evidence] = found.review.gate.examine_all([one])
        answers = answer_checklist(_find_facts(one, evidence))
    counts = count_answers(answers)
    summary = ", ".join(f"{count} {answer}" for answer, count in counts.items())
    return CommandResult(
        {"rows": [*map(serialize_answer, answers)], "counts": counts},
        headings=["no.", "answer", "question", "evidence"],
        rows=[
            (one.row.id, one.answer.value, one.row.question, _format_evidence(one))
            for one in answers
        ],
        messages=[f"{format_count(len(answers), 'question')}: {summary}"],
    )


def _find_facts(one: HeldSkill, evidence: SkillEvidence | None) -> ChecklistFacts:
    settings, digest = read_settings(), "" if one.hashed is None else one.hashed.digest
    revoked = {row["digest"] for row in list_revocations(settings)}
    return ChecklistFacts(
        frozenset(finding.code for finding, _ in examine_skill(one.skill, LENIENT).findings),
        signed=evidence is not None and bool(evidence.signature.format_signers()),
        approved=one.decision.state is TrustState.APPROVED,
        pinned=is_locked(one.skill.directory, settings),
        current=digest not in revoked,
    )


def _format_evidence(one: ChecklistAnswer) -> str:
    if one.problems:
        return ", ".join(f"not {name}" if kind == "fact" else name for kind, name in one.problems)
    return ", ".join(
        f"skillhall {name}" if kind == "command" else name for kind, name in one.row.evidence
    )
