"""The npm package: a reproducible tarball that carries the skills in `skills`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.publishing.file_tree import FILE_MODE
from skillhall._internal.publishing.publication import build_author
from skillhall._internal.publishing.release_notes import render_readme
from skillhall._internal.sources.archive.tar_writer import compress, pack_tar
from skillhall._internal.strict_json import render_json

if TYPE_CHECKING:
    from skillhall._internal.publishing.file_tree import FileTree
    from skillhall._internal.publishing.publication import Publication

_SKILLS_FOLDER = "skills"  # where `npx skills` looks in packages
_TIMESTAMP = 499162500  # of all files in npm packages: 1985-10-26


def render_npm_package(publication: Publication, name: str) -> FileTree:
    """Return the tarball of the package `name`, as `npm pack` would name it."""
    metadata = publication.metadata
    manifest: dict[str, object] = {
        "name": name,
        "version": publication.release.version,
        "description": metadata.description,
        "keywords": ["agent-skills"],
        "author": build_author(metadata),
    }
    manifest |= {"license": metadata.license} if metadata.license else {}
    manifest |= {"homepage": metadata.homepage} if metadata.homepage else {}
    files = {
        "package.json": (render_json(manifest) + b"\n", FILE_MODE),
        "README.md": (render_readme(publication), FILE_MODE),
        **publication.place_skills(_SKILLS_FOLDER),
    }
    entries = ((f"package/{path}", data, mode) for path, (data, mode) in files.items())
    tarball = compress(pack_tar(entries, _TIMESTAMP))
    file_name = name.removeprefix("@").replace("/", "-")
    return {f"{file_name}-{publication.release.version}.tgz": (tarball, FILE_MODE)}
