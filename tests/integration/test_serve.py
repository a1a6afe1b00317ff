"""The process `skillhall serve`: output, exit codes and shutdown."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.support.replicas import wait_until
from tests.support.skills import make_skill, make_skill_md

ROOT = Path(__file__).resolve().parents[2]
# The process has its prompts in memory; everything else is the real command.
SERVE = """
import sys
from skillhall._internal.cli.runner import run
from skillhall._internal.wiring import prompts
from tests.support.prompt_services import MemoryPromptService, make_prompt
prompts.open_prompt_service = lambda settings, **_: MemoryPromptService(
    [make_prompt()], source=settings.prompts.repo or "built-in", commit=settings.prompts.branch
)
sys.exit(run(["serve", *sys.argv[1:]]))
"""
REAL_SERVE = """
import sys
from skillhall._internal.cli.runner import run
sys.exit(run(["serve", *sys.argv[1:]]))
"""
WITHOUT_EXTRA = """
import sys
sys.modules["uvicorn"] = None
from skillhall._internal.cli.runner import run
sys.exit(run(["serve"]))
"""
DEADLINE = 120


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **variables}


@contextmanager
def serving(
    *arguments: str, script: str = SERVE, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the process; yield it and its first line of output."""
    with subprocess.Popen(
        [sys.executable, "-c", script, "--port", "0", *arguments],
        env=environment(**variables),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            is_json = "--json" in arguments
            yield process, "" if is_json else process.stderr.readline().strip()
        finally:
            process.kill()


def run_failing(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_server_prints_its_url_and_exits_with_0_on_a_signal(number: signal.Signals) -> None:
    with serving() as (process, banner):
        match = re.fullmatch(
            r"http://127.0.0.1:(\d+) serves the built-in prompts .no token, this machine only.",
            banner,
        )
        assert match, banner
        connection = HTTPConnection("127.0.0.1", int(match[1]), timeout=DEADLINE)
        connection.request("GET", "/api/v1/prompts", headers={"X-Request-Id": "mine"})
        assert connection.getresponse().status == 200
        process.send_signal(number)
        output, log = process.communicate(timeout=DEADLINE)
        connection.close()
    assert process.returncode == 0
    assert output == ""
    assert '"requestId":"mine"' in log
    assert "Traceback" not in log


def test_options_override_settings_and_credentials_are_hidden() -> None:
    variables = {"SKILLHALL_PROMPTS_REPO": "https://h/other", "SKILLHALL_AUTH_TOKEN": "tok-en-1234"}
    arguments = ["--repo", "https://u:pass-word@h.example/r", "--branch", "dev"]
    with serving(*arguments, **variables) as (process, banner):
        assert "serves https://***@h.example/r (token required)" in banner
        port = int(banner.partition(" ")[0].rpartition(":")[2])
        connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        connection.request("GET", "/readyz")
        assert b'"commit":"dev"' in connection.getresponse().read()
        connection.close()
        process.terminate()
        output = "".join(process.communicate(timeout=DEADLINE))
    assert "pass-word" not in banner + output
    assert "tok-en-1234" not in banner + output


def test_json_option_prints_the_url_as_json() -> None:
    with serving("--json") as (process, _):
        assert process.stdout is not None
        report = json.loads(process.stdout.readline())
    assert report["command"] == "serve"
    assert report["data"]["url"].startswith("http://127.0.0.1:")
    assert (report["data"]["source"], report["data"]["token"]) == ("built-in", False)


def test_port_in_use_is_rejected_with_a_hint() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = run_failing(SERVE, "--port", port)
    assert result.returncode == 3
    assert f"cannot listen on 127.0.0.1 port {port}" in result.stderr
    assert (
        "hint: stop the program that uses the port, or choose another with --port" in result.stderr
    )


def test_public_address_without_a_token_is_rejected() -> None:
    result = run_failing(SERVE, "--host", "0.0.0.0")  # noqa: S104 - rejected
    assert result.returncode == 3
    assert "no token is set" in result.stderr
    assert "hint: set SKILLHALL_AUTH_TOKEN" in result.stderr


def test_missing_extra_is_reported_with_the_install_command() -> None:
    result = run_failing(WITHOUT_EXTRA)
    assert result.returncode == 2
    assert "pip install 'skillhall[server]'" in result.stderr


def test_edits_by_hand_are_visible_while_the_server_reads_no_other_skill(tmp_path: Path) -> None:
    folder = tmp_path / ".agents/skills"
    for number in range(300):
        make_skill(folder, f"skill-{number:03}")
    own = {f"SKILLHALL_{name}_DIR": str(tmp_path / name) for name in ("CACHE", "DATA")}
    with serving("--run-dir", str(tmp_path), script=REAL_SERVE, **own) as (process, banner):
        assert process.stderr is not None
        # The log of the requests would fill the pipe and stop the server.
        threading.Thread(target=process.stderr.read, daemon=True).start()
        port = int(banner.split()[0].rpartition(":")[2])
        connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE)

        def get(path: str) -> bytes:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            assert response.status == 200, body
            return body

        def count_reads() -> int:
            io = Path(f"/proc/{process.pid}/io").read_text(encoding="ascii")
            return int(io.partition("syscr: ")[2].split()[0])

        wait_until(lambda: b"<progress" not in get("/skills"))
        text = make_skill_md("skill-150", "Edited by hand.")
        (folder / "skill-150/SKILL.md").write_bytes(text)
        wait_until(lambda: b"Edited by hand." in get("/api/v1/skills?cursor=skill-149"))
        if sys.platform == "linux":  # others have no counter of system calls
            before = count_reads()
            for _ in range(20):
                get("/api/v1/skills/skill-007")
            assert count_reads() - before < 20 * 100  # and not 300 skills for each request
        connection.close()
