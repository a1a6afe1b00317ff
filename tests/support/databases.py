"""Databases for tests, on a PostgreSQL server that the tests start."""

import os

import psycopg
from sqlalchemy import make_url

from skillhall._internal.storage.sql.tables import METADATA

TIMESTAMP = "2026-01-02T03:04:05.678Z"


def make_postgres_database(server: str, name: str) -> str:
    """The address of an empty database on that server."""
    with psycopg.connect(server, autocommit=True) as line:
        line.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        line.execute(f'CREATE DATABASE "{name}"'.encode())
    return make_url(server).set(database=name).render_as_string(hide_password=False)


def truncate_tables(url: str) -> None:
    """Remove whatever a test left in a PostgreSQL database; its tables stay."""
    names = [name for name in METADATA.tables if name != "schema_migrations"]
    with psycopg.connect(url, autocommit=True) as line:
        if line.execute("SELECT to_regclass('sessions')").fetchone() != (None,):
            line.execute(f"TRUNCATE {', '.join(names)} RESTART IDENTITY CASCADE".encode())


def worker() -> str:
    """What this process of the test run is called."""
    return os.environ.get("PYTEST_XDIST_WORKER", "main")
