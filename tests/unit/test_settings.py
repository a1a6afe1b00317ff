"""Settings, and the hosts that tokens may be sent to."""

import os
import pwd

import pytest

from skillhall._internal.settings import Secret, Settings, read_os_user


def test_secret_is_not_in_repr() -> None:
    settings = Settings.read({"GITHUB_TOKEN": "s3cret"})
    assert "s3cret" not in f"{settings!r} {settings} {Secret('s3cret')}"


def test_empty_variable_keeps_the_default_of_a_flag() -> None:
    settings = Settings.read({"SKILLHALL_FOLLOW_LINKS": "", "SKILLHALL_GIT": ""})
    assert (settings.follow_links, settings.use_git) == (False, True)


@pytest.mark.parametrize(
    ("environment", "tokens"),
    [
        ({"GITHUB_TOKEN": "a"}, {"github.com": "a", "api.github.com": "a"}),
        ({"GH_TOKEN": "a", "GITHUB_TOKEN": "b"}, {"github.com": "b", "api.github.com": "b"}),
        ({"GITLAB_TOKEN": "a"}, {"gitlab.com": "a"}),
        ({"SKILLHALL_GIT_TOKEN": "a"}, {"github.com": "a", "api.github.com": "a"}),
        (
            {"SKILLHALL_GIT_TOKEN": "a", "SKILLHALL_GIT_TOKEN_HOSTS": "git.acme.org:8443, b.org"},
            {"git.acme.org:8443": "a", "b.org": "a"},
        ),
        (
            {"GITHUB_TOKEN": "a", "SKILLHALL_GITHUB_URL": "https://git.acme.org/"},
            {"git.acme.org": "a"},
        ),
    ],
)
def test_tokens_are_assigned_to_hosts(environment: dict[str, str], tokens: dict[str, str]) -> None:
    settings = Settings.read(environment)
    assert {host: secret.reveal() for host, secret in settings.tokens.items()} == tokens


def test_allowed_networks_are_separated_by_commas_or_spaces() -> None:
    settings = Settings.read({"SKILLHALL_ALLOW_NETWORKS": "127.0.0.0/8, 10.0.0.0/8"})
    assert settings.allowed_networks == ("127.0.0.0/8", "10.0.0.0/8")


@pytest.mark.parametrize(
    ("environment", "https", "http"),
    [
        ({"HTTPS_PROXY": "a:1"}, "a:1", None),
        ({"HTTPS_PROXY": "a:1", "https_proxy": "b:1"}, "b:1", None),
        ({"HTTP_PROXY": "a:1", "ALL_PROXY": "b:1"}, "b:1", "a:1"),
        ({"all_proxy": "b:1", "https_proxy": ""}, "b:1", "b:1"),
        ({"HTTP_PROXY": "a:1", "REQUEST_METHOD": "GET"}, None, None),  # a header of a client
        ({"http_proxy": "a:1", "REQUEST_METHOD": "GET"}, None, "a:1"),
    ],
)
def test_proxies_are_those_of_other_programs(
    environment: dict[str, str], https: str | None, http: str | None
) -> None:
    settings = Settings.read(environment)
    found = (settings.proxies.https, settings.proxies.http)
    assert tuple(secret.reveal() if secret else None for secret in found) == (https, http)


def test_exceptions_of_proxies_are_separated_by_commas_or_spaces() -> None:
    settings = Settings.read({"NO_PROXY": "a.example, 10.0.0.0/8"})
    assert settings.proxies.exceptions == ("a.example", "10.0.0.0/8")


def test_os_user_is_the_one_behind_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "ada")
    monkeypatch.setattr("os.getuid", lambda: 0)
    assert read_os_user() == "ada"
    monkeypatch.setattr("os.getuid", lambda: 54321)  # has no name; others cannot choose one
    assert read_os_user() == ""
    monkeypatch.undo()
    monkeypatch.delenv("SUDO_USER", raising=False)
    assert read_os_user() == pwd.getpwuid(os.getuid()).pw_name
