"""The static site: the well-known indexes, downloads, a page per skill and a feed.

Every file works from any static host, at any path. Pages load nothing from elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from skillhall._internal.publishing.file_tree import FILE_MODE
from skillhall._internal.publishing.release_notes import describe_version
from skillhall._internal.render.escape import escape, escape_field
from skillhall._internal.render.well_known import (
    INDEX_FILE,
    LEGACY_WELL_KNOWN,
    WELL_KNOWN,
    IndexEntry,
    LegacyIndexEntry,
    build_index,
    build_legacy_index,
)
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.sources.archive.zip_writer import pack_entries
from skillhall._internal.strict_json import render_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillhall._internal.publishing.file_tree import FileTree
    from skillhall._internal.publishing.publication import Publication, PublishedSkill

_INDEX_FOLDER, _LEGACY_FOLDER = WELL_KNOWN[1:], LEGACY_WELL_KNOWN[1:]
_MAX_FEED_ENTRIES = 100
_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b1b1b;background:#fff}pre{overflow:auto;padding:1rem;background:#f4f4f4;"
    "white-space:pre-wrap;overflow-wrap:anywhere}a{color:#0b57d0}"
    "@media(prefers-color-scheme:dark){body{color:#e8e8e8;background:#161616}"
    "pre{background:#242424}a{color:#8ab4f8}}"
)
# The pages have no scripts, and skills cannot add any.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render_static_site(publication: Publication, url: str = "") -> FileTree:
    """Return the files of the site, which is at `url`, if that is known."""
    files: dict[str, tuple[bytes, int]] = {".nojekyll": (b"", FILE_MODE)}
    entries, legacy_entries = [], []
    for skill in publication.skills:
        path, data = _build_download(skill)
        files[f"{_INDEX_FOLDER}/{path}"] = data, FILE_MODE
        is_archive = len(skill.files) > 1
        digest = f"sha256:{sha256_hex(data)}"
        entries.append(IndexEntry(skill.name, skill.description, quote(path), digest, is_archive))
        paths = [SKILL_MD, *(one for one in skill.files if one != SKILL_MD)]
        legacy_entries.append(LegacyIndexEntry(skill.name, skill.description, paths))
        page = _render_skill_page(publication, skill, f"../../{_INDEX_FOLDER}/{path}")
        files[f"skills/{skill.name}/index.html"] = page, FILE_MODE
    files |= publication.place_skills(_LEGACY_FOLDER)
    index, legacy_index = build_index(entries), build_legacy_index(legacy_entries)
    files[f"{_INDEX_FOLDER}/{INDEX_FILE}"] = render_json(index) + b"\n", FILE_MODE
    files[f"{_LEGACY_FOLDER}/{INDEX_FILE}"] = render_json(legacy_index) + b"\n", FILE_MODE
    files["index.html"] = _render_start_page(publication), FILE_MODE
    files["feed.xml"] = _render_feed(publication, url), FILE_MODE
    return dict(sorted(files.items()))


def _build_download(skill: PublishedSkill) -> tuple[str, bytes]:
    """Return the path below the index, and the content: SKILL.md alone, or an archive."""
    if len(skill.files) == 1:
        return f"{skill.name}/{SKILL_MD}", skill.files[SKILL_MD][0]
    entries = ((path, data, mode) for path, (data, mode) in sorted(skill.files.items()))
    return f"{skill.name}.zip", pack_entries(entries)


def _render_page(title: str, root: str, lines: list[str]) -> bytes:
    head = [
        "<!doctype html>",
        '<html lang="en">',
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape_field(title)}</title>",
        f'<link rel="alternate" type="application/atom+xml" href="{root}feed.xml">',
        f"<style>{_STYLE}</style>",
    ]
    return "\n".join([*head, *lines, "</html>", ""]).encode()


def _render_start_page(publication: Publication) -> bytes:
    metadata = publication.metadata
    lines = [
        f"<h1>{escape_field(metadata.name)}</h1>",
        f"<p>{escape_field(metadata.description)}</p>",
        "<ul>",
        *(
            f'<li><a href="skills/{quote(one.name)}/">{escape_field(one.name)}</a> '
            f"{escape_field(one.release.version)}: {escape_field(one.description)}</li>"
            for one in publication.skills
        ),
        "</ul>",
        f"<p>By {escape_field(metadata.author)}. Version {publication.release.version}.</p>",
        '<p><a href="feed.xml">Feed</a></p>',
    ]
    return _render_page(metadata.name, "", lines)


def _render_skill_page(publication: Publication, skill: PublishedSkill, download: str) -> bytes:
    release = skill.release
    files = ", ".join(escape_field(path) for path in skill.files)
    text = skill.files[SKILL_MD][0].decode("utf-8", "replace")
    lines = [
        f'<p><a href="../../">{escape_field(publication.metadata.name)}</a></p>',
        f"<h1>{escape_field(skill.name)}</h1>",
        f"<p>{escape_field(skill.description)}</p>",
        f"<p>Version {release.version} ({release.date[:10]})</p>",
        f'<p><a href="{quote(download, safe="/.")}" download>Download</a></p>',
        f"<p>Digest: <code>{escape_field(release.digest)}</code></p>",
        f"<p>Files: {files}</p>",
        f"<h2>SKILL.md</h2><pre>{escape(_remove_controls(text))}</pre>",
        "<h2>Versions</h2>",
        *_render_versions(publication, skill),
    ]
    return _render_page(f"{skill.name} · {publication.metadata.name}", "../../", lines)


def _render_versions(publication: Publication, skill: PublishedSkill) -> Iterator[str]:
    for one in reversed(publication.log.skills[skill.name].releases):
        yield f"<h3>{escape_field(describe_version(one))}</h3><ul>"
        yield from (f"<li>{escape_field(change)}</li>" for change in one.changes)
        yield "</ul>"


def _render_feed(publication: Publication, url: str) -> bytes:
    """Render the Atom feed, with an entry for each version of each skill."""
    metadata = publication.metadata
    updated = publication.release.date
    base = f"{url}/" if url else ""
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<id>{_build_id(publication, '')}</id>",
        f"<title>{escape_field(metadata.name)}</title>",
        f"<subtitle>{escape_field(metadata.description)}</subtitle>",
        f"<author><name>{escape_field(metadata.author)}</name></author>",
        f"<updated>{updated}</updated>",
        *([f'<link rel="self" href="{escape(base)}feed.xml"/>'] if base else []),
    ]
    published = {skill.name for skill in publication.skills}
    for name, one in [*publication.iter_history()][:_MAX_FEED_ENTRIES]:
        page = f"{base}skills/{quote(name)}/" if name in published else base
        lines += [
            "<entry>",
            f"<id>{_build_id(publication, f'{name}@{one.version}')}</id>",
            f"<title>{escape_field(f'{name} {describe_version(one)}')}</title>",
            f"<updated>{one.date}</updated>",
            *([f'<link href="{escape(page)}"/>'] if page else []),
            f"<summary>{escape_field('; '.join(one.changes))}</summary>",
            "</entry>",
        ]
    return "\n".join([*lines, "</feed>", ""]).encode()


def _build_id(publication: Publication, name: str) -> str:
    """Return a permanent id; it does not change when the site moves."""
    return f"urn:uuid:{uuid5(NAMESPACE_URL, f'skillhall:{publication.metadata.name}/{name}')}"


def _remove_controls(text: str) -> str:
    return "".join(
        c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text
    )
