"""Media types by file extension, independent of the machine."""

from __future__ import annotations

from mimetypes import MimeTypes

DIRECTORY = "inode/directory"
MARKDOWN = "text/markdown"
TEXT = "text/plain"
BINARY = "application/octet-stream"

# Python's built-in table without the system's additions, and corrections for skills.
_TABLE = MimeTypes(filenames=())
_OVERRIDES = {
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
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


def guess_media_type(path: str) -> str | None:
    """Return the media type of the file's extension, if known."""
    name = path.rpartition("/")[2].lower()
    dot = name.rfind(".")
    extension = name[dot:] if dot > 0 else ""
    return _OVERRIDES.get(extension) or _TABLE.guess_type(f"a{extension}")[0]
