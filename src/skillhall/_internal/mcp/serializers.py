"""What MCP's wire says about skills and their files."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from skillhall._internal.catalog.skill_paths import uri_of
from skillhall._internal.mcp.media_types import BINARY, DIRECTORY, MARKDOWN, TEXT, media_type
from skillhall._internal.skill.frontmatter import SKILL_MD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.catalog.manifests import Manifest, ManifestFile
    from skillhall._internal.catalog.skill_view import Offered

Wire: TypeAlias = dict[str, Any]

LIST_TTL = 5_000  # milliseconds for which a list may be reused; changes are told meanwhile
_OWN_PRIORITY, _OTHER_PRIORITY = 0.8, 0.3  # what the extension's authors suggest


def complete(result: Wire) -> Wire:
    """The result of a call, as the 2026 era marks it; the SDK drops the mark for earlier ones."""
    return {"resultType": "complete", **result}


def fresh(result: Wire, ttl: int = 0) -> Wire:
    """The same with how long it may be kept, by whoever asked for it."""
    return complete({**result, "ttlMs": ttl, "cacheScope": "private"})


def page(key: str, rows: Sequence[Wire], following: str | None) -> Wire:
    """A part of a list, and where the next one begins."""
    result: Wire = {key: [*rows]}
    if following is not None:
        result["nextCursor"] = following
    return fresh(result, LIST_TTL)


def skill_entry(row: Offered, manifest: Manifest) -> Wire:
    """A skill with its frontmatter, and all its files with digests and sizes."""
    files = [
        {"uri": uri_of(row.path, file.path), "digest": file.digest, "size": file.size}
        for file in manifest.files
    ]
    return {
        "uri": uri_of(row.path, SKILL_MD),
        "frontmatter": manifest.frontmatter,
        "resources": files,
    }


def resource(row: Offered, file: ManifestFile) -> Wire:
    """A file as a resource."""
    is_own = file.path == SKILL_MD
    told: Wire = {
        "uri": uri_of(row.path, file.path),
        "name": row.skill.name if is_own else file.path.rpartition("/")[2],
        "size": file.size,
        "annotations": _annotations(file, _OWN_PRIORITY if is_own else _OTHER_PRIORITY),
    }
    kind = MARKDOWN if is_own else media_type(file.path)
    if kind is not None:
        told["mimeType"] = kind
    if is_own:
        told["description"] = row.skill.description
    return told


def directory(uri: str, name: str) -> Wire:
    """A folder as a resource."""
    return {"uri": uri, "name": name, "mimeType": DIRECTORY}


def contents(uri: str, path: str, data: bytes) -> Wire:
    """The bytes of a file: as text if they are text, byte for byte either way."""
    kind = MARKDOWN if path == SKILL_MD else media_type(path)
    text = _text(data)
    if text is None:
        blob = base64.b64encode(data).decode("ascii")
        return {"uri": uri, "mimeType": kind or BINARY, "blob": blob}
    return {"uri": uri, "mimeType": kind or TEXT, "text": text}


def _text(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _annotations(file: ManifestFile, priority: float) -> Wire:
    told: Wire = {"audience": ["assistant"], "priority": priority}
    if file.modified:
        told["lastModified"] = _iso(file.modified)
    return told


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
