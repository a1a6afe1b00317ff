"""A counter that keeps everything in memory, for tests and benchmarks of surfaces."""

import base64
import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from skillhall._internal.policy.effects import Judged
from skillhall._internal.policy.skipped_items import Skipped
from skillhall._internal.prompts.arguments import check_arguments, render_arguments
from skillhall._internal.prompts.prompt_model import (
    BUILT_IN,
    Argument,
    Asked,
    Counter,
    Followed,
    Ingested,
    Ingestion,
    Prompt,
    PromptFile,
    PromptSnapshot,
    SourceStatus,
    Stale,
    Upload,
)
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
    arguments: Sequence[Argument] = (),
    files: Mapping[str, bytes] | None = None,
    description: str = "",
) -> Prompt:
    """A prompt of a repository."""
    kept = tuple(PromptFile(path, data) for path, data in (files or {}).items())
    told = description or f"Does {name}."
    return Prompt(name, told, tuple(arguments), body, "user", has_files=bool(kept), files=kept)


@dataclass(frozen=True)
class MemorySnapshot:
    """Prompts in memory; what it answers is encoded once."""

    source: str
    prompts: Mapping[str, Prompt]
    commit: str = ""
    stale: Stale | None = None
    findings: tuple[Judged, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    _answers: dict[str, bytes] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.list_data() + repr(self.prompts).encode()).hexdigest()

    @property
    def names(self) -> Sequence[str]:
        return list(self.prompts)

    def prompt(self, name: str) -> Prompt:
        if name not in self.prompts:
            raise PromptNotFound(name)
        return self.prompts[name]

    def summary(self, name: str) -> Prompt:
        return replace(self.prompt(name), files=())

    def list_data(self) -> bytes:
        listed = [_listed(prompt) for prompt in self.prompts.values()]
        return _encoded({"prompts": listed, "source": self.source})

    def get_data(self, name: str, values: Mapping[str, object] | None = None) -> bytes:
        if values:
            return self._made(name, values)
        if name not in self._answers:
            self._answers[name] = self._made(name, {})
        return self._answers[name]

    def _made(self, name: str, values: Mapping[str, object]) -> bytes:
        prompt = self.prompt(name)
        texts = check_arguments(prompt.arguments, values)
        text = render_arguments(prompt.body, texts)
        message = {"role": "user", "content": {"type": "text", "text": text}}
        data: dict[str, object] = {"description": prompt.description, "messages": [message]}
        if prompt.files:
            data["files"] = [
                {"path": path, "content": base64.b64encode(content).decode()}
                for path, content in prompt.files
            ]
        return _encoded({**data, "source": self.source})


class ReadySnapshot(MemorySnapshot):
    """The same with everything encoded before anybody asks, as a server does it."""

    def __init__(self, source: str, prompts: Mapping[str, Prompt]) -> None:
        super().__init__(source, prompts)
        object.__setattr__(self, "_list", super().list_data())
        object.__setattr__(self, "_digest", super().digest)

    @property
    def digest(self) -> str:
        return str(self.__dict__["_digest"])

    def list_data(self) -> bytes:
        return bytes(self.__dict__["_list"])

    def summary(self, name: str) -> Prompt:
        return self.prompt(name)


@dataclass
class MemoryCounter:
    """A counter of a configured source, of repositories by address, and of uploads."""

    prompts: Sequence[Prompt] = ()
    source: str = BUILT_IN
    commit: str = ""
    stale: Stale | None = None
    repositories: dict[str, Sequence[Prompt]] = field(default_factory=dict)
    is_due: bool = False  # whether the remote must be looked at first
    fault: BaseException | None = None  # what every call raises
    gate: threading.Event | None = None  # what every look at the remote waits for
    waiting: threading.Event = field(default_factory=threading.Event)
    asked: list[Asked] = field(default_factory=list)
    refreshed: list[Asked] = field(default_factory=list)
    pushes: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    uploads: dict[str, Upload] = field(default_factory=dict)
    followed: dict[str, SourceStatus] = field(default_factory=dict)
    is_closed: bool = False

    def snapshot(self, asked: Asked = Asked()) -> PromptSnapshot:  # noqa: B008 - immutable
        self.asked.append(asked)
        self._wait()
        return self._found(asked)

    def current(self, asked: Asked = Asked()) -> PromptSnapshot | None:  # noqa: B008 - immutable
        if self.is_due or asked.repo:
            return None
        self.asked.append(asked)
        return self._found(asked)

    def refresh(self, asked: Asked = Asked()) -> PromptSnapshot:  # noqa: B008 - immutable
        self.refreshed.append(asked)
        return self.snapshot(asked)

    def ingest(self, upload: Upload) -> Ingested:
        self._wait()
        for one in upload.files:
            if ".." in one.path:
                raise UploadRejected(f"{one.path!r} is no plain relative path")
        known = self.uploads.get(upload.source)
        same = bool(upload.content_hash and known and known.content_hash == upload.content_hash)
        self.uploads[upload.source] = upload
        status: Ingestion = "unchanged" if same else "ingested"
        return Ingested(upload.source, upload.content_hash, len(upload.files), status)

    def pushed(self, urls: Sequence[str], branch: str) -> bool:
        self.pushes.append((tuple(urls), branch))
        return self.source in urls

    def status(self) -> Sequence[SourceStatus]:
        if self.fault is not None:
            return []
        own = SourceStatus(self.source, self.commit, len(self.prompts), self.stale, "")
        return [own, *self.followed.values()]

    def follow(self, asked: Asked) -> SourceStatus:
        followed = Followed(asked.repo, asked.path, asked.branch)
        names = self.snapshot(asked).names
        status = SourceStatus(asked.repo, self.commit, len(names), None, "", followed)
        return self.followed.setdefault(followed.key, status)

    def unfollow(self, key: str) -> Followed:
        status = self.followed.pop(key, None)
        if status is None or status.followed is None:
            raise RecordNotFound("followed repository", key)
        return status.followed

    def refresh_followed(self) -> None:
        self._wait()

    @property
    def why_not_followed(self) -> SkillhallError | None:
        return None

    def close(self) -> None:
        self.is_closed = True

    def _wait(self) -> None:
        if self.gate is not None:
            self.waiting.set()
            assert self.gate.wait(120)

    def _found(self, asked: Asked) -> PromptSnapshot:
        if self.fault is not None:
            raise self.fault
        if asked.source:
            return self._upload(asked.source)
        if not asked.repo:
            if self.source == BUILT_IN and (asked.path or asked.branch):
                raise SourceRejected("path", "no repository is configured")
            return self._made(self.source, self.prompts)
        try:
            prompts = self.repositories[asked.repo]
        except KeyError:
            raise PromptsSourceError(asked.repo, "there is no such repository") from None
        return self._made(without_credentials(asked.repo), prompts)

    def _upload(self, name: str) -> PromptSnapshot:
        if name not in self.uploads:
            raise SourceUnknown(name)
        prompts = [make_prompt(one.path) for one in self.uploads[name].files]
        return self._made(name, prompts)

    def _made(self, source: str, prompts: Sequence[Prompt]) -> MemorySnapshot:
        by_name = {prompt.name: prompt for prompt in prompts}
        return MemorySnapshot(source, by_name, self.commit, self.stale)


@dataclass
class ReadyCounter(MemoryCounter):
    """A counter whose one snapshot is made before anybody asks."""

    def __post_init__(self) -> None:
        self._ready = ReadySnapshot(self.source, {one.name: one for one in self.prompts})

    def current(self, asked: Asked = Asked()) -> PromptSnapshot | None:  # noqa: ARG002, B008
        return self._ready


def _listed(prompt: Prompt) -> dict[str, object]:
    listed: dict[str, object] = {"name": prompt.name, "description": prompt.description}
    if prompt.arguments:
        listed["arguments"] = [one._asdict() for one in prompt.arguments]
    return listed


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# A type checker reads this: the memory is a counter in every point.
_COUNTER: type[Counter] = MemoryCounter
