"""Snapshots: all prompts of one source at one moment, and the bytes of what is answered."""

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

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.policy.skipped_items import SkippedItem
    from skillhall._internal.prompts.checkout import Checkout
    from skillhall._internal.prompts.prompt_model import PromptArgument, PromptKind
    from skillhall._internal.skill.bundle import SkillFile

MAX_FILE = 5 * 1024 * 1024  # bytes of one file that is handed out
RESPONSE_CACHE_BYTES = 256 * 1024 * 1024  # bytes of answers that are kept
_BODY_CACHE_BYTES = 64 * 1024 * 1024  # bytes of bodies that are kept
_BUILT_IN_FOLDER = os.path.join(os.path.dirname(__file__), "built_in")
_PROFILE = PROMPT_REPOSITORY
_SKIPPED_FILE_CODES = frozenset({Code.FILE_LEFT_OUT, Code.FILE_TOO_LARGE, Code.TOO_MANY_FILES})


class _PromptEntry(NamedTuple):
    """What is known about one prompt before anybody asks for it."""

    skill: Skill
    kind: PromptKind
    arguments: tuple[PromptArgument, ...]
    files: tuple[SkillFile, ...]
    has_files: bool


class PromptContents:
    """The prompts of the built-in folder and of one copy, and what was said of them so far."""

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
        self._checkout = checkout  # as long as we live, it does
        self.source_findings = tuple(
            source_findings
        )  # what reading the source found, before it was copied
        reading = _ContentsReader(checkout.folder if checkout else "", self.source_findings)
        self._entries = {entry.skill.name: entry for entry in reading.read_entries()}
        self.skills = tuple(
            entry.skill for entry in self._entries.values() if entry.skill.source != BUILT_IN
        )
        self.names = tuple(self._entries)
        self.findings = reading.build_findings()
        self.skipped = collect_skipped(self.findings)
        self.digest = reading.finish_digest(source, checkout.digest if checkout else "")
        self._bodies = SizedCache[str](_BODY_CACHE_BYTES, len)
        self._responses = SizedCache[bytes](response_cache_bytes, len)
        self.list_json = _to_json_bytes(
            {"prompts": [*map(self._serialize_entry, self.names)], "source": source}
        )

    @property
    def folder(self) -> str:
        """Where its files are; "" for the built-in prompts alone."""
        return self._checkout.folder if self._checkout else ""

    @property
    def label(self) -> str:
        """The source and its commit, for logs."""
        return f"{self.source} at {self.commit[:12]}" if self.commit else self.source

    @property
    def is_readable(self) -> bool:
        """Whether everything can still be read."""
        return self._checkout is None or self._checkout.exists

    def find_same_checkout(self, files: Mapping[str, bytes]) -> Checkout | None:
        """The copy, if exactly these files were copied."""
        is_same = self._checkout is not None and self._checkout.digest == hash_files(files)
        return self._checkout if is_same else None

    def summary(self, name: str) -> Prompt:
        """The prompt without its files' bytes. Raises: PromptNotFound, PromptsSourceError."""
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
        """The prompt's files. Raises: PromptNotFound, PromptsSourceError."""
        try:
            return tuple(PromptFile(f.path.text, f.read()) for f in self._find_entry(name).files)
        except SkillhallError as error:
            raise self._changed_error(error) from None

    def prompt_json(self, name: str) -> bytes:
        """The answer for a prompt without arguments. Raises: as `summary`, MissingArguments."""
        return self._responses.get_or_create(name, lambda: self.render_json(name, {}))

    def render_json(self, name: str, values: Mapping[str, object]) -> bytes:
        """The answer for a prompt. Raises: as `summary`, MissingArguments, InvalidArguments."""
        prompt = self.summary(name)
        text = render_arguments(prompt.body, check_arguments(prompt.arguments, values))
        message = {"role": "user", "content": {"type": "text", "text": text}}
        answer: dict[str, Any] = {"description": prompt.description, "messages": [message]}
        if files := self.files(name):
            answer["files"] = [
                {"path": path, "content": base64.b64encode(data).decode("ascii")}
                for path, data in files
            ]
        return _to_json_bytes({**answer, "source": self.source})

    def _find_entry(self, name: str) -> _PromptEntry:
        found = self._entries.get(name)
        if found is None:
            raise PromptNotFound(name)
        return found

    def _serialize_entry(self, name: str) -> dict[str, Any]:
        entry = self._entries[name]
        listed: dict[str, Any] = {"name": name, "description": entry.skill.description}
        if entry.arguments:
            listed["arguments"] = [argument._asdict() for argument in entry.arguments]
        return listed

    def _read_body(self, entry: _PromptEntry) -> str:
        try:
            return read_skill(entry.skill, _PROFILE).body.strip()
        except SkillhallError as error:
            raise self._changed_error(error) from None

    def _changed_error(self, error: SkillhallError) -> PromptsSourceError:
        return PromptsSourceError(self.source, f"its copy was changed: {error}", "refresh it")


def _to_json_bytes(value: object) -> bytes:
    # YAML can spell half of a surrogate pair, which no UTF-8 holds.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


class _ContentsReader:
    """Reads all prompts once, from the first line to the last: a body can be what is wrong."""

    def __init__(self, folder: str, source_findings: tuple[Finding, ...]) -> None:
        roots = [Root(_BUILT_IN_FOLDER, BUILT_IN)] + ([Root(folder, "user")] if folder else [])
        self._folder = folder
        self._catalog = load_roots(roots, _PROFILE)
        self._source_findings = source_findings
        self._extra_findings: list[Finding] = []
        self._hash = hashlib.sha256()
        self._incomplete_folders = {
            note.path.partition("/")[0]
            for note in source_findings
            if note.code in _SKIPPED_FILE_CODES and note.path
        }

    def read_entries(self) -> Iterator[_PromptEntry]:
        """The prompts that can be handed out."""
        for skill in self._catalog:
            entry = self._read_entry(skill)
            if entry is not None:
                yield entry

    def build_findings(self) -> tuple[JudgedFinding, ...]:
        """All there is to say, by paths inside the source."""
        judged = [
            *self._catalog.findings,
            *_PROFILE.load_policy.judge((*self._source_findings, *self._extra_findings)),
        ]
        return tuple(
            JudgedFinding(
                one._replace(
                    path=self._to_relative_text(one.path),
                    message=self._to_relative_text(one.message),
                ),
                effect,
            )
            for one, effect in judged
        )

    def finish_digest(self, source: str, files: str) -> str:
        """What changes with every answer."""
        self._update_hash(source, files)
        return self._hash.hexdigest()

    def _read_entry(self, skill: Skill) -> _PromptEntry | None:
        try:
            parsed = read_skill(skill, _PROFILE)
            bundle = open_skill_bundle(skill, _PROFILE.scan_policy)
        except SkillhallError as error:
            self._add_finding(Finding(Code.UNREADABLE, str(error)), skill)
            return None
        if against := [one for one in parsed.findings if _is_rejecting(one)]:
            self._extra_findings += [
                one.with_location(skill.location, skill.name) for one in against
            ]
            return None
        arguments, odd = parse_arguments(parsed.frontmatter.fields)
        resources = [file for path, file in bundle.files.items() if path != skill.file]
        too_large = [file for file in resources if file.size > MAX_FILE]
        for finding in (*odd, *bundle.findings, *map(_too_large_finding, too_large)):
            self._add_finding(finding, skill)
        left_out = any(one.code in _SKIPPED_FILE_CODES for one in bundle.findings)
        has_files = bool(resources or left_out or self._is_incomplete(skill))
        self._update_hash(skill.name, skill.description, arguments, has_files, parsed.body)
        kind: PromptKind = "built-in" if skill.source == BUILT_IN else "user"
        files = tuple(file for file in resources if file.size <= MAX_FILE)
        return _PromptEntry(skill, kind, arguments, files, has_files)

    def _update_hash(self, *facts: object) -> None:
        self._hash.update(repr(facts).encode("utf-8", "surrogatepass"))

    def _is_incomplete(self, skill: Skill) -> bool:
        """Whether files of the skill did not even come as far as our copy."""
        return bool(skill.source != BUILT_IN and skill.folder in self._incomplete_folders)

    def _add_finding(self, finding: Finding, skill: Skill) -> None:
        place = f"{skill.directory}{os.sep}{finding.path}" if finding.path else skill.location
        self._extra_findings.append(finding.with_location(place, skill.name))

    def _to_relative_text(self, text: str) -> str:
        text = text.replace(_BUILT_IN_FOLDER, BUILT_IN)
        if self._folder:
            text = text.replace(f"{self._folder}{os.sep}", "").replace(self._folder, ".")
        return text


def _is_rejecting(finding: Finding) -> bool:
    return _PROFILE.load_policy.get_effect(finding.code) is Effect.REJECT


def _too_large_finding(file: SkillFile) -> Finding:
    message = f"the file has more than {MAX_FILE} bytes and is not handed out"
    return Finding(Code.FILE_TOO_LARGE, message, path=file.path.text)


@dataclass(frozen=True, slots=True)
class PromptSnapshotView:
    """All prompts of one source at one commit, and whether newer ones may exist."""

    contents: PromptContents
    stale: Stale | None = None

    @property
    def source(self) -> str:
        """What answers call it, without credentials."""
        return self.contents.source

    @property
    def commit(self) -> str:
        """The commit it was read at; "" for folders and uploads."""
        return self.contents.commit

    @property
    def digest(self) -> str:
        """Changes with whatever a list or an answer could say."""
        return self.contents.digest

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """What was left out, and what else was noticed."""
        return self.contents.findings

    @property
    def skipped(self) -> tuple[SkippedItem, ...]:
        """What the source holds but does not serve."""
        return self.contents.skipped

    @property
    def names(self) -> Sequence[str]:
        """The names of all prompts, in order."""
        return self.contents.names

    def prompt(self, name: str) -> Prompt:
        """The prompt of that name, with its files. Raises: PromptNotFound, PromptsSourceError."""
        summary = self.contents.summary(name)
        return summary.with_files(self.contents.files(name))

    def summary(self, name: str) -> Prompt:
        """The same without the files' bytes. Raises: PromptNotFound, PromptsSourceError."""
        return self.contents.summary(name)

    def list_json(self) -> bytes:
        """Every prompt's name, description and arguments, and the source."""
        return self.contents.list_json

    def prompt_json(self, name: str, values: Mapping[str, object] | None = None) -> bytes:
        """One prompt's description, messages, files and source, with its arguments filled in.

        Raises: PromptNotFound, MissingArguments, InvalidArguments, PromptsSourceError.
        """
        return (
            self.contents.render_json(name, values) if values else self.contents.prompt_json(name)
        )
