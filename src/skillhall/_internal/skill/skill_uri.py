"""URIs of skills that an MCP server serves, and the file paths they map to.

```text
skill://acme/billing/refunds/SKILL.md              the skill `refunds`, under the path acme/billing
skill://acme/billing/refunds/examples/email.md     its file examples/email.md
```

Any scheme is allowed. A URI is opaque: only its server can resolve it, and no part is a host name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from skillhall._internal.skill.bundle import MAX_PATH_LENGTH, RelativePath
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall.errors import UnsafePath

MAX_URI_LENGTH: Final = 2048  # characters

_URI = re.compile(r"([a-z][a-z0-9+.-]*)://(.+)", re.DOTALL)
_PATH_CHARACTERS = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")  # RFC 3986, section 3.3
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class SkillUri:
    """Checked URI of a served SKILL.md; created only by `parse`."""

    text: str
    path: str  # of the skill on the server: acme/billing/refunds

    @classmethod
    def parse(cls, text: str) -> SkillUri:
        """Parse and check a URI. Raises: UnsafePath."""
        segments = _split_segments(text)
        if len(segments) < 2 or segments[-1] != SKILL_MD or not text.endswith(f"/{SKILL_MD}"):  # noqa: PLR2004
            reason = f"it does not end in a skill name and {SKILL_MD}"
            raise UnsafePath(text[:MAX_PATH_LENGTH], reason)
        return cls(text, "/".join(segments[:-1]))

    @property
    def name(self) -> str:
        """The name that the skill must have."""
        return self.path.rpartition("/")[2]

    @property
    def folder_uri(self) -> str:
        """The URI of the skill's folder, without a trailing slash."""
        return self.text.removesuffix(f"/{SKILL_MD}")

    def to_relative_path(self, text: str) -> RelativePath:
        """Return the path of a file of this skill, given its URI. Raises: UnsafePath."""
        # The folder is compared as text: a server must always spell it the same way.
        if not text.startswith(f"{self.folder_uri}/"):
            raise UnsafePath(text[:MAX_PATH_LENGTH], f"it is not below {self.folder_uri}")
        # The folder has n segments, n - 1 slashes between them, and the two slashes of "://".
        depth = self.folder_uri.count("/") - 1
        return RelativePath.parse("/".join(_split_segments(text)[depth:]))


def _split_segments(text: str) -> list[str]:
    """Return the decoded path segments. Raises: UnsafePath.

    The first segment is where other URIs have a host.
    """
    match = _URI.fullmatch(text) if len(text) <= MAX_URI_LENGTH else None
    if match is None:
        reason = f"it is not a URI of at most {MAX_URI_LENGTH} characters"
        raise UnsafePath(text[:MAX_PATH_LENGTH], reason)
    path = match[2]
    if not _PATH_CHARACTERS.fullmatch(path) or _BAD_PERCENT.search(path):
        raise UnsafePath(text, "it contains characters that are not allowed in a URI path")
    names = []
    for segment in path.split("/"):
        data = _PERCENT.sub(lambda match: bytes([int(match[1], 16)]), segment.encode("ascii"))
        try:
            name = data.decode("utf-8")
        except UnicodeDecodeError:
            raise UnsafePath(text, "a segment is not UTF-8") from None
        if name in ("", ".", ".."):
            raise UnsafePath(text, "a segment is empty, '.' or '..'")
        if "/" in name or "\\" in name or not name.isprintable():
            raise UnsafePath(text, "a segment contains an encoded slash or a control character")
        names.append(name)
    return names
