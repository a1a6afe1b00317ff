"""The skills of eval commands."""

import shlex
from collections.abc import Sequence

from skillhall._internal.authoring.eval_report import CheckedEvals, check_eval_files
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.settings import Settings


def find_eval_skills(paths: Sequence[str], settings: Settings) -> Sequence[CheckedEvals]:
    """Return the skills with cases. Raises: CommandFailed if an eval file has a problem."""
    report = check_eval_files(paths, settings)
    if report.problems:
        problem = f"the eval files have {format_count(report.problems, 'problem')}"
        hint = shlex.join(["skillhall", "eval", "check", *paths])
        raise CommandFailed("invalid_skill", problem, f"see them with: {hint}")
    skills = [one for one in report.skills if one.summary.cases]
    if not skills:
        hint = "create them with: skillhall eval init"
        raise CommandFailed("not_found", "no skill here has eval cases", hint)
    return skills
