"""Symlink races: a process swaps entries for links while others read and write.

`python -m tests.support.symlink_races FOLDER` is the swapping process; the links lead outside.
Nothing outside may ever be read or written. A naive reader and writer, which check and then open,
prove that the race is real.
"""

import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from skillhall._internal.agents.file_tools import ReadTools
from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.skill_content import read_skill, read_skill_file
from skillhall._internal.catalog.trust.gate import ClearedSkill
from skillhall._internal.fs.atomic_swap import swap_names
from skillhall._internal.fs.handles import FolderHandle, open_root, read_below
from skillhall._internal.fs.links import read_contained_file
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.project import Project, read_installed
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.settings import Settings
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.sources.folder.bundle_reader import open_bundle, read_bundle
from skillhall._internal.wiring.catalog import load_catalog
from skillhall.errors import SkillhallError
from tests.support.fork_server import ForkedProcess
from tests.support.skills import make_skill_md

SECRET, INSIDE = "SECRET", "inside"
SKILL = "a/b/pdf"
NOTES = f"{SKILL}/notes.md"
_SWAPPED = ("a", "a/b", SKILL, NOTES, f"{SKILL}/SKILL.md")
_MAX_BYTES = 1000
READS = 10  # per round; one write takes as long, because it is synced to disk
NAIVE = 50  # attempts per round of the naive reader and writer, which must lose the race
_STOP, _READY = "stop", "ready"
_NAIVE = "naive.md"
_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class RaceFolders:
    """Root with a skill, and the same files with a secret outside of it."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def outside(self) -> Path:
        return self.folder / "outside"

    @property
    def project(self) -> Project:
        return Project.from_settings(
            Settings(str(self.root), str(self.folder / "cache"), use_head_cache=False)
        )

    def prepare(self) -> None:
        for top, word in ((self.root, INSIDE), (self.outside, SECRET)):
            skill = top / SKILL
            skill.mkdir(parents=True)
            (skill / "SKILL.md").write_bytes(make_skill_md("pdf", word, body=word))
            (skill / "notes.md").write_text(word, encoding="utf-8")
        for path in _SWAPPED:
            _link_path(self.root / path).symlink_to(self.outside / path)


def _link_path(path: Path) -> Path:
    """Return the link that is swapped with `path`."""
    return path.with_name(f".{path.name}-link")


@contextmanager
def make_memory_folder() -> Iterator[Path]:
    """Create an empty folder, in memory if possible: a busy disk would slow writers."""
    with TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        yield Path(folder)


# Swapping


def swap(folder: Path) -> None:
    """Swap folders and files for links, at every depth, until a file `stop` exists."""
    root = folder / "root"
    # Open handles, so that entries of a folder can be swapped even while it is swapped away.
    entries = [(os.open((root / path).parent, os.O_RDONLY), Path(path).name) for path in _SWAPPED]
    turns = random.Random(4711)  # noqa: S311 - reproducible
    swaps = 0
    (folder / _READY).touch()
    while not (folder / _STOP).exists():
        handle, name = turns.choice(entries)
        for _ in range(2):  # swapped back, so that the complete path is inside half of the time
            _swap(handle, name, in_one_step=turns.random() < 0.5)
        swaps += 2
    sys.stdout.write(f"{swaps}\n")


def _swap(handle: int, name: str, *, in_one_step: bool) -> None:
    link, away = f".{name}-link", f".{name}-away"
    if in_one_step and swap_names(handle, name, link):
        return
    for old, new in ((name, away), (link, name), (away, link)):
        _rename(handle, old, new)


def _rename(handle: int, old: str, new: str) -> None:
    while True:
        try:
            os.rename(old, new, src_dir_fd=handle, dst_dir_fd=handle)
        except OSError:  # a writer created a folder while the name was free
            shutil.rmtree(new, ignore_errors=True, dir_fd=handle)
        else:
            return


@contextmanager
def run_swapper(scene: RaceFolders) -> Iterator[Callable[[], int]]:
    """Run the swapping process; the yielded function ends it and returns its swaps."""
    module = "tests.support.symlink_races"
    with closing(ForkedProcess(module, str(scene.folder), imports=[module])) as process:
        try:
            while not (scene.folder / _READY).exists() and process.poll() is None:
                os.sched_yield()
            yield lambda: _stop_swapper(scene, process)
        finally:
            (scene.folder / _STOP).touch()


def _stop_swapper(scene: RaceFolders, process: ForkedProcess) -> int:
    (scene.folder / _STOP).touch()
    output = process.read_output(timeout=120)
    assert process.wait(timeout=120) == 0
    return int(output)


# Each reader returns all text that it got.


Reader: TypeAlias = Callable[[RaceFolders], str]


def _catalog(scene: RaceFolders) -> Catalog:
    return load_catalog([str(scene.root)], settings=scene.project.settings)


def _read_with_tool(scene: RaceFolders) -> str:
    tools = ReadTools(str(scene.root), settings=scene.project.settings)
    output = tools.read_file(NOTES)
    if output.startswith("Error: "):
        raise SkillhallError(output)
    return output


def _skill_tools(scene: RaceFolders) -> str:
    catalog = _catalog(scene)
    tools = ReadTools(str(scene.root), catalog=lambda: catalog, settings=scene.project.settings)
    return tools.read_skill("pdf") + tools.list_skill_files("pdf")


def _beneath(scene: RaceFolders) -> str:
    root = open_root(str(scene.root))
    try:
        return read_below(root, RelativePath.parse(NOTES), _MAX_BYTES).decode()
    finally:
        root.close()


def _inside(scene: RaceFolders) -> str:
    return read_contained_file(str(scene.root), RelativePath.parse(NOTES), _MAX_BYTES).data.decode()


def _bundle(scene: RaceFolders) -> str:
    bundle = open_bundle(FolderHandle(str(scene.root), SKILL), LENIENT.scan_policy)
    return "".join(file.read().decode() for file in bundle.files.values())


def _read_bundle(scene: RaceFolders) -> str:
    bundle = read_bundle(FolderHandle(str(scene.root), SKILL), LENIENT.scan_policy)
    return "".join(file.read().decode() for file in bundle.files.values())


def _installed(scene: RaceFolders) -> str:
    result = read_installed(scene.project, SKILL)
    return "" if result is None else "".join(file.data.decode() for file in result.files.values())


def _discover(scene: RaceFolders) -> str:
    catalog = _catalog(scene)
    return f"{[skill.description for skill in catalog]} {catalog.rejected} {catalog.findings}"


def _read_catalog_skill(scene: RaceFolders) -> str:
    texts = []
    for skill in map(ClearedSkill, _catalog(scene)):
        texts += [
            repr(read_skill(skill)),
            read_skill_file(skill, "notes.md").decode(),
        ]
    return "".join(texts)


def _read_naively(scene: RaceFolders) -> str:
    """Read with a race between check and use, which all other readers avoid."""
    path = os.path.realpath(scene.root / NOTES)
    if not path.startswith(f"{os.path.realpath(scene.root)}/"):
        raise SkillhallError("outside")
    return Path(path).read_text(encoding="utf-8")


READERS: Mapping[str, Reader] = {
    "ReadFile": _read_with_tool,
    "ReadSkill, ListSkillFiles": _skill_tools,
    "read_beneath": _beneath,
    "read_inside": _inside,
    "open_bundle": _bundle,
    "read_bundle": _read_bundle,
    "read_installed": _installed,
    "load_catalog": _discover,
    "read_skill, read_skill_file": _read_catalog_skill,
}


# Writing


Writer: TypeAlias = Callable[[RaceFolders], None]


def _write_by_handles(scene: RaceFolders) -> None:
    with (
        WritableFolder(str(scene.root)) as root,
        root.open_folder("a") as a,
        a.open_folder("b", create=True) as b,
        b.open_folder("pdf") as skill,
    ):
        _write_files(skill)


def _write_in_project(scene: RaceFolders) -> None:
    with scene.project.open_folder(SKILL) as skill:
        _write_files(skill)


def _write_files(skill: WritableFolder) -> None:
    skill.write_file("own.md", b"own")
    skill.create_folder("own", {"deep/file.md": (b"own", 0o644)})
    skill.replace_folder("own", {"file.md": (b"new", 0o644)})
    skill.remove_atomically("own")


def _write_naively(scene: RaceFolders) -> None:
    folder = os.path.realpath(scene.root / SKILL)
    if folder.startswith(f"{os.path.realpath(scene.root)}/"):
        Path(scene.root / SKILL / _NAIVE).write_text("naive", encoding="utf-8")


WRITERS: Mapping[str, Writer] = {
    "WritableFolder": _write_by_handles,
    "Project.open_folder": _write_in_project,
}


# The race


@dataclass
class AttemptCounts:
    """Attempts of a reader or writer: successful, rejected and leaked."""

    name: str
    attempts: int = 0
    succeeded: int = 0
    rejected: int = 0
    leaks: int = 0


@dataclass
class RaceResult:
    """Result of a race."""

    counts: list[AttemptCounts] = field(default_factory=list)
    naive_counts: list[AttemptCounts] = field(default_factory=list)
    swaps: int = 0

    @property
    def leaks(self) -> int:
        return sum(score.leaks for score in self.counts)


def run_race(
    folder: Path, *, rounds: int = sys.maxsize, seconds: float = 0, naive: bool = False
) -> RaceResult:
    """Run all readers and writers in turn, for a number of rounds or seconds."""
    scene = RaceFolders(folder)
    scene.prepare()
    known = _files(scene.outside)
    entrants = [
        (AttemptCounts(name), _make_read_attempt(reader), READS) for name, reader in READERS.items()
    ]
    entrants += [
        (AttemptCounts(name), _make_write_attempt(writer, known), 1)
        for name, writer in WRITERS.items()
    ]
    controls = [
        (AttemptCounts("reader"), _make_read_attempt(_read_naively), NAIVE),
        (AttemptCounts("writer"), _make_write_attempt(_write_naively, known), NAIVE),
    ]
    deadline = time.monotonic() + seconds
    with run_swapper(scene) as end:
        for _ in range(rounds):
            for score, attempt, times in [*entrants, *(controls if naive else ())]:
                for _ in range(times):
                    _attempt(score, attempt, scene)
            if seconds and time.monotonic() > deadline:
                break
        swaps = end()
    return RaceResult([item[0] for item in entrants], [item[0] for item in controls], swaps)


Attempt: TypeAlias = Callable[[RaceFolders], bool]  # returns whether it leaked


def _attempt(score: AttemptCounts, attempt: Attempt, scene: RaceFolders) -> None:
    score.attempts += 1
    try:
        leaked = attempt(scene)
    except (SkillhallError, OSError):
        score.rejected += 1
        return
    score.leaks += leaked
    score.succeeded += not leaked


def _make_read_attempt(reader: Reader) -> Attempt:
    def attempt(scene: RaceFolders) -> bool:
        text = reader(scene)
        if SECRET not in text and INSIDE not in text:
            raise SkillhallError("nothing was found")
        return SECRET in text

    return attempt


def _make_write_attempt(writer: Writer, known: set[str]) -> Attempt:
    def attempt(scene: RaceFolders) -> bool:
        failure = None
        try:
            writer(scene)
        except (SkillhallError, OSError) as error:
            failure = error
        new = _files(scene.outside) - known
        for path in new:
            with suppress(OSError):
                (scene.outside / path).unlink()
        if failure is not None and not new:
            raise failure
        return bool(new)

    return attempt


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


if __name__ == "__main__":
    swap(Path(sys.argv[1]))
