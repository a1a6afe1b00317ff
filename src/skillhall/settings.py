"""What an operator configures: read from the environment once, passed on as one value."""

from __future__ import annotations

import os
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

GITHUB = "https://github.com"
GITHUB_API = "https://api.github.com"

# What other programs read too: where agents and installers keep their files.
_OTHERS = (
    "APPDATA",
    "AUTOHAND_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "FLATPAK_XDG_CONFIG_HOME",
    "HERMES_HOME",
    "SSH_AUTH_SOCK",
    "VIBE_HOME",
    "VIRTUAL_ENV",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
)


class Secret:
    """A text that no message, log or representation shows."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text, for the one who sends it."""
        return self._text

    def __repr__(self) -> str:
        return "***"


class Settings(NamedTuple):
    """The settings of one process."""

    working_directory: str
    cache_directory: str
    use_index: bool = True
    use_git: bool = True  # for GitHub, which can be read without it
    data_directory: str = ""  # what must not be lost: the store and the history
    home: str = ""
    allowed_networks: tuple[str, ...] = ()  # in CIDR notation; the rest of the private ones is not
    github_url: str = GITHUB
    github_api_url: str = GITHUB_API
    tokens: Mapping[str, Secret] = MappingProxyType(
        {}
    )  # by host, with its port if that is an unusual one
    variables: Mapping[str, str] = MappingProxyType({})  # of other programs, by name

    @classmethod
    def read(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """The settings that the environment and the working directory give."""
        env = os.environ if environment is None else environment
        return cls(
            working_directory=os.getcwd(),
            cache_directory=env.get("SKILLHALL_CACHE_DIR") or _default_cache(env),
            use_index=_is_on(env, "SKILLHALL_INDEX"),
            use_git=_is_on(env, "SKILLHALL_GIT"),
            data_directory=env.get("SKILLHALL_DATA_DIR") or _default_data(env),
            home=os.path.expanduser("~"),
            allowed_networks=_words(env.get("SKILLHALL_ALLOW_NETWORKS", "")),
            github_url=_address(env, "SKILLHALL_GITHUB_URL", GITHUB),
            github_api_url=_github_api(env),
            tokens=_tokens(env),
            variables={name: env[name] for name in _OTHERS if env.get(name)},
        )


def _is_on(env: Mapping[str, str], name: str) -> bool:
    return env.get(name, "on").lower() not in ("off", "0", "no", "false")


def _default_cache(env: Mapping[str, str]) -> str:
    if sys.platform == "win32":
        base = env.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = env.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "skillhall")


def _default_data(env: Mapping[str, str]) -> str:
    if sys.platform == "win32":
        return os.path.join(_default_cache(env), "Data")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/skillhall")
    base = env.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(base, "skillhall")


def _address(env: Mapping[str, str], name: str, default: str) -> str:
    return (env.get(name) or default).rstrip("/")


def _github_api(env: Mapping[str, str]) -> str:
    url = _address(env, "SKILLHALL_GITHUB_URL", GITHUB)
    default = GITHUB_API if url == GITHUB else f"{url}/api/v3"  # as GitHub's own server has it
    return _address(env, "SKILLHALL_GITHUB_API_URL", default)


def _tokens(env: Mapping[str, str]) -> dict[str, Secret]:
    """The tokens, each for the hosts it may be sent to."""
    github = [
        _authority(_address(env, "SKILLHALL_GITHUB_URL", GITHUB)),
        _authority(_github_api(env)),
    ]
    # The last one that is set counts: the host's own beats the general one.
    offers = (
        ("SKILLHALL_GIT_TOKEN", _words(env.get("SKILLHALL_GIT_TOKEN_HOSTS", "")) or github),
        ("GITLAB_TOKEN", ["gitlab.com"]),
        ("GH_TOKEN", github),
        ("GITHUB_TOKEN", github),
    )
    return {host: Secret(env[name]) for name, hosts in offers if env.get(name) for host in hosts}


def _authority(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].lower()


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())
