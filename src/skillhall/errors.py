"""The exceptions that callers meet. Facts are attributes; each surface words them once.

SkillhallError
├── SkillNotFound(name, close)        no skill of that name in the catalog
├── SkillFileNotFound(path)           no such file in the skill
├── SkillRejected(path, reasons)      a SKILL.md that the profile does not load
├── SkillParseError(path, problem)    a SKILL.md that `parse_skill_metadata` refuses
├── UnsafePath(path, reason)          a path that is not a plain relative one, or leaves its root
├── NotAFile(path)                    a folder, device or pipe where a file was asked for
├── TooLarge(path, limit)             more bytes, files or folders than the limit
├── ArchiveRejected(name, reason, …)  a zip or tar file that is refused as a whole
├── EditRefused                       an edit that would change more than the field it names
├── UnknownProfile(name, known)       no profile of that name
├── UnknownAgent(name, close)         no agent of that id
├── ConfigInvalid(path, problem)      an agent config that cannot be used
├── AgentHasNoPlace(agent)            an agent that has no folder here to put skills into
├── AgentHasNoHook(agents)            agents whose start hooks we do not write
├── LockInvalid(path, problem)        a lock that cannot be used
├── Conflict(path)                    something stands where a new skill should go
├── Edited(path, files)               a skill that a person changed since it was added
├── WouldLose(path, things)           a folder with things that could not be put back
├── NotOurs(path)                     a skill that is in no lock
├── NotASkill(path)                   a folder without a SKILL.md where a skill should be
├── LockMismatch(path, problem)       a skill that is not what the lock says
├── NothingToUndo(name)               no change of that skill can be taken back
├── ChangedMeanwhile(name, digest)    a skill that is not what somebody saw before changing it
├── ReviewGone()                      skills that waited to be imported, and wait no longer
├── ReadOnly(name)                    a system skill, which nobody changes
├── SourceRejected(reason, text)      a source that is refused before anything is started
├── SourceNotFound(text)              the host has nothing there
├── PackageNotInstalled(package)      no Python package of that name is installed
├── NoSkillThere(text)                the source is there, without any SKILL.md
├── SourceUnavailable(host, problem)  the host cannot be reached, or answers badly
│   └── SourceTimedOut                it takes too long
├── RateLimited(host, seconds)        the host asks to wait
├── PromptNotFound(name)              the source has no such prompt
├── MissingArguments(names)           a prompt was asked for without what it needs
├── InvalidArguments(names)           a prompt was given lists or objects as arguments
├── SourceUnknown(name)               nobody has uploaded a source of that name
├── UploadRejected(problem)           an upload that breaks a rule
├── PromptsSourceError(source, …)     a repository of prompts that cannot be read
├── UnknownMcpServer(label, close)    no MCP server of that label is configured
├── SkillsNotServed(host)             an MCP server that does not offer skills
├── ServedSkillRejected(label, uri)   a skill that is not what its MCP server announced
├── RecordNotFound(kind, id)          no session, block, template or snapshot with that id
├── VersionConflict(kind, id, …)      a change of something that was changed meanwhile
├── Displaced(id)                     a place that is gone: the block beside it was moved or deleted
├── FieldRefused(field, problem)      a value that a session cannot take
├── TextRefused(field, problem)       a text that a database cannot keep
├── FolderScanOff                     folders of this machine are not read here
├── FollowingOff                      repositories are named in the settings alone
├── BackupRejected(problem)           a file that is no whole backup
├── TokenNotFound(name)               no token of servers has that id or label
├── DatabaseUnavailable(problem)      the database cannot be used just now, or not at all
│   └── DatabaseNewer(version, known) it belongs to a newer Skillhall
├── DatabaseFull                      its disk is full
├── NotAuthenticated(host, variable)  a server that asks who we are
├── ServerRefused(host, status, …)    a server that says why it does not do what it was asked
└── ModelUnavailable(model, problem)  a model that cannot be asked, or does not answer
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ArchiveReason: TypeAlias = Literal[
    "path",  # a name that is no plain relative path
    "link",
    "special",  # neither a regular file nor a folder
    "duplicate",  # names that are equal on some system
    "encrypted",
    "method",  # a compression or an extension of the format that we do not read
    "malformed",
    "confusion",  # two readers could see different files in it
    "no_skill",
]
SourceReason: TypeAlias = Literal["url", "ref", "scheme", "host", "path"]  # the part at fault


_ALL_SKILLS = "'skillhall list' shows all of them"


class SkillhallError(Exception):
    """The base of all errors that Skillhall raises on purpose."""

    code = "internal"
    hint = ""


class SkillNotFound(SkillhallError):
    """No skill of that name; `close` are the nearest names."""

    code = "not_found"

    def __init__(self, name: str, close: Sequence[str] = (), hint: str = _ALL_SKILLS) -> None:
        super().__init__(f"there is no skill named {name!r}")
        self.name = name
        self.close = tuple(close)
        nearest = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        self.hint = f"{nearest}{hint}"


class SkillFileNotFound(SkillhallError):
    """The skill has no such file."""

    code = "not_found"

    def __init__(self, path: str, hint: str = "") -> None:
        super().__init__(f"there is no file {path!r}")
        self.path = path
        self.hint = hint


class SkillRejected(SkillhallError):
    """A SKILL.md that cannot be loaded; `reasons` are one line each."""

    code = "invalid_skill"

    def __init__(self, path: str, reasons: Iterable[str]) -> None:
        self.path = path
        self.reasons = tuple(reasons)
        super().__init__(f"{path}: {'; '.join(self.reasons)}")
        self.hint = "'skillhall validate' explains each finding"


class SkillParseError(SkillhallError):
    """A SKILL.md that `parse_skill_metadata` refuses; the message names the file and the field."""

    code = "invalid_skill"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(problem)
        self.path = path
        self.hint = "'skillhall validate' explains each finding"


class UnsafePath(SkillhallError):
    """A path that is not plain and relative, or that leaves its root."""

    code = "invalid_path"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path!r} is refused: {reason}")
        self.path = path
        self.reason = reason


class NotAFile(SkillhallError):
    """A folder, pipe or device where a regular file was expected."""

    code = "not_a_file"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} is not a regular file")
        self.path = path


class TooLarge(SkillhallError):
    """More than a limit allows."""

    code = "too_large"

    def __init__(self, path: str, limit: int, unit: str = "bytes") -> None:
        super().__init__(f"{path!r} is larger than {limit} {unit}")
        self.path = path
        self.limit = limit


class ArchiveRejected(SkillhallError):
    """A zip or tar file that is refused as a whole; `detail` says what is wrong with it."""

    code = "archive_rejected"

    def __init__(self, name: str, reason: ArchiveReason, detail: str) -> None:
        super().__init__(f"{name!r} is refused: {detail}")
        self.name = name
        self.reason = reason
        self.detail = detail
        self.hint = (
            "a skill is a folder with a SKILL.md in it"
            if reason == "no_skill"
            else "pack the folder again as a plain zip or tar.gz: files and folders only"
        )


class EditRefused(SkillhallError, ValueError):
    """An edit that would change more than the field it names, or finds nothing to edit."""

    code = "invalid_skill"


class UnknownProfile(SkillhallError):
    """No profile of that name."""

    code = "not_found"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"there is no profile named {name!r}")
        self.name = name
        self.known = tuple(known)
        self.hint = f"known profiles: {', '.join(known)}"


class UnknownAgent(SkillhallError):
    """No agent of that id; `close` are the nearest ones."""

    code = "not_found"

    def __init__(self, name: str, close: Sequence[str] = ()) -> None:
        super().__init__(f"there is no agent named {name!r}")
        self.name = name
        self.close = tuple(close)
        self.hint = (
            f"did you mean {' or '.join(map(repr, close))}?"
            if close
            else "name one as its program is called, as in 'claude-code', or take 'universal'"
        )


class ConfigInvalid(SkillhallError):
    """An agent config that cannot be used."""

    code = "invalid_config"

    def __init__(self, path: str, problem: str, hint: str = "", *, line: int = 0) -> None:
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path}: {problem}")
        self.path = path
        self.problem = problem
        self.line = line  # 0 if it is about the whole file
        self.hint = hint


class LockInvalid(SkillhallError):
    """A lock that cannot be used; the message names the file and the field."""

    code = "invalid_config"

    def __init__(self, path: str, problem: str, hint: str = "") -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem
        self.hint = (
            hint or "take it back from version control, or remove it and add the skills anew"
        )


class LockNotFound(SkillhallError):
    """A project, or a home folder, without a lock file of ours."""

    code = "not_found"

    def __init__(self, path: str, other: str = "") -> None:
        super().__init__(f"no {path} found: Skillhall has not installed any skills here")
        self.path = path
        self.hint = "'skillhall add' installs skills and writes it"
        if other:
            self.hint = f"'skillhall install' installs the skills of {other} and writes it"


class Conflict(SkillhallError):
    """Something stands where a new skill should go."""

    code = "conflict"

    def __init__(self, path: str, hint: str = "choose another name, or remove it first") -> None:
        super().__init__(f"{path} exists already")
        self.path = path
        self.hint = hint


class ReadOnly(SkillhallError):
    """A system skill or one of a repository: it is not changed by hand here."""

    code = "read_only"

    def __init__(self, name: str, *, shadows: bool = False, repository: str = "") -> None:
        """`shadows` says that a user skill of the same id exists, which is not served."""
        kind = "Skills of a repository" if repository else "System skills"
        super().__init__(f"{kind} are read-only")
        self.name = name
        self.hint = f"{name!r} comes with Skillhall; add a skill of your own under another id"
        if repository:
            self.hint = f"change {name!r} in {repository}, or import a copy of it"
        elif shadows:
            self.hint = (
                f"a user skill {name!r} exists too, shadowed by the system skill; "
                "'shadowed' (--shadowed, ?shadowed=true) deletes that one"
            )


class AgentHasNoPlace(SkillhallError):
    """An agent that has no folder of that kind."""

    code = "not_found"

    def __init__(self, agent: str) -> None:
        super().__init__(f"{agent} has no folder of its own in your home folder")
        self.agent = agent
        self.hint = "name the folder with --dir, or add to the project, without --global"


class AgentHasNoHook(SkillhallError):
    """Agents whose start hooks we do not write."""

    code = "invalid_argument"

    def __init__(self, agents: Sequence[str]) -> None:
        named = f", not for {_listed(agents)}" if agents else ""
        super().__init__(f"hooks can be installed for Claude Code only{named}")
        self.agents = tuple(agents)
        self.hint = "add --agent claude-code if Claude Code should run the command"


class Edited(SkillhallError):
    """A skill that a person changed since it was added."""

    code = "conflict"

    def __init__(self, path: str, files: Sequence[str]) -> None:
        super().__init__(f"{path} was edited: {_listed(files)}")
        self.path = path
        self.files = tuple(files)
        self.hint = "--force does it all the same; 'skillhall rollback' brings it back"


class WouldLose(SkillhallError):
    """A folder with links, version control or other things that could not be put back."""

    code = "conflict"

    def __init__(self, path: str, things: Sequence[str]) -> None:
        super().__init__(f"{path} holds what could not be put back: {_listed(things)}")
        self.path = path
        self.things = tuple(things)
        self.hint = "move it away first"


class NotOurs(SkillhallError):
    """A skill that is in no lock: somebody put it there by other means."""

    code = "conflict"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} was not added by skillhall")
        self.path = path
        self.hint = "--force removes it all the same; 'skillhall rollback' brings it back"


class NotASkill(SkillhallError):
    """A folder where the lock has a skill, without a SKILL.md: it is somebody's own."""

    code = "conflict"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is no skill: it holds no SKILL.md")
        self.path = path
        self.hint = "move it away first, or correct the lock"


class LockMismatch(SkillhallError):
    """A skill that is not what the lock says."""

    code = "precondition_failed"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} is not what the lock says: {problem}")
        self.path = path
        self.problem = problem
        self.hint = "'skillhall verify' shows what differs"


class NothingToUndo(SkillhallError):
    """No change of that skill can be taken back."""

    code = "not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no change of {name!r} that can be taken back")
        self.name = name
        self.hint = "'skillhall rollback' without a name lists the changes"


class ChangedMeanwhile(SkillhallError):
    """A skill that is not what it was when somebody began to change it; `digest` is what it is."""

    code = "precondition_failed"

    def __init__(self, name: str, digest: str = "") -> None:
        super().__init__(f"{name} was changed meanwhile")
        self.name = name
        self.digest = digest
        self.hint = "look at what stands there, then decide again"


class ReviewGone(SkillhallError):
    """Skills that waited to be imported and wait no longer: too long, or too many after them."""

    code = "not_found"

    def __init__(self) -> None:
        super().__init__("these skills no longer wait to be imported")
        self.hint = "send them again"


_SHOWN = 200  # characters of a refused text that a message repeats
_FEW = 5  # names that a message repeats


class SourceRejected(SkillhallError):
    """A source that is refused before a process or a connection is started."""

    code = "source_rejected"

    def __init__(self, reason: SourceReason, text: str, problem: str = "", hint: str = "") -> None:
        self.reason = reason
        self.text = without_credentials(text)
        self.problem = problem or f"its {reason} is not one that Skillhall follows"
        super().__init__(f"{_shortened(self.text)!r} is refused: {self.problem}")
        self.hint = hint


class SourceNotFound(SkillhallError):
    """The host answers, and has nothing there, or nothing that it shows us."""

    code = "not_found"

    def __init__(self, text: str, hint: str = "") -> None:
        self.text = without_credentials(text)
        super().__init__(f"there is nothing at {_shortened(self.text)!r}")
        self.hint = hint or "check the spelling, and that everybody may read it"


class PackageNotInstalled(SkillhallError):
    """No Python package of that name where packages are looked for."""

    code = "not_found"

    def __init__(self, package: str) -> None:
        super().__init__(f"the Python package {package!r} is not installed")
        self.package = package
        self.hint = "install it first, or activate the environment that it is in"


class NoSkillThere(SkillhallError):
    """The source is there, but no SKILL.md is in it."""

    code = "not_found"

    def __init__(self, text: str, hint: str = "") -> None:
        self.text = without_credentials(text)
        super().__init__(f"No SKILL.md found in {_shortened(self.text)!r}")
        self.hint = hint or "name a skill's folder, or a folder or repository of skills"


class SourceUnavailable(SkillhallError):
    """The host cannot be reached, or answers in a way that cannot be used."""

    code = "upstream_error"

    def __init__(self, host: str, problem: str, hint: str = "", *, status: int = 0) -> None:
        super().__init__(f"{host}: {problem}")
        self.host = host
        self.problem = problem
        self.status = status  # of its answer, if that is what is wrong
        self.hint = hint or "try again later"


class SourceTimedOut(SourceUnavailable):
    """The host takes too long."""

    code = "upstream_timeout"


class RateLimited(SkillhallError):
    """The host asks to wait that many seconds."""

    code = "rate_limited"

    def __init__(self, host: str, seconds: int, hint: str = "") -> None:
        super().__init__(f"{host} asks to wait {seconds} seconds before the next request")
        self.host = host
        self.seconds = seconds
        self.hint = hint or "try again then"


class PromptNotFound(SkillhallError):
    """The source has no prompt of that name."""

    code = "prompt_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"Prompt not found: {name}")
        self.name = name


class MissingArguments(SkillhallError):
    """A prompt was asked for without arguments that it needs; empty ones count as missing."""

    code = "invalid_argument"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"Missing required arguments: {', '.join(names)}")
        self.names = tuple(names)


class InvalidArguments(SkillhallError):
    """A prompt was given arguments that are lists, objects or no finite numbers."""

    code = "invalid_argument"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"Arguments must be text, numbers or booleans: {', '.join(names)}")
        self.names = tuple(names)


class SourceUnknown(SkillhallError):
    """Nobody has uploaded a source of that name, or it was the one that nobody used longest."""

    code = "invalid_argument"

    def __init__(self, name: str) -> None:
        self.name = label_without_credentials(name)
        super().__init__(f"Unknown source: {_shortened(self.name)}")
        self.hint = "upload it first: POST /api/v1/prompts/sources"


class UploadRejected(SkillhallError):
    """An upload that breaks a rule; nothing of it is kept."""

    code = "invalid_argument"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class PromptsSourceError(SkillhallError):
    """A repository of prompts that cannot be read, and of which there is no earlier copy."""

    code = "upstream_error"

    def __init__(self, source: str, problem: str, hint: str = "") -> None:
        self.source = without_credentials(source)
        super().__init__(f"{_shortened(self.source)!r} cannot be read: {problem}")
        self.problem = problem
        self.hint = hint


class UnknownMcpServer(SkillhallError):
    """No MCP server of that label; `close` are the nearest ones."""

    code = "not_found"

    def __init__(self, label: str, close: Sequence[str] = ()) -> None:
        super().__init__(f"there is no MCP server named {label!r}")
        self.label = label
        self.close = tuple(close)
        self.hint = (
            f"did you mean {' or '.join(map(repr, close))}?"
            if close
            else f"'skillhall mcp-servers add {label} ADDRESS' names one"
        )


class SkillsNotServed(SkillhallError):
    """An MCP server that does not offer skills: it does not declare the extension for them."""

    code = "not_found"

    def __init__(self, host: str) -> None:
        super().__init__(f"{host}: this server does not offer skills")
        self.host = host
        self.hint = (
            "it must declare the extension io.modelcontextprotocol/skills; "
            "its resources alone are no skills"
        )


class ServedSkillRejected(SkillhallError):
    """A skill that is not what its MCP server announced; `finding` is the code that says how."""

    code = "invalid_skill"

    def __init__(self, label: str, uri: str, finding: str, problem: str) -> None:
        super().__init__(f"{_shortened(uri)} of {label} is refused [{finding}]: {problem}")
        self.label = label
        self.uri = uri
        self.finding = finding
        self.problem = problem
        self.hint = f"'skillhall mcp-servers skills {label}' shows what the server has"


class RecordNotFound(SkillhallError):
    """No session, block, template or snapshot with that id."""

    code = "not_found"

    def __init__(self, kind: str, identity: str) -> None:
        super().__init__(f"there is no {kind} {_shortened(identity)!r}")
        self.kind = kind
        self.id = identity


class VersionConflict(SkillhallError):
    """A change that was made against an older version; `current` is what is there."""

    code = "precondition_failed"

    def __init__(self, kind: str, identity: str, given: int, version: int, current: object) -> None:
        super().__init__(f"the {kind} {identity!r} was changed meanwhile")
        self.kind = kind
        self.id = identity
        self.given = given
        self.version = version
        self.current = current
        self.hint = f"look at version {version}, and make your change there"


class Displaced(SkillhallError):
    """A place that is gone: the block beside it was moved or deleted."""

    code = "conflict"

    def __init__(self, identity: str) -> None:
        super().__init__(f"the block {_shortened(identity)!r} does not lie in that zone")
        self.id = identity
        self.hint = "look at the zone again, and choose another place"


class FieldRefused(SkillhallError):
    """A value that a session, block or template cannot take."""

    code = "invalid_argument"

    def __init__(self, field: str, problem: str, hint: str = "") -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.hint = hint


class TextRefused(SkillhallError):
    """A text that cannot be kept: it holds what no database and no JSON may hold."""

    code = "invalid_text"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.hint = "remove them from the text"


class FolderScanOff(SkillhallError):
    """Folders of the machine are not read unless its operator allows it."""

    code = "forbidden"

    def __init__(self) -> None:
        super().__init__("folders of this machine are not scanned")
        self.hint = "whoever runs it sets SKILLHALL_FOLDER_SCAN=on; or upload the skill"


class FollowingOff(SkillhallError):
    """Servers that share a database: a list of one of them would be unknown to the others."""

    code = "forbidden"

    def __init__(self) -> None:
        super().__init__("repositories are not followed by servers that share a database")
        self.hint = "name the repository in SKILLHALL_PROMPTS_REPO of every server"


class BackupRejected(SkillhallError):
    """A file that is no whole backup; nothing of it is taken."""

    code = "invalid_argument"

    def __init__(self, problem: str) -> None:
        super().__init__(f"the backup cannot be used: {problem}")
        self.problem = problem
        self.hint = "nothing was changed; use a file as 'skillhall backup' wrote it"


class TokenNotFound(SkillhallError):
    """No token of servers has that id or label."""

    code = "not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no token {_shortened(name)!r}")
        self.name = name
        self.hint = "'skillhall token list' shows them"


class DatabaseUnavailable(SkillhallError):
    """The database cannot be used; nothing was changed."""

    code = "db_unavailable"

    def __init__(self, problem: str, hint: str = "try again later") -> None:
        super().__init__(f"the database cannot be used: {problem}")
        self.problem = problem
        self.hint = hint


class DatabaseNewer(DatabaseUnavailable):
    """A database that a newer Skillhall has changed; this one does not touch it."""

    def __init__(self, version: int, known: int) -> None:
        problem = f"it has version {version}, and this Skillhall knows {known}"
        super().__init__(problem, "update Skillhall, or name another SKILLHALL_DATABASE_URL")
        self.version = version
        self.known = known


class DatabaseFull(SkillhallError):
    """The disk of the database is full; nothing was changed."""

    code = "storage_full"

    def __init__(self) -> None:
        super().__init__("the disk of the database is full")
        self.hint = "make room, and try again"


class NotAuthenticated(SkillhallError):
    """A server that asks who we are; `variable` is where its token belongs."""

    code = "unauthenticated"

    def __init__(self, host: str, variable: str) -> None:
        super().__init__(f"{host} asks for a token, or for another one")
        self.host = host
        self.hint = f"put the server's token into {variable}"


class ServerRefused(SkillhallError):
    """A server that does not do what it was asked, and says why."""

    _CODES: Mapping[int, str] = MappingProxyType(
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

    def __init__(self, host: str, status: int, problem: str) -> None:
        super().__init__(f"{host}: {_shortened(problem)}")
        self.host = host
        self.status = status
        self.problem = _shortened(problem)
        self.code = self._CODES.get(status, "upstream_error")


class ModelUnavailable(SkillhallError):
    """A model that cannot be asked, or does not answer; `code` says of which class that is."""

    def __init__(
        self, model: str, problem: str, hint: str = "", *, code: str = "upstream_error"
    ) -> None:
        super().__init__(f"the model {_shortened(model)!r} cannot be used: {problem}")
        self.model = model
        self.problem = problem
        self.hint = hint
        self.code = code


class Busy(SkillhallError):
    """Too much is under way already."""

    code = "too_many_requests"

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


def without_credentials(text: str) -> str:
    """The text with ``***`` for whatever may be a secret in a URL: user, query, fragment."""
    scheme, slashes, rest = text.partition("//")
    if not slashes or "@" in scheme:
        scheme, slashes, rest = "", "", text
    user, at, place = rest.rpartition("@")
    if at and _may_be_secret(user):
        rest = f"***@{place}"
    for mark in "?#":
        before, found, _ = rest.partition(mark)
        rest = f"{before}{mark}***" if found else rest
    return f"{scheme}{slashes}{rest}"


def label_without_credentials(label: str) -> str:
    """The same for a label that may be an address: `alice@laptop` is none and stays as it is."""
    is_address = any(mark in label for mark in "/:")
    return without_credentials(label) if is_address else label


def _may_be_secret(user: str) -> bool:
    """Whether what stands before the last @ is more than a place that has a revision."""
    if user == "git":
        return False
    first, slash, _ = user.partition("/")
    port = first.removeprefix("git@").partition(":")[2]
    return not slash or "@" in first.removeprefix("git@") or bool(port and not port.isdigit())


def _listed(names: Sequence[str]) -> str:
    few = ", ".join(names[:_FEW])
    return few if len(names) <= _FEW else f"{few} and {len(names) - _FEW} more"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
