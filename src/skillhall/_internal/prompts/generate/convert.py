"""The prompts of a server as skills: chosen, fetched, named, written out and checked; not stored.

The server has checked all this before. It is somebody else's, so it is checked again.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.authoring.scaffold import new_skill_md
from skillhall._internal.installer.preflight import AddReport, bundle_of, prepare
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.scan_rules import LITTER
from skillhall._internal.policy.selection import matches
from skillhall._internal.skill.bundle import RelativePath, folded
from skillhall._internal.skill.checks import suggest_name
from skillhall._internal.skill.document import Document, EditRefused
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD
from skillhall._internal.skill.merge import FileState
from skillhall.errors import (
    NotAuthenticated,
    SkillhallError,
    SkillRejected,
    SourceTimedOut,
    TooLarge,
    UnsafePath,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from skillhall._internal.policy.effects import Judged
    from skillhall._internal.sources.server_api.prompt_client import (
        Argument,
        Given,
        Listed,
        Listing,
        PromptServer,
    )

    Progress: TypeAlias = Callable[[str, int, int], None]  # a step, how much is done, of how much

AT_ONCE: Final = 4  # requests
MAX_BATCH: Final = 512 * 1024 * 1024  # bytes of all skills of one run, which are held in memory
MAX_FOLDER: Final = 200  # bytes; file systems take 255, and a name that is staged gets longer
_STEP = "prompts"
_SHEBANG = b"#!"
_SHELL_SCRIPTS = (".sh", ".bash")


class Wanted(NamedTuple):
    """Which prompts, by globs over their names: all that some include has and no exclude."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def takes(self, name: str) -> bool:
        """Whether the prompt of that name is chosen."""
        is_in = not self.include or any(matches(pattern, name) for pattern in self.include)
        return is_in and not any(matches(pattern, name) for pattern in self.exclude)


EVERY_PROMPT: Final = Wanted()


class PromptSkill(NamedTuple):
    """A prompt that is ready to be written as a skill."""

    prompt: str
    folder: str
    files: Mapping[str, FileState]

    @property
    def programs(self) -> tuple[str, ...]:
        """The files that can be run."""
        return tuple(path for path, state in self.files.items() if state.executable)


class NotWritten(NamedTuple):
    """A prompt that cannot be a skill here, and why."""

    prompt: str
    folder: str
    reason: str  # "shadowed", "rejected" or "reserved"


class NotFetched(NamedTuple):
    """A prompt that the server lists and does not give, and why."""

    prompt: str
    error: SkillhallError


@dataclass(slots=True)
class Batch:
    """What one server gave: skills, and everything that was noticed."""

    source: str = ""  # what the server calls it
    listed: frozenset[str] = frozenset()  # every prompt that the server has, chosen or not
    skills: list[PromptSkill] = field(default_factory=list)
    is_stand_in: bool = False  # for prompts of a repository that the server could not read
    left: list[NotWritten] = field(default_factory=list)
    failed: list[NotFetched] = field(default_factory=list)
    findings: list[Judged] = field(default_factory=list)

    def note(self, finding: Finding) -> None:
        """Keep a finding, if it means anything to somebody who generates."""
        judged = LENIENT.load.judge([finding])
        self.findings += [one for one in judged if one.effect is not Effect.ACCEPT]


class _Choice(NamedTuple):
    listed: Listed
    folder: str


def fetch_skills(
    server: PromptServer, wanted: Wanted = EVERY_PROMPT, progress: Progress | None = None
) -> Batch:
    """The prompts of a server as skills.

    A prompt that cannot be fetched is noted in the batch, and the others are fetched all the same.
    Raises: SourceUnavailable, NotAuthenticated, ServerRefused if there is no list of prompts or the
    server is gone; TooLarge if all prompts together are.
    """
    listing = server.list()
    batch = Batch(listing.source, frozenset(one.name for one in listing.prompts))
    if listing.is_stand_in:
        _tell_stand_in(listing, batch)
    _tell_unmatched(listing.prompts, wanted, batch)
    choices = list(_chosen(listing.prompts, wanted, batch))
    size = 0
    for done, (choice, given) in enumerate(_fetched(server, choices), start=1):
        if isinstance(given, SkillhallError):
            batch.failed.append(NotFetched(choice.listed.name, given))
        else:
            size += len(given.text) + sum(map(len, given.files.values()))
            if size > MAX_BATCH:
                raise TooLarge("all prompts together", MAX_BATCH)
            _take(choice, given, batch)
        if progress is not None:
            progress(_STEP, done, len(choices))
    return batch


def _tell_stand_in(listing: Listing, batch: Batch) -> None:
    batch.is_stand_in = True
    message = f"the server has its built-in prompts only, so nothing is removed: {listing.stale}"
    hint = "run it again when the server can read its repository"
    batch.note(Finding(Code.PROMPTS_UNREAD, message, hint=hint))


def _chosen(prompts: Sequence[Listed], wanted: Wanted, batch: Batch) -> Iterator[_Choice]:
    """The prompts to fetch, each with a folder of its own; the first of two keeps it."""
    winners: dict[str, str] = {}
    for one in prompts:
        if not wanted.takes(one.name):
            continue
        folder = folder_for(one.name)
        key = folded(folder)
        if not one.has_route:
            message = f"the prompt {one.name!r} cannot be asked for: its name is a route"
            batch.note(Finding(Code.NAME_RESERVED, message, path=folder, skill=one.name))
            batch.left.append(NotWritten(one.name, folder, "reserved"))
        elif key in winners:
            message = f"the prompt {winners[key]!r} takes the folder {folder!r}"
            hint = "rename one of them, or leave the other out with --exclude"
            batch.note(Finding(Code.SHADOWED, message, None, hint, folder, one.name))
            batch.left.append(NotWritten(one.name, folder, "shadowed"))
        else:
            winners[key] = one.name
            yield _Choice(one, folder)


def _tell_unmatched(prompts: Sequence[Listed], wanted: Wanted, batch: Batch) -> None:
    for pattern in dict.fromkeys((*wanted.include, *wanted.exclude)):
        if not any(matches(pattern, one.name) for one in prompts):
            hint = "check its spelling; '*' and '?' are wildcards, case counts"
            message = f"the pattern {pattern!r} matches no prompt"
            batch.note(Finding(Code.PATTERN_UNMATCHED, message, hint=hint))


def folder_for(name: str) -> str:
    """The one folder name that a prompt's name leads to: it follows the specification."""
    text = suggest_name(name).encode()[:MAX_FOLDER].decode(errors="ignore").strip("-")
    try:
        return RelativePath.parse(text).text
    except UnsafePath:  # a device name
        return f"{text}-skill"


def _fetched(
    server: PromptServer, choices: Sequence[_Choice]
) -> Iterator[tuple[_Choice, Given | SkillhallError]]:
    """Each prompt or its error in order, several requests at once.

    An error that every further request would meet is raised at once.
    """
    pool = ThreadPoolExecutor(AT_ONCE, "prompts")
    try:
        answers = pool.map(lambda choice: _fetch(server, choice.listed), choices)
        yield from zip(choices, answers, strict=True)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _fetch(server: PromptServer, listed: Listed) -> Given | SkillhallError:
    try:
        return server.fetch(*_request(listed))
    except (NotAuthenticated, SourceTimedOut):
        raise
    except SkillhallError as error:
        return error


def _request(listed: Listed) -> tuple[str, dict[str, str]]:
    """The name, and each argument that must be given filled by its own placeholder: it stays."""
    required = (one.name for one in listed.arguments if one.required)
    return listed.name, {name: f"{{{{{name}}}}}" for name in required}


def _take(choice: _Choice, given: Given, batch: Batch) -> None:
    """Put the prompt into the batch, if agents would load it."""
    listed, folder = choice
    if folder != listed.name:
        message = f"the prompt {listed.name!r} is written as {folder!r}"
        batch.note(Finding(Code.NAME_NOT_FOLDER, message, path=folder, skill=listed.name))
    try:
        description = given.description or listed.description
        data = skill_md(folder, description, given.text, listed.arguments)
    except SkillRejected as error:
        batch.note(Finding(Code.YAML_INVALID, str(error), path=folder, skill=listed.name))
        batch.left.append(NotWritten(listed.name, folder, "rejected"))
        return
    files = {SKILL_MD: FileState(data, executable=False), **dict(_states(choice, given, batch))}
    report = AddReport()
    if prepare([bundle_of(folder, files)], "", report):
        batch.skills.append(PromptSkill(listed.name, folder, dict(sorted(files.items()))))
    else:
        batch.left.append(NotWritten(listed.name, folder, "rejected"))
    batch.findings += report.findings


def skill_md(name: str, description: str, body: str, arguments: Sequence[Argument] = ()) -> bytes:
    """A SKILL.md for a prompt; its body is the text as it is. Raises: SkillRejected."""
    data = new_skill_md(name, description, body)
    if not arguments:
        return data
    hint = " ".join(f"<{one.name}>" if one.required else f"[{one.name}]" for one in arguments)
    try:
        return Document(data).with_field("argument-hint", hint).data
    except EditRefused as refusal:
        raise SkillRejected(name, [str(refusal)]) from None


def _states(choice: _Choice, given: Given, batch: Batch) -> Iterator[tuple[str, FileState]]:
    for path, data in given.files.items():
        if any(part.startswith(".") or part in LITTER for part in path.split("/")):
            message = "left out of the skill's files: hidden files are not written"
            place = f"{choice.folder}/{path}"
            batch.note(Finding(Code.FILE_LEFT_OUT, message, path=place, skill=choice.listed.name))
        else:
            yield path, FileState(data, is_script(path, data))


def is_script(path: str, data: bytes) -> bool:
    """Whether a file is there to be run: it says so in its first line, or by its name."""
    return data.startswith(_SHEBANG) or path.lower().endswith(_SHELL_SCRIPTS)
