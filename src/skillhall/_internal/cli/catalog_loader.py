"""A catalog for a command, and the one line that says what the catalog could not take."""

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

    from skillhall._internal.catalog.catalog import Catalog, Skill
    from skillhall._internal.policy.effects import JudgedFinding

# A scan that did not see everything says so in full, whatever else was found.
_INCOMPLETE_SCAN_CODES = (Code.ROOT_MISSING, Code.BOUND_REACHED)


class SearchOptions(NamedTuple):
    """How a command searches its roots."""

    depth: int | None = None  # the profile's own if not given
    follow_links: bool = False
    no_index: bool = False
    read_bodies: bool = False  # whether each SKILL.md is read to its end


_DEFAULT_SEARCH = SearchOptions()


def read_settings(*, no_index: bool = False, follow_links: bool = False) -> Settings:
    """The settings of this process. Raises: CommandFailed if it stands in no folder."""
    try:
        settings = Settings.read()
    except FileNotFoundError:
        from skillhall._internal.cli.errors import CommandFailed

        raise CommandFailed(
            "not_found", "the current folder does not exist any more", "change to another one"
        ) from None
    return settings._replace(
        use_head_cache=settings.use_head_cache and not no_index,
        follow_links=settings.follow_links or follow_links,
    )


def load_with_progress(
    roots: Sequence[str], profile: str, options: SearchOptions = _DEFAULT_SEARCH
) -> Catalog:
    """The catalog of `roots`, with a progress line if it takes long.

    Raises: CommandFailed if a root that was named cannot be searched.
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
    for note in catalog.scan_findings:
        if note.finding.code is Code.ROOT_MISSING and note.finding.path in named:
            from skillhall._internal.cli.errors import CommandFailed

            message = f"{note.finding.path}: {note.finding.message}"
            raise CommandFailed("not_found", message, note.finding.hint)


def find_skill(catalog: Catalog, name: str) -> Skill:
    """The skill of that name. Raises: SkillNotFound, or CommandFailed if it is there but broken."""
    try:
        return catalog.find(name)
    except SkillNotFound:
        if not catalog.explain(name).rejected:
            raise
        from skillhall._internal.cli.errors import CommandFailed

        raise CommandFailed(
            "invalid_skill",
            f"the skill {name!r} is rejected by the profile {catalog.profile.name!r}",
            f"to see why, run: {_format_why_command(catalog, name)}",
        ) from None


def print_skipped_summary(catalog: Catalog, roots: Iterable[str]) -> None:
    """On stderr: what kept the scan from seeing everything, then how much was left out."""
    for note in catalog.scan_findings:
        if note.finding.code in _INCOMPLETE_SCAN_CODES:
            print_message(f"warning: {note.finding.path}: {note.finding.message}")
    left_out = len(catalog.rejected)
    warnings = sum(note.effect is Effect.WARN for note in _iter_findings(catalog))
    if left_out or warnings:
        counts = (format_count(left_out, "skill") + " left out", format_count(warnings, "warning"))
        told = ", ".join(c for c, n in zip(counts, (left_out, warnings), strict=True) if n)
        print_message(f"{told}; see '{_format_validate_command(catalog, roots)}'")


def format_count(number: int, noun: str) -> str:
    """The number with its noun: 1 skill, 2 skills."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _iter_findings(catalog: Catalog) -> Iterator[JudgedFinding]:
    for note in catalog.scan_findings:
        if note.finding.code not in _INCOMPLETE_SCAN_CODES:
            yield note
    for skill in catalog.skills:
        yield from skill.findings


def _format_why_command(catalog: Catalog, name: str) -> str:
    from shlex import quote

    roots = [root.path for root in catalog.roots if root.is_required]
    words = ["skillhall", "why", quote(name), "--profile", catalog.profile.name]
    return " ".join([*words, *(f"-r {quote(path)}" for path in roots)])


def _format_validate_command(catalog: Catalog, roots: Iterable[str]) -> str:
    from shlex import quote

    words = ["skillhall", "validate", "--profile", catalog.profile.name, *map(quote, roots)]
    return " ".join(words)
