"""What an operator configures: read from the environment once, passed on as one value."""

from __future__ import annotations

import os
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GITHUB_URL = "https://github.com"
GITHUB_API_URL = "https://api.github.com"

# What other programs read too: where agents and installers keep their files.
_AGENT_VARIABLES = (
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

    __slots__ = ("_value",)

    def __init__(self, text: str) -> None:
        self._value = text

    def reveal(self) -> str:
        """The text, for the one who sends it."""
        return self._value

    def __repr__(self) -> str:
        return "***"


class PromptSettings(NamedTuple):
    """Where a server's prompts come from: texts as written, checked where they are used."""

    repo: str = ""
    branch: str = "main"
    path: str = ""
    cache_ttl: str = "86400"  # seconds; 0 looks every time

    @classmethod
    def read(cls, env: Mapping[str, str]) -> PromptSettings:
        """The settings under our names, or those of the prompt server that we follow."""
        found = {}
        for field, default in cls._field_defaults.items():
            name = field.upper()
            theirs = env.get(f"DOT_AI_USER_PROMPTS_{name}")
            found[field] = env.get(f"SKILLHALL_PROMPTS_{name}") or theirs or default
        return cls(**found)


class ServerSettings(NamedTuple):
    """How a server is reached, and by whom."""

    host: str = "127.0.0.1"
    port: str = "8321"
    auth_token: Secret | None = None
    webhook_secret: Secret | None = None
    public_url: str = ""  # what clients call it, if that differs
    allowed_hosts: tuple[str, ...] = ()  # further names that clients may call it by
    folder_scan: bool = False  # whether the web page may read folders of this machine
    # Further repositories that the git tokens may be sent to, also if a client names them.
    git_token_repos: tuple[str, ...] = ()
    mcp_stateless: bool = False  # whether any of several servers may answer a client's next call
    mcp_max_sessions: str = "1000"  # open at once
    mcp_session_timeout: str = "1800"  # seconds until an idle session ends

    @classmethod
    def read(cls, env: Mapping[str, str]) -> ServerSettings:
        """The server's settings."""
        return cls(
            host=env.get("SKILLHALL_HOST") or cls().host,
            port=env.get("SKILLHALL_PORT") or cls().port,
            auth_token=_read_secret(env, "SKILLHALL_AUTH_TOKEN"),
            webhook_secret=_read_secret(env, "SKILLHALL_WEBHOOK_SECRET"),
            public_url=(env.get("SKILLHALL_PUBLIC_URL") or "").rstrip("/"),
            allowed_hosts=_split_list(env.get("SKILLHALL_ALLOWED_HOSTS", "")),
            folder_scan=_read_flag(env, "SKILLHALL_FOLDER_SCAN", "off"),
            git_token_repos=_split_list(env.get("SKILLHALL_GIT_TOKEN_REPOS", "")),
            mcp_stateless=_read_flag(env, "SKILLHALL_MCP_STATELESS", "off"),
            mcp_max_sessions=env.get("SKILLHALL_MCP_MAX_SESSIONS") or cls().mcp_max_sessions,
            mcp_session_timeout=env.get("SKILLHALL_MCP_SESSION_TIMEOUT")
            or cls().mcp_session_timeout,
        )


class ClientSettings(NamedTuple):
    """Which server the commands on prompts ask, and what lets them in."""

    server: str = "http://127.0.0.1:8321"
    token: Secret | None = None
    git_token: Secret | None = None  # for repositories that the server is asked to read
    git_token_hosts: tuple[str, ...] = ()  # where they must be

    @classmethod
    def read(cls, env: Mapping[str, str]) -> ClientSettings:
        """The client's settings; on one machine, the server's own token serves both."""
        own = _read_secret(env, "SKILLHALL_SERVER_TOKEN")
        return cls(
            server=env.get("SKILLHALL_SERVER") or cls().server,
            token=own or _read_secret(env, "SKILLHALL_AUTH_TOKEN"),
            git_token=_read_secret(env, "SKILLHALL_GIT_TOKEN")
            or _read_secret(env, "DOT_AI_GIT_TOKEN"),
            git_token_hosts=_git_token_hosts(env),
        )


class Settings(NamedTuple):
    """The settings of one process."""

    working_directory: str
    cache_directory: str
    use_head_cache: bool = True
    use_git: bool = True  # for GitHub, which can be read without it
    follow_links: bool = False  # whether links in a root may lead to folders outside of all roots
    data_directory: str = ""  # what must not be lost: the store and the history
    database_url: Secret | None = None  # of sessions; a file in the data folder if it is not set
    home: str = ""
    allowed_networks: tuple[str, ...] = ()  # in CIDR notation; the rest of the private ones is not
    github_url: str = GITHUB_URL
    github_api_url: str = GITHUB_API_URL
    # Tokens by host, with its port if that is an unusual one; variables of other programs by name.
    tokens: Mapping[str, Secret] = MappingProxyType({})
    variables: Mapping[str, str] = MappingProxyType({})
    prompts: PromptSettings = PromptSettings()
    server: ServerSettings = ServerSettings()
    client: ClientSettings = ClientSettings()
    model: str = ""  # that chat uses unless told, as provider:name
    # Of files that ReadFile returns; the default list if it is empty.
    read_extensions: tuple[str, ...] = ()
    log_usage: bool = True  # whether it is noted which skills agents use
    # Of every variable that is set, since skills say which ones they need. Never a value.
    variable_names: frozenset[str] = frozenset()

    @classmethod
    def read(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """The settings that the environment and the working directory give."""
        env = os.environ if environment is None else environment
        return cls(
            working_directory=os.getcwd(),
            cache_directory=env.get("SKILLHALL_CACHE_DIR") or _default_cache_directory(env),
            use_head_cache=_read_flag(env, "SKILLHALL_INDEX"),
            use_git=_read_flag(env, "SKILLHALL_GIT"),
            follow_links=_read_flag(env, "SKILLHALL_FOLLOW_LINKS", "off"),
            data_directory=env.get("SKILLHALL_DATA_DIR") or _default_data_directory(env),
            database_url=_read_secret(env, "SKILLHALL_DATABASE_URL"),
            home=os.path.expanduser("~"),
            allowed_networks=_split_list(env.get("SKILLHALL_ALLOW_NETWORKS", "")),
            github_url=_read_url(env, "SKILLHALL_GITHUB_URL", GITHUB_URL),
            github_api_url=_read_github_api_url(env),
            tokens=_read_tokens(env),
            variables={name: env[name] for name in _AGENT_VARIABLES if env.get(name)},
            prompts=PromptSettings.read(env),
            server=ServerSettings.read(env),
            client=ClientSettings.read(env),
            model=env.get("SKILLHALL_MODEL", ""),
            read_extensions=_split_list(env.get("SKILLHALL_READ_EXTENSIONS", "")),
            log_usage=_read_flag(env, "SKILLHALL_USAGE_LOG"),
            variable_names=frozenset(name for name, value in env.items() if value),
        )


# What any program needs to be found, to find its own files, and to speak UTF-8.
_BASE_VARIABLES = (
    "APPDATA",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "LANG",
    "LC_ALL",
    "LOCALAPPDATA",
    "LOGNAME",
    "PATH",
    "PATHEXT",
    "SHELL",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMPDIR",
    "USER",
    "USERNAME",
    "USERPROFILE",
)


def read_secret_variable(variable: str) -> Secret | None:
    """What a variable holds that a person names; `None` if it is unset or empty."""
    return _read_secret(os.environ, variable)


def build_environment(variables: Iterable[str]) -> dict[str, str]:
    """What a program that a person configured gets to see: the essentials, and these by name."""
    return {
        name: os.environ[name] for name in (*_BASE_VARIABLES, *variables) if os.environ.get(name)
    }


def _read_flag(env: Mapping[str, str], name: str, default: str = "on") -> bool:
    return env.get(name, default).lower() not in ("off", "0", "no", "false")


def _read_secret(env: Mapping[str, str], name: str) -> Secret | None:
    return Secret(env[name]) if env.get(name) else None


def _default_cache_directory(env: Mapping[str, str]) -> str:
    if sys.platform == "win32":
        base = env.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = env.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "skillhall")


def _default_data_directory(env: Mapping[str, str]) -> str:
    if sys.platform == "win32":
        return os.path.join(_default_cache_directory(env), "Data")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/skillhall")
    base = env.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(base, "skillhall")


def _read_url(env: Mapping[str, str], name: str, default: str) -> str:
    return (env.get(name) or default).rstrip("/")


def _read_github_api_url(env: Mapping[str, str]) -> str:
    url = _read_url(env, "SKILLHALL_GITHUB_URL", GITHUB_URL)
    default = (
        GITHUB_API_URL if url == GITHUB_URL else f"{url}/api/v3"
    )  # as GitHub's own server has it
    return _read_url(env, "SKILLHALL_GITHUB_API_URL", default)


def _read_tokens(env: Mapping[str, str]) -> dict[str, Secret]:
    """The tokens, each for the hosts it may be sent to."""
    github, general = _github_hosts(env), _git_token_hosts(env)
    # The last one that is set counts: the host's own beats the general one.
    offers = (
        ("DOT_AI_GIT_TOKEN", general),
        ("SKILLHALL_GIT_TOKEN", general),
        ("GITLAB_TOKEN", ("gitlab.com",)),
        ("GH_TOKEN", github),
        ("GITHUB_TOKEN", github),
    )
    return {host: Secret(env[name]) for name, hosts in offers if env.get(name) for host in hosts}


def _github_hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    url = _read_url(env, "SKILLHALL_GITHUB_URL", GITHUB_URL)
    return _authority(url), _authority(_read_github_api_url(env))


def _git_token_hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts that the general token is for."""
    return _split_list(env.get("SKILLHALL_GIT_TOKEN_HOSTS", "")) or _github_hosts(env)


def _authority(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].lower()


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())
