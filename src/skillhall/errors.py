"""The exceptions that callers meet. Facts are attributes; each surface words them once.

SkillhallError
├── SkillNotFound(name, close)        no skill of that name in the catalog
├── SkillFileNotFound(path)           no such file in the skill
├── SkillRejected(path, findings)     a SKILL.md that the profile does not load
├── SkillParseError(path, problem)    a SKILL.md that `parse_skill_metadata` refuses
├── UnsafePath(path, reason)          a path that is not a plain relative one, or leaves its root
├── NotAFile(path)                    a folder, device or pipe where a file was asked for
├── TooLarge(path, limit)             more bytes, files or folders than the limit
├── UnknownProfile(name, known)       no profile of that name
├── ConfigInvalid(path, problem)      an agent config that cannot be used
└── Conflict(path)                    something stands where a new skill should go
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
