"""The skills of eval commands."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from skillhall._internal.authoring.eval_report import CheckedEvals, check_eval_files
from skillhall._internal.cli.catalog_loader import find_skill, load_with_progress
from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.search_options import SearchOptions
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.settings import Settings


def resolve_names(paths: Sequence[str], settings: Settings) -> Sequence[str]:
    """Return the paths, in which the names of skills are replaced by their folders.

    Raises: SkillNotFound, CommandFailed.
    """
    names = {one for one in paths if not Path(one).exists() and Path(one).name == one}
    if not names:
        return paths
    catalog = load_with_progress(SearchOptions(), settings=settings)
    skills = {name: find_skill(catalog, name) for name in names}
    folders = {name: one.location if one.is_flat else one.directory for name, one in skills.items()}
    return [folders.get(one, one) for one in paths]


def find_eval_skills(paths: Sequence[str], settings: Settings) -> Sequence[CheckedEvals]:
    """Return the skills with cases. Raises: CommandFailed if an eval file has a problem."""
    report = check_eval_files(resolve_names(paths, settings), settings)
    if report.problems:
        problem = f"the eval files have {format_count(report.problems, 'problem')}"
        hint = shlex.join(["skillhall", "eval", "check", *paths])
        raise CommandFailed("invalid_skill", problem, f"see them with: {hint}")
    skills = [one for one in report.skills if one.summary.cases]
    if not skills:
        hint = "create them with: skillhall eval init"
        raise CommandFailed("not_found", "no skill here has eval cases", hint)
    return skills
