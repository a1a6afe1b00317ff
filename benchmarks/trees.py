"""Generated trees of skills: flat, like a registry or a mirror, in git, with known copies.

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
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Literal

from benchmarks.collection_texts import (
    MIRROR,
    MIRROR_HIDDEN,
    MIRROR_NESTED,
    MIRROR_RENAMED,
    REGISTRY,
    CollectionWriter,
    draw,
)
from benchmarks.copied_texts import write_families
from benchmarks.finding.distractors import Collection
from benchmarks.harness import BenchmarkError
from benchmarks.texts import SUBJECTS, VERBS, draw_kind, make_bodies, name_at, skill_text
from tests.support.git_server import GitRepo

GENERATOR = 1  # increase it when the same parameters give different files
SETTLED_SECONDS = 2.5  # the head cache does not trust files younger than two seconds
FILES_EVERY = 3  # every third skill of a run directory has scripts
COMMITS = 20
LARGE_FILES = 10  # per commit; older versions are history
LARGE_FILE = 2_500_000  # bytes, so that all commits together have 50 MB
SMALL_FILE = b"// " + b"generated filler " * 12 + b"\n"

# Folders between a repository and its skills; the deepest puts a skill six folders below the root.
NESTINGS = {"": 20, "skills": 55, "packages/skills": 12, "plugins/main/skills": 5}
# Skills per repository: most have few. With these, `find` takes 1.6 times as long per skill as on
# the registry, as it does on the real collections.
MIRRORED_SKILLS = (1, 1, 1, 1, 2, 2, 3, 4, 6, 16)
HIDDEN_NESTINGS = {".claude/skills": 70, ".agents/skills": 20, ".cursor/skills": 10}
TOP_LEVEL = 0.08  # share of repositories that are only an owner's folder of skills


@dataclass(frozen=True, slots=True)
class TreeSpec:
    """Parameters that determine every byte of a tree."""

    layout: Literal["flat", "served", "registry", "mirror", "git", "copies", "finding"]
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
        # In a process of its own: a measured command inherits the peak memory of its parent.
        builder = get_context("fork").Process(target=_build, args=(tree,))
        builder.start()
        builder.join()
        if builder.exitcode:
            raise BenchmarkError(f"the tree {spec.folder!r} could not be generated")
    return tree


def _build(tree: Tree) -> None:
    _mark(tree, complete=False, made=Counter())
    made = _BUILDERS[tree.spec.layout](tree.root, tree.spec)
    _mark(tree, complete=True, made=made)


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
            (folder / "scripts").mkdir()
            for name in ("run.py", "check.py"):
                _write_file(folder / "scripts" / name, SMALL_FILE)
    return writer.made


def _build_registry(root: Path, spec: TreeSpec) -> Counter[str]:
    """Build one folder of skills named `owner--repository--skill`, with two files each."""
    rng = Random(f"{spec.layout}/{spec.seed}")
    writer, made = CollectionWriter(rng, REGISTRY), Counter[str]()
    root.mkdir()
    for index in range(spec.skills):
        owner, name = f"{rng.choice(VERBS)}{rng.randrange(4000)}", writer.draw_name()
        # The number keeps folders apart if one owner has two skills with the same name.
        folder = root / f"{owner}--{rng.choice(SUBJECTS)}-skills{index}--{name}"
        folder.mkdir()
        text = writer.registry_text(name, owner)
        _write_file(folder / "SKILL.md", text.content)
        _write_file(folder / "metadata.json", SMALL_FILE)
        made[text.style] += 1
    return made


def _build_mirror(root: Path, spec: TreeSpec) -> Counter[str]:
    """Build `owner/repository/…/skill`, some hidden, some in another skill."""
    rng = Random(f"{spec.layout}/{spec.seed}")
    writer, made = CollectionWriter(rng, MIRROR), Counter[str]()
    root.mkdir()
    for repository in _repositories(rng):
        is_hidden = rng.random() < MIRROR_HIDDEN
        nesting = _weighted_choice(rng, HIDDEN_NESTINGS if is_hidden else NESTINGS)
        last: Path | None = None
        for _ in range(rng.choice(MIRRORED_SKILLS)):
            name = writer.draw_name()
            folder_name = f"{name.split('-')[0]}-skill" if rng.random() < MIRROR_RENAMED else name
            # Deeper than `references`, so that a skill contains another one.
            is_nested = last is not None and rng.random() < MIRROR_NESTED
            parent = last / "skills" if last and is_nested else root / repository / nesting
            folder = _unused(parent / folder_name)
            folder.mkdir(parents=True)
            text = writer.mirror_text(name)
            _write_file(folder / "SKILL.md", text.content)
            _add_more_files(rng, folder, round(draw(rng, MIRROR.files)) - 1)
            made.update([text.style, *(["hidden"] * is_hidden), *(["nested"] * is_nested)])
            made["skills"] += 1
            if made["skills"] == spec.skills:
                return made
            last = last if is_nested else folder
    raise AssertionError


def _unused(folder: Path) -> Path:
    number, path = 2, folder
    while path.exists():
        path, number = folder.with_name(f"{folder.name}-{number}"), number + 1
    return path


def _weighted_choice(rng: Random, weights: dict[str, int]) -> str:
    return rng.choices(tuple(weights), tuple(weights.values()))[0]


def _add_more_files(rng: Random, folder: Path, count: int) -> None:
    name, suffix = rng.choice((("scripts", "py"), ("references", "md"), ("assets", "txt")))
    if count > 0:
        (folder / name).mkdir(exist_ok=True)
    for number in range(count):
        _write_file(folder / name / f"{rng.choice(VERBS)}-{number}.{suffix}", SMALL_FILE)


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


def _build_copies(root: Path, spec: TreeSpec) -> Counter[str]:
    """Build one folder of skills with known copies."""
    made: Counter[str] = Counter()
    root.mkdir()
    for skill in islice(write_families(Random(f"{spec.layout}/{spec.seed}")), spec.skills):
        folder = root / skill.folder
        folder.mkdir()
        _write_file(folder / "SKILL.md", skill.content)
        made[skill.variant] += 1
    return made


def _build_finding(root: Path, spec: TreeSpec) -> Counter[str]:
    """Build the skills of the evaluation set among skills that only resemble them."""
    root.mkdir()
    for index, text in enumerate(Collection(spec.seed).write(spec.skills)):
        folder = root / f"{index:05}--{text.name}"
        folder.mkdir()
        _write_file(folder / "SKILL.md", text.content)
    return Counter(skills=spec.skills)


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


_BUILDERS: dict[str, Callable[[Path, TreeSpec], Counter[str]]] = {
    "flat": _build_flat,
    "served": _build_served,
    "registry": _build_registry,
    "mirror": _build_mirror,
    "git": _build_git,
    "copies": _build_copies,
    "finding": _build_finding,
}
