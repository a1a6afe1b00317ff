"""Server that freezes inside a write transaction, as a suspended machine would.

`python -m tests.support.freezing_server serve …` is `skillhall serve …` with one addition. While
the file named by `FREEZE_FILE` exists, the process stops itself (SIGSTOP) in the next write
transaction, after the statement whose number is in the file. A transaction with fewer statements
commits, and their number is written to the file with the suffix `.count`.
"""

import os
import signal
import threading
import time
from pathlib import Path

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

from skillhall._internal.cli.main import run_and_exit

FREEZE_FILE = "FREEZE_FILE"
NEVER = 1_000_000  # more statements than any transaction has
_BACKGROUND_THREADS = ("skillhall-audit", "skillhall-sign-ins", "skillhall-uses")
_state = threading.local()


def _is_write(connection: Connection) -> bool:
    # Threads that seal the audit log or record the use of tokens may write at any time, and are
    # not part of a change.
    if threading.current_thread().name in _BACKGROUND_THREADS:
        return False
    return not connection.get_execution_options().get("postgresql_readonly")


def _begin(_: Connection) -> None:
    _state.statements = 0


def _after_statement(connection: Connection, *_: object) -> None:
    path = Path(os.environ[FREEZE_FILE])
    _state.statements = getattr(_state, "statements", 0) + 1
    if _is_write(connection) and path.exists() and _state.statements == int(path.read_text()):
        path.unlink()
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0.5)  # another thread may get the signal, so this one must not go on at once


def _before_commit(connection: Connection) -> None:
    path = Path(os.environ[FREEZE_FILE])
    if _is_write(connection) and path.exists():
        path.unlink()
        path.with_suffix(".count").write_text(str(_state.statements))


if __name__ == "__main__":
    event.listen(Engine, "begin", _begin)
    event.listen(Engine, "after_cursor_execute", _after_statement)
    event.listen(Engine, "commit", _before_commit)
    run_and_exit()
