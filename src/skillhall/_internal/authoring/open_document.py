"""A SKILL.md that is open in an editor: its text may differ from the file."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

from skillhall._internal.authoring.skill_examination import Findings, examine_draft
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.profiles import Profile
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile
from skillhall._internal.skill.frontmatter_locator import (
    MAX_SKILL_MD_BYTES,
    SKILL_MD,
    is_skill_md,
    normalize_newlines,
)
from skillhall._internal.skill.markdown.broken_links import locate_references, resolve_reference
from skillhall._internal.skill.parser import build_too_large_finding
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall.errors import SkillFileNotFound, SkillhallError, UnsafePath

_MAX_COUNTED_BYTES = 1024 * 1024  # bytes; tokens of larger files are not counted
_SAFE_IN_LINKS = "/-._~!$&'*+,;=@"


class PathReplacement(NamedTuple):
    """A path to replace in a Markdown file of the skill: 0-based line, and columns."""

    file: str  # in the skill
    line: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """The path and text of an open SKILL.md, and the other files in its folder."""

    path: str
    text: str
    bundle: Bundle

    @classmethod
    def open(cls, path: str, text: str, profile: Profile) -> OpenDocument:
        """Open the files next to the document, if its folder exists."""
        folder = os.path.dirname(path)
        try:
            bundle = open_bundle(FolderHandle(folder), profile.scan_policy)
        except SkillFileNotFound:
            bundle = Bundle(folder, {})
        return cls(path, text, bundle)

    @property
    def data(self) -> bytes:
        """The bytes that the editor would save."""
        return self.text.encode("utf-8", "surrogatepass")

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the other files of the skill."""
        return tuple(path for path in self.bundle.files if not is_skill_md(path))

    def check(self, profile: Profile) -> Findings:
        """Return the findings that `validate` would report for this text."""
        data = self.data
        if len(data) > MAX_SKILL_MD_BYTES:
            too_large = build_too_large_finding(len(data)).with_location(self.path)
            return profile.load_policy.judge([too_large])
        file = SkillFile(RelativePath.parse(SKILL_MD), len(data), False, partial(bytes, data))  # noqa: FBT003
        files = {path: one for path, one in self.bundle.files.items() if not is_skill_md(path)}
        bundle = Bundle(self.bundle.folder, {**files, SKILL_MD: file}, self.bundle.findings)
        return examine_draft(bundle, self.bundle.folder, profile)

    def count_file_tokens(self, path: str) -> int | None:
        """Return the tokens of a file of the skill; `None` if not text, or too large."""
        file = self.bundle.files.get(path)
        if file is None or file.size > _MAX_COUNTED_BYTES:
            return None
        try:
            return estimate_tokens(file.read().decode("utf-8"))
        except (SkillhallError, UnicodeDecodeError):
            return None

    def check_new_path(self, path: str) -> str:
        """Return the path of a renamed file. Raises: UnsafePath."""
        new = RelativePath.parse(path).text
        if new in self.bundle.files or is_skill_md(new):
            raise UnsafePath(path, "a file with this name exists")
        return new

    def rename_file(self, old: str, new: str) -> tuple[PathReplacement, ...]:
        """Return the changes of all links when a file of the skill gets a new path."""
        replacements = []
        texts = {os.path.basename(self.path): self.text, **self._read_other_markdown()}
        for file, text in texts.items():
            folder = posixpath.dirname(file)
            start = posixpath.relpath(new, folder or ".")
            for span in locate_references(normalize_newlines(text)):
                if resolve_reference(posixpath.join(folder, span.path)) == old:
                    is_dotted = span.path.startswith("./")
                    link = quote(f"./{start}" if is_dotted else start, safe=_SAFE_IN_LINKS)
                    where = (span.line, span.start, span.end)
                    replacements.append(PathReplacement(file, *where, link))
        return tuple(replacements)

    def _read_other_markdown(self) -> dict[str, str]:
        texts = {}
        for path in self.files:
            file = self.bundle.files[path]
            if path.lower().endswith(".md") and file.size <= _MAX_COUNTED_BYTES:
                try:
                    texts[path] = file.read().decode("utf-8")
                except (SkillhallError, UnicodeDecodeError):
                    continue
        return texts
