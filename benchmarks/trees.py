"""Generated trees of skills: flat, nested among other files, and in a git repository.

A marker file next to each tree records its parameters; a tree with the same parameters is reused.
The text of the files comes from `texts`.
"""

import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Literal

from benchmarks.texts import SUBJECTS, VERBS, draw_kind, make_bodies, name_at, skill_text
from tests.support.git_server import GitRepo

GENERATOR = 1  # increase it when the same parameters give different files
CLUTTER_PER_SKILL = 9  # entries that are neither a skill's folder nor its SKILL.md
REPEATED_NAME = 0.04  # share of cluttered skills named like one in another repository
REPEAT_DISTANCE = (
    100  # more than the skills of a repository, so that the other one is in another repository
)
SUPPORTED = 0.35  # share of cluttered skills with scripts/ or references/
SETTLED_SECONDS = 2.5  # the head cache does not trust files younger than two seconds
FILES_EVERY = 3  # every third skill of a run directory has scripts
COMMITS = 20
LARGE_FILES = 10  # per commit; older versions are history
LARGE_FILE = 2_500_000  # bytes, so that all commits together have 50 MB
SMALL_FILE = b"// " + b"generated filler " * 12 + b"\n"

# Folders between a repository and its skills; the deepest puts a skill six folders below the root.
NESTINGS = {"": 20, "skills": 55, "packages/skills": 12, "plugins/main/skills": 5}
TOP_LEVEL = 0.08  # share of repositories that are only an owner's folder of skills


@dataclass(frozen=True, slots=True)
class TreeSpec:
    """Parameters that determine every byte of a tree."""

    layout: Literal["flat", "served", "cluttered", "git"]
    skills: int
    seed: int = 1
    generator: int = GENERATOR

    @property
    def folder(self) -> str:
        """Name of the tree's folder in the data folder."""
        return f"{self.layout}-{self.skills}"


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree on disk."""

    spec: TreeSpec
    root: Path
    marker: Path

    def wait_until_settled(self) -> None:
        """Wait until every file is old enough for the head cache to trust it."""
        # The marker is written last, so it is the newest file.
        ready = self.marker.stat().st_mtime + SETTLED_SECONDS
        time.sleep(max(0.0, min(SETTLED_SECONDS, ready - time.time())))


class ForeignFolderError(Exception):
    """The folder exists but has no marker."""


def default_data_folder() -> Path:
    """Return the default folder of the trees."""
    return Path(tempfile.gettempdir()) / f"skillhall-benchmarks-{os.getuid()}"


def ensure_tree(data: Path, spec: TreeSpec) -> Tree:
    """Return the tree with these parameters, and build it if it is missing or different."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    tree = Tree(spec, data / spec.folder, data / f"{spec.folder}.json")
    if not _is_complete(tree):
        _clear(tree)
        _mark(tree, complete=False, made=Counter())
        made = _BUILDERS[spec.layout](tree.root, spec)
        _mark(tree, complete=True, made=made)
    return tree


def _is_complete(tree: Tree) -> bool:
    try:
        marker = json.loads(tree.marker.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return (
        bool(marker.get("complete"))
        and marker.get("spec") == asdict(tree.spec)
        and tree.root.is_dir()
    )


def _mark(tree: Tree, *, complete: bool, made: Counter[str]) -> None:
    marker = {"spec": asdict(tree.spec), "complete": complete, "made": dict(sorted(made.items()))}
    tree.marker.write_text(json.dumps(marker, indent=2) + "\n", encoding="utf-8")


def _clear(tree: Tree) -> None:
    if tree.root.exists():
        if not tree.marker.exists():
            fact = f"{str(tree.root)!r} was not made by the benchmarks"
            raise ForeignFolderError(f"{fact}\nhint: choose another --data folder")
        shutil.rmtree(tree.root)


class _SkillWriter:
    """Writes skills with random text and counts them."""

    def __init__(self, spec: TreeSpec) -> None:
        self.rng = Random(f"{spec.layout}/{spec.seed}")
        self.bodies = make_bodies(self.rng)
        self.made: Counter[str] = Counter()

    def write(self, folder: Path) -> None:
        """Create a folder and write one skill into it."""
        folder.mkdir(parents=True)
        kind = draw_kind(self.rng)
        text = skill_text(self.rng, folder.name, kind, self.rng.choice(self.bodies))
        _write_file(folder / "SKILL.md", text)
        self.made[kind] += 1


def _write_file(path: Path, content: bytes) -> None:
    # Plain descriptors: open() costs twice as much, and there are hundreds of thousands of files.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def _build_flat(root: Path, spec: TreeSpec) -> Counter[str]:
    writer = _SkillWriter(spec)
    root.mkdir()
    for index in range(spec.skills):
        writer.write(root / name_at(index))
    return writer.made


def _build_served(root: Path, spec: TreeSpec) -> Counter[str]:
    """Build a run directory; the first skills are the same for every size."""
    writer = _SkillWriter(spec)
    for index in range(spec.skills):
        folder = root / ".agents/skills" / name_at(index)
        writer.write(folder)
        if index % FILES_EVERY == 0:
            _add_files(folder / "scripts", ["run.py", "check.py"])
    return writer.made


def _build_cluttered(root: Path, spec: TreeSpec) -> Counter[str]:
    writer = _SkillWriter(spec)
    rng = writer.rng
    index = 0
    root.mkdir()
    for repository in _repositories(rng):
        end = min(spec.skills, index + rng.randint(1, 24))
        _build_repository(writer, root / repository, range(index, end))
        index = end
        if index == spec.skills:
            return writer.made
    raise AssertionError


def _build_git(root: Path, spec: TreeSpec) -> Counter[str]:
    """Build a bare repository with skills, and large files that change with every commit."""
    writer = _SkillWriter(spec)
    repository = GitRepo(root / "skills.git")
    files: dict[str, bytes] = {}
    for index in range(spec.skills):
        text = skill_text(writer.rng, name_at(index), "plain", writer.rng.choice(writer.bodies))
        files[f"skills/{name_at(index)}/SKILL.md"] = text
        files[f"skills/{name_at(index)}/scripts/run.py"] = SMALL_FILE
    commit = ""
    for number in range(COMMITS):
        files[f"assets/{number % LARGE_FILES}.bin"] = writer.rng.randbytes(LARGE_FILE)
        commit = repository.commit(files, parent=commit)
    repository.git("repack", "-adq")
    writer.made["commits"] = COMMITS
    return writer.made


def _repositories(rng: Random) -> Iterator[str]:
    number = 0
    while True:
        owner = f"{rng.choice(VERBS)}{number}"
        number += 1
        if rng.random() < TOP_LEVEL:
            yield owner
            continue
        for subject in rng.sample(SUBJECTS, rng.choice((1, 1, 1, 2, 5))):
            yield f"{owner}/{subject}-skills"


def _build_repository(writer: _SkillWriter, repository: Path, indexes: range) -> None:
    rng = writer.rng
    nesting = rng.choices(tuple(NESTINGS), tuple(NESTINGS.values()))[0]
    parent = repository / nesting
    clutter = 0
    for index in indexes:
        folder = parent / name_at(_name_index(rng, index))
        writer.write(folder)
        clutter += _add_supporting_files(rng, folder)
    while clutter < CLUTTER_PER_SKILL * len(indexes):
        clutter += rng.choices(_CLUTTER, _CLUTTER_WEIGHTS)[0](rng, repository)
    writer.made["clutter"] += clutter


def _name_index(rng: Random, index: int) -> int:
    repeats = index >= REPEAT_DISTANCE and rng.random() < REPEATED_NAME
    return index - REPEAT_DISTANCE if repeats else index


def _add_supporting_files(rng: Random, folder: Path) -> int:
    if rng.random() >= SUPPORTED:
        return 0
    name, suffix = rng.choice((("scripts", "py"), ("references", "md"), ("assets", "txt")))
    files = [f"{rng.choice(VERBS)}-{number}.{suffix}" for number in range(rng.randint(1, 3))]
    return _add_files(folder / name, files)


def _add_files(folder: Path, names: list[str]) -> int:
    """Add missing folders and files and return their number."""
    made = _add_folder(folder)
    for name in names:
        path = folder / name
        if not path.exists():
            _write_file(path, SMALL_FILE)
            made += 1
    return made


def _add_folder(folder: Path) -> int:
    if folder.is_dir():
        return 0
    made = _add_folder(folder.parent)
    folder.mkdir()
    return made + 1


def _add_package(rng: Random, repository: Path) -> int:
    scope = rng.choice(("", "", "", "@example/"))
    package = repository / f"node_modules/{scope}{rng.choice(SUBJECTS)}-{rng.choice(VERBS)}"
    nested = package / "node_modules" / rng.choice(SUBJECTS)
    modules = [f"{verb}.js" for verb in rng.sample(VERBS, rng.randint(2, 8))]
    made = _add_files(package, ["package.json", "README.md", "index.js"])
    made += _add_files(package / "dist/esm", modules)
    return made + (_add_files(nested, ["package.json", "index.js"]) if rng.random() < 0.3 else 0)


def _add_git_objects(rng: Random, repository: Path) -> int:
    made = _add_files(repository / ".git", ["HEAD", "config", "index"])
    made += _add_files(repository / ".git/refs/heads", ["main"])
    objects = repository / ".git/objects"
    digests = [f"{rng.getrandbits(160):040x}" for _ in range(rng.randint(2, 6))]
    return made + sum(_add_files(objects / digest[:2], [digest[2:]]) for digest in digests)


def _add_sources(rng: Random, repository: Path) -> int:
    made = _add_files(repository, ["README.md", "LICENSE", "package.json"])
    files = [f"{rng.choice(VERBS)}.ts" for _ in range(rng.randint(2, 6))]
    return made + _add_files(repository / "src" / rng.choice(SUBJECTS), files)


_CLUTTER: tuple[Callable[[Random, Path], int], ...] = (_add_package, _add_git_objects, _add_sources)
_CLUTTER_WEIGHTS = (60, 15, 15)
_BUILDERS: dict[str, Callable[[Path, TreeSpec], Counter[str]]] = {
    "flat": _build_flat,
    "served": _build_served,
    "cluttered": _build_cluttered,
    "git": _build_git,
}
