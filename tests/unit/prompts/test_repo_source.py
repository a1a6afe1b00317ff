"""Which repository is meant: by the operator's texts, and by a call's."""

from pathlib import Path

import pytest

from skillhall._internal.prompts.repo_source import (
    GitHosts,
    LocalFolder,
    Repository,
    parse_host_and_path,
    parse_requested_repository,
)
from skillhall._internal.prompts.source_settings import read_prompt_sources
from skillhall._internal.settings import PromptSettings, Settings
from skillhall._internal.sources.ref import GitRef
from skillhall.errors import ConfigInvalid, SourceRejected

HOSTS = GitHosts("https://github.com")
URL = "https://git.example.com/acme/prompts.git"


def configured(**texts: str) -> Repository | LocalFolder | None:
    settings = Settings("/run", "/cache", prompts=PromptSettings(**texts))
    return read_prompt_sources(settings).configured


def test_a_repository_is_named_with_its_path_and_branch() -> None:
    wanted = Repository(GitRef(URL, "a/b", "dev"), URL)
    assert configured(repo=URL, path="/a/b/", branch="dev") == wanted
    assert parse_requested_repository(URL, "a/b", "dev", HOSTS) == wanted


def test_without_a_branch_main_is_meant_or_else_the_head() -> None:
    place = GitRef("https://github.com/acme/prompts.git", "", "main")
    wanted = Repository(place, "acme/prompts", may_fall_back=True)
    assert configured(repo="acme/prompts") == wanted
    assert parse_requested_repository("acme/prompts", "", "", HOSTS) == wanted


def test_path_and_branch_may_stand_in_the_text() -> None:
    found = parse_requested_repository("acme/prompts/sub@v1", "", "", HOSTS)
    assert found.reference == GitRef("https://github.com/acme/prompts.git", "sub", "v1")
    assert not found.may_fall_back


@pytest.mark.parametrize(("path", "branch"), [("x", ""), ("", "dev")])
def test_what_is_named_twice_is_refused(path: str, branch: str) -> None:
    with pytest.raises(SourceRejected, match="twice"):
        parse_requested_repository("acme/prompts/sub@v1", path, branch, HOSTS)


def test_an_operator_may_name_a_folder(tmp_path: Path) -> None:
    assert configured(repo="./prompts/", path="sub") == LocalFolder("/run/prompts/sub", "prompts")
    assert configured(repo="") is None


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
def test_a_call_names_repositories_by_https_and_nothing_else(text: str) -> None:
    with pytest.raises(SourceRejected) as raised:
        parse_requested_repository(text, "", "", HOSTS)
    assert "secret" not in str(raised.value)


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
def test_odd_paths_and_branches_are_refused(path: str, branch: str) -> None:
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
def test_a_setting_that_cannot_be_used_is_named(texts: dict[str, str], variable: str) -> None:
    with pytest.raises(ConfigInvalid) as raised:
        configured(**texts)
    assert raised.value.path == variable
    assert "secret" not in str(raised.value)


def test_one_repository_has_many_addresses() -> None:
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


def test_a_push_is_news_for_its_own_branch() -> None:
    repository = parse_requested_repository(URL, "", "dev", HOSTS)
    assert repository.is_affected_by_push(["git@git.example.com:acme/prompts.git"], "dev")
    assert repository.is_affected_by_push([URL], "refs/heads/dev")
    assert not repository.is_affected_by_push([URL], "main")
    assert not repository.is_affected_by_push(["https://git.example.com/acme/x.git"], "dev")
