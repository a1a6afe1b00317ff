"""Four processes that make 500 changes each to one session: none may be lost."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.databases import make_postgres_database
from tests.support.postgres import shared_server
from tests.support.session_concurrency import check_nothing_lost, open_workspace, run_workers

PROCESSES, CHANGES = 4, 500
BLOCKS = 40  # before the first change


def run(_: float) -> bool:
    """Print the results and return whether every accepted change was saved."""
    with TemporaryDirectory() as folder:
        is_good = _crowd("SQLite", f"sqlite:///{folder}/crowd.db")
    with TemporaryDirectory() as folder, shared_server(Path(folder)) as server:
        return _crowd("PostgreSQL", make_postgres_database(server, "crowd")) and is_good


def _crowd(name: str, url: str) -> bool:
    database, desk = open_workspace(url, "start")
    session = desk.sessions.create("crowd").id
    before = [desk.blocks.add(session, "note", str(number)) for number in range(BLOCKS)]
    told = run_workers(url, session, PROCESSES, CHANGES)
    try:
        check_nothing_lost(desk, session, told, before)
    except AssertionError as error:
        print(f"{name}: {error} FAIL")
        return False
    finally:
        database.close()
    accepted = told.accepted.total()
    print(f"{name}: {accepted} changes accepted, {told.rejected} conflicts told, PASS", flush=True)
    return True
