"""Workspace of a skill's evals: folders for each iteration, case, arm and repeat.

The layout and the documented files are those of the guide of agentskills.io. `plan.json`,
`run.json`, `transcript.json`, `verdicts.json` and `summary.json` are our own.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.evals.run_files import StoredRun, parse_run, render_run, render_timing
from skillhall._internal.fs.handles import EntryKind, FolderHandle, open_folder_at, read_file
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.folder_walk_rules import WORKSPACE_SUFFIX
from skillhall._internal.strict_json import InvalidJson, parse_json, render_json
from skillhall.errors import Busy, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from skillhall._internal.evals.eval_records import RunKey, RunRecord

PLAN_FILE = "plan.json"
RUN_FILE = "run.json"  # written last: a run with this file is complete
TIMING_FILE = "timing.json"
TRANSCRIPT_FILE = "transcript.json"
GRADING_FILE = "grading.json"
VERDICTS_FILE = "verdicts.json"
OUTPUTS_FOLDER = "outputs"
# The files of an earlier run are removed in this order, `run.json` first.
_FILES_OF_A_RUN = (RUN_FILE, OUTPUTS_FOLDER, GRADING_FILE, VERDICTS_FILE)
MAX_RESULT_FILE_BYTES = 16 * 1024 * 1024
_ITERATION = re.compile(r"iteration-([1-9][0-9]{0,8})")
_MAX_SLUG_LENGTH = 48
_FILE_MODE = 0o644


@dataclass(frozen=True, slots=True)
class EvalIteration:
    """One iteration: the results of one plan. Paths are relative to its folder."""

    path: Path
    repeats: int = 1

    @property
    def number(self) -> int:
        """The number in the name of the folder."""
        return int(self.path.name.rpartition("-")[2])

    def run_path(self, key: RunKey) -> str:
        """Return the relative path of a run's folder."""
        path = f"eval-{build_slug(key.case_id)}/{key.arm}"
        return path if self.repeats == 1 else f"{path}/run-{key.repeat}"

    def run_folder(self, key: RunKey) -> Path:
        """Return the absolute path of a run's folder."""
        return self.path / self.run_path(key)

    def outputs_folder(self, key: RunKey) -> Path:
        """Return the absolute path of the folder with the output files of a run."""
        return self.run_folder(key) / OUTPUTS_FOLDER

    def write_run(
        self,
        record: RunRecord,
        digest: str,
        outputs: Mapping[str, tuple[bytes, int]],
        transcript: object = (),
    ) -> None:
        """Write the outputs and files of a run; `run.json` comes last. Raises: OSError.

        `outputs` maps paths to content and mode. `digest` identifies all that the run depends on.
        `transcript` is a list of messages for JSON.
        """
        with self.open_folder(self.run_path(record.key)) as folder:
            for name in _FILES_OF_A_RUN:
                if folder.entry_kind(name) is not None:
                    folder.remove_atomically(name)
            folder.create_folder(OUTPUTS_FOLDER, outputs)
            folder.write_file(TRANSCRIPT_FILE, render_json(transcript) + b"\n")
            # This file need not survive a crash: `run.json` has the same numbers.
            folder.write_file(TIMING_FILE, render_timing(record.usage), fsync=False)
            folder.write_file(RUN_FILE, render_run(record, digest))

    def read_run(self, key: RunKey) -> StoredRun | None:
        """Return a complete run; `None` if it is missing or its file is invalid."""
        stored = self._read_run_file(self.run_path(key))
        return stored if stored is not None and stored.record.key == key else None

    def iter_runs(self) -> Iterator[StoredRun]:
        """Yield all complete runs, in the order of their folders."""
        for case in list_folders(self.path, "eval-"):
            for arm in list_folders(self.path / case):
                path = f"{case}/{arm}"
                repeats = list_folders(self.path / path, "run-")
                for run_path in (path, *(f"{path}/{repeat}" for repeat in repeats)):
                    stored = self._read_run_file(run_path)
                    if stored is not None:
                        yield stored

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other commands from running or grading this iteration. Raises: Busy, OSError."""
        with self.open_folder("") as folder, hold_lock(folder.lock(waits=False)):
            yield

    def with_planned_repeats(self) -> EvalIteration:
        """Return a copy with the number of repeats in `plan.json`."""
        repeats = self.read_plan().get("repeats")
        return EvalIteration(self.path, repeats if isinstance(repeats, int) else 1)

    def read_plan(self) -> Mapping[str, object]:
        """Return the content of `plan.json`; empty if it is missing or invalid."""
        plan = self.read_json(PLAN_FILE)
        return plan if isinstance(plan, dict) else {}

    def write_json(self, path: str, value: object) -> None:
        """Write a JSON file atomically at a relative path. Raises: OSError."""
        parent, _, name = path.rpartition("/")
        with self.open_folder(parent) as folder:
            folder.write_file(name, render_json(value) + b"\n", _FILE_MODE)

    def read_json(self, path: str) -> object | None:
        """Return the value in a JSON file; `None` if it is missing or invalid."""
        data = self.read_bytes(path)
        if data is None:
            return None
        try:
            return parse_json(data, unique_keys=True)
        except InvalidJson:
            return None

    def read_bytes(self, path: str) -> bytes | None:
        """Return the content of a file; `None` if it is missing, a link or too large."""
        parent, _, name = path.rpartition("/")
        try:
            with open_folder_at(FolderHandle(str(self.path), parent)) as folder:
                return read_file(folder, name, MAX_RESULT_FILE_BYTES)
        except (OSError, SkillhallError):
            return None

    @contextmanager
    def open_folder(self, path: str) -> Iterator[WritableFolder]:
        """Open the folder at a relative path, and create it if necessary. Raises: OSError."""
        folder = WritableFolder(str(self.path))
        try:
            for part in filter(None, path.split("/")):
                parent, folder = folder, folder.open_folder(part, create=True)
                parent.close()
            yield folder
        finally:
            folder.close()

    def _read_run_file(self, run_path: str) -> StoredRun | None:
        value = self.read_json(f"{run_path}/{RUN_FILE}")
        return None if value is None else parse_run(value, self.path / run_path)


@dataclass(frozen=True, slots=True)
class EvalWorkspace:
    """The folder with all iterations of one skill. It need not exist yet."""

    path: Path

    @classmethod
    def of_skill(cls, skill_folder: str, results_folder: str = "") -> EvalWorkspace:
        """Return the workspace of a skill: in `results_folder`, else next to the skill."""
        folder = Path(skill_folder).absolute()
        parent = Path(results_folder).absolute() if results_folder else folder.parent
        return cls(parent / f"{folder.name}{WORKSPACE_SUFFIX}")

    def iterations(self) -> list[EvalIteration]:
        """Return the iterations, the oldest first."""
        names = [
            name for name in list_folders(self.path, "iteration-") if _ITERATION.fullmatch(name)
        ]
        iterations = [EvalIteration(self.path / name) for name in names]
        iterations.sort(key=lambda iteration: iteration.number)
        return [iteration.with_planned_repeats() for iteration in iterations]

    def create_iteration(self, plan: Mapping[str, object], repeats: int) -> EvalIteration:
        """Create the next iteration with the file `plan.json`. Raises: OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        with WritableFolder(str(self.path)) as base, base.lock():
            number = max((one.number for one in self.iterations()), default=0) + 1
            data = render_json(plan) + b"\n"
            base.create_folder(f"iteration-{number}", {PLAN_FILE: (data, _FILE_MODE)})
        return EvalIteration(self.path / f"iteration-{number}", repeats)


@contextmanager
def hold_lock(lock: AbstractContextManager[None]) -> Iterator[None]:
    """Hold a lock. Raises: Busy, without waiting, if another command holds it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock)
        except BlockingIOError:
            problem = "another command is running these evals"
            raise Busy(problem, "wait until it has finished") from None
        yield


def build_slug(case_id: str) -> str:
    """Return a folder name for a case. Different ids have different names."""
    slug = re.sub(r"[^a-z0-9]+", "-", case_id.lower()).strip("-")
    if slug == case_id and len(slug) <= _MAX_SLUG_LENGTH:
        return slug
    suffix = hashlib.sha256(case_id.encode()).hexdigest()[:8]
    return "-".join(filter(None, (slug[:_MAX_SLUG_LENGTH].strip("-"), suffix)))


def list_folders(path: Path, prefix: str = "") -> list[str]:
    """Return the names of the subfolders of a folder; links are skipped."""
    with suppress(OSError), open_folder_at(FolderHandle(str(path))) as folder:
        entries = folder.list_entries()
        return sorted(
            name
            for name, kind in entries
            if kind is EntryKind.FOLDER and name.startswith(prefix) and not name.startswith(".")
        )
    return []
