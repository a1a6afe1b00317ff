"""The database schema, and a database and a backup written by an earlier version."""

import gzip
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.compatibility.cli_runner import Run, Shell, Step
from tests.compatibility.program import launcher, run
from tests.compatibility.world import World

SQL, BACKUP = "database.sql", "database.backup.jsonl"

_WRITE = (
    "session new Research --budget 100",
    "session add Research system_prompt Review.",
    "session add Research note Words.",
    "session import Research {world}/skills/pdf-tools",
    "session snapshot Research Before",
    "session template save Research Reviews --description Papers.",
    "session new Second --template Reviews",
    "token new laptop",
)
READ: tuple[Step, ...] = (
    Run("session list --json"),
    Run("session show Research --json"),
    Run("session show Second --json"),
    Run("session context Research --json"),
    Run("session template list --json"),
    Run("session snapshot Research --json"),
    Run("token list --json"),
    Run("session template apply Reviews Research --json"),
    Run("session restore Research Before --json"),
    Run("session edit Research pdf-tools --json", more=("Changed.",)),
)
READ_BACKUP: tuple[Step, ...] = (
    Run("restore {world}/old.backup --json", prose=frozenset({"version"})),
    Run("session list --json"),
    Run("session show Research --json"),
    Run("session template list --json"),
)


def schema(world: World) -> dict[str, Any]:
    """Return the SQL of each table and index of a new database."""
    result = run(world, "session", "new", "First")
    assert result.exit == 0, result.stderr
    with closing(sqlite3.connect(_file(world))) as connection:
        rows = connection.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
        ).fetchall()
    return {f"{kind} {name}": re.sub(r"\s+", " ", sql) for kind, name, sql in sorted(rows)}


def write_old(world: World, fresh: World, folder: Path) -> None:
    """Write a database and a backup with this version, for later versions to read."""
    with launcher(world) as commands:
        for command in _WRITE:
            result = commands.run(*command.replace("{world}", str(world.root)).split())
            assert result.exit == 0, result.stderr
    with closing(sqlite3.connect(_file(world))) as connection:
        text = "\n".join(connection.iterdump()).replace(str(world.root), "/world")
    (folder / SQL).write_text(f"{text}\n", encoding="utf-8")
    load_old(fresh, folder)
    result = run(fresh, "backup", str(fresh.root / "old.backup"))
    assert result.exit == 0, result.stderr
    data = gzip.decompress((fresh.root / "old.backup").read_bytes())
    (folder / BACKUP).write_bytes(data)


def load_old(world: World, folder: Path) -> None:
    """Install the database of an earlier version in a world."""
    file = _file(world)
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript((folder / SQL).read_text(encoding="utf-8"))


def read_old(shell: Shell, world: World, folder: Path) -> list[dict[str, Any]]:
    """Read and change the database of an earlier version."""
    load_old(world, folder)
    return shell.run(READ)


def read_old_backup(shell: Shell, world: World, folder: Path) -> list[dict[str, Any]]:
    """Restore the backup of an earlier version into a new database."""
    data = (folder / BACKUP).read_bytes()
    (world.root / "old.backup").write_bytes(gzip.compress(data, mtime=0))
    return shell.run(READ_BACKUP)


def _file(world: World) -> Path:
    return world.root / "data" / "skillhall.db"
