"""Processes that add, update, remove and roll back one skill of a project at once.

Each runs `python -m tests.support.installer_concurrency ROLE FOLDER SCOPE [NUMBER ROUNDS]`. It
starts when its standard input is closed, and prints its counters as JSON on the last line.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from skillhall._internal.fs.atomic_swap import swap_names
from skillhall._internal.installer.agent_folders import InstallTargets
from skillhall._internal.installer.install import install
from skillhall._internal.installer.project import Project
from skillhall._internal.installer.remove import remove
from skillhall._internal.installer.rollback import roll_back
from skillhall._internal.installer.update import update
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.sources.folder.bundle_reader import (
    load_into_memory,
    open_bundle,
    read_bundle,
)
from skillhall._internal.sources.opener import open_source
from skillhall._internal.wiring.catalog import load_catalog
from skillhall.errors import SkillFileNotFound, SkillhallError
from tests.support.projects import make_project_settings
from tests.support.skills import make_skill_md

ROOT = Path(__file__).parents[2]
SKILLS = ".agents/skills"
DEADLINE = 120  # seconds; longer means a deadlock
_STOP = "stop"  # file that ends the endless roles


def version(letter: str) -> dict[str, tuple[bytes, bool]]:
    """Build one of two versions of the skill, which differ in every file."""
    text = letter.encode()
    skill_md = make_skill_md(name="pdf", description=f"Version {letter}.", body=letter * 5000)
    parts = {f"part-{i}.md": (text * 500, False) for i in range(4)}
    return {
        "SKILL.md": (skill_md, False),
        **parts,
        f"only/{letter}.sh": (text, True),
        "sometimes.sh": (text, letter == "A"),
    }


VERSIONS = (version("A"), version("B"))


def open_project(folder: Path, scope: str) -> Project:
    return Project.from_settings(make_project_settings(folder), user=scope == "user")


def prepare(folder: Path) -> None:
    """Write both versions of the skill, one as its source."""
    for name, files in zip(("pdf", "other"), VERSIONS, strict=True):
        for path, (data, executable) in files.items():
            file = folder / "source" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(0o755 if executable else 0o644)
    make_project_settings(folder)


def run_workers(folder: Path, scope: str, workers: int, rounds: int) -> list[dict[str, int]]:
    """Run all roles; return the counters of the workers in order, then of the reader."""
    with ExitStack() as stack:
        flipper = stack.enter_context(_running_process("flip", folder, scope))
        reader = stack.enter_context(_running_process("read", folder, scope))
        processes = [
            stack.enter_context(_running_process("work", folder, scope, str(n), str(rounds)))
            for n in range(workers)
        ]
        for process in (flipper, reader, *processes):
            assert process.stdin is not None
            process.stdin.close()
            process.stdin = None
        results = [_read_result(process) for process in processes]
        (folder / _STOP).touch()
        _read_result(flipper)
        return [*results, _read_result(reader)]


@contextmanager
def _running_process(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.support.installer_concurrency", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _read_result(process: subprocess.Popen[str]) -> dict[str, int]:
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    counts: dict[str, int] = json.loads(out.splitlines()[-1])
    return counts


def swap_versions(folder: Path, _scope: str) -> Counter[str]:
    """Swap the two versions in the source repeatedly."""
    counts: Counter[str] = Counter()
    source = os.open(folder / "source", os.O_RDONLY)
    while not (folder / _STOP).exists():
        if not swap_names(source, "pdf", "other"):
            break
        counts["flips"] += 1
    os.close(source)
    return counts


def read_repeatedly(folder: Path, scope: str) -> Counter[str]:
    """Load and read the changing skill; count complete and mixed versions."""
    counts: Counter[str] = Counter()
    root = Path(open_project(folder, scope).root) / SKILLS
    while not (folder / _STOP).exists():
        skills = load_catalog([str(root)]) if root.exists() else ()
        skill = next((skill for skill in skills if skill.id == "pdf"), None)
        if skill is None:
            counts["absent"] += 1
            continue
        for read in (
            read_bundle,
            lambda handle, policy: load_into_memory(open_bundle(handle, policy)),
        ):
            try:
                bundle = read(skill.folder_handle, LENIENT.scan_policy)
            except SkillFileNotFound:
                counts["swapped"] += 1
                continue
            files = {path: (file.read(), file.executable) for path, file in bundle.files.items()}
            counts["complete" if files in VERSIONS else "torn"] += 1
    return counts


def run_operations(folder: Path, scope: str, number: str, rounds: str) -> Counter[str]:
    """Change the project; any failure must be a SkillhallError."""
    counts: Counter[str] = Counter()
    project = open_project(folder, scope)
    operations: list[Callable[[], object]] = [
        lambda: _add(project, folder / "source/pdf"),
        lambda: update(project, ["pdf"]),
        lambda: remove(project, ["pdf"]),
        lambda: _add(project, folder / "source/pdf", overwrite=True),
        lambda: roll_back(project, "pdf"),
    ]
    for n in range(int(rounds)):
        own = folder / f"own/{number}/own-{number}-{n}"
        own.mkdir(parents=True)
        (own / "SKILL.md").write_bytes(make_skill_md(name=own.name))
        _add(project, own)
        try:
            operations[(int(number) + n) % len(operations)]()
            counts["done"] += 1
        except SkillhallError as error:
            counts[type(error).__name__] += 1
    return counts


def _add(project: Project, source: Path, *, overwrite: bool = False) -> None:
    opened = open_source(str(source), project.settings)
    install(project, opened, opened.bundles, InstallTargets(), overwrite=overwrite)


ROLES: Mapping[str, Callable[..., Counter[str]]] = {
    "flip": swap_versions,
    "read": read_repeatedly,
    "work": run_operations,
}

if __name__ == "__main__":
    role, folder, *rest = sys.argv[1:]
    sys.stdin.read()
    if role != "work":
        os.nice(15)  # the endless roles must not starve the workers
    sys.stdout.write(json.dumps(ROLES[role](Path(folder), *rest)) + "\n")
