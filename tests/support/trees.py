"""Skill folders on disk, and shortcuts to load and inspect them."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skillhall._internal.catalog.cache_file import CLOCK_GRANULARITY
from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.head_cache import HeadCache, now_ns
from skillhall._internal.policy.profiles import LENIENT, Profile
from skillhall._internal.settings import Settings
from skillhall._internal.skill.finding import Finding
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.folder.walker import Scan, ScanContext, scan_root
from skillhall._internal.wiring.catalog import load_catalog

NOBODY_UID = 65534
# A file system in memory lists a folder in the order of creation; disks sort by hash.
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
DEADLINE = 120  # seconds


def read_identity(path: Path) -> tuple[int, int, int, int]:
    """Return values that change if the file is written or replaced, but not if it is read."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def skill_text(name: str, description: str = "Does it.", more: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\nDo it.\n"


def write_skill(
    folder: Path, name: str = "", description: str = "Does it.", more: str = ""
) -> Path:
    """Write a SKILL.md to `folder`; by default, it has the folder's name."""
    folder.mkdir(parents=True, exist_ok=True)
    text = skill_text(name or folder.name, description, more)
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


def settings_for(directory: Path, cache: Path | None = None) -> Settings:
    """Return settings without head cache unless `cache` is given."""
    return Settings(str(directory), str(cache or directory / "no-cache"), cache is not None)


def load(*roots: Path, profile: Profile | str = "lenient", cache: Path | None = None) -> Catalog:
    settings = settings_for(roots[0].parent, cache)
    return load_catalog([str(root) for root in roots], profile, settings=settings)


def names(catalog: Catalog) -> list[str]:
    return [skill.name for skill in catalog]


def all_findings(catalog: Catalog) -> list[Finding]:
    return [judged.finding for judged in catalog.findings]


def codes(catalog: Catalog) -> list[str]:
    return [str(finding.code) for finding in all_findings(catalog)]


def codes_at(catalog: Catalog, path: Path) -> list[str]:
    """Return the codes of findings about `path` or something below it."""
    prefix = f"{path}{os.sep}"
    return [
        str(finding.code)
        for finding in all_findings(catalog)
        if finding.path == str(path) or finding.path.startswith(prefix)
    ]


def scan_below(root: Path, profile: Profile = LENIENT, index: HeadCache | None = None) -> Scan:
    real = os.path.realpath(root)
    known = index.open(Root(str(root)), real, profile).by_folder() if index else {}
    context = ScanContext(profile.key_case, (real,), known)
    return scan_root(Root(str(root)), profile.scan_policy, context)


def build_head_cache(cache: Path, root: Path, profile: Profile = LENIENT) -> HeadCache:
    """Write the head cache of `root` as if its files were old enough to be cached."""
    head_cache = HeadCache(str(cache))
    later = now_ns() + 2 * CLOCK_GRANULARITY
    opened = head_cache.open(Root(str(root)), os.path.realpath(root), profile)
    opened.save(scan_below(root, profile), later)
    _wait_for_next_tick(root.parent)
    return head_cache


def _wait_for_next_tick(folder: Path) -> None:
    """Wait until the clock of files moves on, so that the next change has another time."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        path = Path(file.name)
        before = path.stat().st_mtime_ns
        while path.stat().st_mtime_ns == before:
            path.touch()


def index_file(cache: Path) -> Path:
    """Return the head cache file of the only root."""
    [file] = (cache / "heads").iterdir()
    return file


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@contextmanager
def ordinary_user() -> Iterator[Path]:
    """Run the block as a user without root permissions, with a folder of its own."""
    if not hasattr(os, "setresuid"):
        pytest.skip("cannot change the user here")
    folder = Path(tempfile.mkdtemp(prefix="skillhall-"))
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.chown(folder, NOBODY_UID, NOBODY_UID)
            os.setresuid(NOBODY_UID, NOBODY_UID, 0)  # the saved uid allows switching back
        yield folder
    finally:
        if is_root:
            os.setresuid(0, 0, 0)
        _open_folders(folder)
        shutil.rmtree(folder)


def _open_folders(folder: Path) -> None:
    folder.chmod(0o700)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            _open_folders(entry)


@contextmanager
def run_in_background(script: str, *arguments: object) -> Iterator[None]:
    """Repeat `script` in another process until the block ends; it must never fail."""
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
