"""Output of a skill's file: raw bytes, text on a terminal, or JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from skillhall._internal.cli.errors import CommandFailed
from skillhall._internal.cli.terminal import is_terminal, sanitize_text

if TYPE_CHECKING:
    from collections.abc import Mapping


def print_content(content: bytes, path: str) -> None:
    """Write the bytes unchanged; a terminal gets only text. Raises: CommandFailed."""
    if is_terminal(sys.stdout):
        _print_to_terminal(content, path)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def serialize_content(content: bytes) -> Mapping[str, object]:
    """Return the size and content of a file for JSON output."""
    try:
        encoded = {"encoding": "utf-8", "content": content.decode("utf-8")}
    except UnicodeDecodeError:
        from base64 import b64encode

        encoded = {"encoding": "base64", "content": b64encode(content).decode("ascii")}
    return {"size": len(content), **encoded}


def _print_to_terminal(content: bytes, path: str) -> None:
    try:
        sys.stdout.write(sanitize_text(content.decode("utf-8")))
    except UnicodeDecodeError:
        raise CommandFailed(
            "not_text", f"{path!r} is not text", "send it to a file: skillhall … > FILE"
        ) from None
