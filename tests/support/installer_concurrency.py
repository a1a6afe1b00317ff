"""A crowd around one shelf: processes that add, update, remove and roll back one skill at once.

`python -m tests.support.installer_concurrency ROLE FOLDER SCOPE [NUMBER ROUNDS]` is one of them.
It begins when
its standard input ends, and says on its last line what it saw, as JSON.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from skillhall import load_catalog
from skillhall._internal.fs.atomic_swap import swap_names
from skillhall._internal.installer.install import install
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.remove import remove
from skillhall._internal.installer.rollback import roll_back
from skillhall._internal.installer.targets import InstallTargets
from skillhall._internal.installer.update import update
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.sources.folder.bundle_reader import (
    load_into_memory,
    open_bundle,
    read_bundle,
)
from skillhall._internal.sources.opener import open_source
from skillhall.errors import SkillFileNotFound, SkillhallError
from tests.support.projects import make_project_settings
from tests.support.skills import make_skill_md

ROOT = Path(__file__).parents[2]
SKILLS = ".agents/skills"
DEADLINE = 120  # seconds; a crowd that takes longer has locked itself up
_STOP = "stop"  # a file that ends those who go on for ever


def version(letter: str) -> dict[str, tuple[bytes, bool]]:
    """One of the two versions of the skill: every file says which, one in its name."""
    text = letter.encode()
    skill_md = make_skill_md(name="pdf", description=f"Version {letter}.", body=letter * 5000)
    more = {f"part-{at}.md": (text * 500, False) for at in range(4)}
    return {
        "SKILL.md": (skill_md, False),
        **more,
        f"only/{letter}.sh": (text, True),
        "sometimes.sh": (text, letter == "A"),
    }


VERSIONS = (version("A"), version("B"))


def open_project(folder: Path, scope: str) -> Project:
    return Project.from_settings(make_project_settings(folder), user=scope == "user")


def prepare(folder: Path) -> None:
    """The source of the skill, and its other version beside it."""
    for name, files in zip(("pdf", "other"), VERSIONS, strict=True):
        for path, (data, is_program) in files.items():
            file = folder / "source" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(0o755 if is_program else 0o644)
    make_project_settings(folder)


def run_workers(folder: Path, scope: str, workers: int, rounds: int) -> list[dict[str, int]]:
    """What everybody saw: the workers in order, then the reader."""
    with ExitStack() as ended:
        flipper = ended.enter_context(_running_process("flip", folder, scope))
        reader = ended.enter_context(_running_process("read", folder, scope))
        crowd = [
            ended.enter_context(_running_process("work", folder, scope, str(n), str(rounds)))
            for n in range(workers)
        ]
        for one in (flipper, reader, *crowd):
            assert one.stdin is not None
            one.stdin.close()
            one.stdin = None
        seen = [_read_result(one) for one in crowd]
        (folder / _STOP).touch()
        _read_result(flipper)
        return [*seen, _read_result(reader)]


def _start_process(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.installer_concurrency", *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def _running_process(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    with _start_process(*arguments) as process:
        try:
            yield process
        finally:
            process.kill()


def _read_result(process: subprocess.Popen[str]) -> dict[str, int]:
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    found: dict[str, int] = json.loads(out.splitlines()[-1])
    return found


# Roles


def swap_versions(folder: Path, _scope: str) -> Counter[str]:
    """Exchange the two versions in the source, again and again."""
    seen: Counter[str] = Counter()
    source = os.open(folder / "source", os.O_RDONLY)
    while not (folder / _STOP).exists():
        if not swap_names(source, "pdf", "other"):
            break
        seen["flips"] += 1
    os.close(source)
    return seen


def read_repeatedly(folder: Path, scope: str) -> Counter[str]:
    """List the skills and read the one that changes; every version that is seen must be whole."""
    seen: Counter[str] = Counter()
    root = Path(open_project(folder, scope).root) / SKILLS
    while not (folder / _STOP).exists():
        found = (
            [one for one in load_catalog([str(root)]) if one.id == "pdf"] if root.exists() else []
        )
        if not found:
            seen["absent"] += 1
            continue
        place = found[0].folder_handle
        for taken in (
            read_bundle,
            lambda place, policy: load_into_memory(open_bundle(place, policy)),
        ):
            try:
                bundle = taken(place, LENIENT.scan_policy)
            except SkillFileNotFound:
                seen["swapped"] += 1
                continue
            files = {path: (one.read(), one.executable) for path, one in bundle.files.items()}
            seen["whole" if files in VERSIONS else "torn"] += 1
    return seen


def run_operations(folder: Path, scope: str, number: str, rounds: str) -> Counter[str]:
    """Change the shelf; whatever stands in the way must be an error with a class."""
    seen: Counter[str] = Counter()
    shelf, mine = open_project(folder, scope), int(number)
    verbs: list[Callable[[], object]] = [
        lambda: _add(shelf, folder / "source/pdf"),
        lambda: update(shelf, ["pdf"]),
        lambda: remove(shelf, ["pdf"]),
        lambda: _add(shelf, folder / "source/pdf", overwrite=True),
        lambda: roll_back(shelf, "pdf"),
    ]
    for at in range(int(rounds)):
        own = folder / f"own/{number}/own-{number}-{at}"
        own.mkdir(parents=True)
        (own / "SKILL.md").write_bytes(make_skill_md(name=own.name))
        _add(shelf, own)
        try:
            verbs[(mine + at) % len(verbs)]()
            seen["done"] += 1
        except SkillhallError as error:
            seen[type(error).__name__] += 1
    return seen


def _add(project: Project, source: Path, *, overwrite: bool = False) -> None:
    opened = open_source(str(source), project.settings)
    install(project, opened, opened.bundles, InstallTargets(), overwrite=overwrite)


ROLES: Mapping[str, Callable[..., Counter[str]]] = {
    "flip": swap_versions,
    "read": read_repeatedly,
    "work": run_operations,
}

if __name__ == "__main__":
    role, place, *rest = sys.argv[1:]
    sys.stdin.read()
    if role != "work":
        os.nice(15)  # so that those who never rest leave the machine to the others
    sys.stdout.write(json.dumps(ROLES[role](Path(place), *rest)) + "\n")
