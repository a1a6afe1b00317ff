"""The script runner on bubblewrap: what scripts can do, and what they cannot."""

import os
import socket
from pathlib import Path

import pytest

from skillhall._internal.agents.scripts.bubblewrap_runner import BubblewrapRunner
from skillhall._internal.agents.scripts.script_runner import (
    ProcessResult,
    ScriptCall,
    ScriptLimits,
)
from skillhall.errors import SandboxUnavailable
from tests.support.bubblewrap import require_bubblewrap

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def with_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    require_bubblewrap(monkeypatch)


@pytest.fixture
def runner(with_bubblewrap: None, tmp_path: Path) -> BubblewrapRunner:
    (tmp_path / "work").mkdir()
    return BubblewrapRunner(work_folder=tmp_path / "work")


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "skill"
    folder.mkdir()
    return folder


def run(
    runner: BubblewrapRunner, skill: Path, code: str, *arguments: str, **limits: float
) -> ProcessResult:
    (skill / "run.sh").write_text(code)
    bounds = ScriptLimits(**limits)  # type: ignore[arg-type]  # any field of the limits
    call = ScriptCall(skill="s", folder=skill, path="run.sh", arguments=arguments, limits=bounds)
    return runner.run(call)


def test_script_reads_its_skill_and_writes_the_work_folder(
    runner: BubblewrapRunner, skill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    (skill / "data.txt").write_text("42\n")
    code = 'cat /skill/data.txt; echo "$1 $HOME $API_KEY"; echo out >out.txt; exit 3'

    result = run(runner, skill, code, "a b")

    assert (result.exit_code, result.stdout, result.limit) == (3, b"42\na b /tmp \n", "")
    assert (tmp_path / "work/out.txt").read_text() == "out\n"


def test_script_without_an_interpreter_must_be_executable(
    with_bubblewrap: None, skill: Path
) -> None:
    script = skill / "run"
    script.write_text("#!/bin/sh\necho done >a && cat a\n")
    call = ScriptCall(skill="s", folder=skill, path="run", limits=ScriptLimits())

    refused = BubblewrapRunner().run(call)
    script.chmod(0o755)

    assert b"Permission denied" in refused.stderr
    assert BubblewrapRunner().run(call).stdout == b"done\n"


def test_script_has_no_network(runner: BubblewrapRunner, skill: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = run(runner, skill, f"exec 3<>/dev/tcp/127.0.0.1/{port}")
    assert b"Connection refused" in result.stderr  # its loopback interface is its own
    assert b"Network is unreachable" in run(runner, skill, "exec 3<>/dev/tcp/1.1.1.1/80").stderr


def test_script_writes_nowhere_else(runner: BubblewrapRunner, skill: Path, tmp_path: Path) -> None:
    own = Path("/tmp", tmp_path.name)
    places = f"/skill /usr /etc / /dev /proc {tmp_path}"
    code = f"for place in {places}; do echo x >$place/new && echo wrote $place; done; touch {own}"

    result = run(runner, skill, code)

    assert result.stdout == b""
    assert result.exit_code == 0  # of the temporary folder
    assert sorted(os.listdir(tmp_path)) == ["skill", "work"]  # noqa: PTH208 - names only
    assert not own.exists()


def test_links_do_not_lead_out(runner: BubblewrapRunner, skill: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (skill / "link").symlink_to(secret)
    (tmp_path / "work/link").symlink_to(tmp_path)
    code = f"cat /skill/link {secret} link/secret.txt /proc/1/root{secret} /etc/shadow; exit 0"

    result = run(runner, skill, code)

    assert (result.stdout, result.stderr.count(b"No such file")) == (b"", 5)


def test_script_sees_no_processes_of_others(runner: BubblewrapRunner, skill: Path) -> None:
    result = run(runner, skill, f"kill -0 {os.getpid()} || echo /proc/[0-9]*")
    assert result.stdout in (b"/proc/1 /proc/2\n", b"/proc/1 /proc/2 /proc/3\n")


def test_endless_script_ends_with_the_processes_it_started(
    runner: BubblewrapRunner, skill: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "work/pipe")
    code = "(setsid sleep 60 >pipe) & while :; do :; done"

    pipe = os.open(tmp_path / "work/pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        result = run(runner, skill, code, seconds=0.3)
        os.set_blocking(pipe, True)
        last = os.read(pipe, 1)  # b"" when the last process that could write has ended
    finally:
        os.close(pipe)

    assert (result.limit, last) == ("the limit of 0.3 seconds was reached", b"")


def test_large_output_files_and_memory_are_refused(runner: BubblewrapRunner, skill: Path) -> None:
    output = run(runner, skill, "while :; do echo xxxxxxxxxxxxxxxx; done", output=1000)
    assert (output.limit, len(output.stdout)) == (
        "the limit of 1000 bytes of output was reached",
        1000,
    )
    file = run(runner, skill, "head -c 2000 /dev/zero >big", output=1000)
    assert b"File size limit exceeded" in file.stderr or file.exit_code
    shared = run(runner, skill, "head -c 70000000 /dev/zero >/dev/shm/big", output=80_000_000)
    assert b"No space left on device" in shared.stderr
    memory = run(runner, skill, "head -c 100000000 /dev/zero | tail", memory=20_000_000)
    assert b"memory exhausted" in memory.stderr


def test_missing_bubblewrap_is_an_error_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="with bwrap: it is not installed"):
        BubblewrapRunner()


def test_bubblewrap_that_may_not_create_namespaces_is_an_error_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create namespaces' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{SYSTEM_PATH}")
    with pytest.raises(SandboxUnavailable, match="with bwrap: No permissions to create namespaces"):
        BubblewrapRunner()
