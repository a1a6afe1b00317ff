"""Loads a catalog for a command and summarizes its skipped skills and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.progress import scan_progress
from skillhall._internal.cli.search_options import apply_options, read_settings
from skillhall._internal.cli.terminal import format_count
from skillhall._internal.policy.effects import Effect
from skillhall._internal.skill.finding import Code
from skillhall._internal.wiring.catalog import load_catalog
from skillhall.errors import SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillhall._internal.catalog.catalog import Catalog, CatalogSkill
    from skillhall._internal.catalog.scan_state import StateRecorder
    from skillhall._internal.cli.search_options import SearchOptions
    from skillhall._internal.settings import Settings

# Findings with these codes are printed one by one: they mean that the scan is incomplete.
_INCOMPLETE_SCAN_CODES = (Code.ROOT_MISSING, Code.BOUND_REACHED)


def load_with_progress(
    search: SearchOptions,
    *,
    read_bodies: bool = False,
    on_scan: StateRecorder | None = None,
    linked_folders: Sequence[str] = (),
    settings: Settings | None = None,
) -> Catalog:
    """Load the catalog of a search; show a spinner if that takes long.

    With `read_bodies`, each SKILL.md is read completely.
    Raises: CommandFailed if one of the roots cannot be searched.
    """
    settings = apply_options(
        settings or read_settings(), no_index=search.no_index, follow_links=search.follow_links
    )
    with scan_progress() as progress:
        catalog = load_catalog(
            search.roots,
            search.profile,
            depth=search.depth,
            bodies=read_bodies,
            settings=settings,
            progress=progress,
            on_scan=on_scan,
            linked_folders=linked_folders,
        )
    named = {root.path for root in catalog.roots if root.is_required}
    for finding, _ in catalog.root_findings:
        if finding.code is Code.ROOT_MISSING and finding.path in named:
            raise CommandFailed("not_found", f"{finding.path}: {finding.message}", finding.hint)
    return catalog


def find_skill(catalog: Catalog, name: str) -> CatalogSkill:
    """Return the skill `name`. Raises: SkillNotFound, CommandFailed if it is rejected."""
    try:
        return catalog.find(name)
    except SkillNotFound:
        if not catalog.explain(name).rejected:
            raise
    from shlex import quote

    profile = catalog.profile.name
    roots = [f"-r {quote(root.path)}" for root in catalog.roots if root.is_required]
    command = " ".join(["skillhall why", quote(name), "--profile", profile, *roots])
    raise CommandFailed(
        "invalid_skill",
        f"skill {name!r} is rejected by the profile {profile!r}",
        f"to see why, run: {command}",
    )


def summarize_skipped(catalog: Catalog, search: SearchOptions) -> Iterator[str]:
    """Yield scan problems, then the number of skipped skills and warnings."""
    warnings = 0
    for finding, effect in catalog.root_findings:
        if finding.code in _INCOMPLETE_SCAN_CODES:
            yield f"warning: {finding.path}: {finding.message}"
        else:
            warnings += effect is Effect.WARN
    get_effect = catalog.profile.load_policy.get_effect
    for duplicate in catalog.duplicates:
        warnings += get_effect(duplicate.code) is Effect.WARN
    for skill in catalog.skills:
        for row in skill.reported:
            warnings += get_effect(row[0]) is Effect.WARN
    skipped = len(catalog.rejected)
    counts = [f"{format_count(skipped, 'skill')} skipped"] if skipped else []
    counts += [format_count(warnings, "warning")] if warnings else []
    if counts:
        from shlex import quote  # half a millisecond, and usually there is nothing to report

        roots = " ".join(["", *map(quote, search.roots)])
        command = f"skillhall validate --profile {catalog.profile.name}{roots}"
        yield f"{', '.join(counts)}; see '{command}'"
