"""The latest eval results of the skills of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.evals.reports.result_overview import find_skill_overview
from skillhall._internal.skill_store.collection import REPOSITORY_SOURCE

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.evals.reports.result_overview import ResultOverview
    from skillhall._internal.skill_store.collection import Collection


def find_served_overview(collection: Collection, identity: str) -> ResultOverview | None:
    """Return the latest results of a skill; `None` if there are none. Raises: SkillNotFound."""
    skill, results_folder = collection.find(identity), collection.settings.eval_results
    if not may_show_results(skill, results_folder):
        return None
    return find_skill_overview(
        skill.name, skill.directory, results_folder, lambda: collection.details(identity).digest
    )


def may_show_results(skill: CatalogSkill, results_folder: str) -> bool:
    """Whether results of the skill are this server's own.

    The authors of a repository may have put invented results next to its skills. For such a skill,
    only results in the configured folder count.
    """
    is_own = skill.source != REPOSITORY_SOURCE or bool(results_folder)
    return is_own and not skill.is_flat
