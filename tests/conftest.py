"""Setup of all tests: files in memory, an empty home folder, no network, Hypothesis profiles."""

import gc
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.databases import make_postgres_database, worker
from tests.support.postgres import shared_server

# All settings are explicit, because Hypothesis has other defaults on CI servers. The speed of the
# machine and the number of inputs that a test filters out vary and are not failures.
QUICK = settings(
    max_examples=100,
    deadline=None,
    derandomize=False,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.register_profile("quick", QUICK)
settings.register_profile("deep", QUICK, max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# On a disk, tests would wait for thousands of flushes of databases, repositories and lock files.
MEMORY = Path("/dev/shm")
MIN_MEMORY = 4 * 1024**3  # bytes
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MIN_MEMORY:
    tempfile.tempdir = os.environ["TMPDIR"] = str(MEMORY)

# Otherwise, Haystack writes a file to the home folder as soon as it is imported.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

LOCAL_HOST_PREFIXES = ("127.", "::1", "localhost")  # of names and addresses of this machine


def reject_remote_hosts(event: str, arguments: tuple[object, ...]) -> None:
    """Audit hook that rejects lookups of and connections to other machines."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    name = host.decode() if isinstance(host, bytes) else host
    if isinstance(name, str) and not name.startswith(LOCAL_HOST_PREFIXES):
        raise PermissionError(f"tests must not contact other machines: {name!r}")


sys.addaudithook(reject_remote_hosts)

# Variables that lead to files of the user, or contain our settings.
PERSONAL_VARIABLE_PREFIXES = ("XDG_", "SKILLHALL_", "DOT_AI_", "NETRC", "DOCKER_CONFIG")
PROXY_SUFFIXES = ("_proxy", "_PROXY")


GC_THRESHOLDS = (20_000, 20, 20)  # by default, collections take a twentieth of the time


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the modules and tests, which live until the end, out of garbage collections."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()


def pytest_collection_finish() -> None:
    """Let threads install the trace function of coverage one at a time.

    Python 3.11 raises an error in a thread that installs one while another thread does.
    """
    traced = threading.gettrace()
    if traced is None:
        return
    turn, install = threading.RLock(), sys.settrace

    def install_in_turn(function: Any) -> None:  # noqa: ANN401 - whatever sys.settrace takes
        with turn:
            install(function)

    def trace_in_turn(frame: FrameType, event: Any, argument: Any) -> Any:  # noqa: ANN401 - same
        with turn:
            return traced(frame, event, argument)

    sys.settrace = install_in_turn
    threading.settrace(trace_in_turn)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the browser tests last, so that each worker starts a browser only once."""
    items.sort(key=lambda item: item.path.parent.name == "browser")


@pytest.fixture(scope="session")
def home_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names of folders, one for each test; `mktemp` would search all of the earlier ones."""
    parent = tmp_path_factory.mktemp("homes")
    return (parent / str(number) for number in count())


@pytest.fixture(autouse=True)
def home(home_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the home folder with an empty one, and remove variables of the user."""
    folder = next(home_folders)
    folder.mkdir()
    for variable in [*os.environ]:
        if variable.startswith(PERSONAL_VARIABLE_PREFIXES) or variable.endswith(PROXY_SUFFIXES):
            monkeypatch.delenv(variable)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.setenv("SKILLHALL_CACHE_DIR", str(folder / "cache"))


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a PostgreSQL database for this worker; all workers share one server."""
    base = tmp_path_factory.getbasetemp()
    run = base if worker() == "main" else base.parent
    with shared_server(run) as server:
        yield make_postgres_database(server, f"skillhall_{worker()}")
