"""Client for the prompts of a Skillhall server; responses are validated."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.skill.bundle import RelativePath, find_collision, fold_name
from skillhall._internal.skill.frontmatter_locator import is_skill_md
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

MAX_PROMPTS: Final = 10_000  # per listing
MAX_NAME_BYTES: Final = 255  # per path component; the limit of common file systems
BUILT_IN: Final = "built-in"  # the source of a server's own prompts
_PROMPTS: Final = "/api/v1/prompts"
_NOT_FOUND: Final = "Prompt not found"  # the start of the server's message
_UNROUTABLE_NAMES: Final = frozenset({"", ".", ".."})  # not possible as the end of a URL path


class RemoteSourceSelector(NamedTuple):
    """Query parameters that replace the server's default source."""

    repo: str = ""
    branch: str = ""
    path: str = ""
    source: str = ""


DEFAULT_SELECTOR: Final = RemoteSourceSelector()  # the server's configured source


class RemotePromptArgument(NamedTuple):
    """Argument of a prompt."""

    name: str
    description: str = ""
    required: bool = False


class RemotePrompt(NamedTuple):
    """Prompt in a listing."""

    name: str
    description: str
    arguments: tuple[RemotePromptArgument, ...] = ()

    @property
    def has_route(self) -> bool:
        """Whether the prompt has its own URL; reserved names and `..` have none."""
        return self.name not in PROMPT_REPOSITORY.reserved_names | _UNROUTABLE_NAMES


class RemotePromptList(NamedTuple):
    """All prompts in the server's order, with their source."""

    prompts: tuple[RemotePrompt, ...]
    source: str
    stale: str = ""  # why a cached version is served, if one is

    @property
    def is_fallback(self) -> bool:
        """Whether the prompts are built-in because the server never read its repository."""
        return bool(self.stale) and self.source == BUILT_IN


class RemotePromptContent(NamedTuple):
    """Text of a prompt, and its files by path."""

    description: str
    text: str
    files: Mapping[str, bytes]
    source: str


class SkippedEntry(NamedTuple):
    """Skill, prompt or file that the server does not serve."""

    name: str
    path: str
    code: str
    message: str


class RefreshResult(NamedTuple):
    """Result of refreshing the server's repository."""

    prompts: int  # number of prompts after the refresh
    source: str
    is_refreshed: bool = True
    reason: str = ""  # why it was not refreshed
    skipped: tuple[SkippedEntry, ...] = ()
    skipped_total: int = 0


class UploadResult(NamedTuple):
    """Result of an upload."""

    source: str
    files: int  # number of files
    status: str
    skipped: tuple[SkippedEntry, ...] = ()
    skipped_total: int = 0


class FileToUpload(NamedTuple):
    """File in an upload."""

    path: str
    data: bytes
    mode: int


@dataclass(frozen=True, slots=True)
class PromptClient:
    """Client for a server's prompts.

    Every call also raises the errors of `ServerConnection.get`.
    """

    server: ServerConnection
    selector: RemoteSourceSelector = DEFAULT_SELECTOR

    @property
    def query(self) -> Mapping[str, str]:
        """Query parameters of every request."""
        return self.selector._asdict()

    def list_prompts(self) -> RemotePromptList:
        """Return all prompts."""
        response = self.server.get(_PROMPTS, self.query)
        data = _ResponseObject(self.server, response.data)
        prompts = tuple(
            RemotePrompt(
                item.get_text("name"),
                item.get_text("description", ""),
                tuple(
                    RemotePromptArgument(
                        argument.get_text("name"),
                        argument.get_text("description", ""),
                        argument.get_bool("required"),
                    )
                    for argument in item.get_objects("arguments", is_required=False)
                ),
            )
            for item in data.get_objects("prompts")
        )
        if len(prompts) > MAX_PROMPTS:
            raise self.server.build_malformed_response_error(f"more than {MAX_PROMPTS} prompts")
        stale = response.meta.get("stale")
        reason = stale.get("reason") if isinstance(stale, dict) else None
        if not isinstance(reason, str) or not _is_valid_unicode(reason):
            reason = ""
        return RemotePromptList(prompts, data.get_text("source"), reason)

    def fetch_prompt(self, name: str, arguments: Mapping[str, str]) -> RemotePromptContent:
        """Render a prompt and return it with its files.

        Raises: PromptNotFound, TooLarge, SourceRejected for files that a skill cannot have.
        """
        if not RemotePrompt(name, "").has_route:
            raise PromptNotFound(name)
        body = {"arguments": dict(arguments)}
        try:
            response = self.server.post(f"{_PROMPTS}/{quote(name, safe='')}", self.query, body)
        except ServerRefused as error:
            if error.problem.startswith(_NOT_FOUND):
                raise PromptNotFound(name) from None
            raise
        data = _ResponseObject(self.server, response.data, f"the prompt {name!r}")
        contents = [item.fields.get("content") for item in data.get_objects("messages")]
        texts = [
            _ResponseObject(self.server, content, data.label).get_text("text")
            for content in contents
            if isinstance(content, dict) and content.get("type") == "text"
        ]
        if not texts or len(texts) < len(contents):
            raise data.build_field_error("messages")
        # The original prompt server sends no source, and a description only if there is one.
        description, source = data.get_text("description", ""), data.get_text("source", "")
        return RemotePromptContent(description, "\n\n".join(texts), _parse_files(data), source)

    def refresh(self) -> RefreshResult:
        """Make the server refresh its repository."""
        response = self.server.post(f"{_PROMPTS}/refresh", self.query, {})
        data = _ResponseObject(self.server, response.data)
        return RefreshResult(
            data.get_number("promptsLoaded"),
            data.get_text("source"),
            data.fields.get("refreshed") is not False,
            data.get_text("reason", ""),
            *_parse_skipped(data),
        )

    def upload(self, source: str, content_hash: str, files: Iterable[FileToUpload]) -> UploadResult:
        """Upload files as a source with this name."""
        items = [
            {"path": file.path, "content": b64encode(file.data).decode(), "mode": file.mode}
            for file in files
        ]
        body = {"source": source, "contentHash": content_hash, "files": items}
        response = self.server.post(f"{_PROMPTS}/sources", {}, body)
        data = _ResponseObject(self.server, response.data)
        count, status = data.get_number("fileCount"), data.get_text("status")
        return UploadResult(data.get_text("source"), count, status, *_parse_skipped(data))


class _ResponseObject(NamedTuple):
    """JSON object in a response, with validated access to its fields."""

    server: ServerConnection
    fields: Mapping[str, object]
    label: str = "the response"

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

    def get_objects(self, name: str, *, is_required: bool = True) -> Sequence[_ResponseObject]:
        value = self.fields.get(name)
        if value is None and not is_required:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.build_field_error(name)
        return [_ResponseObject(self.server, item, self.label) for item in value]

    def build_field_error(self, name: str) -> Exception:
        detail = f"{name!r} in {self.label} is missing or invalid"
        return self.server.build_malformed_response_error(detail)


def _parse_skipped(data: _ResponseObject) -> tuple[tuple[SkippedEntry, ...], int]:
    """Return the skipped entries and their total, which some servers do not send."""
    entries = tuple(
        SkippedEntry(*(item.get_text(name, "") for name in SkippedEntry._fields))
        for item in data.get_objects("skipped", is_required=False)
    )
    has_total = data.fields.get("skippedTotal") is not None
    return entries, data.get_number("skippedTotal") if has_total else len(entries)


def _is_valid_unicode(text: str) -> bool:
    """Whether the string has no lone surrogates, which JSON can contain."""
    try:
        return text.isascii() or bool(text.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def _parse_files(data: _ResponseObject) -> dict[str, bytes]:
    """Return the files by checked path; no two paths collide."""
    items = data.get_objects("files", is_required=False)
    if len(items) > MAX_FILES:
        raise TooLarge(data.label, MAX_FILES, "files")
    paths = [_parse_path(item) for item in items]
    if (collision := find_collision(paths)) is not None:
        raise _build_path_error(data, collision.path, collision.reason)
    files, remaining = {}, MAX_TOTAL_SIZE
    for path, item in zip(paths, items, strict=True):
        files[path] = _decode_file(item, path)
        remaining -= len(files[path])
        if remaining < 0:
            raise TooLarge(data.label, MAX_TOTAL_SIZE)
    return files


def _parse_path(item: _ResponseObject) -> str:
    text = item.get_text("path")
    try:
        path = RelativePath.parse(text)
    except UnsafePath as error:
        raise _build_path_error(item, text, error.reason) from None
    if is_skill_md(fold_name(path.text)):
        raise _build_path_error(item, text, "its name is reserved for the prompt itself")
    is_too_long = any(len(part.encode()) > MAX_NAME_BYTES for part in path.parts)
    if is_too_long or len(path.parts) > MAX_DEPTH:
        raise _build_path_error(item, text, "its path is too long or too deep")
    return path.text


def _build_path_error(data: _ResponseObject, path: str, reason: str) -> SourceRejected:
    problem = f"{reason} (sent by {data.server.host} with {data.label})"
    return SourceRejected("path", path, problem)


def _decode_file(item: _ResponseObject, path: str) -> bytes:
    text = item.get_text("content")
    if len(text) > MAX_FILE_SIZE // 3 * 4 + 4:  # base64 has four characters for three bytes
        raise TooLarge(path, MAX_FILE_SIZE)
    try:
        data = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = None
    # Only the canonical encoding is accepted: unused bits could hide data.
    if data is None or b64encode(data).decode() != text:
        raise item.server.build_malformed_response_error(
            f"the content of {path!r} in {item.label} is not valid base64"
        )
    if len(data) > MAX_FILE_SIZE:
        raise TooLarge(path, MAX_FILE_SIZE)
    return data
