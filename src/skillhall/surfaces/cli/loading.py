"""A catalog for a command, and the one line that says what the catalog could not take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall.errors import SkillNotFound
from skillhall.policy.loading import Effect
from skillhall.settings import Settings
from skillhall.skill.finding import Code
from skillhall.surfaces.cli.terminal import say
from skillhall.wiring import load_catalog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillhall.catalog.catalog import Catalog, Skill
    from skillhall.policy.loading import Judged

# A scan that did not see everything says so in full, whatever else was found.
_INCOMPLETE = (Code.ROOT_MISSING, Code.BOUND_REACHED)


def read_settings(*, no_index: bool = False) -> Settings:
    """The settings of this process. Raises: CommandFailed if it stands in no folder."""
    try:
        settings = Settings.read()
    except FileNotFoundError:
        from skillhall.surfaces.cli.errors import CommandFailed

        raise CommandFailed(
            "not_found", "the current folder does not exist any more", "change to another one"
        ) from None
    if not no_index:
        return settings
    return settings._replace(use_index=False)


def load(roots: Sequence[str], profile: str, *, no_index: bool = False) -> Catalog:
    """The catalog of `roots`, with a sign of life while it takes long."""
    from skillhall.surfaces.cli.progress import scan_progress

    settings = read_settings(no_index=no_index)
    with scan_progress() as progress:
        return load_catalog(roots, profile, settings=settings, progress=progress)


def find(catalog: Catalog, name: str) -> Skill:
    """The skill of that name. Raises: SkillNotFound, or CommandFailed if it is there but broken."""
    try:
        return catalog.find(name)
    except SkillNotFound:
        if not catalog.explain(name).rejected:
            raise
        from skillhall.surfaces.cli.errors import CommandFailed

        raise CommandFailed(
            "invalid_skill",
            f"the skill {name!r} is rejected by the profile {catalog.profile.name!r}",
            f"to see why, run: {_why_command(catalog, name)}",
        ) from None


def tell_what_was_left_out(catalog: Catalog, roots: Iterable[str]) -> None:
    """On stderr: what kept the scan from seeing everything, then how much was left out."""
    for note in catalog.notes:
        if note.finding.code in _INCOMPLETE:
            say(f"warning: {note.finding.path}: {note.finding.message}")
    left_out = len(catalog.rejected)
    warnings = sum(note.effect is Effect.WARN for note in _about(catalog))
    if left_out or warnings:
        counts = (counted(left_out, "skill") + " left out", counted(warnings, "warning"))
        told = ", ".join(c for c, n in zip(counts, (left_out, warnings), strict=True) if n)
        say(f"{told}; see '{_validate_command(catalog, roots)}'")


def counted(number: int, noun: str) -> str:
    """The number with its noun: 1 skill, 2 skills."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _about(catalog: Catalog) -> Iterator[Judged]:
    for note in catalog.notes:
        if note.finding.code not in _INCOMPLETE:
            yield note
    for skill in catalog.skills:
        yield from skill.findings


def _why_command(catalog: Catalog, name: str) -> str:
    from shlex import quote

    roots = [root.path for root in catalog.roots if root.expected]
    words = ["skillhall", "why", quote(name), "--profile", catalog.profile.name]
    return " ".join([*words, *(f"-r {quote(path)}" for path in roots)])


def _validate_command(catalog: Catalog, roots: Iterable[str]) -> str:
    from shlex import quote

    words = ["skillhall", "validate", "--profile", catalog.profile.name, *map(quote, roots)]
    return " ".join(words)
