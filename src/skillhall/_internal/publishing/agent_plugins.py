"""Manifests of coding agents: a Claude Code plugin marketplace and a Gemini extension."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillhall._internal.publishing.file_tree import FILE_MODE
from skillhall._internal.publishing.publication import build_author
from skillhall._internal.publishing.release_notes import render_changelog, render_readme
from skillhall._internal.strict_json import render_json

if TYPE_CHECKING:
    from skillhall._internal.publishing.file_tree import FileTree
    from skillhall._internal.publishing.publication import Publication

_SKILLS_FOLDER = "skills"


def render_skill_repository(publication: Publication) -> FileTree:
    """Return the skills with a README and a changelog."""
    return {
        "README.md": (render_readme(publication), FILE_MODE),
        "CHANGELOG.md": (render_changelog(publication), FILE_MODE),
        **publication.place_skills(_SKILLS_FOLDER),
    }


def render_claude_manifests(publication: Publication) -> FileTree:
    """Return the manifests of a marketplace with one plugin, which has all skills."""
    metadata, version = publication.metadata, publication.release.version
    author = build_author(metadata)
    plugin: dict[str, object] = {
        "name": metadata.name,
        "description": metadata.description,
        "version": version,
        "author": author,
        "keywords": ["agent-skills"],
    }
    plugin |= {"license": metadata.license} if metadata.license else {}
    plugin |= {"homepage": metadata.homepage} if metadata.homepage else {}
    marketplace = {
        "name": metadata.name,
        "owner": author,
        "metadata": {"description": metadata.description, "version": version},
        "plugins": [{"source": "./", **plugin}],
    }
    return {
        ".claude-plugin/marketplace.json": (render_json(marketplace) + b"\n", FILE_MODE),
        ".claude-plugin/plugin.json": (render_json(plugin) + b"\n", FILE_MODE),
    }


def render_gemini_manifest(publication: Publication) -> FileTree:
    """Return the manifest of an extension that has all skills."""
    manifest = {
        "name": publication.metadata.name,
        "version": publication.release.version,
        "description": publication.metadata.description,
    }
    return {"gemini-extension.json": (render_json(manifest) + b"\n", FILE_MODE)}
