"""Logins that `docker login` stored."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from skillhall._internal.settings import Settings
from skillhall._internal.sources.oci.docker_config import find_docker_login
from skillhall.errors import ConfigInvalid

HUB = "https://index.docker.io/v1/"
HELPER = """\
#!/bin/sh
read server
echo "$1 $server" >> {log}
test "$server" = missing.example && echo "credentials not found" && exit 1
test "$server" = token.example && echo '{"Username": "<token>", "Secret": "x"}' && exit 0
echo '{"Username": "ada", "Secret": "from-helper"}'
"""


def encode(text: str) -> dict[str, str]:
    return {"auth": b64encode(text.encode()).decode()}


def find(home: Path, registry: str, config: object, **variables: str) -> str:
    folder = home / ".docker"
    folder.mkdir(exist_ok=True)
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text, encoding="utf-8")
    settings = Settings(str(home), str(home), home=str(home), variables=variables)
    login = find_docker_login(registry, settings)
    return "" if login is None else f"{login.user}:{login.password.reveal()}"


@pytest.mark.parametrize(
    ("key", "registry", "is_found"),
    [
        ("ghcr.example", "ghcr.example", True),
        ("https://ghcr.example/v2/", "ghcr.example", True),
        ("https://GHCR.example", "ghcr.example", True),
        ("127.0.0.1:5000", "127.0.0.1:5000", True),
        (HUB, "docker.io", True),
        ("docker.io", "docker.io", True),
        ("ghcr.example", "ghcr.example:5000", False),
        ("ghcr.example", "evil.ghcr.example", False),
        ("ghcr.example/team", "ghcr.example", True),
    ],
)
def test_login_belongs_to_one_registry(
    tmp_path: Path, key: str, registry: str, *, is_found: bool
) -> None:
    config = {"auths": {key: encode("ada:a:b"), "other.example": encode("x:y")}}
    assert find(tmp_path, registry, config) == ("ada:a:b" if is_found else "")


def test_another_folder_is_named_by_the_environment(tmp_path: Path) -> None:
    config = {"auths": {"h.example": encode("ada:x")}}
    assert find(tmp_path, "h.example", config, DOCKER_CONFIG=str(tmp_path / "none")) == ""
    assert find(tmp_path, "h.example", "{}", DOCKER_CONFIG=str(tmp_path / ".docker")) == ""


def test_helper_is_asked_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, helper = tmp_path / "log", tmp_path / "docker-credential-acme"
    helper.write_text(HELPER.replace("{log}", str(log)), encoding="utf-8")
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    auths = {"missing.example": encode("in:file"), "h.example": {}}
    helpers: list[dict[str, object]] = [{"credsStore": "acme"}]
    helpers.append({"credHelpers": {"h.example": "acme"}})
    for named in helpers:
        assert find(tmp_path, "h.example", {**named, "auths": auths}) == "ada:from-helper"
    config: dict[str, object] = {"credsStore": "acme", "auths": auths}
    assert find(tmp_path, "missing.example", config) == "in:file"
    assert find(tmp_path, "docker.io", config) == "ada:from-helper"
    servers = log.read_text("utf-8").splitlines()
    assert servers == ["get h.example"] * 2 + ["get missing.example", f"get {HUB}"]
    with pytest.raises(ConfigInvalid, match="identity token"):
        find(tmp_path, "token.example", config)


@pytest.mark.parametrize(
    "config",
    [
        "[",
        '"s3cret"',
        {"auths": []},
        {"auths": {"h.example": {"auth": "s3cret!"}}},
        {"auths": {"h.example": encode("s3cret")}},
        {"auths": {"h.example": {"identitytoken": "s3cret"}}},
        {"credsStore": "../../bin/s3cret"},
        {"credsStore": "not-installed"},
    ],
)
def test_unusable_file_is_an_error_without_its_secrets(tmp_path: Path, config: object) -> None:
    with pytest.raises(ConfigInvalid, match=r"config\.json") as raised:
        find(tmp_path, "h.example", config)
    assert "auth" not in str(raised.value) or "s3cret" not in str(raised.value)
