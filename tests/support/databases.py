"""PostgreSQL databases for tests."""

import os

import psycopg
from sqlalchemy import make_url

from skillhall._internal.storage.sql.tables import METADATA

TIMESTAMP = "2026-01-02T03:04:05.678Z"


def make_postgres_database(server: str, name: str) -> str:
    """Create an empty database on a server and return its URL."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return make_url(server).set(database=name).render_as_string(hide_password=False)


def truncate_tables(url: str) -> None:
    """Delete all rows of a PostgreSQL database; the tables stay."""
    names = [name for name in METADATA.tables if name != "schema_migrations"]
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('sessions')").fetchone() != (None,):
            connection.execute("SET skillhall.audit_deletion = 'on'")
            connection.execute(f"TRUNCATE {', '.join(names)} RESTART IDENTITY CASCADE".encode())


def worker() -> str:
    """Return the name of this process of the test run."""
    return os.environ.get("PYTEST_XDIST_WORKER", "main")
