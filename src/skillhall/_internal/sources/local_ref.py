r"""References to folders and archives on this machine.

```text
./folder  ~/folder  C:\folder  folder/    LocalRef
./skills.zip  skills.tar.gz               ArchiveRef
```
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.fs.handles import is_inside
from skillhall._internal.sources.archive.source import read_archive_file
from skillhall._internal.sources.base import NpxSource, OpenedSource, Ref
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.folder.source import read_folder
from skillhall._internal.sources.source_text import ARCHIVE_EXTENSIONS, TextForm

if TYPE_CHECKING:
    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.source_text import SourceText


class PathRef(Ref):
    """Unresolved local path: relative, below ~, or absolute."""

    __slots__ = ()

    path: str

    @property
    def text(self) -> str:
        """The path."""
        return self.path

    def to_portable_text(self, root: str, base: str) -> str:
        """Return the path relative to `root`.

        Paths below ~ and absolute paths outside `root` are returned unchanged.
        """
        if self.path.startswith("~"):
            return self.path
        path = Root.resolve(self.path, base).path
        if os.path.isabs(self.path) and not is_inside(path, os.path.abspath(root)):
            return self.path
        try:
            relative = os.path.relpath(path, root).replace(os.sep, "/")
        except ValueError:  # Windows: the paths are on different drives
            return self.path
        return relative if relative.startswith(".") else f"./{relative}"


@dataclass(frozen=True, slots=True)
class LocalRef(PathRef):
    """Local folder: a skill, or a folder of skills."""

    left_out_hidden_files = True
    path: str

    @property
    def npx_source(self) -> NpxSource:
        """The record for `npx skills`."""
        return NpxSource(self.path, "local", self.path)

    def open(self, context: SourceContext) -> OpenedSource:
        """Open the folder. Raises: SourceRejected, SkillFileNotFound."""
        path = Root.resolve(self.path, context.settings.working_directory).path
        follow_links = context.settings.follow_links
        hint = context.build_folder_hint
        bundles, load = read_folder(path, self.text, hint, follow_links=follow_links)
        return OpenedSource(self, bundles, load_bundle=load)


@dataclass(frozen=True, slots=True)
class ArchiveRef(PathRef):
    """Local zip or tar.gz file."""

    path: str

    def open(self, context: SourceContext) -> OpenedSource:
        """Read the archive. Raises: SkillFileNotFound, ArchiveRejected, TooLarge."""
        path = Root.resolve(self.path, context.settings.working_directory).path
        return OpenedSource(self, read_archive_file(path))


def parse_local(source: SourceText) -> LocalRef | ArchiveRef | None:
    """Parse a path, or a name that looks like one. Raises: SourceRejected."""
    text = source.text
    if source.form is TextForm.NAME:
        names, ref = source.split_name()
        is_archive = text.rstrip("/").lower().endswith(ARCHIVE_EXTENSIONS)
        is_single_folder = len(names) == 1 and ref is None and text.endswith("/")
        if not is_single_folder and not (is_archive and (ref is None or len(names) == 1)):
            return None
        text = f"./{text}"
    elif source.form is not TextForm.PATH:
        return None
    path = text.rstrip("/") or "/"
    # On Windows, C:/ is the root of a drive, but C: is the current folder on it.
    path = f"{path}/" if path.endswith(":") else path
    return ArchiveRef(path) if path.lower().endswith(ARCHIVE_EXTENSIONS) else LocalRef(path)
