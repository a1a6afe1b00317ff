"""Backup and restore of a large server, from SQLite to PostgreSQL and back.

Before anything is measured, the answers of the three servers are compared byte by byte.
"""

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness import BenchmarkError, Contender, run_rounds
from benchmarks.plan import Plan
from benchmarks.report import Bar, Judged, Report, Row
from skillhall._internal.settings import Settings
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall._internal.wiring.database import open_database
from skillhall._internal.workspace import Zone
from skillhall._internal.workspace.validation import build_content
from tests.support.actors import ACTOR
from tests.support.databases import make_postgres_database
from tests.support.postgres import shared_server
from tests.support.replicas import Replica
from tests.support.restored_servers import Answer, drop_differences, read_answers
from tests.support.skills import make_skill, make_skill_md
from tests.support.workspaces import make_workspace

SMALL, LARGE = 1_000, 10_000  # skills
SESSIONS, BLOCKS = 1_000, 5
COMPARED = 100  # skills and sessions whose details are requested
MEMORY_GROWTH = 1.2
COPY = "copy of the same files"
_SENTENCE = "Read the input, check every field, and write the result to a table. "
_PRINT_PEAK = """
import sys
from skillhall._internal.cli.runner import run
code = run(sys.argv[1:])
print(*(line for line in open("/proc/self/status") if line.startswith("VmHWM")), file=sys.stderr)
sys.exit(code)
"""


def run(plan: Plan) -> Iterator[Report]:
    """Yield the report, after the answers were compared."""
    large = LARGE if plan.scale.flat >= LARGE else SMALL
    small = large // 10
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        TemporaryDirectory() as run_folder,
        shared_server(Path(run_folder)) as server,
    ):
        base = Path(folder)
        url = make_postgres_database(server, "backup")
        replicas = {
            "SQLite": Replica(base / "sqlite", {}),
            "PostgreSQL": Replica(base / "postgres", {"SKILLHALL_DATABASE_URL": url}),
            "SQLite again": Replica(base / "again", {}),
            "small": Replica(base / "small", {}),
        }
        for replica in replicas.values():
            (replica.folder / "run").mkdir(parents=True)
        fill(replicas["SQLite"], large, SESSIONS)
        fill(replicas["small"], small, SESSIONS // 10)
        compared = _compare(plan, base, replicas)
        yield _measure(
            plan, base, replicas, f"{large:,} skills and {SESSIONS:,} sessions", compared
        )


def fill(server: Replica, skills: int, sessions: int) -> None:
    """Write skills and sessions to the folders of a server with SQLite."""
    for number in range(skills):
        name = f"skill-{number:05}"
        seed = hashlib.sha256(name.encode()).hexdigest()
        body = "\n\n".join(f"## Step {n}\n\n{seed} {_SENTENCE * 4}" for n in range(15))
        files = {"scripts/run.sh": f"#!/bin/sh\necho {seed}\n".encode()} if number % 3 == 0 else {}
        data = make_skill_md(name, f"{_SENTENCE}{seed[:8]}", body)
        folder = make_skill(server.folder / "run/.agents/skills", name, data=data, files=files)
        for script in folder.glob("scripts/*"):
            script.chmod(0o755)
    settings = Settings(
        working_directory=str(server.folder / "run"),
        cache_directory=str(server.folder / "cache"),
        data_directory=str(server.folder / "data"),
    )
    with closing(open_database(settings)) as database:
        workspace = make_workspace(SqlWorkspaceStore(database, actor=ACTOR), "b")
        zones = [*Zone]
        for number in range(sessions):
            texts = [f"{number} {block} {_SENTENCE * 10}" for block in range(BLOCKS)]
            contents = [build_content("note", zones[n % 3], text) for n, text in enumerate(texts)]
            session = workspace.sessions.create(f"Session {number}", contents=contents)
            if number % 10 == 0:
                workspace.snapshots.save(session.id, "Saved")


def _compare(plan: Plan, base: Path, replicas: Mapping[str, Replica]) -> int:
    """Back up and restore from server to server; return the number of equal answers."""
    first, second, third = (replicas[name] for name in ("SQLite", "PostgreSQL", "SQLite again"))
    expected = _read_answers(first)
    _run(plan, first, "backup", str(base / "1.backup"))
    _run(plan, second, "restore", str(base / "1.backup"))
    shared = _read_answers(second)
    _check_equal(drop_differences(expected), drop_differences(shared), "PostgreSQL")
    _run(plan, second, "backup", str(base / "2.backup"))
    _run(plan, third, "restore", str(base / "2.backup"))
    _check_equal(expected, _read_answers(third), "SQLite again")
    return len(expected)


def _read_answers(server: Replica) -> dict[str, Answer]:
    server.start()
    try:
        return read_answers(server, most=COMPARED)
    finally:
        server.stop(signal.SIGTERM)


def _check_equal(expected: Mapping[str, Answer], found: Mapping[str, Answer], name: str) -> None:
    different = [path for path in expected if expected[path] != found.get(path)]
    if different:
        message = f"{name}: {len(different)} answers differ, e.g. {', '.join(different[:5])}"
        raise BenchmarkError(message)


def _environment(server: Replica) -> dict[str, str]:
    return {
        "HOME": str(server.folder),
        "SKILLHALL_CACHE_DIR": str(server.folder / "cache"),
        "SKILLHALL_DATA_DIR": str(server.folder / "data"),
        **server.variables,
    }


def _run(plan: Plan, server: Replica, *words: str) -> None:
    result = subprocess.run(
        [plan.executable, *words, "--run-dir", str(server.folder / "run")],
        env={**os.environ, **_environment(server)},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        message = f"skillhall {words[0]}: {result.stderr.strip()}"
        raise BenchmarkError(message)


def _read_peak(contender: Contender) -> float:
    """Return the peak memory of a command in MB.

    The kernel's accounting for parents starts with the memory of the benchmark, which is larger.
    """
    result = subprocess.run(
        [sys.executable, "-c", _PRINT_PEAK, *contender.command[1:]],
        env={**os.environ, **contender.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(result.stderr.split()[-2]) / 1024


def _measure(
    plan: Plan, base: Path, replicas: Mapping[str, Replica], what: str, compared: int
) -> Report:
    copied = replicas["SQLite"].folder
    command = 'd=$(mktemp -d -p "$0") && cp -r "$1"/run "$1"/data "$d"'
    contenders = [Contender(COPY, ("sh", "-c", command, str(base), str(copied)))]
    commands = {
        "backup, SQLite": ("SQLite", "backup", "1.backup"),
        "backup, PostgreSQL": ("PostgreSQL", "backup", "2.backup"),
        "backup, SQLite, a tenth": ("small", "backup", "small.backup"),
        "restore, SQLite to PostgreSQL": ("PostgreSQL", "restore", "1.backup"),
        "restore, PostgreSQL to SQLite": ("SQLite again", "restore", "2.backup"),
        "restore, SQLite to SQLite, a tenth": ("small", "restore", "small.backup"),
    }
    for name, (server, verb, file) in commands.items():
        replica = replicas[server]
        words = (str(plan.executable), verb, str(base / file), "--overwrite")
        run_directory = ("--run-dir", str(replica.folder / "run"))
        contenders.append(Contender(name, (*words, *run_directory), _environment(replica)))
    rounds = run_rounds(contenders, plan.rounds, "backup")
    peaks = {contender.name: _read_peak(contender) for contender in contenders[1:]}
    small = {"backup": "backup, SQLite, a tenth", "restore": "restore, SQLite to SQLite, a tenth"}
    rows = [Row(name=COPY, wall=1.0, cpu=1.0, median_ms=rounds.wall(COPY) * 1e3)]
    for name, (_, verb, _) in commands.items():
        limit = Bar(peaks[small[verb]] * MEMORY_GROWTH, Judged.MEMORY)
        rows.append(
            Row(
                name=name,
                wall=rounds.wall_ratio(name, COPY),
                cpu=rounds.cpu_ratio(name, COPY),
                peak_mb=peaks[name],
                median_ms=rounds.wall(name) * 1e3,
                bar=None if name in small.values() else limit,
            )
        )
    return Report(f"backup of {what}; {compared:,} answers are equal byte by byte", tuple(rows))
