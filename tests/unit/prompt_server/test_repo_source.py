"""Parsing of configured and requested repositories."""

from pathlib import Path

import pytest

from skillhall._internal.prompt_server.repo_source import (
    GitHosts,
    LocalFolder,
    Repository,
    parse_host_and_path,
    parse_requested_repository,
)
from skillhall._internal.prompt_server.source_settings import read_prompt_sources
from skillhall._internal.settings import PromptSettings, Settings
from skillhall._internal.sources.git.git_ref import GitRef
from skillhall.errors import ConfigInvalid, SourceRejected

HOSTS = GitHosts("https://github.com")
URL = "https://git.example.com/acme/prompts.git"


def configure(**texts: str) -> Repository | LocalFolder | None:
    settings = Settings("/run", "/cache", prompts=PromptSettings(**texts))
    return read_prompt_sources(settings).configured


def test_repository_has_path_and_branch() -> None:
    expected = Repository(GitRef(URL, "a/b", "dev"), URL)
    assert configure(repo=URL, path="/a/b/", branch="dev") == expected
    assert parse_requested_repository(URL, "a/b", "dev", HOSTS) == expected


def test_default_branch_is_main_with_fallback_to_head() -> None:
    reference = GitRef("https://github.com/acme/prompts.git", "", "main")
    expected = Repository(reference, "acme/prompts", may_fall_back=True)
    assert configure(repo="acme/prompts") == expected
    assert parse_requested_repository("acme/prompts", "", "", HOSTS) == expected


def test_path_and_branch_can_be_part_of_the_reference() -> None:
    repository = parse_requested_repository("acme/prompts/sub@v1", "", "", HOSTS)
    assert repository.reference == GitRef("https://github.com/acme/prompts.git", "sub", "v1")
    assert not repository.may_fall_back


@pytest.mark.parametrize(("path", "branch"), [("x", ""), ("", "dev")])
def test_path_or_branch_named_twice_is_rejected(path: str, branch: str) -> None:
    with pytest.raises(SourceRejected, match="twice"):
        parse_requested_repository("acme/prompts/sub@v1", path, branch, HOSTS)


def test_settings_can_name_a_folder(tmp_path: Path) -> None:
    assert configure(repo="./prompts/", path="sub") == LocalFolder("/run/prompts/sub", "prompts")
    assert configure(repo="") is None


@pytest.mark.parametrize(
    "text",
    [
        "./prompts",
        "/etc",
        "~/x",
        "C:\\x",
        "x.zip",
        "python:json",
        "git@git.example.com:acme/prompts.git",
        "ssh://git@git.example.com/acme/prompts.git",
        "http://git.example.com/acme/prompts.git",
        "http://127.0.0.1/acme/prompts.git",
        "file:///etc",
        "ext::sh -c id",
        "--upload-pack=id",
        "https://user:secret@git.example.com/acme/prompts.git",
        "https://git.example.com/a/b.md",
        "https://git.example.com/acme/prompts.git?token=secret",
        "name",
        "a\nb/c",
    ],
)
def test_request_can_only_name_https_repositories(text: str) -> None:
    with pytest.raises(SourceRejected) as error_info:
        parse_requested_repository(text, "", "", HOSTS)
    assert "secret" not in str(error_info.value)


@pytest.mark.parametrize(
    ("path", "branch"),
    [
        ("../x", ""),
        ("a/../../b", ""),
        ("a\\b", ""),
        ("a\0", ""),
        ("", "--upload-pack=id"),
        ("", "a..b"),
        ("", "a b"),
        ("", "x:y"),
        ("", "a\n"),
    ],
)
def test_invalid_paths_and_branches_are_rejected(path: str, branch: str) -> None:
    with pytest.raises(SourceRejected):
        parse_requested_repository(URL, path, branch, HOSTS)
    repository = parse_requested_repository(URL, "", "", HOSTS)
    with pytest.raises(SourceRejected):
        repository.with_path_and_branch(path, branch)


@pytest.mark.parametrize(
    ("texts", "variable"),
    [
        ({"cache_ttl": "soon"}, "SKILLHALL_PROMPTS_CACHE_TTL"),
        ({"cache_ttl": "-1"}, "SKILLHALL_PROMPTS_CACHE_TTL"),
        ({"cache_ttl": "1" * 5000}, "SKILLHALL_PROMPTS_CACHE_TTL"),
        ({"cache_ttl": "²"}, "SKILLHALL_PROMPTS_CACHE_TTL"),
        ({"repo": "ftp://x/y"}, "SKILLHALL_PROMPTS_REPO"),
        ({"repo": "https://me:secret@host.example/a/b.git"}, "SKILLHALL_PROMPTS_REPO"),
        ({"repo": "x.zip"}, "SKILLHALL_PROMPTS_REPO"),
        ({"repo": URL, "path": "../x"}, "SKILLHALL_PROMPTS_PATH"),
        ({"repo": URL, "branch": "-x"}, "SKILLHALL_PROMPTS_BRANCH"),
        ({"repo": "./x", "branch": "dev"}, "SKILLHALL_PROMPTS_BRANCH"),
    ],
)
def test_invalid_setting_is_named_in_the_error(texts: dict[str, str], variable: str) -> None:
    with pytest.raises(ConfigInvalid) as error_info:
        configure(**texts)
    assert error_info.value.path == variable
    assert "secret" not in str(error_info.value)


def test_urls_of_one_repository_are_equal() -> None:
    same = [
        "https://git.example.com/acme/prompts.git",
        "https://GIT.example.com/acme/prompts",
        "https://git.example.com:8443/acme/prompts/",
        "git@git.example.com:acme/prompts.git",
        "ssh://git@git.example.com:2222/acme/prompts.git",
        "git://git.example.com/acme/prompts.git",
        "https://someone@git.example.com/Acme/Prompts.git",
    ]
    assert {parse_host_and_path(url) for url in same} == {("git.example.com", "acme/prompts")}
    others = ["https://git.example.com/acme/other", "https://example.com/acme/prompts", "x", ""]
    assert ("git.example.com", "acme/prompts") not in map(parse_host_and_path, others)


def test_push_affects_only_its_branch() -> None:
    repository = parse_requested_repository(URL, "", "dev", HOSTS)
    assert repository.is_affected_by_push(["git@git.example.com:acme/prompts.git"], "dev")
    assert repository.is_affected_by_push([URL], "refs/heads/dev")
    assert not repository.is_affected_by_push([URL], "main")
    assert not repository.is_affected_by_push(["https://git.example.com/acme/x.git"], "dev")
