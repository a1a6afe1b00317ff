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
├── ConfigInvalid(path, problem)      an agent config that cannot be used
├── Conflict(path)                    something stands where a new skill should go
├── SourceRejected(reason, text)      a source that is refused before anything is started
├── SourceNotFound(text)              the host has nothing there
├── NoSkillThere(text)                the source is there, without any SKILL.md
├── SourceUnavailable(host, problem)  the host cannot be reached, or answers badly
│   └── SourceTimedOut                it takes too long
└── RateLimited(host, seconds)        the host asks to wait
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


class SkillhallError(Exception):
    """The base of all errors that Skillhall raises on purpose."""

    code = "internal"
    hint = ""


class SkillNotFound(SkillhallError):
    """No skill of that name; `close` are the nearest names."""

    code = "not_found"

    def __init__(self, name: str, close: Sequence[str] = ()) -> None:
        super().__init__(f"there is no skill named {name!r}")
        self.name = name
        self.close = tuple(close)
        nearest = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        self.hint = f"{nearest}'skillhall list' shows all of them"


class SkillFileNotFound(SkillhallError):
    """The skill has no such file."""

    code = "not_found"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no file {path!r}")
        self.path = path


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


class ConfigInvalid(SkillhallError):
    """An agent config that cannot be used."""

    code = "invalid_config"

    def __init__(self, path: str, problem: str, hint: str = "") -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem
        self.hint = hint


class Conflict(SkillhallError):
    """Something stands where a new skill should go."""

    code = "conflict"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} exists already")
        self.path = path
        self.hint = "choose another name, or remove it first"


_SHOWN = 200  # characters of a refused text that a message repeats


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

    def __init__(self, text: str) -> None:
        self.text = without_credentials(text)
        super().__init__(f"there is nothing at {_shortened(self.text)!r}")
        self.hint = "check the spelling, and that everybody may read it"


class NoSkillThere(SkillhallError):
    """The source is there, but no SKILL.md is in it."""

    code = "not_found"

    def __init__(self, text: str) -> None:
        self.text = without_credentials(text)
        super().__init__(f"No SKILL.md found in {_shortened(self.text)!r}")
        self.hint = "name a skill's folder, or a folder or repository of skills"


class SourceUnavailable(SkillhallError):
    """The host cannot be reached, or answers in a way that cannot be used."""

    code = "upstream_error"

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(f"{host}: {problem}")
        self.host = host
        self.problem = problem
        self.hint = "try again later"


class SourceTimedOut(SourceUnavailable):
    """The host takes too long."""

    code = "upstream_timeout"


class RateLimited(SkillhallError):
    """The host asks to wait that many seconds."""

    code = "rate_limited"

    def __init__(self, host: str, seconds: int) -> None:
        super().__init__(f"{host} asks to wait {seconds} seconds before the next request")
        self.host = host
        self.seconds = seconds
        self.hint = "try again then"


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


def _may_be_secret(user: str) -> bool:
    """Whether what stands before the last @ is more than a place that has a revision."""
    if user == "git":
        return False
    first, slash, _ = user.partition("/")
    port = first.removeprefix("git@").partition(":")[2]
    return not slash or "@" in first.removeprefix("git@") or bool(port and not port.isdigit())


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
