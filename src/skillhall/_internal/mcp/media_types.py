"""What kind of file a name promises; the same on every machine."""

from __future__ import annotations

from mimetypes import MimeTypes

DIRECTORY = "inode/directory"
MARKDOWN = "text/markdown"
TEXT = "text/plain"
BINARY = "application/octet-stream"

# Python's own table, without what a machine adds to it, and where that is wrong for skills.
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
    """The type that the file's ending stands for, if it is known."""
    name = path.rpartition("/")[2].lower()
    dot = name.rfind(".")
    ending = name[dot:] if dot > 0 else ""
    return _OVERRIDES.get(ending) or _TABLE.guess_type(f"a{ending}")[0]
