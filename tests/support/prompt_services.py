"""Prompt service in memory, for tests and benchmarks of surfaces."""

import base64
import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from skillhall._internal.policy.access.actor import SYSTEM_ACTOR, Actor
from skillhall._internal.prompt_server.arguments import render_prompt
from skillhall._internal.prompt_server.prompt_model import (
    BUILT_IN,
    FollowedRepository,
    IngestResult,
    IngestStatus,
    Prompt,
    PromptArgument,
    PromptFile,
    SourceSelector,
    SourceStatus,
    Stale,
    Upload,
    serialize_prompt,
)
from skillhall._internal.prompt_server.prompt_snapshot import PromptSnapshot
from skillhall._internal.prompt_server.service import PromptService
from skillhall.errors import (
    PromptNotFound,
    PromptsSourceError,
    RecordNotFound,
    SkillhallError,
    SourceRejected,
    SourceUnknown,
    UploadRejected,
    without_credentials,
)


def make_prompt(
    name: str = "greet",
    body: str = "Hello {{who}}.",
    arguments: Sequence[PromptArgument] = (),
    files: Mapping[str, bytes] | None = None,
    description: str = "",
) -> Prompt:
    """Make a prompt of a repository."""
    items = tuple(PromptFile(path, data) for path, data in (files or {}).items())
    text = description or f"Does {name}."
    return Prompt(name, text, tuple(arguments), body, "user", has_files=bool(items), files=items)


class MemorySnapshot(PromptSnapshot):
    """Prompts in memory; responses are encoded once."""

    def __init__(
        self,
        source: str,
        prompts: Mapping[str, Prompt],
        commit: str = "",
        stale: Stale | None = None,
    ) -> None:
        self.source = source
        self.prompts = prompts
        self.commit = commit
        self.stale = stale
        self.skipped = ()
        self.names = tuple(prompts)
        listed = [serialize_prompt(prompt) for prompt in prompts.values()]
        self.list_json = _encode({"prompts": listed, "source": source})
        self.digest = hashlib.sha256(self.list_json + repr(prompts).encode()).hexdigest()
        self._rendered: dict[str, bytes] = {}

    def prompt(self, name: str) -> Prompt:
        if name not in self.prompts:
            raise PromptNotFound(name)
        return self.prompts[name]

    def summary(self, name: str) -> Prompt:
        return replace(self.prompt(name), files=())

    def prompt_json(self, name: str, values: Mapping[str, object] | None = None) -> bytes:
        if values:
            return self._render(name, values)
        if name not in self._rendered:
            self._rendered[name] = self._render(name, {})
        return self._rendered[name]

    def _render(self, name: str, values: Mapping[str, object]) -> bytes:
        prompt = self.prompt(name)
        data = render_prompt(prompt, values)
        if prompt.files:
            data["files"] = [
                {"path": path, "content": base64.b64encode(content).decode()}
                for path, content in prompt.files
            ]
        return _encode({**data, "source": self.source})


@dataclass
class MemoryPromptService(PromptService):
    """Prompt service with a configured source, repositories by URL, and uploads."""

    prompts: Sequence[Prompt] = ()
    source: str = BUILT_IN
    commit: str = ""
    stale: Stale | None = None
    repositories: dict[str, Sequence[Prompt]] = field(default_factory=dict)
    is_refresh_due: bool = False
    error: BaseException | None = None  # raised by every call
    gate: threading.Event | None = None  # blocks every refresh
    is_waiting: threading.Event = field(default_factory=threading.Event)
    selectors: list[SourceSelector] = field(default_factory=list)
    refreshed_selectors: list[SourceSelector] = field(default_factory=list)
    pushes: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    uploads: dict[str, Upload] = field(default_factory=dict)
    followed: dict[str, SourceStatus] = field(default_factory=dict)
    is_closed: bool = False

    def snapshot(self, selector: SourceSelector = SourceSelector()) -> PromptSnapshot:  # noqa: B008 - immutable
        self.selectors.append(selector)
        self._wait()
        return self._find_snapshot(selector)

    def cached_snapshot(self, selector: SourceSelector = SourceSelector()) -> PromptSnapshot | None:  # noqa: B008 - immutable
        if self.is_refresh_due or selector.repo:
            return None
        self.selectors.append(selector)
        return self._find_snapshot(selector)

    def refresh(self, selector: SourceSelector = SourceSelector()) -> PromptSnapshot:  # noqa: B008 - immutable
        self.refreshed_selectors.append(selector)
        return self.snapshot(selector)

    def ingest(self, upload: Upload, *, actor: Actor = SYSTEM_ACTOR) -> IngestResult:
        del actor
        self._wait()
        for file in upload.files:
            if ".." in file.path:
                raise UploadRejected(f"{file.path!r} is not a plain relative path")
        previous = self.uploads.get(upload.source)
        is_same = bool(
            upload.content_hash and previous and previous.content_hash == upload.content_hash
        )
        self.uploads[upload.source] = upload
        status: IngestStatus = "unchanged" if is_same else "ingested"
        return IngestResult(upload.source, upload.content_hash, len(upload.files), status)

    def handle_push(self, urls: Sequence[str], branch: str) -> bool:
        self.pushes.append((tuple(urls), branch))
        return self.source in urls

    def status(self) -> Sequence[SourceStatus]:
        if self.error is not None:
            return []
        configured = SourceStatus(self.source, self.commit, len(self.prompts), self.stale, "")
        return [configured, *self.followed.values()]

    def follow(self, selector: SourceSelector, *, actor: Actor = SYSTEM_ACTOR) -> SourceStatus:
        del actor
        followed = FollowedRepository(selector.repo, selector.path, selector.branch)
        names = self.snapshot(selector).names
        status = SourceStatus(selector.repo, self.commit, len(names), None, "", followed)
        return self.followed.setdefault(followed.key, status)

    def unfollow(self, key: str, *, actor: Actor = SYSTEM_ACTOR) -> FollowedRepository:
        del actor
        status = self.followed.pop(key, None)
        if status is None or status.followed is None:
            raise RecordNotFound("followed repository", key)
        return status.followed

    def refresh_followed(self) -> None:
        self._wait()

    @property
    def follow_error(self) -> SkillhallError | None:
        return None

    def close(self) -> None:
        self.is_closed = True

    def _wait(self) -> None:
        if self.gate is not None:
            self.is_waiting.set()
            assert self.gate.wait(120)

    def _find_snapshot(self, selector: SourceSelector) -> PromptSnapshot:
        if self.error is not None:
            raise self.error
        if selector.source:
            return self._find_upload(selector.source)
        if not selector.repo:
            if self.source == BUILT_IN and (selector.path or selector.branch):
                raise SourceRejected("path", "no repository is configured")
            return self._build_snapshot(self.source, self.prompts)
        try:
            prompts = self.repositories[selector.repo]
        except KeyError:
            raise PromptsSourceError(selector.repo, "there is no such repository") from None
        return self._build_snapshot(without_credentials(selector.repo), prompts)

    def _find_upload(self, name: str) -> PromptSnapshot:
        if name not in self.uploads:
            raise SourceUnknown(name)
        prompts = [make_prompt(file.path) for file in self.uploads[name].files]
        return self._build_snapshot(name, prompts)

    def _build_snapshot(self, source: str, prompts: Sequence[Prompt]) -> MemorySnapshot:
        by_name = {prompt.name: prompt for prompt in prompts}
        return MemorySnapshot(source, by_name, self.commit, self.stale)


@dataclass
class PreparedPromptService(MemoryPromptService):
    """Prompt service with one snapshot that is prepared in advance."""

    def __post_init__(self) -> None:
        self._snapshot = MemorySnapshot(self.source, {p.name: p for p in self.prompts})

    def cached_snapshot(self, selector: SourceSelector = SourceSelector()) -> PromptSnapshot | None:  # noqa: ARG002, B008
        return self._snapshot


def _encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
