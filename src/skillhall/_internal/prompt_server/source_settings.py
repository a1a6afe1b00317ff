"""Parser of the settings for prompt sources."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from skillhall._internal.net.addresses import build_address_policy
from skillhall._internal.prompt_server.repo_source import (
    DEFAULT_BRANCH,
    GitHosts,
    LocalFolder,
    parse_repository,
    validate_branch,
    validate_path,
)
from skillhall._internal.prompt_server.service import PromptSources
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.git.process import is_git_available
from skillhall._internal.sources.git.remote import GitAccess
from skillhall._internal.sources.github.client import GitHubAccess
from skillhall._internal.sources.local_ref import LocalRef
from skillhall._internal.sources.opener import parse_source_ref
from skillhall._internal.sources.token_scope import TokenScope
from skillhall.errors import ConfigInvalid, SourceRejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.prompt_server.repo_source import Repository
    from skillhall._internal.settings import PromptSettings, Settings

T = TypeVar("T")

_VARIABLE_PREFIX = "SKILLHALL_PROMPTS"
_MAX_TTL = 10**9  # seconds


def read_prompt_sources(settings: Settings) -> PromptSources:
    """Build the prompt sources from settings. Raises: ConfigInvalid."""
    prompts = settings.prompts
    ttl = prompts.cache_ttl
    # 20 digits are enough to recognize a number that is too large.
    if not (ttl.isascii() and ttl.isdigit()) or int(ttl[:20]) > _MAX_TTL:
        problem, hint = f"{ttl[:20]!r} is not a valid number of seconds", "0 disables the cache"
        raise ConfigInvalid(f"{_VARIABLE_PREFIX}_CACHE_TTL", problem, hint)
    hosts = GitHosts(settings.github_url, allow_loopback_http=bool(settings.allowed_networks))
    addresses = build_address_policy(settings.allowed_networks, settings.proxies)
    github_access = None
    if not (settings.use_git and is_git_available()):
        github_access = GitHubAccess(
            settings.github_api_url, addresses, settings.tokens, settings.cache_directory
        )
    access = GitAccess(
        settings.cache_directory,
        addresses,
        settings.tokens,
        ssh_agent_socket=settings.variables.get("SSH_AUTH_SOCK", ""),
    )
    return PromptSources(
        access,
        settings.data_directory,
        hosts,
        _parse_configured_source(prompts, hosts, settings.working_directory),
        float(ttl),
        token_scope=TokenScope.from_settings(settings),
        github_access=github_access,
    )


def _parse_configured_source(
    prompts: PromptSettings, hosts: GitHosts, working_directory: str
) -> Repository | LocalFolder | None:
    path = _validate_setting("PATH", lambda: validate_path(prompts.path))
    _validate_setting("BRANCH", lambda: validate_branch(prompts.branch))
    if not prompts.repo:
        return None
    loopback = hosts.allow_loopback_http
    reference = _validate_setting(
        "REPO", lambda: parse_source_ref(prompts.repo, allow_loopback_http=loopback)
    )
    if not isinstance(reference, LocalRef):
        return _validate_setting(
            "REPO", lambda: parse_repository(prompts.repo, prompts.path, prompts.branch, hosts)
        )
    if prompts.branch != DEFAULT_BRANCH:
        raise ConfigInvalid(
            f"{_VARIABLE_PREFIX}_BRANCH", "a folder has no branches", "unset this variable"
        )
    folder = Root.resolve(reference.path, working_directory).path
    subfolder = os.path.join(folder, *path.split("/"))
    return LocalFolder(subfolder.rstrip(os.sep), os.path.basename(folder))


def _validate_setting(name: str, check: Callable[[], T]) -> T:
    try:
        return check()
    except SourceRejected as error:
        raise ConfigInvalid(f"{_VARIABLE_PREFIX}_{name}", error.problem, error.hint) from None
