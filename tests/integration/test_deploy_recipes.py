"""The files of `deploy` are accepted by the programs that read them, and proxies stream."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.support.releases import ROOT
from tests.support.replicas import Replica
from tests.support.reverse_proxies import (
    find_caddy,
    find_free_port,
    read_recipe,
    run_caddy,
    run_nginx,
    wait_for_port,
)

SESSIONS = "/api/v1/sessions"
HOST = "skills.example.org"
KUBERNETES_VERSIONS = ("1.33", "1.37")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    variables = {"SKILLHALL_PUBLIC_URL": f"https://{HOST}"}
    replica = Replica(tmp_path_factory.mktemp("server"), variables, {"Host": HOST})
    replica.start()
    yield replica
    replica.stop()


def caddy(folder: Path, port: int, upstream: int) -> AbstractContextManager[None]:
    site = read_recipe("Caddyfile").replace(
        "{$SKILLHALL_SITE:skills.example.org}", f"http://:{port}"
    )
    config = site.replace("{$SKILLHALL_UPSTREAM:127.0.0.1:8321}", f"127.0.0.1:{upstream}")
    return run_caddy(folder, "{\n\tadmin off\n}\n" + config)


def nginx(folder: Path, port: int, upstream: int) -> AbstractContextManager[None]:
    # Without the certificate of the host; everything else stays.
    config = re.sub(r" *ssl_certificate.*\n", "", read_recipe("nginx.conf"))
    config = config.replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    return run_nginx(folder, config.replace("127.0.0.1:8321", f"127.0.0.1:{upstream}"))


def compose_caddy(folder: Path, port: int, upstream: int) -> AbstractContextManager[None]:
    config = yaml.safe_load(read_recipe("compose.yaml"))["configs"]["proxy"]["content"]
    config = config.replace("127.0.0.1:8321", HOST)  # as in SKILLHALL_PUBLIC_URL
    config = config.replace("one:8321 other:8321", f"127.0.0.1:{upstream}")
    return run_caddy(folder, config.replace("\n:8321 {", f"\n:{port} {{"))


@pytest.mark.parametrize("proxy", [caddy, nginx, compose_caddy])
def test_event_stream_passes_a_proxy_event_by_event(
    proxy: Any,  # noqa: ANN401 - one of the functions above
    server: Replica,
    tmp_path: Path,
) -> None:
    port = find_free_port()
    with proxy(tmp_path, port, server.port):
        wait_for_port(port)
        client = replace(server, port=port)
        session = client.request("POST", SESSIONS, {"name": "board"}).json["data"]
        path = f"{SESSIONS}/{session['id']}/blocks"
        with client.events(f"?session={session['id']}") as events:
            for number in range(2):  # the second event arrives on an open stream
                block = client.request("POST", path, {"type": "note", "content": str(number)})
                assert next(events)["subject"] == block.json["data"]["id"]


def test_caddyfile_is_formatted_and_valid(tmp_path: Path) -> None:
    source = ROOT / "deploy" / "Caddyfile"
    done = subprocess.run(
        [find_caddy(), "fmt", "--diff", source], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(
        [find_caddy(), "validate", "--adapter", "caddyfile", "--config", source],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr


def test_systemd_unit_is_accepted_by_systemd(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    unit = read_recipe("skillhall.service").replace("/opt/skillhall/bin/skillhall", sys.executable)
    (tmp_path / "skillhall.service").write_text(unit, encoding="utf-8")
    done = subprocess.run(
        [program, "verify", "--man=no", tmp_path / "skillhall.service"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_compose_file_follows_the_schema_of_compose() -> None:
    program = Path(sys.executable).with_name("check-jsonschema")
    file = ROOT / "deploy/compose.yaml"
    command = [str(program), "--builtin-schema", "vendor.compose-spec", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_kubernetes_manifests_follow_the_schemas_of_kubernetes(version: str) -> None:
    documents = [*yaml.safe_load_all(read_recipe("kubernetes.yaml"))]
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)
    assert [document["kind"] for document in documents] == [
        *("ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "Ingress")
    ]


def test_kubernetes_manifests_refer_to_each_other() -> None:
    documents = {d["kind"]: d for d in yaml.safe_load_all(read_recipe("kubernetes.yaml"))}
    template = documents["Deployment"]["spec"]["template"]
    [container] = template["spec"]["containers"]
    assert documents["Service"]["spec"]["selector"] == template["metadata"]["labels"]
    assert container["envFrom"] == [{"configMapRef": {"name": "skillhall"}}]
    volumes = {volume["name"] for volume in template["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    [rule] = documents["Ingress"]["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend["name"] == documents["Service"]["metadata"]["name"]
    public = documents["ConfigMap"]["data"]["SKILLHALL_PUBLIC_URL"]
    assert public == f"https://{rule['host']}"
