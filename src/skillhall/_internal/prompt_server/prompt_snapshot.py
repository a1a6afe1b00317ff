"""Prompt snapshots: all prompts of a source at one moment, with cached responses."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.cache import SizedCache
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.skill_content import open_skill_bundle, read_skill
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.policy.skipped_items import collect_skipped
from skillhall._internal.prompt_server.arguments import parse_arguments, render_prompt
from skillhall._internal.prompt_server.checkout import hash_files
from skillhall._internal.prompt_server.prompt_model import (
    BUILT_IN,
    Prompt,
    PromptFile,
    serialize_prompt,
)
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import PromptNotFound, PromptsSourceError, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.prompt_server.checkout import Checkout
    from skillhall._internal.prompt_server.prompt_model import Stale
    from skillhall._internal.skill.bundle import SkillFile

MAX_FILE = 5 * 1024 * 1024  # bytes; larger files are not served
RESPONSE_CACHE_BYTES = 256 * 1024 * 1024
_FILTERED_CACHE_BYTES = 8 * 1024 * 1024
_BODY_CACHE_BYTES = 64 * 1024 * 1024
_BUILT_IN_FOLDER = os.path.join(os.path.dirname(__file__), "built_in")
_PROFILE = PROMPT_REPOSITORY
_SKIPPED_FILE_CODES = frozenset({Code.FILE_LEFT_OUT, Code.FILE_TOO_LARGE, Code.TOO_MANY_FILES})


class _PromptEntry(NamedTuple):
    """Prompt without its body, with the skill and the files to read on demand."""

    prompt: Prompt
    skill: CatalogSkill
    files: tuple[SkillFile, ...]


class PromptSnapshot:
    """Immutable set of the built-in prompts and those of one source at one commit.

    `list_json` and `prompt_json` are the `data` of the responses to `GET /api/v1/prompts` and
    `POST /api/v1/prompts/{name}`. Prompts rendered without arguments are cached as JSON.
    """

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
        self.stale: Stale | None = None
        self.original: PromptSnapshot | None = None  # set if this is a stale copy
        self.source_findings = tuple(source_findings)
        self._checkout = checkout  # its folder is deleted with the last reference
        self.folder = checkout.folder if checkout else ""  # "" for the built-in prompts alone
        reader = _PromptReader(self.folder, self.source_findings)
        self._entries = {entry.skill.name: entry for entry in reader.read_entries()}
        entries = self._entries.values()
        self.skills = tuple(entry.skill for entry in entries if entry.skill.source != BUILT_IN)
        self.names = tuple(self._entries)
        self.findings = reader.build_findings()
        self.skipped = collect_skipped(self.findings)
        # Changes whenever any of the responses would change; used in ETags.
        self.digest = reader.finish_digest(source, checkout.digest if checkout else "")
        self._summaries = SizedCache[Prompt](_BODY_CACHE_BYTES, lambda prompt: len(prompt.body))
        self._responses = SizedCache[bytes](response_cache_bytes, len)
        prompts = [serialize_prompt(entry.prompt) for entry in entries]
        self.list_json = _to_json_bytes({"prompts": prompts, "source": source})

    def with_stale(self, stale: Stale | None) -> PromptSnapshot:
        """Return the same prompts marked as outdated; with None, the original snapshot."""
        original = self.original or self
        if stale is None:
            return original
        snapshot = copy(original)  # shares the caches
        snapshot.stale, snapshot.original = stale, original
        return snapshot

    def without(self, names: frozenset[str]) -> PromptSnapshot:
        """Return the prompts except those with these names; `skills` still has them."""
        if names.isdisjoint(self._entries):
            return self
        snapshot = copy(self)
        snapshot._entries = {  # noqa: SLF001 - of the same class
            name: entry
            for name, entry in self._entries.items()
            if name not in names or entry.skill.source == BUILT_IN
        }
        snapshot.names = tuple(snapshot._entries)  # noqa: SLF001 - as above
        entries = snapshot._entries.values()  # noqa: SLF001 - as above
        prompts = [serialize_prompt(entry.prompt) for entry in entries]
        snapshot.list_json = _to_json_bytes({"prompts": prompts, "source": self.source})
        held = "\0".join((self.digest, *sorted(names)))
        snapshot.digest = hashlib.sha256(held.encode("utf-8", "surrogatepass")).hexdigest()
        # The caches contain the responses of held prompts.
        snapshot._summaries = SizedCache(_BODY_CACHE_BYTES, lambda prompt: len(prompt.body))  # noqa: SLF001
        snapshot._responses = SizedCache(_FILTERED_CACHE_BYTES, len)  # noqa: SLF001
        if self.original is not None:
            snapshot.original = self.original.without(names)
        return snapshot

    @property
    def label(self) -> str:
        """Source and commit, for logs."""
        return f"{self.source} at {self.commit[:12]}" if self.commit else self.source

    @property
    def is_readable(self) -> bool:
        """Whether the checkout still exists."""
        return self._checkout is None or self._checkout.exists

    def find_same_checkout(self, files: Mapping[str, bytes]) -> Checkout | None:
        """Return the checkout if it has exactly these files, else None."""
        is_same = self._checkout is not None and self._checkout.digest == hash_files(files)
        return self._checkout if is_same else None

    def summary(self, name: str) -> Prompt:
        """Return a prompt without its files. Raises: PromptNotFound, PromptsSourceError."""
        entry = self._entries.get(name)
        if entry is None:
            raise PromptNotFound(name)

        def read() -> Prompt:
            try:
                return replace(entry.prompt, body=read_skill(entry.skill, _PROFILE).body.strip())
            except SkillhallError as error:
                raise self._changed_error(error) from None

        return self._summaries.get_or_create(name, read)

    def prompt(self, name: str) -> Prompt:
        """Return a prompt with its files. Raises: PromptNotFound, PromptsSourceError."""
        return replace(self.summary(name), files=self._read_files(name))

    def prompt_json(self, name: str, values: Mapping[str, object] | None = None) -> bytes:
        """Return a rendered prompt as JSON: description, messages, files and source.

        Raises: PromptNotFound, MissingArguments, InvalidArguments, PromptsSourceError.
        """
        if not values:
            return self._responses.get_or_create(name, lambda: self._render_json(name, {}))
        return self._render_json(name, values)

    def _render_json(self, name: str, values: Mapping[str, object]) -> bytes:
        response = render_prompt(self.summary(name), values)
        if files := self._read_files(name):
            response["files"] = [
                {"path": path, "content": base64.b64encode(data).decode("ascii")}
                for path, data in files
            ]
        return _to_json_bytes({**response, "source": self.source})

    def _read_files(self, name: str) -> tuple[PromptFile, ...]:
        try:
            return tuple(PromptFile(f.path.text, f.read()) for f in self._entries[name].files)
        except SkillhallError as error:
            raise self._changed_error(error) from None

    def _changed_error(self, error: SkillhallError) -> PromptsSourceError:
        return PromptsSourceError(
            self.source, f"the cached files changed: {error}", "refresh the source"
        )


def _to_json_bytes(value: object) -> bytes:
    # YAML can contain a lone surrogate, which UTF-8 cannot encode.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


class _PromptReader:
    """Reads all prompts with their bodies, because a body can cause a rejection.

    `read_entries` collects the findings and the digest, so exhaust it before calling the other
    methods.
    """

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
        extra = (*self._source_findings, *self._extra_findings)
        judged = (*self._catalog.findings, *_PROFILE.load_policy.judge(extra))
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
        get_effect = _PROFILE.load_policy.get_effect
        if rejecting := [f for f in parsed.findings if get_effect(f.code) is Effect.REJECT]:
            self._extra_findings += [f.with_location(skill.location, skill.name) for f in rejecting]
            return None
        arguments, argument_findings = parse_arguments(parsed.frontmatter.fields)
        resources = [file for path, file in bundle.files.items() if path != skill.file]
        too_large = f"the file has more than {MAX_FILE} bytes and is not served"
        size_findings = [
            Finding(Code.FILE_TOO_LARGE, too_large, path=file.path.text)
            for file in resources
            if file.size > MAX_FILE
        ]
        for finding in (*argument_findings, *bundle.findings, *size_findings):
            self._add_finding(finding, skill)
        is_built_in = skill.source == BUILT_IN
        # Files may have been skipped here, or already when the source was read.
        is_incomplete = any(f.code in _SKIPPED_FILE_CODES for f in bundle.findings) or (
            not is_built_in and skill.folder in self._incomplete_folders
        )
        prompt = Prompt(
            skill.name,
            skill.description,
            arguments,
            body="",
            kind="built-in" if is_built_in else "user",
            has_files=bool(resources) or is_incomplete,
            hidden=skill.hidden,
        )
        self._update_hash(skill.name, skill.description, arguments, prompt.has_files, parsed.body)
        files = tuple(file for file in resources if file.size <= MAX_FILE)
        return _PromptEntry(prompt, skill, files)

    def _update_hash(self, *facts: object) -> None:
        self._hash.update(repr(facts).encode("utf-8", "surrogatepass"))

    def _add_finding(self, finding: Finding, skill: CatalogSkill) -> None:
        path = f"{skill.directory}{os.sep}{finding.path}" if finding.path else skill.location
        self._extra_findings.append(finding.with_location(path, skill.name))

    def _to_relative_text(self, text: str) -> str:
        text = text.replace(_BUILT_IN_FOLDER, BUILT_IN)
        if self._folder:
            text = text.replace(f"{self._folder}{os.sep}", "").replace(self._folder, ".")
        return text
