"""What MCP's wire says about skills and their files."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from skillhall._internal.catalog.skill_paths import build_uri
from skillhall._internal.mcp.media_types import BINARY, DIRECTORY, MARKDOWN, TEXT, guess_media_type
from skillhall._internal.skill.frontmatter import SKILL_MD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.catalog.manifests import Manifest, ManifestFile
    from skillhall._internal.catalog.skill_view import ViewedSkill

JsonObject: TypeAlias = dict[str, Any]

LIST_TTL_MS = 5_000  # milliseconds for which a list may be reused; changes are told meanwhile
_SKILL_MD_PRIORITY, _FILE_PRIORITY = 0.8, 0.3  # what the extension's authors suggest


def mark_complete(result: JsonObject) -> JsonObject:
    """The result of a call, as the 2026 era marks it; the SDK drops the mark for earlier ones."""
    return {"resultType": "complete", **result}


def with_ttl(result: JsonObject, ttl_ms: int = 0) -> JsonObject:
    """The same with how long it may be kept, by whoever asked for it."""
    return mark_complete({**result, "ttlMs": ttl_ms, "cacheScope": "private"})


def serialize_page(key: str, rows: Sequence[JsonObject], next_cursor: str | None) -> JsonObject:
    """A part of a list, and where the next one begins."""
    result: JsonObject = {key: [*rows]}
    if next_cursor is not None:
        result["nextCursor"] = next_cursor
    return with_ttl(result, LIST_TTL_MS)


def serialize_skill(row: ViewedSkill, manifest: Manifest) -> JsonObject:
    """A skill with its frontmatter, and all its files with digests and sizes."""
    files = [
        {"uri": build_uri(row.path, file.path), "digest": file.digest, "size": file.size}
        for file in manifest.files
    ]
    return {
        "uri": build_uri(row.path, SKILL_MD),
        "frontmatter": manifest.frontmatter,
        "resources": files,
    }


def serialize_resource(row: ViewedSkill, file: ManifestFile) -> JsonObject:
    """A file as a resource."""
    is_own = file.path == SKILL_MD
    told: JsonObject = {
        "uri": build_uri(row.path, file.path),
        "name": row.skill.name if is_own else file.path.rpartition("/")[2],
        "size": file.size,
        "annotations": _serialize_annotations(
            file, _SKILL_MD_PRIORITY if is_own else _FILE_PRIORITY
        ),
    }
    kind = MARKDOWN if is_own else guess_media_type(file.path)
    if kind is not None:
        told["mimeType"] = kind
    if is_own:
        told["description"] = row.skill.description
    return told


def serialize_directory(uri: str, name: str) -> JsonObject:
    """A folder as a resource."""
    return {"uri": uri, "name": name, "mimeType": DIRECTORY}


def serialize_contents(uri: str, path: str, data: bytes) -> JsonObject:
    """The bytes of a file: as text if they are text, byte for byte either way."""
    kind = MARKDOWN if path == SKILL_MD else guess_media_type(path)
    text = _decode_text(data)
    if text is None:
        blob = base64.b64encode(data).decode("ascii")
        return {"uri": uri, "mimeType": kind or BINARY, "blob": blob}
    return {"uri": uri, "mimeType": kind or TEXT, "text": text}


def _decode_text(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _serialize_annotations(file: ManifestFile, priority: float) -> JsonObject:
    told: JsonObject = {"audience": ["assistant"], "priority": priority}
    if file.modified:
        told["lastModified"] = _format_time(file.modified)
    return told


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
