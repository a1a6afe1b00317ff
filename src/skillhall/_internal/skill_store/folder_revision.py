"""Whether folders of skills changed: a text out of all that their catalogs depend on."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from skillhall._internal.catalog.fingerprint import take_stamps
from skillhall._internal.fs.links import read_inside
from skillhall._internal.policy.profiles import LOCAL_SKILLS
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.frontmatter import MAX_SKILL_MD, is_skill_md
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.catalog.fingerprint import Stamps


class FolderRevision:
    """The revision of folders below a base; nothing is kept but the last one."""

    def __init__(self, base: str, folders: Sequence[str], *, follow_links: bool = False) -> None:
        self._base = base
        self._folders = [*folders]
        self._followed = frozenset(folders if follow_links else ())
        self._last: tuple[Stamps, str] | None = None

    def text(self) -> str:
        """A text that is another one as soon as a skill came, went or was edited."""
        if self._last is None or not self._last[0].still_hold():
            stamps = take_stamps(self._folders, LOCAL_SKILLS.scan, self._followed)
            self._last = stamps, self._digest(stamps)
        return self._last[1]

    def _digest(self, stamps: Stamps) -> str:
        """The folders that are there, and the bytes of every SKILL.md."""
        digest = hashlib.sha256()
        for path, signature in sorted(stamps.signatures.items()):
            text = os.path.relpath(path, self._base).replace(os.sep, "/")
            content = repr(signature is None).encode()
            if is_skill_md(os.path.basename(path)):
                content = self._content(text) or repr(signature).encode()
            digest.update(f"{text!a}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()

    def _content(self, path: str) -> bytes:
        try:
            return read_inside(self._base, RelativePath.parse(path), MAX_SKILL_MD).data
        except SkillhallError:
            return b""
