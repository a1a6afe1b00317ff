"""Restores that are killed at every SQL statement, or at every change of the disk.

`python -m tests.support.backup_faults FOLDER URL` kills at every statement. It runs in a separate
process, because no database connection may be open when it forks.
"""

import errno
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from sqlalchemy import Engine, event, select

from skillhall._internal.backup.server_backup import make_backup, restore_backup
from skillhall._internal.settings import Secret, Settings
from skillhall._internal.storage.sql.skill_rows import SqlSharedSkillTable
from skillhall._internal.storage.sql.tables import METADATA, sessions, shared_skills
from skillhall._internal.storage.sql.workspace_store import SqlWorkspaceStore
from skillhall._internal.wiring.database import open_database
from skillhall.errors import DatabaseUnavailable
from tests.support.databases import TIMESTAMP
from tests.support.skills import make_skill, make_skill_md
from tests.support.workspaces import make_workspace

ROOT = Path(__file__).parents[2]
_MAX_STATEMENTS = 500  # more means an endless loop
State = tuple[dict[str, str], list[str], list[str], str]
_FOLLOWED = '{"version": 1, "repositories": [{"repo": "https://git.example/%s"}]}'


def make_settings(folder: Path, url: str = "") -> Settings:
    """Return the settings of a server below a folder."""
    (folder / "work").mkdir(parents=True, exist_ok=True)
    return Settings(
        working_directory=str(folder / "work"),
        cache_directory=str(folder / "cache"),
        data_directory=str(folder / "data"),
        database_url=Secret(url) if url else None,
    )


def fill(settings: Settings, word: str) -> None:
    """Replace everything of a server by data with this word."""
    work, data = Path(settings.working_directory), Path(settings.data_directory)
    shutil.rmtree(work / ".agents", ignore_errors=True)
    for name in ("both", f"only-{word}"):
        make_skill(work / ".agents" / "skills", name, data=make_skill_md(name, body=word))
    with closing(open_database(settings)) as database:
        database.write(
            lambda connection: [
                connection.execute(table.delete())
                for table in reversed(METADATA.sorted_tables)
                if table.name != "schema_migrations"
            ]
        )
        make_workspace(SqlWorkspaceStore(database), word).sessions.create(word)
        if database.is_postgres:
            files = {"SKILL.md": (word.encode(), 0o644)}
            table = SqlSharedSkillTable(database)
            table.write(lambda write: write.put(f"shared-{word}", files, "o"), TIMESTAMP)
    data.mkdir(exist_ok=True)
    data.joinpath("followed.json").write_text(_FOLLOWED % word, encoding="utf-8")


def read_state(settings: Settings) -> State:
    """Return skills, sessions, shared skills and followed repositories, after recovery."""
    with closing(open_database(settings)) as database:
        names = database.read(lambda c: [*c.execute(select(sessions.c.name)).scalars()])
        shared = database.read(lambda c: [*c.execute(select(shared_skills.c.id)).scalars()])
    skills = Path(settings.working_directory) / ".agents" / "skills"
    texts = {
        path.parent.name: path.read_text(encoding="utf-8").splitlines()[-1]
        for path in sorted(skills.glob("[!.]*/SKILL.md"))
    }
    leftovers = [
        *skills.glob(".skillhall-restore-*"),
        *Path(settings.data_directory).glob("*restore*"),
    ]
    assert not leftovers, leftovers
    followed = Path(settings.data_directory, "followed.json").read_text(encoding="utf-8")
    return texts, names, shared, followed


def expected(word: str, *, is_postgres: bool) -> State:
    """Return the state after `fill`."""
    shared = [f"shared-{word}"] if is_postgres else []
    return {"both": word, f"only-{word}": word}, [word], shared, _FOLLOWED % word


class Restore:
    """Restore of a backup over other data, on SQLite."""

    def prepare(self, folder: Path) -> None:
        settings = make_settings(folder)
        fill(settings, "new")
        make_backup(settings, str(folder / "new.backup"))
        fill(settings, "old")

    def run(self, folder: Path) -> None:
        try:
            restore_backup(make_settings(folder), str(folder / "new.backup"), overwrite=True)
        except DatabaseUnavailable as error:  # a full disk when the file is opened
            raise OSError(errno.ENOSPC, str(error)) from None

    def check(self, folder: Path) -> None:
        state = read_state(make_settings(folder))
        states = [expected(word, is_postgres=False) for word in ("old", "new")]
        assert state in states, state


def run_restore_faults(folder: Path, url: str) -> int:
    """Kill a restore at every statement and commit; return the number of steps."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.support.backup_faults", str(folder), url],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return int(result.stdout)


def _run_killed_at(settings: Settings, backup: str, step: int) -> None:
    executed = 0

    def count(*_: object) -> None:
        nonlocal executed
        executed += 1
        if executed == step:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in ("before_cursor_execute", "commit"):
        event.listen(Engine, name, count)
    restore_backup(settings, backup, overwrite=True)


def _main(folder: str, url: str) -> None:
    settings, backup = make_settings(Path(folder), url), str(Path(folder) / "new.backup")
    is_postgres = url.startswith("postgres")
    fill(settings, "new")
    make_backup(settings, backup)
    fill(settings, "old")
    old, new = (expected(word, is_postgres=is_postgres) for word in ("old", "new"))
    assert read_state(settings) == old
    for step in range(1, _MAX_STATEMENTS):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _run_killed_at(settings, backup, step)
                code = 0
            except BaseException:  # noqa: BLE001 - a forked child must not return to the parent's code
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stderr.flush()
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL), status
        state = read_state(settings)
        assert state in (old, new), f"killed at {step}: {state}"
        if status == 0:
            assert state == new
            sys.stdout.write(str(step - 1))
            return
        if state == new:  # the next step starts with the old state, too
            fill(settings, "old")


if __name__ == "__main__":
    _main(*sys.argv[1:])
