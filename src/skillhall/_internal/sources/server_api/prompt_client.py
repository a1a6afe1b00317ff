"""The prompts of a server: what it lists, hands out and takes in, checked as it arrives."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.skill.bundle import RelativePath, find_collision, fold_name
from skillhall._internal.skill.frontmatter import is_skill_md
from skillhall._internal.sources.folder.bundle_reader import (
    MAX_DEPTH,
    MAX_FILE_SIZE,
    MAX_FILES,
    MAX_TOTAL_SIZE,
)
from skillhall.errors import PromptNotFound, ServerRefused, SourceRejected, TooLarge, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.sources.server_api.rest_client import ServerConnection

MAX_PROMPTS: Final = 10_000  # in one listing
MAX_NAME_BYTES: Final = 255  # bytes of one name in a path, which is what file systems take
BUILT_IN: Final = "built-in"  # how a server calls its own prompts
_PROMPTS: Final = "/api/v1/prompts"
_NOT_FOUND: Final = "Prompt not found"  # how the server's sentence begins
_UNROUTABLE_NAMES: Final = frozenset({"", ".", ".."})  # what no path of a URL can end in


class RemoteSourceSelector(NamedTuple):
    """Which prompts a call is about: those of another repository, or of an upload."""

    repo: str = ""
    branch: str = ""
    path: str = ""
    source: str = ""


DEFAULT_SELECTOR: Final = RemoteSourceSelector()  # what the server has by itself


class RemotePromptArgument(NamedTuple):
    """One argument of a prompt."""

    name: str
    description: str = ""
    required: bool = False


class RemotePrompt(NamedTuple):
    """A prompt as the listing shows it."""

    name: str
    description: str
    arguments: tuple[RemotePromptArgument, ...] = ()

    @property
    def has_route(self) -> bool:
        """Whether it can be asked for: some names are routes of their own, or no path at all."""
        return self.name not in PROMPT_REPOSITORY.reserved_names | _UNROUTABLE_NAMES


class RemotePromptList(NamedTuple):
    """All prompts, in the server's order, and what it calls their source."""

    prompts: tuple[RemotePrompt, ...]
    source: str
    stale: str = ""  # why it is not what the source holds now, if it is not

    @property
    def is_fallback(self) -> bool:
        """Whether built-in prompts stand in for a repository that was never read."""
        return bool(self.stale) and self.source == BUILT_IN


class RemotePromptContent(NamedTuple):
    """One prompt: its text, and its files by path."""

    description: str
    text: str
    files: Mapping[str, bytes]
    source: str


class SkippedEntry(NamedTuple):
    """A skill, prompt or file that the server holds but does not serve."""

    name: str
    path: str
    code: str
    message: str


class RefreshResult(NamedTuple):
    """How many prompts the server has after a look at its repository."""

    prompts: int
    source: str
    is_refreshed: bool = True
    reason: str = ""  # why it is not done
    skipped: tuple[SkippedEntry, ...] = ()
    skipped_total: int = 0


class UploadResult(NamedTuple):
    """What became of an upload."""

    source: str
    files: int
    status: str
    skipped: tuple[SkippedEntry, ...] = ()
    skipped_total: int = 0


class FileToUpload(NamedTuple):
    """One file of an upload."""

    path: str
    data: bytes
    mode: int


@dataclass(frozen=True, slots=True)
class PromptClient:
    """A server's prompts. Every call raises what `Server` raises, besides its own errors."""

    server: ServerConnection
    selector: RemoteSourceSelector = DEFAULT_SELECTOR

    @property
    def query(self) -> Mapping[str, str]:
        """What every call says besides its path."""
        return self.selector._asdict()

    def list_prompts(self) -> RemotePromptList:
        """Every prompt."""
        told = self.server.get(_PROMPTS, self.query)
        answer = _ResponseObject(self.server, told.data)
        found = tuple(_parse_prompt(one) for one in answer.get_objects("prompts"))
        if len(found) > MAX_PROMPTS:
            raise self.server.build_malformed_response_error(
                f"it lists more than {MAX_PROMPTS} prompts"
            )
        return RemotePromptList(found, answer.get_text("source"), _parse_stale_reason(told.meta))

    def fetch_prompt(self, name: str, arguments: Mapping[str, str]) -> RemotePromptContent:
        """One prompt with its files.

        Raises: PromptNotFound, SourceRejected for files that are not what a skill holds.
        """
        if not RemotePrompt(name, "").has_route:
            raise PromptNotFound(name)
        body = {"arguments": dict(arguments)}
        try:
            told = self.server.post(f"{_PROMPTS}/{_quote(name)}", self.query, body)
        except ServerRefused as error:
            if error.problem.startswith(_NOT_FOUND):
                raise PromptNotFound(name) from None
            raise
        answer = _ResponseObject(self.server, told.data, f"the prompt {name!r}")
        texts = [_parse_message(one) for one in answer.get_objects("messages")]
        if not texts:
            raise answer.build_field_error("messages")
        # The original server gives no source here, and a description only if there is one.
        description, source = answer.get_text("description", ""), answer.get_text("source", "")
        return RemotePromptContent(description, "\n\n".join(texts), _parse_files(answer), source)

    def refresh(self) -> RefreshResult:
        """Have the server look for news."""
        answer = _ResponseObject(
            self.server, self.server.post(f"{_PROMPTS}/refresh", self.query, {}).data
        )
        return RefreshResult(
            answer.get_number("promptsLoaded"),
            answer.get_text("source"),
            answer.fields.get("refreshed") is not False,
            answer.get_text("reason", ""),
            *_parse_skipped(answer),
        )

    def upload(self, source: str, content_hash: str, files: Iterable[FileToUpload]) -> UploadResult:
        """Give the server files under a name."""
        sent = [
            {"path": one.path, "content": b64encode(one.data).decode(), "mode": one.mode}
            for one in files
        ]
        body = {"source": source, "contentHash": content_hash, "files": sent}
        answer = _ResponseObject(
            self.server, self.server.post(f"{_PROMPTS}/sources", {}, body).data
        )
        place = answer.get_text("source"), answer.get_number("fileCount"), answer.get_text("status")
        return UploadResult(*place, *_parse_skipped(answer))


class _ResponseObject(NamedTuple):
    """An object of an answer, whose fields are what was agreed or the answer cannot be read."""

    server: ServerConnection
    fields: Mapping[str, object]
    label: str = "the answer"

    def get_text(self, name: str, default: str | None = None) -> str:
        value = self.fields.get(name, default)
        if not isinstance(value, str) or not _is_valid_unicode(value):
            raise self.build_field_error(name)
        return value

    def get_number(self, name: str) -> int:
        value = self.fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.build_field_error(name)
        return value

    def get_bool(self, name: str) -> bool:
        value = self.fields.get(name, False)
        if not isinstance(value, bool):
            raise self.build_field_error(name)
        return value

    def get_objects(self, name: str) -> Sequence[_ResponseObject]:
        value = self.fields.get(name)
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self.build_field_error(name)
        return [_ResponseObject(self.server, one, self.label) for one in value]

    def build_field_error(self, name: str) -> Exception:
        return self.server.build_malformed_response_error(
            f"{name!r} of {self.label} is missing or wrong"
        )


def _parse_skipped(answer: _ResponseObject) -> tuple[tuple[SkippedEntry, ...], int]:
    """The entries that a server skips, and how many there are; other servers may not say."""
    if answer.fields.get("skipped") is None:
        return (), 0
    rows = tuple(
        SkippedEntry(*(one.get_text(name, "") for name in SkippedEntry._fields))
        for one in answer.get_objects("skipped")
    )
    has_total = answer.fields.get("skippedTotal") is not None
    return rows, answer.get_number("skippedTotal") if has_total else len(rows)


def _parse_stale_reason(meta: Mapping[str, object]) -> str:
    stale = meta.get("stale")
    reason = stale.get("reason") if isinstance(stale, dict) else None
    return reason if isinstance(reason, str) and _is_valid_unicode(reason) else ""


def _quote(name: str) -> str:
    return quote(name, safe="")


def _is_valid_unicode(text: str) -> bool:
    """Whether the text can be written as UTF-8: JSON can spell halves of characters."""
    try:
        return text.isascii() or bool(text.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def _parse_prompt(one: _ResponseObject) -> RemotePrompt:
    arguments = one.get_objects("arguments") if one.fields.get("arguments") is not None else ()
    return RemotePrompt(
        one.get_text("name"),
        one.get_text("description", ""),
        tuple(
            RemotePromptArgument(
                each.get_text("name"), each.get_text("description", ""), each.get_bool("required")
            )
            for each in arguments
        ),
    )


def _parse_message(one: _ResponseObject) -> str:
    content = one.fields.get("content")
    if not isinstance(content, dict) or content.get("type") != "text":
        raise one.build_field_error("messages")
    return _ResponseObject(one.server, content, one.label).get_text("text")


def _parse_files(answer: _ResponseObject) -> dict[str, bytes]:
    """The files, each path a plain relative one, none standing in another's way."""
    if answer.fields.get("files") is None:
        return {}
    given = answer.get_objects("files")
    if len(given) > MAX_FILES:
        raise TooLarge(answer.label, MAX_FILES, "files")
    paths = [_parse_path(one) for one in given]
    if (collision := find_collision(paths)) is not None:
        raise _build_path_error(answer, collision.path, collision.reason)
    files, left = {}, MAX_TOTAL_SIZE
    for path, one in zip(paths, given, strict=True):
        files[path] = _decode_file(one, path)
        left -= len(files[path])
        if left < 0:
            raise TooLarge(answer.label, MAX_TOTAL_SIZE)
    return files


def _parse_path(one: _ResponseObject) -> str:
    text = one.get_text("path")
    try:
        path = RelativePath.parse(text)
    except UnsafePath as error:
        raise _build_path_error(one, text, error.reason) from None
    if is_skill_md(fold_name(path.text)):
        raise _build_path_error(one, text, "the prompt itself is the SKILL.md")
    if len(path.parts) > MAX_DEPTH or any(
        len(part.encode()) > MAX_NAME_BYTES for part in path.parts
    ):
        raise _build_path_error(one, text, "it is too long, or too deep")
    return path.text


def _build_path_error(one: _ResponseObject, path: str, reason: str) -> SourceRejected:
    return SourceRejected(
        "path", path, f"{one.server.host} sends it with {one.label}, and {reason}"
    )


def _decode_file(one: _ResponseObject, path: str) -> bytes:
    text = one.get_text("content")
    if len(text) > MAX_FILE_SIZE // 3 * 4 + 4:
        raise TooLarge(path, MAX_FILE_SIZE)
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = None
    # Only one spelling of the bytes is taken: spare bits could hide something.
    if data is None or b64encode(data).decode() != text:
        raise one.server.build_malformed_response_error(f"{path!r} of {one.label} is not base64")
    if len(data) > MAX_FILE_SIZE:
        raise TooLarge(path, MAX_FILE_SIZE)
    return data
