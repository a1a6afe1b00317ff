"""The URIs of a skill that an MCP server serves, and the paths they stand for.

```text
skill://acme/billing/refunds/SKILL.md              the skill `refunds`, under the path acme/billing
skill://acme/billing/refunds/examples/email.md     its file examples/email.md
```

No scheme is privileged, and no part of a URI is looked up: it means something to its server alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from skillhall._internal.skill.bundle import MAX_PATH_LENGTH, RelativePath
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall.errors import UnsafePath

MAX_URI_LENGTH: Final = 2048  # characters

_URI = re.compile(r"([a-z][a-z0-9+.-]*)://(.+)", re.DOTALL)
_CHARACTERS = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")  # of paths, RFC 3986
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_FORBIDDEN_SEGMENTS = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class SkillUri:
    """The URI of a served SKILL.md. `parse` is the only way to make one."""

    text: str
    path: str  # of the skill in the server's own order, as in acme/billing/refunds

    @classmethod
    def parse(cls, text: str) -> SkillUri:
        """The checked URI. Raises: UnsafePath."""
        segments = _split_segments(text)
        if len(segments) < 2 or segments[-1] != SKILL_MD or not text.endswith(f"/{SKILL_MD}"):  # noqa: PLR2004
            raise UnsafePath(
                text[:MAX_PATH_LENGTH], f"it does not end in a skill's name and {SKILL_MD}"
            )
        return cls(text, "/".join(segments[:-1]))

    @property
    def name(self) -> str:
        """What the skill must be called."""
        return self.path.rpartition("/")[2]

    @property
    def folder_uri(self) -> str:
        """The URI of the skill's folder, without a slash at its end."""
        return self.text.removesuffix(f"/{SKILL_MD}")

    def to_relative_path(self, text: str) -> RelativePath:
        """The path of a file of this skill by its URI. Raises: UnsafePath."""
        # Text is compared, not its meaning: one spelling of a folder is enough for a server.
        inside = text.removeprefix(f"{self.folder_uri}/")
        if inside == text:
            raise UnsafePath(text[:MAX_PATH_LENGTH], f"it is not below {self.folder_uri}")
        depth = self.folder_uri.count("/") - 1
        return RelativePath.parse("/".join(_split_segments(text)[depth:]))


def _split_segments(text: str) -> list[str]:
    """The decoded names between the slashes, the first of which stands where hosts do."""
    found = _URI.fullmatch(text) if len(text) <= MAX_URI_LENGTH else None
    if found is None:
        raise UnsafePath(
            text[:MAX_PATH_LENGTH], f"it is no URI of at most {MAX_URI_LENGTH} characters"
        )
    if not _CHARACTERS.fullmatch(found[2]) or _BAD_PERCENT.search(found[2]):
        raise UnsafePath(text, "it holds characters that no path of a URI has")
    return [_decode_segment(segment, text) for segment in found[2].split("/")]


def _decode_segment(segment: str, text: str) -> str:
    data = _PERCENT.sub(lambda found: bytes([int(found[1], 16)]), segment.encode("ascii"))
    try:
        name = data.decode("utf-8")
    except UnicodeDecodeError:
        raise UnsafePath(text, "a part of it is not UTF-8") from None
    if name in _FORBIDDEN_SEGMENTS:
        raise UnsafePath(text, "a part of it is empty, or leads upwards")
    if "/" in name or "\\" in name or not name.isprintable():
        raise UnsafePath(text, "a part of it hides a slash or a control character")
    return name
