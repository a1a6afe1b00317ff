"""The outputs of a run: the reply of the agent and the files that it wrote."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from skillhall._internal.catalog.skill_content import ALL_FILES_SCAN
from skillhall._internal.evals.eval_workspace import OUTPUTS_FOLDER
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall.errors import SkillhallError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.evals.run_files import StoredRun
    from skillhall._internal.skill.bundle import SkillFile

MAX_TEXT = 4 * 1024 * 1024  # bytes; larger outputs are not read


class OutputUnreadable(Exception):
    """An output that is missing, too large, or not text. The message names it."""


@dataclass(frozen=True, slots=True)
class RunOutputs:
    """The outputs of one run. Files are read when they are needed; links are left out."""

    reply: str
    files: Mapping[str, SkillFile]

    @classmethod
    def of_run(cls, stored: StoredRun) -> RunOutputs:
        """Return the outputs of a stored run."""
        folder = FolderHandle(str(stored.folder / OUTPUTS_FOLDER))
        try:
            files = open_bundle(folder, ALL_FILES_SCAN).files
        except SkillhallError:
            files = {}
        return cls(stored.record.reply, files)

    def find_files(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern with `*` and `?`, in order."""
        return [path for path in self.files if path == pattern or fnmatchcase(path, pattern)]

    def read_text(self, path: str) -> str:
        """Return an output file as text, or the reply for "". Raises: OutputUnreadable."""
        if not path:
            return self.reply
        file = self.files.get(path)
        if file is None:
            raise OutputUnreadable(f"there is no output file {path!r}")
        if file.size > MAX_TEXT:
            raise OutputUnreadable(f"the output file {path!r} is larger than {MAX_TEXT} bytes")
        try:
            return file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise OutputUnreadable(f"the output file {path!r} is not UTF-8 text") from None
        except SkillhallError as error:
            raise OutputUnreadable(f"the output file {path!r} cannot be read: {error}") from None

    def list_files(self) -> list[str]:
        """Return a line for each output file, with its size."""
        return [f"{path} ({file.size} bytes)" for path, file in self.files.items()]
