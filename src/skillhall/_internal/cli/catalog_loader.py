"""Loads a catalog for a command and summarizes what was skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.cli.terminal import print_message
from skillhall._internal.policy.effects import Effect
from skillhall._internal.settings import Settings
from skillhall._internal.skill.finding import Code
from skillhall._internal.wiring.catalog import load_catalog
from skillhall.errors import SkillNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillhall._internal.catalog.catalog import Catalog, CatalogSkill
    from skillhall._internal.policy.effects import JudgedFinding

# Each of these is printed in full: the scan is incomplete.
_INCOMPLETE_SCAN_CODES = (Code.ROOT_MISSING, Code.BOUND_REACHED)


class SearchOptions(NamedTuple):
    """How a command searches its roots."""

    depth: int | None = None  # `None`: the profile's depth
    follow_links: bool = False
    no_index: bool = False
    read_bodies: bool = False  # whether to read all of each SKILL.md


_DEFAULT_SEARCH = SearchOptions()


def read_settings(*, no_index: bool = False, follow_links: bool = False) -> Settings:
    """Read the settings. Raises: CommandFailed if the working directory is gone."""
    try:
        settings = Settings.read()
    except FileNotFoundError:
        from skillhall._internal.cli.errors import CommandFailed

        raise CommandFailed(
            "not_found", "the current folder no longer exists", "change to another folder"
        ) from None
    return settings._replace(
        use_head_cache=settings.use_head_cache and not no_index,
        follow_links=settings.follow_links or follow_links,
    )


def load_with_progress(
    roots: Sequence[str], profile: str, options: SearchOptions = _DEFAULT_SEARCH
) -> Catalog:
    """Load the catalog of `roots`, with a spinner if it takes long.

    Raises: CommandFailed if one of `roots` cannot be searched.
    """
    from skillhall._internal.cli.progress import scan_progress

    depth, follow_links, no_index, bodies = options
    settings = read_settings(no_index=no_index, follow_links=follow_links)
    with scan_progress() as progress:
        catalog = load_catalog(
            roots, profile, depth=depth, bodies=bodies, settings=settings, progress=progress
        )
    _check_named_roots(catalog)
    return catalog


def _check_named_roots(catalog: Catalog) -> None:
    named = {root.path for root in catalog.roots if root.is_required}
    for judged in catalog.scan_findings:
        if judged.finding.code is Code.ROOT_MISSING and judged.finding.path in named:
            from skillhall._internal.cli.errors import CommandFailed

            message = f"{judged.finding.path}: {judged.finding.message}"
            raise CommandFailed("not_found", message, judged.finding.hint)


def find_skill(catalog: Catalog, name: str) -> CatalogSkill:
    """Return the skill `name`. Raises: SkillNotFound, CommandFailed if it is rejected."""
    try:
        return catalog.find(name)
    except SkillNotFound:
        if not catalog.explain(name).rejected:
            raise
        from skillhall._internal.cli.errors import CommandFailed

        raise CommandFailed(
            "invalid_skill",
            f"skill {name!r} is rejected by the profile {catalog.profile.name!r}",
            f"to see why, run: {_format_why_command(catalog, name)}",
        ) from None


def print_skipped_summary(catalog: Catalog, roots: Iterable[str]) -> None:
    """Print scan problems, then the number of skipped skills and warnings, to stderr."""
    for judged in catalog.scan_findings:
        if judged.finding.code in _INCOMPLETE_SCAN_CODES:
            print_message(f"warning: {judged.finding.path}: {judged.finding.message}")
    skipped = len(catalog.rejected)
    warnings = sum(judged.effect is Effect.WARN for judged in _iter_findings(catalog))
    if skipped or warnings:
        counts = (format_count(skipped, "skill") + " skipped", format_count(warnings, "warning"))
        summary = ", ".join(c for c, n in zip(counts, (skipped, warnings), strict=True) if n)
        print_message(f"{summary}; see '{_format_validate_command(catalog, roots)}'")


def format_count(number: int, noun: str) -> str:
    """Return the number with its noun: "1 skill", "2 skills"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _iter_findings(catalog: Catalog) -> Iterator[JudgedFinding]:
    for judged in catalog.scan_findings:
        if judged.finding.code not in _INCOMPLETE_SCAN_CODES:
            yield judged
    for skill in catalog.skills:
        yield from skill.findings


def _format_why_command(catalog: Catalog, name: str) -> str:
    from shlex import quote

    roots = [root.path for root in catalog.roots if root.is_required]
    command = ["skillhall", "why", quote(name), "--profile", catalog.profile.name]
    return " ".join([*command, *(f"-r {quote(path)}" for path in roots)])


def _format_validate_command(catalog: Catalog, roots: Iterable[str]) -> str:
    from shlex import quote

    command = ["skillhall", "validate", "--profile", catalog.profile.name, *map(quote, roots)]
    return " ".join(command)
