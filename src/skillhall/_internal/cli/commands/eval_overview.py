"""The latest eval results of a skill, for commands that show a skill."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.catalog.skill_content import ALL_FILES_SCAN, with_bundle
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.skill.bundle import Bundle

if TYPE_CHECKING:
    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.evals.reports.result_overview import ResultOverview


def find_evals(skill: CatalogSkill) -> ResultOverview | None:
    """Return the latest eval results of a skill."""
    results = read_settings().eval_results
    if skill.is_flat or not (results or Path(f"{skill.directory}-workspace").is_dir()):
        return None
    # Most skills have no results, and the import takes as long as the rest of the command.
    from skillhall._internal.evals.reports.result_overview import find_skill_overview

    return find_skill_overview(
        skill.name,
        skill.directory,
        results,
        lambda: with_bundle(skill, ALL_FILES_SCAN, Bundle.digest),
    )
