"""The sandbox for scripts: their folders, variables and limits."""

import os
import sys
from pathlib import Path

import pytest

from skillhall._internal.agents.scripts.script_runner import ProcessResult
from skillhall._internal.agents.scripts.script_sandbox import ScriptSandbox, probe_support

needs_network_isolation = pytest.mark.skipif(
    not probe_support().network, reason="the system has no user namespaces"
)
needs_file_isolation = pytest.mark.skipif(
    not probe_support().files, reason="the system has no Landlock"
)


@pytest.fixture
def sandbox(tmp_path: Path) -> ScriptSandbox:
    for name in ("work", "home", "scripts"):
        (tmp_path / name).mkdir()
    return ScriptSandbox(
        folder=tmp_path / "work", home=tmp_path / "home", scripts=tmp_path / "scripts"
    )


def run_python(sandbox: ScriptSandbox, code: str, *arguments: str) -> ProcessResult:
    script = sandbox.scripts / "script.py"
    script.write_text(code)
    return sandbox.run(script, arguments)


def test_script_works_in_its_folder(sandbox: ScriptSandbox) -> None:
    code = "import sys; open('out.txt', 'w').write(sys.argv[1]); print(open('out.txt').read())"

    result = run_python(sandbox, code, "a b")

    assert (result.exit_code, result.stdout, result.limit) == (0, b"a b\n", "")
    assert (sandbox.folder / "out.txt").read_text() == "a b"


def test_script_gets_no_variables_but_the_search_path(
    sandbox: ScriptSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    code = "import os; print(os.environ['HOME']); print('API_KEY' in os.environ)"

    result = run_python(sandbox, code)

    assert result.stdout.decode() == f"{sandbox.home}\nFalse\n"


def test_failed_script_has_its_exit_code_and_errors(sandbox: ScriptSandbox) -> None:
    result = run_python(sandbox, "import sys; sys.exit('no input')")

    assert (result.exit_code, result.stderr) == (1, b"no input\n")


def test_script_without_an_interpreter_must_be_executable(sandbox: ScriptSandbox) -> None:
    script = sandbox.scripts / "run"
    script.write_text("#!/bin/sh\necho done\n")

    refused = sandbox.run(script)
    script.chmod(0o755)
    result = sandbox.run(script)

    assert refused.exit_code == 126
    assert result.stdout == b"done\n"


def test_slow_script_is_ended(tmp_path: Path, sandbox: ScriptSandbox) -> None:
    limited = ScriptSandbox(
        folder=sandbox.folder, home=sandbox.home, scripts=sandbox.scripts, timeout=0.5
    )

    result = run_python(limited, "import time\nwhile True: time.sleep(60)")

    assert result.limit == "the limit of 0.5 seconds was reached"


def test_large_output_is_cut_and_the_script_ended(sandbox: ScriptSandbox) -> None:
    limited = ScriptSandbox(
        folder=sandbox.folder, home=sandbox.home, scripts=sandbox.scripts, max_output=1000
    )

    result = run_python(limited, "while True: print('x' * 100)")

    assert result.limit == "the limit of 1000 bytes of output was reached"
    assert len(result.stdout) == 1000


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_large_files_and_memory_are_refused(sandbox: ScriptSandbox) -> None:
    size = sandbox.max_output + 1

    file = run_python(sandbox, f"open('big', 'wb').write(b'x' * {2 * size})")
    memory = run_python(sandbox, "bytearray(4 << 30)")

    assert b"File too large" in file.stderr
    assert b"MemoryError" in memory.stderr


@needs_network_isolation
def test_script_has_no_network(sandbox: ScriptSandbox) -> None:
    code = "import socket; socket.create_connection(('127.0.0.1', 9), 5)"

    assert b"Network is unreachable" in run_python(sandbox, code).stderr


@needs_network_isolation
def test_processes_that_a_script_leaves_behind_end_with_it(sandbox: ScriptSandbox) -> None:
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(1)
    open('survived', 'w').close()
    os._exit(0)
print('done')
"""
    result = run_python(sandbox, code)

    assert result.stdout == b"done\n"
    # The first process of the namespace has ended, and the kernel with it all others.
    assert not (sandbox.folder / "survived").exists()


@needs_file_isolation
@pytest.mark.parametrize(
    "code", ["open({path!r}).read()", "open({path!r}, 'w')", "import os; os.remove({path!r})"]
)
def test_script_cannot_touch_other_files(tmp_path: Path, sandbox: ScriptSandbox, code: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")

    result = run_python(sandbox, code.format(path=str(secret)))

    assert b"PermissionError" in result.stderr
    assert secret.read_text() == "secret"


@needs_file_isolation
def test_script_cannot_read_the_variables_of_other_processes(sandbox: ScriptSandbox) -> None:
    code = f"open('/proc/{os.getpid()}/environ').read()"

    assert b"PermissionError" in run_python(sandbox, code).stderr


def test_description_says_what_is_not_isolated() -> None:
    support = probe_support()._replace(network=False, files=False)

    assert support.describe() == "scripts can use the network and can read and write your files"
    assert os.name == "nt" or probe_support().describe()
