"""Settings: read once from the environment and passed on as one value.

Every command imports this module. Annotations are evaluated, because `NamedTuple` would compile
each one that is text: 0.6 ms for all fields.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Self

if sys.platform != "win32":
    import pwd

GITHUB_URL = "https://github.com"
GITHUB_API_URL = "https://api.github.com"
# Constant: a variable of the environment must not replace the rules of the machine.
MACHINE_POLICY = (
    r"C:\ProgramData\skillhall\policy.toml"
    if sys.platform == "win32"
    else "/etc/skillhall/policy.toml"
)
PROJECT_POLICY = "skillhall-policy.toml"  # in the working directory
TRUST_FILE = "trust.json"  # in the data folder: the approvals of the user
REVOCATIONS_FILE = "revocations.json"  # in the data folder: the lists of known servers

# Variables of coding agents and other programs that we respect too.
_AGENT_VARIABLES = (
    "APPDATA",
    "AUTOHAND_HOME",
    "AWS_CONFIG_FILE",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_SHARED_CREDENTIALS_FILE",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "DOCKER_CONFIG",
    "FLATPAK_XDG_CONFIG_HOME",
    "HERMES_HOME",
    "NETRC",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG",
    "SSH_AUTH_SOCK",
    "VIBE_HOME",
    "VIRTUAL_ENV",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
)


# Settings that administrators can also change on a running server, and their variables.
RUNTIME_VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "language": "SKILLHALL_LANGUAGE",
        "budget_total": "SKILLHALL_BUDGET_TOTAL",
        "budget_permanent": "SKILLHALL_BUDGET_PERMANENT",
        "budget_stable": "SKILLHALL_BUDGET_STABLE",
        "budget_working": "SKILLHALL_BUDGET_WORKING",
        "bin_retention": "SKILLHALL_BIN_RETENTION",
    }
)
# Variables of package managers and stores that hold credentials.
_CREDENTIAL_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "NODE_AUTH_TOKEN",
    "NPM_TOKEN",
)


class Secret:
    """Secret string that never appears in messages, logs or `repr`."""

    __slots__ = ("_value",)

    def __init__(self, text: str) -> None:
        self._value = text

    def reveal(self) -> str:
        """Return the plain text of the secret."""
        return self._value

    def __repr__(self) -> str:
        return "***"


class ProxySettings(NamedTuple):
    """Proxies for outgoing requests. Values are validated where they are used."""

    https: Secret | None = None  # URL, which may contain a password
    http: Secret | None = None
    exceptions: tuple[str, ...] = ()  # hosts that are contacted directly

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Self:
        """Read the variables that most programs use, in lowercase or uppercase."""

        def read(name: str) -> str:
            return env.get(name) or env.get(name.upper()) or ""

        # In a CGI program, HTTP_PROXY is a header of the client.
        http = env.get("http_proxy") if "REQUEST_METHOD" in env else read("http_proxy")
        default = read("all_proxy")
        https, http = read("https_proxy") or default, http or default
        exceptions = _split_list(read("no_proxy"))
        return cls(Secret(https) if https else None, Secret(http) if http else None, exceptions)


class PromptSettings(NamedTuple):
    """Source of a server's prompts. Values are validated where they are used."""

    repo: str = ""
    branch: str = "main"
    path: str = ""
    cache_ttl: str = "86400"  # seconds; 0 disables the cache

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Self:
        """Read the settings, with the variables of the dot-ai prompt server as fallback."""
        values = {}
        for field, default in cls._field_defaults.items():
            name = field.upper()
            fallback = env.get(f"DOT_AI_USER_PROMPTS_{name}")
            values[field] = env.get(f"SKILLHALL_PROMPTS_{name}") or fallback or default
        return cls(**values)


class OidcSettings(NamedTuple):
    """Identity provider at which users of a server sign in."""

    issuer: str = ""  # "" disables it
    client_id: str = ""
    client_secret: Secret | None = None
    scope: str = "openid profile"
    role_claim: str = ""  # claim of the ID token with roles or groups
    roles: tuple[str, ...] = ()  # `value=role` for values of the claim
    unknown: str = "refuse"  # role of people without an account or a mapped value

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Self:
        """Read the settings of the identity provider."""
        return cls(
            issuer=env.get("SKILLHALL_OIDC_ISSUER") or "",
            client_id=env.get("SKILLHALL_OIDC_CLIENT_ID") or "",
            client_secret=_read_secret(env, "SKILLHALL_OIDC_CLIENT_SECRET"),
            scope=env.get("SKILLHALL_OIDC_SCOPE") or cls().scope,
            role_claim=env.get("SKILLHALL_OIDC_ROLE_CLAIM") or "",
            roles=_split_list(env.get("SKILLHALL_OIDC_ROLES", "")),
            unknown=env.get("SKILLHALL_OIDC_UNKNOWN") or cls().unknown,
        )


class ServerSettings(NamedTuple):
    """Network, authentication and MCP settings of a server."""

    host: str = "127.0.0.1"
    port: str = "8321"
    auth_token: Secret | None = None
    webhook_secret: Secret | None = None
    signing_key: str = ""  # path of the private key that signs the list of revocations
    public_url: str = ""  # if clients use another URL, e.g. of a proxy
    allowed_hosts: tuple[str, ...] = ()  # additional values of the Host header
    folder_scan: bool = False  # whether the web UI may read folders of this machine
    review: str = ""  # who approves versions of skills: off, one or two; "" is off
    # Additional repositories that may receive the git tokens when a client names them.
    git_token_repos: tuple[str, ...] = ()
    mcp_stateless: bool = False  # for several servers behind a load balancer
    mcp_max_sessions: str = "1000"
    mcp_session_timeout: str = "1800"  # seconds of inactivity
    request_timeout: str = "150"  # seconds until a request is given up
    max_fetches: str = "16"  # of repositories and URLs for requests, at the same time
    max_fetches_per_client: str = "12"
    max_streams: str = "1000"  # of live events
    max_streams_per_client: str = "250"
    audit_retention: str = "400"  # days that rows of the audit log are stored
    oidc: OidcSettings = OidcSettings()
    fixed: Mapping[str, str] = MappingProxyType({})  # `RUNTIME_VARIABLES` that are set

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Self:
        """Read the settings of a server."""
        return cls(
            host=env.get("SKILLHALL_HOST") or cls().host,
            port=env.get("SKILLHALL_PORT") or cls().port,
            auth_token=_read_secret(env, "SKILLHALL_AUTH_TOKEN"),
            webhook_secret=_read_secret(env, "SKILLHALL_WEBHOOK_SECRET"),
            signing_key=env.get("SKILLHALL_SIGNING_KEY") or "",
            public_url=(env.get("SKILLHALL_PUBLIC_URL") or "").rstrip("/"),
            allowed_hosts=_split_list(env.get("SKILLHALL_ALLOWED_HOSTS", "")),
            folder_scan=_read_flag(env, "SKILLHALL_FOLDER_SCAN", "off"),
            review=env.get("SKILLHALL_REVIEW") or cls().review,
            git_token_repos=_split_list(env.get("SKILLHALL_GIT_TOKEN_REPOS", "")),
            mcp_stateless=_read_flag(env, "SKILLHALL_MCP_STATELESS", "off"),
            mcp_max_sessions=env.get("SKILLHALL_MCP_MAX_SESSIONS") or cls().mcp_max_sessions,
            mcp_session_timeout=env.get("SKILLHALL_MCP_SESSION_TIMEOUT")
            or cls().mcp_session_timeout,
            request_timeout=env.get("SKILLHALL_REQUEST_TIMEOUT") or cls().request_timeout,
            max_fetches=env.get("SKILLHALL_MAX_FETCHES") or cls().max_fetches,
            max_fetches_per_client=env.get("SKILLHALL_MAX_FETCHES_PER_CLIENT")
            or cls().max_fetches_per_client,
            max_streams=env.get("SKILLHALL_MAX_STREAMS") or cls().max_streams,
            max_streams_per_client=env.get("SKILLHALL_MAX_STREAMS_PER_CLIENT")
            or cls().max_streams_per_client,
            audit_retention=env.get("SKILLHALL_AUDIT_RETENTION") or cls().audit_retention,
            oidc=OidcSettings.read(env),
            fixed={name: env[one] for name, one in RUNTIME_VARIABLES.items() if env.get(one)},
        )


class EmbeddingSettings(NamedTuple):
    """Embedding model for search. Values are validated where they are used."""

    url: str = ""  # of a server with OpenAI's embeddings API, above `/embeddings`
    model: str = ""  # its name, or `fastembed:name`; "" disables embeddings
    key: Secret | None = None
    price: str = ""  # dollars per million tokens, for estimates
    timeout: str = "2"  # seconds that a search waits for the model

    @classmethod
    def read(cls, env: Mapping[str, str]) -> Self:
        """Read the settings of embeddings."""
        return cls(
            url=env.get("SKILLHALL_EMBEDDINGS_URL", ""),
            model=env.get("SKILLHALL_EMBEDDINGS_MODEL", ""),
            key=_read_secret(env, "SKILLHALL_EMBEDDINGS_KEY"),
            price=env.get("SKILLHALL_EMBEDDINGS_PRICE", ""),
            timeout=env.get("SKILLHALL_EMBEDDINGS_TIMEOUT") or cls().timeout,
        )


class ClientSettings(NamedTuple):
    """Server URL and tokens for the prompt commands."""

    server: str = "http://127.0.0.1:8321"
    token: Secret | None = None
    git_token: Secret | None = None  # sent to the server for private repositories
    git_token_hosts: tuple[str, ...] = ()  # hosts of those repositories

    @classmethod
    def read(cls, env: Mapping[str, str], git_token_hosts: tuple[str, ...]) -> Self:
        """Read the settings of a client."""
        return cls(
            server=env.get("SKILLHALL_SERVER") or cls().server,
            # If server and client share an environment, the server's token is enough.
            token=_read_secret(env, "SKILLHALL_SERVER_TOKEN")
            or _read_secret(env, "SKILLHALL_AUTH_TOKEN"),
            git_token=_read_secret(env, "SKILLHALL_GIT_TOKEN")
            or _read_secret(env, "DOT_AI_GIT_TOKEN"),
            git_token_hosts=git_token_hosts,
        )


class Settings(NamedTuple):
    """Settings of one process."""

    working_directory: str
    cache_directory: str
    use_head_cache: bool = True
    use_git: bool = True  # read GitHub with git, if it is installed, else with its API
    follow_links: bool = False  # whether links in a root may lead outside of all roots
    trust_project: bool = False  # whether models get skills of a project without an approval
    data_directory: str = ""  # persistent data, e.g. the history
    database_url: Secret | None = None  # default: a SQLite file in the data folder
    database_timeout: str = "10"  # seconds
    home: str = ""
    allowed_networks: tuple[str, ...] = ()  # private networks that may be contacted, as CIDR
    github_url: str = GITHUB_URL
    github_api_url: str = GITHUB_API_URL
    tokens: Mapping[str, Secret] = MappingProxyType({})  # by host, with the port if not standard
    variables: Mapping[str, str] = MappingProxyType({})  # `_AGENT_VARIABLES` that are set
    credentials: Mapping[str, Secret] = MappingProxyType({})  # `_CREDENTIAL_VARIABLES`
    use_stored_logins: bool = True  # those that the user stored for git, Docker or in ~/.netrc
    proxies: ProxySettings = ProxySettings()
    prompts: PromptSettings = PromptSettings()
    server: ServerSettings = ServerSettings()
    client: ClientSettings = ClientSettings()
    model: str = ""  # default model of chats, as provider:name
    eval_results: str = ""  # folder with the workspaces of evals; "": next to each skill
    embeddings: EmbeddingSettings = EmbeddingSettings()
    read_extensions: tuple[str, ...] = ()  # that ReadFile accepts; empty: the default list
    signing_passphrase: Secret | None = None  # of the private key for signatures
    machine_policy: str = ""  # path of the machine's policy file; "" is none
    user_policy: str = ""  # path of the user's policy file; "" is none
    log_usage: bool = True  # whether to record which skills agents use
    # Names of all variables that are set, because skills can require some. Never their values.
    variable_names: frozenset[str] = frozenset()

    @property
    def policy_files(self) -> dict[str, str]:
        """The paths of the policy files by level, which need not exist."""
        project = os.path.join(self.working_directory, PROJECT_POLICY)
        paths = {"machine": self.machine_policy, "user": self.user_policy, "project": project}
        return {level: path for level, path in paths.items() if path}

    @property
    def has_policy(self) -> bool:
        """Whether there is a policy file."""
        return any(map(is_present, self.policy_files.values()))

    @property
    def revocations_file(self) -> str:
        """The path of the lists of revocations; "" without a data folder."""
        directory = self.data_directory
        return os.path.join(directory, REVOCATIONS_FILE) if directory else ""

    @property
    def trust_rule_files(self) -> tuple[str, ...]:
        """The paths of the files that can keep a skill from models, which need not exist."""
        trust_file = self.data_directory and os.path.join(self.data_directory, TRUST_FILE)
        paths = (trust_file, *self.policy_files.values(), self.revocations_file)
        return tuple(filter(None, paths))

    @property
    def has_revocations(self) -> bool:
        """Whether there are lists of revocations."""
        return bool(self.data_directory) and is_present(self.revocations_file)

    @classmethod
    def read(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read the settings from the environment and the working directory."""
        env = os.environ if environment is None else environment
        cache_directory, data_directory, config_directory = _find_directories(env)
        github_url = (env.get("SKILLHALL_GITHUB_URL") or GITHUB_URL).rstrip("/")
        is_enterprise = github_url != GITHUB_URL  # GitHub Enterprise Server
        api_url = f"{github_url}/api/v3" if is_enterprise else GITHUB_API_URL
        api_url = (env.get("SKILLHALL_GITHUB_API_URL") or api_url).rstrip("/")
        github_hosts = tuple(
            url.partition("://")[2].partition("/")[0].lower() for url in (github_url, api_url)
        )
        git_token_hosts = _split_list(env.get("SKILLHALL_GIT_TOKEN_HOSTS", "")) or github_hosts
        # The last variable that is set wins: specific tokens have priority over general ones.
        token_hosts = {
            "DOT_AI_GIT_TOKEN": git_token_hosts,
            "SKILLHALL_GIT_TOKEN": git_token_hosts,
            "GITLAB_TOKEN": ("gitlab.com",),
            "GH_TOKEN": github_hosts,
            "GITHUB_TOKEN": github_hosts,
        }
        return cls(
            working_directory=os.getcwd(),
            cache_directory=env.get("SKILLHALL_CACHE_DIR") or cache_directory,
            use_head_cache=_read_flag(env, "SKILLHALL_INDEX"),
            use_git=_read_flag(env, "SKILLHALL_GIT"),
            follow_links=_read_flag(env, "SKILLHALL_FOLLOW_LINKS", "off"),
            trust_project=_read_flag(env, "SKILLHALL_TRUST_PROJECT", "off"),
            data_directory=env.get("SKILLHALL_DATA_DIR") or data_directory,
            database_url=_read_secret(env, "SKILLHALL_DATABASE_URL"),
            database_timeout=env.get("SKILLHALL_DATABASE_TIMEOUT")
            or cls._field_defaults["database_timeout"],
            home=os.path.expanduser("~"),
            allowed_networks=_split_list(env.get("SKILLHALL_ALLOW_NETWORKS", "")),
            github_url=github_url,
            github_api_url=api_url,
            tokens={
                host: Secret(env[name])
                for name, hosts in token_hosts.items()
                if env.get(name)
                for host in hosts
            },
            variables={
                name: value
                for name in _AGENT_VARIABLES
                if (value := env.get(name) or _read_npm_variable(env, name))
            },
            credentials={
                name: Secret(env[name]) for name in _CREDENTIAL_VARIABLES if env.get(name)
            },
            use_stored_logins=_read_flag(env, "SKILLHALL_STORED_LOGINS"),
            proxies=ProxySettings.read(env),
            prompts=PromptSettings.read(env),
            server=ServerSettings.read(env),
            client=ClientSettings.read(env, git_token_hosts),
            model=env.get("SKILLHALL_MODEL", ""),
            eval_results=env.get("SKILLHALL_EVAL_RESULTS", ""),
            embeddings=EmbeddingSettings.read(env),
            read_extensions=_split_list(env.get("SKILLHALL_READ_EXTENSIONS", "")),
            signing_passphrase=_read_secret(env, "SKILLHALL_SIGNING_PASSPHRASE"),
            machine_policy=MACHINE_POLICY,
            user_policy=os.path.join(config_directory, "policy.toml"),
            log_usage=_read_flag(env, "SKILLHALL_USAGE_LOG"),
            variable_names=frozenset(name for name, value in env.items() if value),
        )


# Variables that programs need to start, to find their files, and to use UTF-8.
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


def is_present(path: str) -> bool:
    """Whether a file exists, or may exist in a folder that cannot be read."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def read_secret_variable(variable: str) -> Secret | None:
    """Read a secret from an environment variable; `None` if it is unset or empty."""
    return _read_secret(os.environ, variable)


def build_environment(variables: Iterable[str]) -> dict[str, str]:
    """Build the environment of a configured program: base variables and `variables`.

    Variables that are unset or empty are left out.
    """
    return {
        name: os.environ[name] for name in (*_BASE_VARIABLES, *variables) if os.environ.get(name)
    }


def read_environment() -> dict[str, str]:
    """Return the complete environment, for programs that get credentials for the user.

    Unlike other programs, they need what the user's desktop and cloud tools have set.
    """
    return dict(os.environ)


def _read_flag(env: Mapping[str, str], name: str, default: str = "on") -> bool:
    # An empty variable counts as unset, so that it never turns on what is off by default.
    return (env.get(name) or default).lower() not in ("off", "0", "no", "false")


def _read_npm_variable(env: Mapping[str, str], name: str) -> str:
    """Return a variable of npm, which also reads their names in lowercase."""
    return env.get(name.lower(), "") if name.startswith("NPM_CONFIG_") else ""


def _read_secret(env: Mapping[str, str], name: str) -> Secret | None:
    return Secret(env[name]) if env.get(name) else None


def _find_directories(env: Mapping[str, str]) -> tuple[str, str, str]:
    """Return the user's folders for the cache, for persistent data and for config files."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        local = env.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
        roaming = env.get("APPDATA") or os.path.join(home, "AppData", "Roaming")
        cache = os.path.join(local, "skillhall")
        return cache, os.path.join(cache, "Data"), os.path.join(roaming, "skillhall")
    if sys.platform == "darwin":
        library = os.path.join(home, "Library")
        support = f"{library}/Application Support/skillhall"
        return f"{library}/Caches/skillhall", support, support
    cache = env.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    data = env.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    config = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return f"{cache}/skillhall", f"{data}/skillhall", f"{config}/skillhall"


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def read_os_user() -> str:
    """Return the name of the OS user who runs this process, also with sudo; "" if unknown.

    Not part of the settings: looking up a name can ask a directory server.
    """
    if sys.platform == "win32":
        return os.environ.get("USERNAME", "")
    if os.getuid() == 0 and (name := os.environ.get("SUDO_USER", "")):
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in a container, the user may have no name
        return ""
