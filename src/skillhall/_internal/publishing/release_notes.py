"""Texts about a publication: the README, the changelog and the notes of a release."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillhall._internal.render.escape import to_single_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.publishing.publication import Publication
    from skillhall._internal.publishing.version_log import SkillRelease

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|!])")


def escape_markdown(text: str) -> str:
    """Return a text as one line of Markdown without markup."""
    return _MARKDOWN.sub(r"\\\1", to_single_line(text))


def render_readme(publication: Publication) -> bytes:
    """Render the README, with a row for each skill."""
    metadata = publication.metadata
    lines = [
        f"# {metadata.name}",
        "",
        escape_markdown(metadata.description),
        "",
        "| Skill | Version | Description |",
        "|---|---|---|",
    ]
    lines += [
        f"| {one.name} | {one.release.version} | {escape_markdown(one.description)} |"
        for one in publication.skills
    ]
    if metadata.license:
        lines += ["", f"License: {escape_markdown(metadata.license)}"]
    return "\n".join([*lines, ""]).encode()


def render_changelog(publication: Publication) -> bytes:
    """Render the changelog of each skill, the latest version first."""
    lines = ["# Changelog"]
    for name, log in sorted(publication.log.skills.items()):
        lines += ["", f"## {name}"]
        for one in reversed(log.releases):
            lines += ["", f"### {escape_markdown(describe_version(one))}", "", *_list_changes(one)]
    return "\n".join([*lines, ""]).encode()


def describe_version(one: SkillRelease) -> str:
    """Return the heading of a version, as plain text."""
    heading = f"{one.version} ({one.date[:10]})"
    if one.yanked is None:
        return heading
    return f"{heading}, yanked: {one.yanked}" if one.yanked else f"{heading}, yanked"


def _list_changes(one: SkillRelease) -> Iterator[str]:
    yield from (f"- {escape_markdown(change)}" for change in one.changes)


def render_release_notes(publication: Publication) -> str:
    """Return what is new in the latest version of the collection."""
    releases = publication.log.releases
    before = releases[-2].skills if len(releases) > 1 else {}
    lines = [f"{publication.metadata.name} {publication.release.version}", ""]
    for skill in publication.skills:
        if before.get(skill.name) == skill.release.version:
            continue
        lines.append(f"{skill.name} {skill.release.version}")
        lines += [f"- {to_single_line(change)}" for change in skill.release.changes]
    removed = sorted({*before} - {*publication.release.skills})
    lines += [f"{name} removed" for name in removed]
    return "\n".join(lines).strip() + "\n"
