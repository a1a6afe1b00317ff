"""`skillhall serve` as a process: its words, its exit codes, its end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The counter of the process keeps its prompts in memory; everything else is the real command.
SERVE = """
import sys
from skillhall._internal import wiring
from skillhall._internal.cli.runner import run
from tests.support.prompt_services import MemoryCounter, make_prompt
wiring.open_counter = lambda settings, **_: MemoryCounter(
    [make_prompt()], source=settings.prompts.repo or "built-in", commit=settings.prompts.branch
)
sys.exit(run(["serve", *sys.argv[1:]]))
"""
WITHOUT_EXTRA = """
import sys
sys.modules["uvicorn"] = None
from skillhall._internal.cli.runner import run
sys.exit(run(["serve"]))
"""
DEADLINE = 120


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


@contextmanager
def serving(*words: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the line that it says when it serves."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, "--port", "0", *words],
        env=environment(**variables),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            is_json = "--json" in words
            yield process, "" if is_json else process.stderr.readline().strip()
        finally:
            process.kill()


def failing(script: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_serves_and_ends_well_on_a_signal(number: signal.Signals) -> None:
    with serving() as (process, banner):
        found = re.fullmatch(
            r"http://127.0.0.1:(\d+) serves the built-in prompts .no token, this machine only.",
            banner,
        )
        assert found, banner
        line = HTTPConnection("127.0.0.1", int(found[1]), timeout=DEADLINE)
        line.request("GET", "/api/v1/prompts", headers={"X-Request-Id": "mine"})
        assert line.getresponse().status == 200
        process.send_signal(number)
        output, log = process.communicate(timeout=DEADLINE)
        line.close()
    assert process.returncode == 0
    assert output == ""
    assert '"requestId":"mine"' in log
    assert "Traceback" not in log


def test_options_come_before_settings_and_credentials_are_not_shown() -> None:
    variables = {"SKILLHALL_PROMPTS_REPO": "https://h/other", "SKILLHALL_AUTH_TOKEN": "tok-en-1234"}
    words = ["--repo", "https://u:pass-word@h.example/r", "--branch", "dev"]
    with serving(*words, **variables) as (process, banner):
        assert "serves https://***@h.example/r (token required)" in banner
        port = int(banner.partition(" ")[0].rpartition(":")[2])
        line = HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        line.request("GET", "/readyz")
        assert b'"commit":"dev"' in line.getresponse().read()
        line.close()
        process.terminate()
        output = "".join(process.communicate(timeout=DEADLINE))
    assert "pass-word" not in banner + output
    assert "tok-en-1234" not in banner + output


def test_a_script_is_told_where_it_serves_as_json() -> None:
    with serving("--json") as (process, _):
        assert process.stdout is not None
        report = json.loads(process.stdout.readline())
    assert report["command"] == "serve"
    assert report["data"]["url"].startswith("http://127.0.0.1:")
    assert (report["data"]["source"], report["data"]["token"]) == ("built-in", False)


def test_a_port_that_is_taken_is_told_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = failing(SERVE, "--port", port)
    assert done.returncode == 3
    assert f"port {port} of 127.0.0.1 cannot be used" in done.stderr
    assert "hint: stop what listens there, or choose another with --port" in done.stderr


def test_other_machines_are_not_served_without_a_token() -> None:
    done = failing(SERVE, "--host", "0.0.0.0")  # noqa: S104 - refused
    assert done.returncode == 3
    assert "there is no token" in done.stderr
    assert "hint: set SKILLHALL_AUTH_TOKEN" in done.stderr


def test_without_the_extra_the_way_to_install_it_is_told() -> None:
    done = failing(WITHOUT_EXTRA)
    assert done.returncode == 2
    assert "pip install 'skillhall[server]'" in done.stderr
