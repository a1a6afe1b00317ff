"""The operator's texts, checked: where prompts come from, and how often that is looked at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from skillhall._internal.net.addresses import address_policy
from skillhall._internal.prompts.repo_source import (
    MAIN,
    GitHosts,
    LocalFolder,
    checked_branch,
    checked_path,
    named_repository,
)
from skillhall._internal.prompts.service import Supply
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.git.source import GitAccess, has_git
from skillhall._internal.sources.git.token_scope import TokenScope
from skillhall._internal.sources.github.client import GitHubAccess
from skillhall._internal.sources.ref import LocalRef
from skillhall.errors import ConfigInvalid, SourceRejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.prompts.repo_source import Repository
    from skillhall._internal.settings import PromptSettings, Settings

T = TypeVar("T")

_NAMES = "SKILLHALL_PROMPTS"
_LONGEST_TTL = 10**9  # seconds


def read_supply(settings: Settings) -> Supply:
    """Where prompts come from. Raises: ConfigInvalid."""
    prompts = settings.prompts
    hosts = GitHosts(settings.github_url, loopback_http=bool(settings.allowed_networks))
    access = GitAccess(
        settings.cache_directory,
        address_policy(settings.allowed_networks),
        settings.tokens,
        ssh_agent=settings.variables.get("SSH_AUTH_SOCK", ""),
    )
    return Supply(
        access,
        settings.data_directory,
        hosts,
        _configured(prompts, hosts, settings.working_directory),
        _seconds(prompts.cache_ttl),
        scope=TokenScope.of(settings),
        github=None if settings.use_git and has_git() else _github(settings),
    )


def _github(settings: Settings) -> GitHubAccess:
    return GitHubAccess(
        settings.github_api_url,
        address_policy(settings.allowed_networks),
        settings.tokens,
        settings.cache_directory,
    )


def _configured(
    prompts: PromptSettings, hosts: GitHosts, working_directory: str
) -> Repository | LocalFolder | None:
    path = _checked("PATH", lambda: checked_path(prompts.path))
    _checked("BRANCH", lambda: checked_branch(prompts.branch))
    if not prompts.repo:
        return None
    place = prompts.repo, prompts.path, prompts.branch
    found = _checked("REPO", lambda: named_repository(*place, hosts))
    if not isinstance(found, LocalRef):
        return found
    if prompts.branch != MAIN:
        raise ConfigInvalid(f"{_NAMES}_BRANCH", "a folder has no branches", "leave it out")
    folder = Root.of(found.path, working_directory).path
    below = os.path.join(folder, *path.split("/"))
    return LocalFolder(below.rstrip(os.sep), os.path.basename(folder))


def _checked(name: str, check: Callable[[], T]) -> T:
    try:
        return check()
    except SourceRejected as error:
        raise ConfigInvalid(f"{_NAMES}_{name}", error.problem, error.hint) from None


def _seconds(text: str) -> float:
    if not (text.isascii() and text.isdigit()) or int(text[:20]) > _LONGEST_TTL:
        problem, hint = f"{text[:20]!r} is no number of seconds", "0 looks every time"
        raise ConfigInvalid(f"{_NAMES}_CACHE_TTL", problem, hint)
    return float(text)
