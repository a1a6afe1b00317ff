"""Serialization of skills and files to MCP's JSON."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from mimetypes import MimeTypes
from typing import TYPE_CHECKING, Any, TypeAlias

from skillhall._internal.catalog.skill_paths import build_uri
from skillhall._internal.skill.frontmatter_locator import SKILL_MD

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.catalog.manifests import Manifest, ManifestFile
    from skillhall._internal.catalog.skill_view import ViewedSkill
    from skillhall._internal.catalog.trust.trust_summary import TrustSummary

JsonObject: TypeAlias = dict[str, Any]

DIGEST_KEY = "skillhall/digest"  # of all files of a skill, as in lock files
TRUST_KEY = "skillhall/trust"  # who wrote and approved it, whether it changed, and its use
LIST_TTL_MS = 5_000  # how long clients may cache a list; subscribers are notified earlier
_SKILL_MD_PRIORITY, _FILE_PRIORITY = 0.8, 0.3  # suggested by the skills extension
_MARKDOWN = "text/markdown"
# Python's own table is the same on every machine; `mimetypes.guess_type` reads the system's, too.
_MEDIA_TYPES = MimeTypes(filenames=())
_MEDIA_TYPES_OF_SKILLS = {
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".ts": "text/x-typescript",  # not a video
    ".tsx": "text/x-typescript",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
    ".sh": "application/x-sh",
    ".bash": "application/x-sh",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".csv": "text/csv",
    ".svg": "image/svg+xml",
}


def with_ttl(result: JsonObject, ttl_ms: int = 0) -> JsonObject:
    """Return the result with `ttlMs`, the time for which clients may cache it.

    The SDK removes the added fields for earlier protocol versions.
    """
    return {**result, "ttlMs": ttl_ms, "cacheScope": "private"}


def serialize_page(key: str, rows: Sequence[JsonObject], next_cursor: str | None) -> JsonObject:
    """Return a page of a list."""
    result: JsonObject = {key: [*rows]}
    if next_cursor is not None:
        result["nextCursor"] = next_cursor
    return with_ttl(result, LIST_TTL_MS)


def serialize_completion(values: Iterable[str], typed: str, limit: int) -> JsonObject:
    """Return the values that start with the typed text, then those that contain it."""
    text, found = typed.casefold(), sorted({*values})
    starting = [value for value in found if value.casefold().startswith(text)]
    matching = starting + [value for value in found if value.casefold().find(text) > 0]
    total = len(matching)
    return {"completion": {"values": matching[:limit], "total": total, "hasMore": total > limit}}


def serialize_skill(
    row: ViewedSkill, manifest: Manifest, trust: TrustSummary | None = None
) -> JsonObject:
    """Return a skill: its frontmatter, and its files with digests and sizes."""
    files = [
        {"uri": build_uri(row.path, file.path), "digest": file.digest, "size": file.size}
        for file in manifest.files
    ]
    return {
        "uri": build_uri(row.path, SKILL_MD),
        "frontmatter": manifest.frontmatter,
        "resources": files,
        "_meta": {
            DIGEST_KEY: manifest.digest,
            **({} if trust is None else {TRUST_KEY: [*map(str, trust.lines)]}),
        },
    }


def serialize_resource(row: ViewedSkill, file: ManifestFile) -> JsonObject:
    """Return a file as a resource."""
    is_skill_md = file.path == SKILL_MD
    annotations: JsonObject = {
        "audience": ["assistant"],
        "priority": _SKILL_MD_PRIORITY if is_skill_md else _FILE_PRIORITY,
    }
    if file.modified:
        modified = datetime.fromtimestamp(file.modified, UTC)
        annotations["lastModified"] = f"{modified:%Y-%m-%dT%H:%M:%SZ}"
    resource: JsonObject = {
        "uri": build_uri(row.path, file.path),
        "name": row.skill.name if is_skill_md else file.path.rpartition("/")[2],
        "size": file.size,
        "annotations": annotations,
    }
    media_type = _guess_media_type(file.path)
    if media_type is not None:
        resource["mimeType"] = media_type
    if is_skill_md:
        resource["description"] = row.skill.description
    return resource


def serialize_directory(uri: str, name: str) -> JsonObject:
    """Return a folder as a resource."""
    return {"uri": uri, "name": name, "mimeType": "inode/directory"}


def serialize_contents(uri: str, path: str, data: bytes) -> JsonObject:
    """Return the content of a file: as text if it is UTF-8, else as base64."""
    media_type = _guess_media_type(path)
    try:
        text = None if b"\0" in data else data.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    if text is None:
        blob = base64.b64encode(data).decode("ascii")
        return {"uri": uri, "mimeType": media_type or "application/octet-stream", "blob": blob}
    return {"uri": uri, "mimeType": media_type or "text/plain", "text": text}


def serialize_fastmcp_manifest(uri: str, row: ViewedSkill, manifest: Manifest) -> JsonObject:
    """Return the content of the manifest that FastMCP's client reads."""
    files = [{"path": file.path, "size": file.size, "hash": file.digest} for file in manifest.files]
    text = json.dumps({"skill": row.skill.name, "files": files}, ensure_ascii=False, indent=2)
    return {"uri": uri, "mimeType": "application/json", "text": text}


def _guess_media_type(path: str) -> str | None:
    """Return the media type of the file's extension, if known."""
    name = path.rpartition("/")[2].lower()
    dot = name.rfind(".")
    extension = name[dot:] if dot > 0 else ""
    return _MEDIA_TYPES_OF_SKILLS.get(extension) or _MEDIA_TYPES.guess_type(f"a{extension}")[0]
