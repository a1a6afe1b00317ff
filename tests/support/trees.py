"""Trees of skills on the real disk, and short ways to load and to look at them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.head_cache import CLOCK_GRANULARITY, HeadCache, now_ns
from skillhall._internal.policy.profiles import LENIENT, Profile
from skillhall._internal.settings import Settings
from skillhall._internal.skill.finding import Finding
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.folder.walker import Scan, ScanContext, scan_root
from skillhall._internal.wiring.catalog import load_catalog

NOBODY_UID = 65534
# A file system in memory lists a folder in the order of creation; a disk sorts by hash.
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
DEADLINE = 120  # seconds; a child that takes longer hangs


def skill_text(name: str, description: str = "Does it.", more: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\nDo it.\n"


def write_skill(
    folder: Path, name: str = "", description: str = "Does it.", more: str = ""
) -> Path:
    """A SKILL.md in `folder`, which is made; named like the folder unless told."""
    folder.mkdir(parents=True, exist_ok=True)
    text = skill_text(name or folder.name, description, more)
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


def settings_for(directory: Path, cache: Path | None = None) -> Settings:
    """Settings with no index, unless a cache folder is given."""
    return Settings(str(directory), str(cache or directory / "no-cache"), cache is not None)


def load(*roots: Path, profile: Profile | str = "lenient", cache: Path | None = None) -> Catalog:
    settings = settings_for(roots[0].parent, cache)
    return load_catalog([str(root) for root in roots], profile, settings=settings)


def names(catalog: Catalog) -> list[str]:
    return [skill.name for skill in catalog]


def all_findings(catalog: Catalog) -> list[Finding]:
    return [judged.finding for judged in catalog.findings]


def codes(catalog: Catalog) -> list[str]:
    return [str(found.code) for found in all_findings(catalog)]


def codes_at(catalog: Catalog, path: Path) -> list[str]:
    """The codes of the findings about `place` itself or about something in it."""
    below = f"{path}{os.sep}"
    return [
        str(found.code)
        for found in all_findings(catalog)
        if found.path == str(path) or found.path.startswith(below)
    ]


def scan_below(root: Path, profile: Profile = LENIENT, index: HeadCache | None = None) -> Scan:
    real = os.path.realpath(root)
    known = index.load(real, profile.key_case) if index else {}
    return scan_root(
        Root(str(root)), profile.scan_policy, ScanContext(profile.key_case, (real,), known)
    )


def build_head_cache(cache: Path, root: Path, profile: Profile = LENIENT) -> HeadCache:
    """The index of everything below `root`, written as if its files had settled long ago."""
    index = HeadCache(str(cache))
    later = now_ns() + 2 * CLOCK_GRANULARITY
    index.save(os.path.realpath(root), profile.key_case, scan_below(root, profile), later)
    return index


def index_file(cache: Path) -> Path:
    """The one file of an index of one root."""
    [file] = (cache / "heads").iterdir()
    return file


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@contextmanager
def ordinary_user() -> Iterator[Path]:
    """A folder of somebody whom permissions bind, while the test is that person."""
    if not hasattr(os, "setresuid"):
        pytest.skip("no users to change between here")
    folder = Path(tempfile.mkdtemp(prefix="skillhall-"))
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.chown(folder, NOBODY_UID, NOBODY_UID)
            os.setresuid(NOBODY_UID, NOBODY_UID, 0)  # the last one is the way back
        yield folder
    finally:
        if is_root:
            os.setresuid(0, 0, 0)
        _open_folders(folder)
        shutil.rmtree(folder)


def _open_folders(folder: Path) -> None:
    """Let the owner list and change a folder and all below it."""
    folder.chmod(0o700)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            _open_folders(entry)


@contextmanager
def run_in_background(script: str, *arguments: object) -> Iterator[None]:
    """A second process that repeats `script` until the block ends; it must never fail."""
    program = (
        "import os, select, shutil, sys\n"
        "arguments = sys.argv[1:]\n"
        "print('ready', flush=True)\n"
        "rounds = 0\n"
        "while not select.select([sys.stdin], [], [], 0)[0]:\n"
        + "".join(f"    {line}\n" for line in script.strip().splitlines())
        + "    rounds += 1\n"
        "print(rounds)\n"
    )
    command = [sys.executable, "-c", program, *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "ready\n"
            yield
            rounds, _ = child.communicate("stop\n", timeout=DEADLINE)
        finally:
            child.kill()
    assert int(rounds) > 0


LOAD = """
import json, os, sys
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import load_catalog
forks = []
sys.addaudithook(lambda event, _: forks.append(event) if event == "os.fork" else None)
profile = LENIENT._replace(scan_policy=LENIENT.scan_policy._replace(max_folders=int(sys.argv[2])))
exec(sys.argv[3])
catalog = load_catalog([sys.argv[1]], profile, settings=Settings("/", "/", False))
skills = [(skill.folder, skill.file, skill.folder_handle.path) for skill in catalog]
found = [(str(one.finding.code), one.finding.path) for one in catalog.findings]
print(json.dumps({"forks": len(forks), "skills": skills, "findings": sorted(found)}))
"""
ONE_CORE = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"


class SubprocessCatalog(NamedTuple):
    """What a fresh process says about a root."""

    forks: int
    skills: list[list[str]]
    findings: list[list[str]]


def load_in_subprocess(
    root: Path, before: str = "", max_folders: int = 50_000
) -> SubprocessCatalog:
    """The catalog of `root` as a process of one thread sees it, after running `before`."""
    command = [sys.executable, "-c", LOAD, str(root), str(max_folders), before]
    done = subprocess.run(command, capture_output=True, check=False, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr.decode()
    return SubprocessCatalog(**json.loads(done.stdout))


@contextmanager
def crowded_root() -> Iterator[Path]:
    """A root with so many files that two processes share its search."""
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) == 1:
        pytest.skip("one core, one process")
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        root = Path(folder)
        for number in range(15_000):
            os.close(os.open(root / f"m{number}", os.O_CREAT))
        yield root
