"""All exceptions, in families.

```text
SkillhallError
├── NotFoundError       SkillNotFound (also a KeyError), SkillFileNotFound, PromptNotFound, …
├── InvalidSkillError   SkillRejected, SkillNotApproved, EditRefused (also a ValueError), …
├── InvalidInputError   UnsafePath, NotAFile, TooLarge, FieldRefused, MissingArguments, …
├── SourceError         SourceRejected, SourceNotFound, SourceUnavailable, RateLimited, …
├── InstallError        LockInvalid, LockMismatch, Conflict, Edited, NotInstalledError, …
├── StoreError          ReadOnly, StaleVersionError, VersionConflict, DatabaseUnavailable, …
├── ConfigError         ConfigInvalid, SandboxUnavailable
└── ModelError          ModelUnavailable, Busy
```

```python
from skillhall import Skills
from skillhall.errors import NotFoundError, SkillhallError, SourceError

try:
    Skills.open("acme/no-such-repository")
except (NotFoundError, SourceError) as error:
    print(error.kind, error)
except SkillhallError as error:
    print(error.code, error)
```

An error is a code and facts. `code` determines the exit code and the HTTP status, `kind` is unique
for each exception class, and the facts are attributes. The message is one sentence that names no
option, route, command or button: each surface (command line, REST, web page) adds its own hint,
chosen by `kind`.
"""

from __future__ import annotations

import warnings
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

__all__ = [
    "AgentHasNoHook",
    "AgentHasNoPlace",
    "ArchiveRejected",
    "BackupRejected",
    "BlockMovedError",
    "Busy",
    "ConfigError",
    "ConfigInvalid",
    "Conflict",
    "DatabaseFull",
    "DatabaseNewer",
    "DatabaseUnavailable",
    "EditRefused",
    "Edited",
    "FieldRefused",
    "FolderScanOff",
    "FollowingOff",
    "IdentityRefused",
    "InstallError",
    "InvalidArguments",
    "InvalidInputError",
    "InvalidSkillError",
    "LinkExpired",
    "LockInvalid",
    "LockMismatch",
    "LockNotFound",
    "McpSkillNotFound",
    "MissingArguments",
    "ModelError",
    "ModelUnavailable",
    "NoSkillThere",
    "NotAFile",
    "NotASkill",
    "NotAuthenticated",
    "NotFoundError",
    "NotInstalledError",
    "NothingToUndo",
    "OwnVersionError",
    "PackageNotInstalled",
    "PromptNotFound",
    "PromptsSourceError",
    "ProviderUnavailable",
    "RateLimited",
    "ReadOnly",
    "RecordNotFound",
    "ReviewGone",
    "RoleRequired",
    "SandboxUnavailable",
    "ScopeRequired",
    "ServedSkillRejected",
    "ServerRefused",
    "SkillFileNotFound",
    "SkillNotApproved",
    "SkillNotFound",
    "SkillNotInSource",
    "SkillParseError",
    "SkillRejected",
    "SkillhallError",
    "SkillsNotServed",
    "SourceError",
    "SourceNotFound",
    "SourceRejected",
    "SourceTimedOut",
    "SourceUnavailable",
    "SourceUnknown",
    "StaleVersionError",
    "StoreError",
    "TextRefused",
    "TokenNotFound",
    "TooLarge",
    "UnknownAgent",
    "UnknownMcpServer",
    "UnknownProfile",
    "UnsafePath",
    "UnsavedFilesError",
    "UploadRejected",
    "UserNotFound",
    "VersionConflict",
    "VersionNotFound",
    "VersionStateConflict",
    "VersionYanked",
]

ArchiveReason: TypeAlias = Literal[
    "path",  # a name that is not a plain relative path
    "link",
    "special",  # neither a regular file nor a folder
    "duplicate",  # names that some file system treats as equal
    "encrypted",
    "method",  # an unsupported compression method or format extension
    "malformed",
    "confusion",  # two programs could extract different files from it
    "no_skill",
]
SourceReason: TypeAlias = Literal["url", "ref", "scheme", "host", "path"]  # the part at fault
AccessProblem: TypeAlias = Literal[
    "",
    "no_token",
    "no_token_for_host",  # and the host has no token variable of its own
    "token_withheld",  # the server has one, but does not send it for this repository
    "token_rejected",
    "token_invalid",  # the host rejects the token in `token_variable`
    "no_login",  # there is no stored login for the host
    "login_rejected",  # the host rejects the stored login
]

_MAX_TEXT = 200  # characters of a fact that a message repeats
_MAX_NAMES = 5  # names that a message repeats


@dataclass_transform(eq_default=False)
class SkillhallError(Exception):
    """The base class of all errors that Skillhall raises deliberately.

    A subclass names its code, and declares its facts as annotated attributes, in the order of its
    constructor, and a template for the message.

    ```python
    from skillhall import SkillhallError, Skills

    try:
        Skills.load("missing")
    except SkillhallError as error:
        print(error.code, error, dict(error.facts))
    ```
    """

    code: str = "internal"
    kind: ClassVar[str] = "internal"  # unique for each class
    _template = ""
    hint = ""  # advice from the code that raises the error, if it has any
    _fact_names: tuple[str, ...] = ()
    _redacted_names: tuple[str, ...] = ()  # facts that may be URLs with credentials

    def __init_subclass__(cls, code: str = "") -> None:
        """Derive the kind from the name of the class and collect its facts.

        Without a `code`, the class has that of its family.
        """
        super().__init_subclass__()
        cls.code = code or cls.code
        words = "".join([f"_{c}" if c.isupper() else c for c in cls.__name__])
        cls.kind = words.removeprefix("_").lower()
        # `inspect.get_annotations` would import a module that most commands do not need.
        own = cls.__dict__.get("__annotations__", {})  # noqa: RUF063
        facts = [name for name, kind in own.items() if not str(kind).startswith("ClassVar")]
        cls._fact_names = (*(n for n in cls._fact_names if n not in facts), *facts)

    def __init__(self, *args: Any, **named: Any) -> None:  # noqa: ANN401 - as the subclass declares
        """Bind the facts like a dataclass. A class without facts takes a message instead."""
        super().__init__(*args)
        names = self._fact_names
        if not names:
            return
        facts = dict(zip(names, args, strict=False)) | named
        missing = [name for name in names if name not in facts and not hasattr(type(self), name)]
        if missing or len(args) > len(names) or not facts.keys() <= set(names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(names)}")
        for name, value in facts.items():
            setattr(self, name, tuple(value) if isinstance(value, list) else value)
        for name in self._redacted_names:
            setattr(self, name, without_credentials(getattr(self, name)))

    def __str__(self) -> str:
        """The message."""
        if not self._template:
            return Exception.__str__(self)
        return self._template.format_map(
            {name: _display(name, value) for name, value in self._pairs()}
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by attributes: the constructors of subclasses differ."""
        return _rebuild, (type(self), self.args, self.__dict__)

    @property
    def facts(self) -> Mapping[str, object]:
        """The facts of this error by name, as a read-only mapping."""
        return MappingProxyType(dict(self._pairs()))

    @property
    def suggestion(self) -> str:
        """The nearest names as a question ("did you mean …?"), or ""."""
        close: Sequence[str] = getattr(self, "close", ())
        return f"did you mean {' or '.join(map(repr, close))}?" if close else ""

    @property
    def variant(self) -> str:
        """The case of this error, which selects the hint; "" if one hint suits all cases."""
        return ""

    @property
    def starts_with_fact(self) -> bool:
        """Whether the message starts with a name or path, whose first letter must not change."""
        return self._template.startswith("{") and not self._template.startswith(
            ("{problem", "{field")
        )

    def _pairs(self) -> Iterator[tuple[str, Any]]:
        return ((name, getattr(self, name)) for name in self._fact_names)


class NotFoundError(SkillhallError, code="not_found"):
    """The requested skill, file or other object does not exist.

    >>> print(NotFoundError("there is no such skill"))
    there is no such skill
    """


class InvalidSkillError(SkillhallError, code="invalid_skill"):
    """A SKILL.md or a folder cannot be used as a skill.

    ```python
    from skillhall import InvalidSkillError, parse_skill_metadata

    try:
        parse_skill_metadata("no frontmatter", "SKILL.md")
    except InvalidSkillError as error:
        print(error)
    ```
    """


class InvalidInputError(SkillhallError, code="invalid_argument"):
    """An argument, path or text was not accepted.

    >>> print(InvalidInputError("the path is not relative"))
    the path is not relative
    """


class SourceError(SkillhallError, code="upstream_error"):
    """A source of skills cannot be used.

    ```python
    from skillhall import Skills, SourceError

    try:
        Skills.open("acme/no-such-repository")
    except SourceError as error:
        print(error)
    ```
    """


class InstallError(SkillhallError, code="conflict"):
    """An installed skill or a lock file prevents a change.

    ```python
    from skillhall import Installer, InstallError

    try:
        Installer.project().rollback("pdf-tools")
    except InstallError as error:
        print(error)
    ```
    """


class StoreError(SkillhallError, code="conflict"):
    """A skill store, a workspace or a database did not accept a change.

    ```python
    from skillhall import StoreError
    from skillhall.compat import LocalSkills

    try:
        LocalSkills(".").delete("notes")
    except StoreError as error:
        print(error)
    except LookupError:
        print("not found")
    ```
    """


class ConfigError(SkillhallError, code="invalid_config"):
    """The configuration cannot be used.

    >>> print(ConfigError("the config has no agents"))
    the config has no agents
    """


class ModelError(SkillhallError, code="upstream_error"):
    """A language model cannot be used.

    >>> print(ModelError("the model is not available"))
    the model is not available
    """


# Not found


class SkillNotFound(NotFoundError, KeyError):
    """No skill has this name; `close` lists the nearest names.

    ```python
    from skillhall import SkillNotFound, Skills

    try:
        Skills.load("skills")["pdf-tool"]
    except SkillNotFound as error:
        print(error, error.close)
    ```
    """

    _template = "there is no skill named {name!r}"
    name: str
    close: Sequence[str] = ()
    hint: str = ""


class SkillNotInSource(SkillNotFound):
    """The opened source contains no skill with this name.

    >>> print(SkillNotInSource("pdf"))
    there is no skill named 'pdf'
    """


class McpSkillNotFound(SkillNotFound):
    """The MCP server with this label has no such skill.

    >>> print(McpSkillNotFound("pdf", label="acme"))
    there is no skill named 'pdf'
    """

    label: str = ""


class SkillFileNotFound(NotFoundError):
    """The skill has no such file.

    >>> print(SkillFileNotFound("references/forms.md"))
    there is no file 'references/forms.md'
    """

    _template = "there is no file {path!r}"
    path: str
    hint: str = ""


class PromptNotFound(NotFoundError, code="prompt_not_found"):
    """The source has no prompt with this name.

    >>> print(PromptNotFound("review"))
    Prompt not found: review
    """

    _template = "Prompt not found: {name}"
    name: str


class SourceUnknown(NotFoundError, code="invalid_argument"):
    """No upload has this name, or the upload was removed to make room for others.

    >>> print(SourceUnknown("team-prompts"))
    Unknown source: team-prompts
    """

    _template = "Unknown source: {name}"
    name: str

    def __init__(self, name: str) -> None:
        super().__init__(label_without_credentials(name))


class RecordNotFound(NotFoundError):
    """No session, block, template or snapshot has this id.

    >>> print(RecordNotFound("session", "s1"))
    there is no session with the id 's1'
    """

    _template = "there is no {record} with the id {id!r}"
    record: str  # the kind of record, such as "session"
    id: str


class VersionNotFound(NotFoundError):
    """A skill has no version with this number or digest.

    >>> print(VersionNotFound("pdf", "7"))
    the skill 'pdf' has no version 7
    """

    _template = "the skill {name!r} has no version {version}"
    name: str
    version: str


class VersionYanked(NotFoundError):
    """An approved version of a skill was yanked.

    >>> print(VersionYanked("pdf", 4, "it deletes files"))
    version 4 of the skill 'pdf' was yanked: it deletes files
    """

    _template = "version {number} of the skill {name!r} was yanked: {reason}"
    name: str
    number: int
    reason: str


class TokenNotFound(NotFoundError):
    """No access token has this id or label.

    >>> print(TokenNotFound("laptop"))
    there is no token with the id or label 'laptop'
    """

    _template = "there is no token with the id or label {name!r}"
    name: str


class UserNotFound(NotFoundError):
    """No user has this name.

    >>> print(UserNotFound("dev1"))
    there is no user 'dev1'
    """

    _template = "there is no user {name!r}"
    name: str


class LinkExpired(NotFoundError):
    """A link to set a password was used before, or has expired.

    >>> print(LinkExpired())
    this link has been used, or has expired
    """

    _template = "this link has been used, or has expired"


class UnknownProfile(NotFoundError):
    """No profile has this name.

    >>> print(UnknownProfile("loose", ["lenient", "specification"]))
    there is no profile named 'loose'; known profiles: lenient, specification
    """

    _template = "there is no profile named {name!r}; known profiles: {known}"
    name: str
    known: Sequence[str]


class UnknownAgent(NotFoundError):
    """No coding agent has this id; `close` lists the nearest ids.

    >>> print(UnknownAgent("claude", close=["claude-code"]))
    there is no agent named 'claude'
    """

    _template = "there is no agent named {name!r}"
    name: str
    close: Sequence[str] = ()


class UnknownMcpServer(NotFoundError):
    """No MCP server has this label; `close` lists the nearest labels.

    >>> print(UnknownMcpServer("acme"))
    there is no MCP server named 'acme'
    """

    _template = "there is no MCP server named {label!r}"
    label: str
    close: Sequence[str] = ()


# Invalid skills


class SkillRejected(InvalidSkillError):
    """The profile rejected a SKILL.md; each of `reasons` is one line.

    >>> print(SkillRejected("pdf/SKILL.md", ["it has no description"]))
    pdf/SKILL.md: it has no description
    """

    path: str
    reasons: Sequence[str]

    def __str__(self) -> str:
        return f"{self.path}: {'; '.join(self.reasons)}"


class SkillNotApproved(InvalidSkillError, code="not_approved"):
    """A skill was found in a project, and the user has not approved it.

    >>> print(SkillNotApproved("pdf", "it has changed since it was approved"))
    the skill 'pdf' is not approved: it has changed since it was approved
    """

    _template = "the skill {name!r} is not approved: {reason}"
    name: str
    reason: str


class SkillParseError(InvalidSkillError):
    """A SKILL.md could not be parsed; `problem` names the file and the field.

    >>> print(SkillParseError("SKILL.md", "SKILL.md: 'name' is missing"))
    SKILL.md: 'name' is missing
    """

    _template = "{problem}"
    path: str
    problem: str


class EditRefused(InvalidSkillError, ValueError):
    """An edit cannot be made, or would change other content too.

    >>> print(EditRefused("the name cannot be changed here"))
    the name cannot be changed here
    """


class NotASkill(InvalidSkillError, code="conflict"):
    """The folder of a skill in the lock file contains no SKILL.md.

    >>> print(NotASkill(".claude/skills/pdf"))
    .claude/skills/pdf is not a skill: no SKILL.md found
    """

    _template = "{path} is not a skill: no SKILL.md found"
    path: str


# Invalid input


class UnsafePath(InvalidInputError, code="invalid_path"):
    """A path is not a plain relative path, or it leaves its root.

    >>> print(UnsafePath("../secret", "it leaves its folder"))
    '../secret' is rejected: it leaves its folder
    """

    _template = "{path!r} is rejected: {reason}"
    path: str
    reason: str


class NotAFile(InvalidInputError, code="not_a_file"):
    """There is a folder, pipe or device where a regular file was expected.

    >>> print(NotAFile("references"))
    'references' is not a regular file
    """

    _template = "{path!r} is not a regular file"
    path: str


class TooLarge(InvalidInputError, code="too_large"):
    """Content exceeds a limit on its size or on the number of its files.

    >>> print(TooLarge("video.mp4", 1000))
    'video.mp4' exceeds the limit of 1000 bytes
    """

    _template = "{path!r} exceeds the limit of {limit} {unit}"
    path: str
    limit: int
    unit: str = "bytes"


class FieldRefused(InvalidInputError):
    """A field of a request, session, block or template has an invalid value.

    >>> print(FieldRefused("name", "must not be empty"))
    name: must not be empty
    """

    _template = "{field}: {problem}"
    field: str
    problem: str
    hint: str = ""


class TextRefused(InvalidInputError, code="invalid_text"):
    """Text contains characters that are not allowed in its field.

    >>> print(TextRefused("content", "contains NUL characters"))
    content: contains NUL characters
    """

    _template = "{field}: {problem}"
    field: str
    problem: str


class MissingArguments(InvalidInputError):
    """A prompt was requested without required arguments; empty ones count as missing.

    >>> print(MissingArguments(["language"]))
    Missing required arguments: language
    """

    names: Sequence[str]

    def __str__(self) -> str:
        return f"Missing required arguments: {', '.join(self.names)}"


class InvalidArguments(InvalidInputError):
    """A prompt was given arguments that are lists, objects or non-finite numbers.

    >>> print(InvalidArguments(["files"]))
    Arguments must be text, numbers or booleans: files
    """

    names: Sequence[str]

    def __str__(self) -> str:
        return f"Arguments must be text, numbers or booleans: {', '.join(self.names)}"


class UploadRejected(InvalidInputError):
    """An upload broke a rule; none of it was stored.

    >>> print(UploadRejected("an upload has at most 100 files"))
    an upload has at most 100 files
    """

    _template = "{problem}"
    problem: str


class AgentHasNoHook(InvalidInputError):
    """No start hook can be installed for these coding agents.

    >>> print(AgentHasNoHook(["cursor"]))
    hooks can only be installed for Claude Code, not for cursor
    """

    agents: Sequence[str]

    def __str__(self) -> str:
        named = f", not for {_join_names(self.agents)}" if self.agents else ""
        return f"hooks can only be installed for Claude Code{named}"


# Sources


class SourceRejected(SourceError, code="source_rejected"):
    """A source was rejected before a process was started or a connection opened.

    >>> print(SourceRejected("scheme", "ftp://acme.dev/skills.zip"))
    'ftp://acme.dev/skills.zip' is rejected: its scheme is not supported
    """

    _template = "{text!r} is rejected: {problem}"
    _redacted_names = ("text",)
    reason: SourceReason
    text: str
    problem: str = ""
    hint: str = ""

    def __init__(self, reason: SourceReason, text: str, problem: str = "", hint: str = "") -> None:
        super().__init__(reason, text, problem or f"its {reason} is not supported", hint)


class SourceNotFound(SourceError, code="not_found"):
    """The source does not exist on its host, or is not accessible with these credentials.

    >>> print(SourceNotFound("acme/skills"))
    nothing was found at 'acme/skills'
    """

    _template = "nothing was found at {text!r}"
    _redacted_names = ("text",)
    text: str
    hint: str = ""
    token_variable: str = ""  # where a token for a private repository belongs
    has_token: bool = False  # the variable has one, but it may lack access to the repository

    @property
    def variant(self) -> str:
        """`token` or `no_token` if a token can help, else ""."""
        return "" if not self.token_variable else "token" if self.has_token else "no_token"


class PackageNotInstalled(SourceError, code="not_found"):
    """No Python package with this name is installed.

    >>> print(PackageNotInstalled("acme-skills"))
    the Python package 'acme-skills' is not installed
    """

    _template = "the Python package {package!r} is not installed"
    package: str


class NoSkillThere(SourceError, code="not_found"):
    """The source exists, but contains no SKILL.md.

    >>> print(NoSkillThere("acme/website"))
    No SKILL.md found in 'acme/website'
    """

    _template = "No SKILL.md found in {text!r}"
    _redacted_names = ("text",)
    text: str
    hint: str = ""


class SourceUnavailable(SourceError):
    """The host cannot be reached, or its response cannot be used.

    >>> print(SourceUnavailable("github.com", "the response has the status 500"))
    github.com: the response has the status 500
    """

    _template = "{host}: {problem}"
    host: str
    problem: str
    hint: str = ""
    status: int = 0  # HTTP status of the response, if that is the problem
    access: AccessProblem = ""  # the problem with our credentials, if any
    token_variable: str = ""  # where the host's token belongs

    @property
    def variant(self) -> str:
        """The problem with our credentials; "" if they are not the problem."""
        return self.access


class SourceTimedOut(SourceUnavailable, code="upstream_timeout"):
    """The host did not respond in time.

    >>> print(SourceTimedOut("github.com", "no response within 30 s"))
    github.com: no response within 30 s
    """


class RateLimited(SourceError, code="rate_limited"):
    """The host rejected a request because of its rate limit.

    >>> print(RateLimited("github.com", 30))
    rate limited by github.com; retry in 30 s
    """

    _template = "rate limited by {host}; retry in {seconds} s"
    host: str
    seconds: int
    hint: str = ""
    token_variable: str = ""  # where a token belongs that would raise the limit

    @property
    def variant(self) -> str:
        """`no_token` if a token would raise the limit, else ""."""
        return "no_token" if self.token_variable else ""


class ArchiveRejected(SourceError, code="archive_rejected"):
    """A zip or tar file was rejected as a whole; `detail` is the problem.

    >>> print(ArchiveRejected("skills.zip", "link", "'a' is a link"))
    the archive 'skills.zip' is rejected: 'a' is a link
    """

    _template = "the archive {name!r} is rejected: {detail}"
    name: str
    reason: ArchiveReason
    detail: str

    @property
    def variant(self) -> str:
        """`no_skill` if the archive contains no skill, else ""."""
        return self.reason if self.reason == "no_skill" else ""


class PromptsSourceError(SourceError):
    """A source of prompts cannot be read, and no cached version is available.

    >>> print(PromptsSourceError("acme/prompts", "the branch does not exist"))
    'acme/prompts' cannot be read: the branch does not exist
    """

    _template = "{source!r} cannot be read: {problem}"
    _redacted_names = ("source",)
    source: str
    problem: str
    hint: str = ""


class SkillsNotServed(SourceError, code="not_found"):
    """The MCP server does not declare the extension for skills.

    >>> str(SkillsNotServed("acme")).partition(" (")[0]
    'acme: this server does not offer skills'
    """

    _template = (
        "{host}: this server does not offer skills"
        " (it does not declare the extension io.modelcontextprotocol/skills)"
    )
    host: str


class ServedSkillRejected(SourceError, code="invalid_skill"):
    """A skill of an MCP server failed a check; `finding` is the finding code.

    >>> print(ServedSkillRejected("acme", "skill://pdf/SKILL.md", "mcp-digest", "a file differs"))
    skill://pdf/SKILL.md from acme is rejected [mcp-digest]: a file differs
    """

    _template = "{uri} from {label} is rejected [{finding}]: {problem}"
    label: str
    uri: str
    finding: str
    problem: str


class NotAuthenticated(SourceError, code="unauthenticated"):
    """The request had no valid token; `variable` is the environment variable for it.

    >>> print(NotAuthenticated("skills.acme.dev", "ACME_TOKEN"))
    skills.acme.dev rejected the request: token missing or invalid
    """

    _template = "{host} rejected the request: token missing or invalid"
    host: str
    variable: str

    @property
    def variant(self) -> str:
        """`no_variable` if no variable is configured for the token, else ""."""
        return "" if self.variable else "no_variable"


class ServerRefused(SourceError):
    """A server rejected a request and said why.

    >>> print(ServerRefused("skills.acme.dev", 403, "this token can only read"))
    skills.acme.dev: this token can only read
    """

    _CODES: ClassVar[Mapping[int, str]] = MappingProxyType(
        {
            400: "invalid_argument",
            403: "forbidden",
            404: "not_found",
            409: "conflict",
            413: "too_large",
            415: "invalid_argument",
            422: "invalid_argument",
            429: "rate_limited",
            504: "upstream_timeout",
        }
    )
    _template = "{host}: {problem}"
    host: str
    status: int
    problem: str

    def __init__(self, host: str, status: int, problem: str) -> None:
        super().__init__(host, status, _shorten(problem))
        self.code: str = self._CODES.get(status, "upstream_error")


# Installed skills


class LockInvalid(InstallError, code="invalid_config"):
    """A lock file cannot be used; the message names the file and the field.

    >>> print(LockInvalid("skillhall-lock.json", "it is not valid JSON"))
    skillhall-lock.json: it is not valid JSON
    """

    _template = "{path}: {problem}"
    path: str
    problem: str
    hint: str = ""


class LockNotFound(InstallError, code="not_found"):
    """There is no Skillhall lock file; `other` is another tool's lock file, if any.

    >>> print(LockNotFound("skillhall-lock.json"))
    no skillhall-lock.json found: Skillhall has not installed any skills here
    """

    _template = "no {path} found: Skillhall has not installed any skills here"
    path: str
    other: str = ""

    @property
    def variant(self) -> str:
        """`other` if skills can be installed from another tool's lock file, else ""."""
        return "other" if self.other else ""


class LockMismatch(InstallError, code="precondition_failed"):
    """A skill differs from the lock file.

    >>> print(LockMismatch(".claude/skills/pdf", "SKILL.md differs"))
    .claude/skills/pdf does not match the lock file: SKILL.md differs
    """

    _template = "{path} does not match the lock file: {problem}"
    path: str
    problem: str


class Conflict(InstallError):
    """Something with this path or name already exists.

    >>> print(Conflict(".claude/skills/pdf"))
    .claude/skills/pdf already exists
    """

    _template = "{path} already exists"
    path: str
    hint: str = ""


class Edited(InstallError):
    """A skill was edited after it was installed.

    >>> print(Edited(".claude/skills/pdf", ["SKILL.md"]))
    .claude/skills/pdf has local changes: SKILL.md
    """

    _template = "{path} has local changes: {files}"
    path: str
    files: Sequence[str]


class UnsavedFilesError(InstallError):
    """A folder contains links, version control or other files that cannot be restored.

    >>> print(UnsavedFilesError(".claude/skills/pdf", [".git"]))
    .claude/skills/pdf contains files that cannot be restored: .git
    """

    _template = "{path} contains files that cannot be restored: {files}"
    path: str
    files: Sequence[str]


class NotInstalledError(InstallError):
    """A skill is not recorded in any lock file.

    >>> print(NotInstalledError(".claude/skills/pdf"))
    .claude/skills/pdf was not installed by Skillhall
    """

    _template = "{path} was not installed by Skillhall"
    path: str


class AgentHasNoPlace(InstallError, code="not_found"):
    """The coding agent does not support skills in the home folder.

    >>> print(AgentHasNoPlace("cursor"))
    cursor does not support skills in your home folder
    """

    _template = "{agent} does not support skills in your home folder"
    agent: str


class NothingToUndo(InstallError, code="not_found"):
    """There is no change to this skill that can be undone.

    >>> print(NothingToUndo("pdf"))
    there is no change to undo for 'pdf'
    """

    _template = "there is no change to undo for {name!r}"
    name: str


# Stores


class ReadOnly(StoreError, code="read_only"):
    """A system skill, or a skill of a repository, cannot be changed here.

    `shadows` is true if the system skill shadows a user skill with the same id.

    >>> print(ReadOnly("pdf"))
    System skills are read-only
    """

    name: str
    shadows: bool = False
    repository: str = ""

    def __str__(self) -> str:
        return f"{'Skills from a repository' if self.repository else 'System skills'} are read-only"

    @property
    def variant(self) -> str:
        """`repository` for a skill of a repository, `shadows` if that is set, else ""."""
        if self.repository:
            return "repository"
        return "shadows" if self.shadows else ""


class StaleVersionError(StoreError, code="precondition_failed"):
    """A skill changed after the caller read it; `digest` is its current digest.

    >>> print(StaleVersionError("pdf"))
    'pdf' was changed by someone else
    """

    _template = "{name!r} was changed by someone else"
    name: str
    digest: str = ""


class VersionStateConflict(StoreError):
    """A version of a skill is not in the state that an operation needs.

    >>> print(VersionStateConflict("pdf", 4, "approved", "in-review"))
    version 4 of the skill 'pdf' is approved, not in-review
    """

    _template = "version {number} of the skill {name!r} is {state}, not {needed}"
    name: str
    number: int
    state: str
    needed: str


class OwnVersionError(StoreError, code="forbidden"):
    """A version cannot be approved by one of its authors.

    >>> print(OwnVersionError("pdf", 4))
    version 4 of the skill 'pdf' cannot be approved by its author
    """

    _template = "version {number} of the skill {name!r} cannot be approved by its author"
    name: str
    number: int


class VersionConflict(StoreError, code="precondition_failed"):
    """A change was based on an old version; `current` is the stored record.

    >>> print(VersionConflict("session", "s1", 1, 2, None))
    the session 's1' was changed by someone else
    """

    _template = "the {record} {id!r} was changed by someone else"
    record: str  # the kind of record, such as "session"
    id: str
    given: int
    version: int
    current: object


class BlockMovedError(StoreError):
    """The block next to the requested position was moved or deleted.

    >>> print(BlockMovedError("b1"))
    the block 'b1' is no longer in that zone
    """

    _template = "the block {id!r} is no longer in that zone"
    id: str


class ReviewGone(StoreError, code="not_found"):
    """A pending import expired or was dropped to make room for others.

    >>> print(ReviewGone())
    this import has expired
    """

    _template = "this import has expired"


class FolderScanOff(StoreError, code="forbidden"):
    """Folder scans are disabled on this server.

    >>> print(FolderScanOff())
    folder scans are disabled on this server
    """

    _template = "folder scans are disabled on this server"


class ScopeRequired(StoreError, code="forbidden"):
    """An access token does not have the scope that a request needs.

    >>> print(ScopeRequired("write", "make changes"))
    this token cannot make changes: it needs the scope 'write'
    """

    _template = "this token cannot {action}: it needs the scope {scope!r}"
    scope: str
    action: str


class IdentityRefused(StoreError, code="unauthenticated"):
    """A person could not sign in at the identity provider.

    >>> print(IdentityRefused("the ID token is not valid"))
    you cannot sign in: the ID token is not valid
    """

    _template = "you cannot sign in: {problem}"
    problem: str


class ProviderUnavailable(StoreError, code="upstream_error"):
    """The identity provider is unavailable, or its response is invalid.

    >>> print(ProviderUnavailable("id.example.com", "the request timed out"))
    the identity provider id.example.com cannot be used: the request timed out
    """

    _template = "the identity provider {host} cannot be used: {problem}"
    host: str
    problem: str


class RoleRequired(StoreError, code="forbidden"):
    """The role of a user does not allow a request.

    >>> print(RoleRequired("reader", "change skills"))
    the role 'reader' cannot change skills
    """

    _template = "the role {role!r} cannot {action}"
    role: str
    action: str


class FollowingOff(StoreError, code="forbidden"):
    """Repositories cannot be followed by servers that share a database.

    >>> print(FollowingOff())
    servers that share a database cannot follow repositories
    """

    _template = "servers that share a database cannot follow repositories"


class BackupRejected(StoreError, code="invalid_argument"):
    """The file is not a complete backup; nothing was changed.

    >>> print(BackupRejected("its last line is missing"))
    the backup cannot be used: its last line is missing
    """

    _template = "the backup cannot be used: {problem}"
    problem: str


class DatabaseUnavailable(StoreError, code="db_unavailable"):
    """The database cannot be used; nothing was changed.

    >>> print(DatabaseUnavailable("it is locked"))
    the database cannot be used: it is locked
    """

    _template = "the database cannot be used: {problem}"
    problem: str
    hint: str = ""


class DatabaseNewer(DatabaseUnavailable):
    """The database is from a newer version of Skillhall; it was left unchanged.

    >>> print(DatabaseNewer(9, 8))
    the database cannot be used: its version is 9; this version of Skillhall supports up to 8
    """

    version: int = 0
    known: int = 0

    def __init__(self, version: int, known: int) -> None:
        problem = f"its version is {version}; this version of Skillhall supports up to {known}"
        SkillhallError.__init__(self, problem, version=version, known=known)


class DatabaseFull(StoreError, code="storage_full"):
    """The disk of the database is full; nothing was changed.

    >>> print(DatabaseFull())
    the disk that stores the database is full
    """

    _template = "the disk that stores the database is full"


# Configuration and models


class ConfigInvalid(ConfigError):
    """A config file or variable cannot be used; `line` is 0 if it is unknown.

    >>> print(ConfigInvalid("skillhall.toml", "there is no agent", line=3))
    skillhall.toml:3: there is no agent
    """

    path: str
    problem: str
    hint: str = ""
    line: int = 0

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.problem}"


class SandboxUnavailable(ConfigError):
    """The sandbox for scripts cannot be used on this machine.

    >>> print(SandboxUnavailable("bwrap", "it is not installed"))
    scripts cannot be run with bwrap: it is not installed
    """

    _template = "scripts cannot be run with {program}: {problem}"
    program: str
    problem: str


class ModelUnavailable(ModelError):
    """A model cannot be called or does not respond; `code` says why.

    >>> print(ModelUnavailable("openai:gpt-5", "the API key is missing"))
    the model 'openai:gpt-5' cannot be used: the API key is missing
    """

    _template = "the model {model!r} cannot be used: {problem}"
    model: str
    problem: str
    hint: str = ""
    code: str = "upstream_error"


class Busy(ModelError):
    """Too many requests are already running.

    >>> print(Busy("three replies are running"))
    three replies are running
    """

    _template = "{problem}"
    problem: str
    hint: str = ""
    code: str = "too_many_requests"  # `overloaded` if the requests of others are the reason


def without_credentials(text: str) -> str:
    """Return a URL with `***` in place of the user, query and fragment."""
    scheme, slashes, rest = text.partition("//")
    if not slashes or "@" in scheme:
        scheme, slashes, rest = "", "", text
    user, at, host = rest.rpartition("@")
    if at and _may_be_secret(user):
        rest = f"***@{host}"
    for mark in "?#":
        before, found, _ = rest.partition(mark)
        rest = f"{before}{mark}***" if found else rest
    return f"{scheme}{slashes}{rest}"


def label_without_credentials(label: str) -> str:
    """Redact a label that may be a URL. `alice@laptop` is not one and stays the same."""
    is_url = any(mark in label for mark in "/:")
    return without_credentials(label) if is_url else label


def _may_be_secret(user: str) -> bool:
    """Whether the part before the last @ may contain credentials.

    `git` is not a secret, nor is a path followed by a revision, as in `host/path@v1`.
    """
    if user == "git":
        return False
    first, slash, _ = user.partition("/")
    port = first.removeprefix("git@").partition(":")[2]
    return not slash or "@" in first.removeprefix("git@") or bool(port and not port.isdigit())


def _display(name: str, value: object) -> object:
    """Return a fact as messages show it. Paths are never shortened: people copy them."""
    if isinstance(value, tuple):
        return _join_names(value)
    return _shorten(value) if isinstance(value, str) and name != "path" else value


def _join_names(names: Sequence[str]) -> str:
    first = ", ".join(names[:_MAX_NAMES])
    return first if len(names) <= _MAX_NAMES else f"{first} and {len(names) - _MAX_NAMES} more"


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


def _rebuild(
    cls: type[SkillhallError], args: tuple[object, ...], state: Mapping[str, object]
) -> SkillhallError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


# Names in earlier versions, which still work for one release.
_RENAMED = {
    "ChangedMeanwhile": StaleVersionError,
    "Displaced": BlockMovedError,
    "NotOurs": NotInstalledError,
    "WouldLose": UnsavedFilesError,
}


def __getattr__(name: str) -> type[SkillhallError]:
    renamed = _RENAMED.get(name)
    if renamed is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"skillhall.errors.{name} is now called {renamed.__name__}"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return renamed
