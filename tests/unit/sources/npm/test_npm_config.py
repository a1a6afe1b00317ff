"""Registries and credentials in npm's configuration."""

from base64 import b64encode
from pathlib import Path

import pytest

from skillhall._internal.settings import Secret, Settings
from skillhall._internal.sources.npm.npm_config import NpmConfig
from skillhall.errors import ConfigInvalid

REGISTRY = "https://npm.acme.example/team"


def read(home: Path, text: str, **variables: str) -> NpmConfig:
    (home / ".npmrc").write_text(text, encoding="utf-8")
    settings = Settings(str(home), str(home / "cache"), home=str(home), variables=variables)
    return NpmConfig.read(settings._replace(credentials={"NPM_TOKEN": Secret("from-env")}))


def test_registry_is_that_of_the_scope_then_the_environment_then_the_file(tmp_path: Path) -> None:
    text = f"; a comment\n[section]\n@acme:registry={REGISTRY}/\nregistry = 'https://r.example/'\n"
    config = read(tmp_path, text)
    assert config.find_registry("@acme/pdf") == REGISTRY
    assert config.find_registry("pdf") == "https://r.example"
    config = read(tmp_path, text, NPM_CONFIG_REGISTRY="https://e.example/x/")
    assert config.find_registry("@other/pdf") == "https://e.example/x"
    with pytest.raises(ConfigInvalid, match="no npm registry is configured"):
        read(tmp_path, f"@acme:registry={REGISTRY}").find_registry("pdf")


def test_another_file_is_named_by_the_environment(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("registry=https://o.example\n", encoding="utf-8")
    config = read(tmp_path, "registry=x", NPM_CONFIG_USERCONFIG=str(tmp_path / "other"))
    assert config.find_registry("pdf") == "https://o.example"
    missing = read(tmp_path, "registry=x", NPM_CONFIG_USERCONFIG=str(tmp_path / "none"))
    assert not missing.values


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("//npm.acme.example/team/:_authToken=abc", "Bearer abc"),
        ("//npm.acme.example/:_authToken=${NPM_TOKEN}", "Bearer from-env"),
        ("//npm.acme.example/:_authToken=${HOME}", ""),
        ("//npm.acme.example/:_auth=YTpi", "Basic YTpi"),
        (f"//npm.acme.example/:username=a\n//npm.acme.example/:_password={b64encode(b'b').decode()}",
         "Basic YTpi"),
        ("//npm.acme.example/:_authToken=far\n//npm.acme.example/team/:_authToken=near",
         "Bearer near"),
        ("//npm.acme.example/team/pdf/other/:_authToken=abc", ""),
        ("//npm.acme.example.evil.example/:_authToken=abc", ""),
        ("_authToken=abc", ""),
    ],
)  # fmt: skip
def test_credentials_belong_to_a_host_and_path(tmp_path: Path, text: str, header: str) -> None:
    assert read(tmp_path, text).find_authorization(f"{REGISTRY}/pdf") == header


@pytest.mark.parametrize(
    "text",
    [
        "//npm.acme.example/:_authToken=a b",
        "//npm.acme.example/:username=a\n//npm.acme.example/:_password=!",
    ],
)
def test_malformed_credentials_are_an_error_without_the_secret(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigInvalid) as raised:
        read(tmp_path, text).find_authorization(REGISTRY)
    assert "a b" not in str(raised.value)


def test_unreadable_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").mkdir()
    settings = Settings(str(tmp_path), str(tmp_path / "cache"), home=str(tmp_path))
    with pytest.raises(ConfigInvalid):
        NpmConfig.read(settings)
