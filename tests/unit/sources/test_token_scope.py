"""Token scope: repositories that get the operator's tokens."""

import pytest

from skillhall._internal.settings import PromptSettings, ServerSettings, Settings
from skillhall._internal.sources.token_scope import TokenScope
from skillhall.errors import ConfigInvalid


def scope(repo: str = "", *others: str) -> TokenScope:
    server, prompts = ServerSettings(git_token_repos=others), PromptSettings(repo=repo)
    return TokenScope.from_settings(
        Settings("/nowhere", "/nowhere", server=server, prompts=prompts)
    )


@pytest.mark.parametrize(
    "repo", ["acme/prompts", "https://github.com/acme/prompts", "acme/prompts/team@main"]
)
def test_configured_repository_is_in_scope(repo: str) -> None:
    result = scope(repo)
    assert result.includes("https://github.com/acme/prompts.git")
    assert result.includes("https://github.com/acme/prompts/")
    for other in ("prompts2", "prompt", "prompts/x", "prompts.git/x"):
        assert not result.includes(f"https://github.com/acme/{other}")


@pytest.mark.parametrize(
    ("entry", "url", "is_included"),
    [
        ("acme/skills", "https://github.com/acme/skills.git", True),
        ("acme/*", "https://github.com/acme/skills.git", True),
        ("https://git.example.org:8443/a/*", "https://git.example.org:8443/a/b/c.git", True),
        ("https://git.example.org/a/*", "https://git.example.org:8443/a/b.git", False),
        ("https://git.example.org/a/*", "http://git.example.org/a/b.git", False),
        ("https://git.example.org/a/*", "https://git.example.org/ab/c.git", False),
        ("https://git.example.org/a/*", "https://git.example.org/a", False),
        ("https://git.example.org/a/*", "https://git.example.org/a/../b/c.git", False),
        ("https://git.example.org/a/*", "https://git.example.org/a/%2e%2e/b/c.git", False),
        ("https://git.example.org/a/*", "https://git.example.org/a//c.git", False),
        ("https://git.example.org/a/*", "https://git.example.org.evil/a/c.git", False),
        ("https://git.example.org/a/*", "git@git.example.org:a/c.git", False),
    ],
)
def test_variable_adds_repositories_and_owners(entry: str, url: str, is_included: bool) -> None:
    assert scope("", entry).includes(url) is is_included


@pytest.mark.parametrize("entry", ["*", "/*", "https://*", "git@h:a/b.git", "https://h/a/../*"])
def test_invalid_entry_is_rejected(entry: str) -> None:
    with pytest.raises(ConfigInvalid, match="SKILLHALL_GIT_TOKEN_REPOS"):
        scope("", entry)


@pytest.mark.parametrize("repo", ["", "./folder", "git@h:a/b.git", "https://h/\x00"])
def test_scope_without_https_repository_is_empty(repo: str) -> None:
    assert scope(repo) == TokenScope()
    assert not scope(repo).includes("https://h/a/b")
