"""Finds the skills of an agent whose trigger queries can be asked."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.catalog.skill_content import ALL_FILES_SCAN, with_bundle
from skillhall._internal.evals.triggers.trigger_records import TriggerTarget
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import SPECIFICATION
from skillhall._internal.skill.approved_files import compute_approved_digest, hash_files
from skillhall._internal.skill.evals.eval_check import TRIGGER_PATHS
from skillhall._internal.skill.evals.eval_file import parse_trigger_file
from skillhall._internal.skill.finding import Code, Finding
from skillhall.errors import SkillhallError, SkillNotApproved, SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.agents.agent_skills import AgentSkills
    from skillhall._internal.catalog.skill_view import SkillView, ViewedSkill
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.evals.eval_file import TriggerQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerTargets:
    """The skills to measure, and all findings about their trigger files."""

    targets: tuple[TriggerTarget, ...]
    without_queries: tuple[str, ...]
    findings: tuple[JudgedFinding, ...]

    @property
    def problems(self) -> int:
        """The number of findings that must be fixed first."""
        return sum(judged.effect is Effect.REJECT for judged in self.findings)


def find_trigger_targets(skills: AgentSkills, names: Sequence[str]) -> TriggerTargets:
    """Return the skills with these names, ids or folders; else all with queries.

    Skills whose instructions are always in the prompt are skipped if no names are given.
    Raises: SkillNotFound, SkillNotApproved.
    """
    snapshot = skills.snapshot()
    view = snapshot.skill_view
    rows = [_find_row(view, name) for name in dict.fromkeys(names)]
    inlined = {skill.location for skill, _ in snapshot.instructions.inlined}
    if not rows:
        rows = [row for row in view if row.skill.location not in inlined]
    targets: list[TriggerTarget] = []
    without: list[str] = []
    findings: list[JudgedFinding] = []
    judge = SPECIFICATION.load_policy.judge
    for row in rows:
        queries, found = _read_queries(row)
        findings += judge(found)
        if queries:
            targets.append(
                TriggerTarget(
                    name=row.name,
                    folder=row.skill.directory,
                    digest=compute_skill_digest(row),
                    queries=queries,
                )
            )
        else:
            without.append(row.name)
    return TriggerTargets(
        targets=tuple(targets), without_queries=tuple(without), findings=tuple(findings)
    )


def compute_skill_digest(row: ViewedSkill) -> str:
    """Return the digest of all files of a skill. Raises: SkillhallError."""
    return compute_approved_digest(with_bundle(row.skill, ALL_FILES_SCAN, hash_files))


def _find_row(view: SkillView, name: str) -> ViewedSkill:
    if Path(name).is_dir():
        folder = Path(name).resolve()
        for row in view:
            if Path(row.skill.directory).resolve() == folder:
                return row
        for held in view.held:
            if Path(held.skill.directory).resolve() == folder:
                raise SkillNotApproved(held.skill.name, held.decision.rule)
        if "/" in name or os.sep in name or not view.has(name):
            root = shlex.quote(str(folder.parent))
            raise SkillNotFound(name, hint=f"the agent does not see this folder; add --root {root}")
    return view.find(name)


def _read_queries(row: ViewedSkill) -> tuple[tuple[TriggerQuery, ...], list[Finding]]:
    """Return the distinct queries in all trigger files of a skill, and the findings."""
    if row.skill.is_flat:
        return (), []
    queries: dict[str, TriggerQuery] = {}
    findings: list[Finding] = []
    for path, data in with_bundle(row.skill, ALL_FILES_SCAN, lambda one: [*_read_files(one)]):
        location = str(Path(row.skill.directory, path))
        if isinstance(data, Finding):
            findings.append(data.with_location(location, row.name))
            continue
        parsed = parse_trigger_file(data, row.skill.name)
        findings += (found.with_location(location, row.name) for found in parsed.findings)
        for one in parsed.queries:
            queries.setdefault(one.query, one)
    return tuple(queries.values()), findings


def _read_files(bundle: Bundle) -> Iterator[tuple[str, bytes | Finding]]:
    for path in TRIGGER_PATHS:
        file = bundle.files.get(path)
        if file is None:
            continue
        try:
            yield path, file.read()
        except SkillhallError as error:
            yield path, Finding(Code.EVAL_UNREADABLE, f"the file cannot be read: {error}")
