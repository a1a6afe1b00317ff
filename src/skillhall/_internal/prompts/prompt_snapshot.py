"""Snapshots: all prompts of one source at one moment, and the bytes of what is answered."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from skillhall._internal.cache import Kept
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.reader import bundle_of, read_skill
from skillhall._internal.policy.effects import Effect, Judged
from skillhall._internal.policy.profiles import PROMPT_REPOSITORY
from skillhall._internal.policy.skipped_items import skipped_in
from skillhall._internal.prompts.arguments import check_arguments, parse_arguments, render_arguments
from skillhall._internal.prompts.checkout import digest_of
from skillhall._internal.prompts.prompt_model import BUILT_IN, Prompt, PromptFile, Stale
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.sources.folder.root import Root
from skillhall.errors import PromptNotFound, PromptsSourceError, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillhall._internal.catalog.catalog import Skill
    from skillhall._internal.policy.skipped_items import Skipped
    from skillhall._internal.prompts.checkout import Copy
    from skillhall._internal.prompts.prompt_model import Argument, Kind
    from skillhall._internal.skill.bundle import SkillFile

MAX_FILE = 5 * 1024 * 1024  # bytes of one file that is handed out
ANSWERS = 256 * 1024 * 1024  # bytes of answers that are kept
_BODIES = 64 * 1024 * 1024  # bytes of bodies that are kept
_BUILT_IN = os.path.join(os.path.dirname(__file__), "built_in")
_PROFILE = PROMPT_REPOSITORY
_LEFT_OUT = frozenset({Code.FILE_LEFT_OUT, Code.FILE_TOO_LARGE, Code.TOO_MANY_FILES})


class _Entry(NamedTuple):
    """What is known about one prompt before anybody asks for it."""

    skill: Skill
    kind: Kind
    arguments: tuple[Argument, ...]
    files: tuple[SkillFile, ...]
    has_files: bool


class Contents:
    """The prompts of the built-in folder and of one copy, and what was said of them so far."""

    def __init__(
        self,
        source: str,
        copy: Copy | None = None,
        *,
        commit: str = "",
        notes: Iterable[Finding] = (),
        answers: int = ANSWERS,
    ) -> None:
        self.source = source
        self.commit = commit
        self._copy = copy  # as long as we live, it does
        self.notes = tuple(notes)  # what reading the source found, before it was copied
        reading = _Reading(copy.folder if copy else "", self.notes)
        self._entries = {entry.skill.name: entry for entry in reading.entries()}
        self.skills = tuple(
            entry.skill for entry in self._entries.values() if entry.skill.source != BUILT_IN
        )
        self.names = tuple(self._entries)
        self.findings = reading.findings()
        self.skipped = skipped_in(self.findings)
        self.digest = reading.digest(source, copy.digest if copy else "")
        self._bodies = Kept[str](_BODIES, len)
        self._answers = Kept[bytes](answers, len)
        self.list_data = _encoded({"prompts": [*map(self._listed, self.names)], "source": source})

    @property
    def folder(self) -> str:
        """Where its files are; "" for the built-in prompts alone."""
        return self._copy.folder if self._copy else ""

    @property
    def place(self) -> str:
        """The source and its commit, for logs."""
        return f"{self.source} at {self.commit[:12]}" if self.commit else self.source

    @property
    def is_whole(self) -> bool:
        """Whether everything can still be read."""
        return self._copy is None or self._copy.is_whole

    def copy_of(self, files: Mapping[str, bytes]) -> Copy | None:
        """The copy, if exactly these files were copied."""
        is_same = self._copy is not None and self._copy.digest == digest_of(files)
        return self._copy if is_same else None

    def summary(self, name: str) -> Prompt:
        """The prompt without its files' bytes. Raises: PromptNotFound, PromptsSourceError."""
        entry = self._entry(name)
        body = self._bodies.value(name, lambda: self._body(entry))
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
            return tuple(PromptFile(f.path.text, f.read()) for f in self._entry(name).files)
        except SkillhallError as error:
            raise self._gone(error) from None

    def get_data(self, name: str) -> bytes:
        """The answer for a prompt without arguments. Raises: as `summary`, MissingArguments."""
        return self._answers.value(name, lambda: self.rendered(name, {}))

    def rendered(self, name: str, values: Mapping[str, object]) -> bytes:
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
        return _encoded({**answer, "source": self.source})

    def _entry(self, name: str) -> _Entry:
        found = self._entries.get(name)
        if found is None:
            raise PromptNotFound(name)
        return found

    def _listed(self, name: str) -> dict[str, Any]:
        entry = self._entries[name]
        listed: dict[str, Any] = {"name": name, "description": entry.skill.description}
        if entry.arguments:
            listed["arguments"] = [argument._asdict() for argument in entry.arguments]
        return listed

    def _body(self, entry: _Entry) -> str:
        try:
            return read_skill(entry.skill, _PROFILE).body.strip()
        except SkillhallError as error:
            raise self._gone(error) from None

    def _gone(self, error: SkillhallError) -> PromptsSourceError:
        return PromptsSourceError(self.source, f"its copy was changed: {error}", "refresh it")


def _encoded(value: object) -> bytes:
    # YAML can spell half of a surrogate pair, which no UTF-8 holds.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


class _Reading:
    """Reads all prompts once, from the first line to the last: a body can be what is wrong."""

    def __init__(self, folder: str, notes: tuple[Finding, ...]) -> None:
        roots = [Root(_BUILT_IN, BUILT_IN)] + ([Root(folder, "user")] if folder else [])
        self._folder = folder
        self._catalog = load_roots(roots, _PROFILE)
        self._notes = notes
        self._more: list[Finding] = []
        self._hash = hashlib.sha256()
        self._with_left_out = {
            note.path.partition("/")[0] for note in notes if note.code in _LEFT_OUT and note.path
        }

    def entries(self) -> Iterator[_Entry]:
        """The prompts that can be handed out."""
        for skill in self._catalog:
            entry = self._entry(skill)
            if entry is not None:
                yield entry

    def findings(self) -> tuple[Judged, ...]:
        """All there is to say, by paths inside the source."""
        judged = [*self._catalog.findings, *_PROFILE.load.judge((*self._notes, *self._more))]
        return tuple(
            Judged(
                one._replace(path=self._inside(one.path), message=self._inside(one.message)), effect
            )
            for one, effect in judged
        )

    def digest(self, source: str, files: str) -> str:
        """What changes with every answer."""
        self._count(source, files)
        return self._hash.hexdigest()

    def _entry(self, skill: Skill) -> _Entry | None:
        try:
            parsed = read_skill(skill, _PROFILE)
            bundle = bundle_of(skill, _PROFILE.scan)
        except SkillhallError as error:
            self._note(Finding(Code.UNREADABLE, str(error)), skill)
            return None
        if against := [one for one in parsed.findings if _is_against(one)]:
            self._more += [one.at(skill.location, skill.name) for one in against]
            return None
        arguments, odd = parse_arguments(parsed.frontmatter.fields)
        resources = [file for path, file in bundle.files.items() if path != skill.file]
        too_large = [file for file in resources if file.size > MAX_FILE]
        for finding in (*odd, *bundle.findings, *map(_too_large, too_large)):
            self._note(finding, skill)
        left_out = any(one.code in _LEFT_OUT for one in bundle.findings)
        has_files = bool(resources or left_out or self._is_incomplete(skill))
        self._count(skill.name, skill.description, arguments, has_files, parsed.body)
        kind: Kind = "built-in" if skill.source == BUILT_IN else "user"
        files = tuple(file for file in resources if file.size <= MAX_FILE)
        return _Entry(skill, kind, arguments, files, has_files)

    def _count(self, *facts: object) -> None:
        self._hash.update(repr(facts).encode("utf-8", "surrogatepass"))

    def _is_incomplete(self, skill: Skill) -> bool:
        """Whether files of the skill did not even come as far as our copy."""
        return bool(skill.source != BUILT_IN and skill.folder in self._with_left_out)

    def _note(self, finding: Finding, skill: Skill) -> None:
        place = f"{skill.directory}{os.sep}{finding.path}" if finding.path else skill.location
        self._more.append(finding.at(place, skill.name))

    def _inside(self, text: str) -> str:
        text = text.replace(_BUILT_IN, BUILT_IN)
        if self._folder:
            text = text.replace(f"{self._folder}{os.sep}", "").replace(self._folder, ".")
        return text


def _is_against(finding: Finding) -> bool:
    return _PROFILE.load.effect(finding.code) is Effect.REJECT


def _too_large(file: SkillFile) -> Finding:
    message = f"the file has more than {MAX_FILE} bytes and is not handed out"
    return Finding(Code.FILE_TOO_LARGE, message, path=file.path.text)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All prompts of one source at one commit, and whether newer ones may exist."""

    contents: Contents
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
    def findings(self) -> tuple[Judged, ...]:
        """What was left out, and what else was noticed."""
        return self.contents.findings

    @property
    def skipped(self) -> tuple[Skipped, ...]:
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

    def list_data(self) -> bytes:
        """Every prompt's name, description and arguments, and the source."""
        return self.contents.list_data

    def get_data(self, name: str, values: Mapping[str, object] | None = None) -> bytes:
        """One prompt's description, messages, files and source, with its arguments filled in.

        Raises: PromptNotFound, MissingArguments, InvalidArguments, PromptsSourceError.
        """
        return self.contents.rendered(name, values) if values else self.contents.get_data(name)
