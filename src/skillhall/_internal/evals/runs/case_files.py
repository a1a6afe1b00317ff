"""The files of a run: input files of its case, and the output files of its agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.bundle import RelativePath, find_collision, sha256_hex
from skillhall._internal.sources.folder.bundle_reader import open_bundle
from skillhall.errors import SkillhallError, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillhall._internal.skill.evals.eval_file import EvalCase

_INPUT_FOLDERS = ("evals/files/", "evals/")  # of no use to an agent
_MODE, _EXECUTABLE = 0o644, 0o100


class OutputFiles(NamedTuple):
    """New and changed files in the folder of a run, with content and mode."""

    files: Mapping[str, tuple[bytes, int]]
    problem: str = ""  # why some are skipped


def select_input_files(
    case: EvalCase, skill_files: Mapping[str, tuple[bytes, int]]
) -> dict[str, tuple[bytes, int]]:
    """Return the input files of a case by their path in the folder of a run.

    Only files of the skill are used; `evals/files/` is removed from their paths.
    Raises: UnsafePath for a path that is not in the skill, or that occurs twice.
    """
    selected: dict[str, tuple[bytes, int]] = {}
    for mention in case.files:
        path = RelativePath.parse(mention.path).text
        paths = [one for one in skill_files if one == path or one.startswith(f"{path}/")]
        if not paths:
            raise UnsafePath(mention.path, "the skill has no such file")
        for one in paths:
            target = _remove_input_folder(one)
            if selected.setdefault(target, skill_files[one]) is not skill_files[one]:
                raise UnsafePath(mention.path, f"another input file is named {target!r} too")
    collision = find_collision(selected)
    if collision is not None:
        raise UnsafePath(collision.path, collision.reason)
    return selected


def _remove_input_folder(path: str) -> str:
    for folder in _INPUT_FOLDERS:
        if path.startswith(folder):
            return path.removeprefix(folder)
    return path


def write_input_files(folder: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
    """Write input files to the folder of a run. Raises: OSError."""
    with WritableFolder(str(folder)) as target:
        for path, (data, mode) in files.items():
            target.create_nested_file(path, data, mode, fsync=False)


def collect_output_files(
    folder: Path, inputs: Mapping[str, tuple[bytes, int]], max_bytes: int
) -> OutputFiles:
    """Return the files that an agent created or changed.

    Links and hidden files are skipped.
    """
    digests = {path: sha256_hex(data) for path, (data, _) in inputs.items()}
    outputs: dict[str, tuple[bytes, int]] = {}
    size = 0
    try:
        bundle = open_bundle(FolderHandle(str(folder)), LENIENT.scan_policy.without_hidden_files)
        for path, file in bundle.files.items():
            size += file.size if path not in digests else 0
            if size > max_bytes:
                raise TooLarge("outputs", max_bytes)
            data = file.read()
            if digests.get(path) != sha256_hex(data):
                outputs[path] = data, _MODE | (0o111 if file.executable else 0)
    except SkillhallError as error:
        return OutputFiles(outputs, str(error))
    problems = [finding.message for finding in bundle.findings]
    return OutputFiles(outputs, "; ".join(problems[:3]))
