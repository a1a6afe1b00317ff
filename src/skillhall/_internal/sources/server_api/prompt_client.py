"""The prompts of a server: what it lists, hands out and takes in, checked as it arrives."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.skill.bundle import RelativePath, find_collision, folded
from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall._internal.sources.folder.bundle_reader import (
    MAX_DEPTH,
    MAX_FILE,
    MAX_FILES,
    MAX_TOTAL,
)
from skillhall.errors import PromptNotFound, ServerRefused, SourceRejected, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.sources.server_api.rest_client import Server

MAX_PROMPTS: Final = 10_000  # in one listing
MAX_PART: Final = 255  # bytes of one name in a path, which is what file systems take
BUILT_IN: Final = "built-in"  # how a server calls its own prompts
_PROMPTS: Final = "/api/v1/prompts"
_NOT_FOUND: Final = "Prompt not found"  # how the server's sentence begins
_DOTS: Final = frozenset({"", ".", ".."})  # what no path of a URL can end in


class Asked(NamedTuple):
    """Which prompts a call is about: those of another repository, or of an upload."""

    repo: str = ""
    branch: str = ""
    path: str = ""
    source: str = ""


CONFIGURED: Final = Asked()  # what the server has by itself


class Argument(NamedTuple):
    """One argument of a prompt."""

    name: str
    description: str = ""
    required: bool = False


class Listed(NamedTuple):
    """A prompt as the listing shows it."""

    name: str
    description: str
    arguments: tuple[Argument, ...] = ()

    @property
    def has_route(self) -> bool:
        """Whether it can be asked for: some names are routes of their own, or no path at all."""
        return self.name not in PROMPT_REPOSITORY.reserved_names | _DOTS


class Listing(NamedTuple):
    """All prompts, in the server's order, and what it calls their source."""

    prompts: tuple[Listed, ...]
    source: str
    stale: str = ""  # why it is not what the source holds now, if it is not

    @property
    def is_stand_in(self) -> bool:
        """Whether built-in prompts stand in for a repository that was never read."""
        return bool(self.stale) and self.source == BUILT_IN


class Given(NamedTuple):
    """One prompt: its text, and its files by path."""

    description: str
    text: str
    files: Mapping[str, bytes]
    source: str


class NotServed(NamedTuple):
    """A skill, prompt or file that the server holds but does not serve."""

    name: str
    path: str
    code: str
    message: str


class Refreshed(NamedTuple):
    """How many prompts the server has after a look at its repository."""

    prompts: int
    source: str
    is_done: bool = True
    reason: str = ""  # why it is not done
    skipped: tuple[NotServed, ...] = ()
    skipped_total: int = 0


class Sent(NamedTuple):
    """What became of an upload."""

    source: str
    files: int
    status: str
    skipped: tuple[NotServed, ...] = ()
    skipped_total: int = 0


class FileToSend(NamedTuple):
    """One file of an upload."""

    path: str
    data: bytes
    mode: int


@dataclass(frozen=True, slots=True)
class PromptServer:
    """A server's prompts. Every call raises what `Server` raises, besides its own errors."""

    server: Server
    asked: Asked = CONFIGURED

    @property
    def query(self) -> Mapping[str, str]:
        """What every call says besides its path."""
        return self.asked._asdict()

    def list(self) -> Listing:
        """Every prompt."""
        told = self.server.get(_PROMPTS, self.query)
        answer = _Answer(self.server, told.data)
        found = tuple(_listed(one) for one in answer.objects("prompts"))
        if len(found) > MAX_PROMPTS:
            raise self.server.unreadable(f"it lists more than {MAX_PROMPTS} prompts")
        return Listing(found, answer.text("source"), _staleness(told.meta))

    def fetch(self, name: str, arguments: Mapping[str, str]) -> Given:
        """One prompt with its files.

        Raises: PromptNotFound, SourceRejected for files that are not what a skill holds.
        """
        if not Listed(name, "").has_route:
            raise PromptNotFound(name)
        body = {"arguments": dict(arguments)}
        try:
            told = self.server.post(f"{_PROMPTS}/{_quoted(name)}", self.query, body)
        except ServerRefused as error:
            if error.problem.startswith(_NOT_FOUND):
                raise PromptNotFound(name) from None
            raise
        answer = _Answer(self.server, told.data, f"the prompt {name!r}")
        texts = [_message(one) for one in answer.objects("messages")]
        if not texts:
            raise answer.wrong("messages")
        # The original server gives no source here, and a description only if there is one.
        description, source = answer.text("description", ""), answer.text("source", "")
        return Given(description, "\n\n".join(texts), _files(answer), source)

    def refresh(self) -> Refreshed:
        """Have the server look for news."""
        answer = _Answer(self.server, self.server.post(f"{_PROMPTS}/refresh", self.query, {}).data)
        return Refreshed(
            answer.number("promptsLoaded"),
            answer.text("source"),
            answer.fields.get("refreshed") is not False,
            answer.text("reason", ""),
            *_skipped(answer),
        )

    def upload(self, source: str, content_hash: str, files: Iterable[FileToSend]) -> Sent:
        """Give the server files under a name."""
        sent = [
            {"path": one.path, "content": b64encode(one.data).decode(), "mode": one.mode}
            for one in files
        ]
        body = {"source": source, "contentHash": content_hash, "files": sent}
        answer = _Answer(self.server, self.server.post(f"{_PROMPTS}/sources", {}, body).data)
        place = answer.text("source"), answer.number("fileCount"), answer.text("status")
        return Sent(*place, *_skipped(answer))


class _Answer(NamedTuple):
    """An object of an answer, whose fields are what was agreed or the answer cannot be read."""

    server: Server
    fields: Mapping[str, object]
    place: str = "the answer"

    def text(self, name: str, default: str | None = None) -> str:
        value = self.fields.get(name, default)
        if not isinstance(value, str) or not _is_whole(value):
            raise self.wrong(name)
        return value

    def number(self, name: str) -> int:
        value = self.fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(name)
        return value

    def flag(self, name: str) -> bool:
        value = self.fields.get(name, False)
        if not isinstance(value, bool):
            raise self.wrong(name)
        return value

    def objects(self, name: str) -> Sequence[_Answer]:
        value = self.fields.get(name)
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self.wrong(name)
        return [_Answer(self.server, one, self.place) for one in value]

    def wrong(self, name: str) -> Exception:
        return self.server.unreadable(f"{name!r} of {self.place} is missing or wrong")


def _skipped(answer: _Answer) -> tuple[tuple[NotServed, ...], int]:
    """The entries that a server skips, and how many there are; other servers may not say."""
    if answer.fields.get("skipped") is None:
        return (), 0
    rows = tuple(
        NotServed(*(one.text(name, "") for name in NotServed._fields))
        for one in answer.objects("skipped")
    )
    has_total = answer.fields.get("skippedTotal") is not None
    return rows, answer.number("skippedTotal") if has_total else len(rows)


def _staleness(meta: Mapping[str, object]) -> str:
    stale = meta.get("stale")
    reason = stale.get("reason") if isinstance(stale, dict) else None
    return reason if isinstance(reason, str) and _is_whole(reason) else ""


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _is_whole(text: str) -> bool:
    """Whether the text can be written as UTF-8: JSON can spell halves of characters."""
    try:
        return text.isascii() or bool(text.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def _listed(one: _Answer) -> Listed:
    arguments = one.objects("arguments") if one.fields.get("arguments") is not None else ()
    return Listed(
        one.text("name"),
        one.text("description", ""),
        tuple(
            Argument(each.text("name"), each.text("description", ""), each.flag("required"))
            for each in arguments
        ),
    )


def _message(one: _Answer) -> str:
    content = one.fields.get("content")
    if not isinstance(content, dict) or content.get("type") != "text":
        raise one.wrong("messages")
    return _Answer(one.server, content, one.place).text("text")


def _files(answer: _Answer) -> dict[str, bytes]:
    """The files, each path a plain relative one, none standing in another's way."""
    if answer.fields.get("files") is None:
        return {}
    given = answer.objects("files")
    if len(given) > MAX_FILES:
        raise TooLarge(answer.place, MAX_FILES, "files")
    paths = [_path(one) for one in given]
    if (collision := find_collision(paths)) is not None:
        raise _refused(answer, collision.path, collision.reason)
    files, left = {}, MAX_TOTAL
    for path, one in zip(paths, given, strict=True):
        files[path] = _decoded(one, path)
        left -= len(files[path])
        if left < 0:
            raise TooLarge(answer.place, MAX_TOTAL)
    return files


def _path(one: _Answer) -> str:
    text = one.text("path")
    try:
        path = RelativePath.parse(text)
    except UnsafePath as error:
        raise _refused(one, text, error.reason) from None
    if is_skill_md(folded(path.text)):
        raise _refused(one, text, "the prompt itself is the SKILL.md")
    if len(path.parts) > MAX_DEPTH or any(len(part.encode()) > MAX_PART for part in path.parts):
        raise _refused(one, text, "it is too long, or too deep")
    return path.text


def _refused(one: _Answer, path: str, why: str) -> SourceRejected:
    return SourceRejected("path", path, f"{one.server.host} sends it with {one.place}, and {why}")


def _decoded(one: _Answer, path: str) -> bytes:
    text = one.text("content")
    if len(text) > MAX_FILE // 3 * 4 + 4:
        raise TooLarge(path, MAX_FILE)
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = None
    # Only one spelling of the bytes is taken: spare bits could hide something.
    if data is None or b64encode(data).decode() != text:
        raise one.server.unreadable(f"{path!r} of {one.place} is not base64")
    if len(data) > MAX_FILE:
        raise TooLarge(path, MAX_FILE)
    return data
