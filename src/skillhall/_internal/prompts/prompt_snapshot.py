"""Prompt snapshots: all prompts of a source at one moment, with their encoded responses."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from skillhall._internal.cache import SizedCache
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.reader import open_skill_bundle, read_skill
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.policy.skipped_items import collect_skipped
from skillhall._internal.prompts.arguments import check_arguments, parse_arguments, render_arguments
from skillhall._internal.prompts.checkout import hash_files
from skillhall._internal.prompts.prompt_model import BUILT_IN, Prompt, PromptFile, Stale
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import PromptNotFound, PromptsSourceError, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.policy.skipped_items import SkippedItem
    from skillhall._internal.prompts.checkout import Checkout
    from skillhall._internal.prompts.prompt_model import PromptArgument, PromptKind
    from skillhall._internal.skill.bundle import SkillFile

MAX_FILE = 5 * 1024 * 1024  # bytes; larger files are not served
RESPONSE_CACHE_BYTES = 256 * 1024 * 1024
_BODY_CACHE_BYTES = 64 * 1024 * 1024
_BUILT_IN_FOLDER = os.path.join(os.path.dirname(__file__), "built_in")
_PROFILE = PROMPT_REPOSITORY
_SKIPPED_FILE_CODES = frozenset({Code.FILE_LEFT_OUT, Code.FILE_TOO_LARGE, Code.TOO_MANY_FILES})


class _PromptEntry(NamedTuple):
    """Prompt without its body."""

    skill: CatalogSkill
    kind: PromptKind
    arguments: tuple[PromptArgument, ...]
    files: tuple[SkillFile, ...]
    has_files: bool


class PromptContents:
    """Built-in prompts and those of one checkout, with a cache of their responses."""

    def __init__(
        self,
        source: str,
        checkout: Checkout | None = None,
        *,
        commit: str = "",
        source_findings: Iterable[Finding] = (),
        response_cache_bytes: int = RESPONSE_CACHE_BYTES,
    ) -> None:
        self.source = source
        self.commit = commit
        self._checkout = checkout  # its folder is deleted with the last reference
        self.source_findings = tuple(source_findings)
        reader = _ContentsReader(checkout.folder if checkout else "", self.source_findings)
        self._entries = {entry.skill.name: entry for entry in reader.read_entries()}
        self.skills = tuple(
            entry.skill for entry in self._entries.values() if entry.skill.source != BUILT_IN
        )
        self.names = tuple(self._entries)
        self.findings = reader.build_findings()
        self.skipped = collect_skipped(self.findings)
        self.digest = reader.finish_digest(source, checkout.digest if checkout else "")
        self._bodies = SizedCache[str](_BODY_CACHE_BYTES, len)
        self._responses = SizedCache[bytes](response_cache_bytes, len)
        self.list_json = _to_json_bytes(
            {"prompts": [*map(self._serialize_entry, self.names)], "source": source}
        )

    @property
    def folder(self) -> str:
        """Folder of the checkout; "" for the built-in prompts alone."""
        return self._checkout.folder if self._checkout else ""

    @property
    def label(self) -> str:
        """Source and commit, for logs."""
        return f"{self.source} at {self.commit[:12]}" if self.commit else self.source

    @property
    def is_readable(self) -> bool:
        """Whether the checkout still exists."""
        return self._checkout is None or self._checkout.exists

    def find_same_checkout(self, files: Mapping[str, bytes]) -> Checkout | None:
        """Return the checkout if it has exactly these files."""
        is_same = self._checkout is not None and self._checkout.digest == hash_files(files)
        return self._checkout if is_same else None

    def summary(self, name: str) -> Prompt:
        """Return a prompt without its files. Raises: PromptNotFound, PromptsSourceError."""
        entry = self._find_entry(name)
        body = self._bodies.get_or_create(name, lambda: self._read_body(entry))
        skill = entry.skill
        return Prompt(
            name=name,
            description=skill.description,
            arguments=entry.arguments,
            body=body,
            kind=entry.kind,
            has_files=entry.has_files,
            hidden=skill.hidden,
        )

    def files(self, name: str) -> tuple[PromptFile, ...]:
        """Read the files of a prompt. Raises: PromptNotFound, PromptsSourceError."""
        try:
            return tuple(PromptFile(f.path.text, f.read()) for f in self._find_entry(name).files)
        except SkillhallError as error:
            raise self._changed_error(error) from None

    def prompt_json(self, name: str) -> bytes:
        """Return the response without arguments. Raises: as `summary`, MissingArguments."""
        return self._responses.get_or_create(name, lambda: self.render_json(name, {}))

    def render_json(self, name: str, values: Mapping[str, object]) -> bytes:
        """Render a response. Raises: as `summary`, MissingArguments, InvalidArguments."""
        prompt = self.summary(name)
        text = render_arguments(prompt.body, check_arguments(prompt.arguments, values))
        message = {"role": "user", "content": {"type": "text", "text": text}}
        response: dict[str, Any] = {"description": prompt.description, "messages": [message]}
        if files := self.files(name):
            response["files"] = [
                {"path": path, "content": base64.b64encode(data).decode("ascii")}
                for path, data in files
            ]
        return _to_json_bytes({**response, "source": self.source})

    def _find_entry(self, name: str) -> _PromptEntry:
        entry = self._entries.get(name)
        if entry is None:
            raise PromptNotFound(name)
        return entry

    def _serialize_entry(self, name: str) -> dict[str, Any]:
        entry = self._entries[name]
        data: dict[str, Any] = {"name": name, "description": entry.skill.description}
        if entry.arguments:
            data["arguments"] = [argument._asdict() for argument in entry.arguments]
        return data

    def _read_body(self, entry: _PromptEntry) -> str:
        try:
            return read_skill(entry.skill, _PROFILE).body.strip()
        except SkillhallError as error:
            raise self._changed_error(error) from None

    def _changed_error(self, error: SkillhallError) -> PromptsSourceError:
        return PromptsSourceError(self.source, f"the cached files changed: {error}", "refresh it")


def _to_json_bytes(value: object) -> bytes:
    # YAML can contain a lone surrogate, which UTF-8 cannot encode.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


class _ContentsReader:
    """Reads all prompts completely: a body, too, can be the reason to reject one."""

    def __init__(self, folder: str, source_findings: tuple[Finding, ...]) -> None:
        roots = [Root(_BUILT_IN_FOLDER, BUILT_IN)] + ([Root(folder, "user")] if folder else [])
        self._folder = folder
        self._catalog = load_roots(roots, _PROFILE)
        self._source_findings = source_findings
        self._extra_findings: list[Finding] = []
        self._hash = hashlib.sha256()
        self._incomplete_folders = {
            finding.path.partition("/")[0]
            for finding in source_findings
            if finding.code in _SKIPPED_FILE_CODES and finding.path
        }

    def read_entries(self) -> Iterator[_PromptEntry]:
        """Iterate over the prompts that can be served."""
        for skill in self._catalog:
            entry = self._read_entry(skill)
            if entry is not None:
                yield entry

    def build_findings(self) -> tuple[JudgedFinding, ...]:
        """Return all findings, with paths relative to the source."""
        judged = [
            *self._catalog.findings,
            *_PROFILE.load_policy.judge((*self._source_findings, *self._extra_findings)),
        ]
        return tuple(
            JudgedFinding(
                finding._replace(
                    path=self._to_relative_text(finding.path),
                    message=self._to_relative_text(finding.message),
                ),
                effect,
            )
            for finding, effect in judged
        )

    def finish_digest(self, source: str, files: str) -> str:
        """Return the digest of everything that responses depend on."""
        self._update_hash(source, files)
        return self._hash.hexdigest()

    def _read_entry(self, skill: CatalogSkill) -> _PromptEntry | None:
        try:
            parsed = read_skill(skill, _PROFILE)
            bundle = open_skill_bundle(skill, _PROFILE.scan_policy)
        except SkillhallError as error:
            self._add_finding(Finding(Code.UNREADABLE, str(error)), skill)
            return None
        if rejecting := [finding for finding in parsed.findings if _is_rejecting(finding)]:
            self._extra_findings += [f.with_location(skill.location, skill.name) for f in rejecting]
            return None
        arguments, argument_findings = parse_arguments(parsed.frontmatter.fields)
        resources = [file for path, file in bundle.files.items() if path != skill.file]
        too_large = [file for file in resources if file.size > MAX_FILE]
        too_large_findings = map(_too_large_finding, too_large)
        for finding in (*argument_findings, *bundle.findings, *too_large_findings):
            self._add_finding(finding, skill)
        is_truncated = any(f.code in _SKIPPED_FILE_CODES for f in bundle.findings)
        has_files = bool(resources or is_truncated or self._is_incomplete(skill))
        self._update_hash(skill.name, skill.description, arguments, has_files, parsed.body)
        kind: PromptKind = "built-in" if skill.source == BUILT_IN else "user"
        files = tuple(file for file in resources if file.size <= MAX_FILE)
        return _PromptEntry(skill, kind, arguments, files, has_files)

    def _update_hash(self, *facts: object) -> None:
        self._hash.update(repr(facts).encode("utf-8", "surrogatepass"))

    def _is_incomplete(self, skill: CatalogSkill) -> bool:
        """Whether files of the skill were skipped when the source was read."""
        return bool(skill.source != BUILT_IN and skill.folder in self._incomplete_folders)

    def _add_finding(self, finding: Finding, skill: CatalogSkill) -> None:
        path = f"{skill.directory}{os.sep}{finding.path}" if finding.path else skill.location
        self._extra_findings.append(finding.with_location(path, skill.name))

    def _to_relative_text(self, text: str) -> str:
        text = text.replace(_BUILT_IN_FOLDER, BUILT_IN)
        if self._folder:
            text = text.replace(f"{self._folder}{os.sep}", "").replace(self._folder, ".")
        return text


def _is_rejecting(finding: Finding) -> bool:
    return _PROFILE.load_policy.get_effect(finding.code) is Effect.REJECT


def _too_large_finding(file: SkillFile) -> Finding:
    message = f"the file has more than {MAX_FILE} bytes and is not served"
    return Finding(Code.FILE_TOO_LARGE, message, path=file.path.text)


@dataclass(frozen=True, slots=True)
class PromptSnapshotView:
    """Snapshot of one source at one commit, and whether it is outdated."""

    contents: PromptContents
    stale: Stale | None = None

    @property
    def source(self) -> str:
        """Name of the source in responses, without credentials."""
        return self.contents.source

    @property
    def commit(self) -> str:
        """Commit of the snapshot; "" for folders and uploads."""
        return self.contents.commit

    @property
    def digest(self) -> str:
        """Digest that changes with any response."""
        return self.contents.digest

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """All findings, including those of rejected prompts."""
        return self.contents.findings

    @property
    def skipped(self) -> tuple[SkippedItem, ...]:
        """Items of the source that are not served."""
        return self.contents.skipped

    @property
    def names(self) -> Sequence[str]:
        """Names of all prompts, in order."""
        return self.contents.names

    def prompt(self, name: str) -> Prompt:
        """Return a prompt with its files. Raises: PromptNotFound, PromptsSourceError."""
        summary = self.contents.summary(name)
        return summary.with_files(self.contents.files(name))

    def summary(self, name: str) -> Prompt:
        """Return a prompt without its files. Raises: PromptNotFound, PromptsSourceError."""
        return self.contents.summary(name)

    def list_json(self) -> bytes:
        """Return the name, description and arguments of every prompt, and the source."""
        return self.contents.list_json

    def prompt_json(self, name: str, values: Mapping[str, object] | None = None) -> bytes:
        """Return a rendered prompt: description, messages, files and source.

        Raises: PromptNotFound, MissingArguments, InvalidArguments, PromptsSourceError.
        """
        if values:
            return self.contents.render_json(name, values)
        return self.contents.prompt_json(name)
