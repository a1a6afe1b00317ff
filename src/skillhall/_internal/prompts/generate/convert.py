"""The prompts of a server as skills: chosen, fetched, named, written out and checked; not stored.

The server has checked all this before. It is somebody else's, so it is checked again.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.authoring.scaffold import build_skill_md
from skillhall._internal.installer.preflight import AddReport, build_bundle, preflight_bundles
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.scan_rules import ALWAYS_SKIPPED
from skillhall._internal.policy.selection import matches_glob
from skillhall._internal.skill.bundle import RelativePath, fold_name
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

    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.sources.server_api.prompt_client import (
        PromptClient,
        RemotePrompt,
        RemotePromptArgument,
        RemotePromptContent,
        RemotePromptList,
    )

    Progress: TypeAlias = Callable[[str, int, int], None]  # a step, how much is done, of how much

MAX_PARALLEL_REQUESTS: Final = 4  # requests
MAX_BATCH_SIZE: Final = (
    512 * 1024 * 1024
)  # bytes of all skills of one run, which are held in memory
MAX_FOLDER_NAME: Final = 200  # bytes; file systems take 255, and a name that is staged gets longer
_PROGRESS_STEP = "prompts"
_SHEBANG = b"#!"
_SHELL_SCRIPTS = (".sh", ".bash")


class PromptFilter(NamedTuple):
    """Which prompts, by globs over their names: all that some include has and no exclude."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def includes(self, name: str) -> bool:
        """Whether the prompt of that name is chosen."""
        is_in = not self.include or any(matches_glob(pattern, name) for pattern in self.include)
        return is_in and not any(matches_glob(pattern, name) for pattern in self.exclude)


ALL_PROMPTS: Final = PromptFilter()


class PromptSkill(NamedTuple):
    """A prompt that is ready to be written as a skill."""

    prompt: str
    folder: str
    files: Mapping[str, FileState]

    @property
    def executables(self) -> tuple[str, ...]:
        """The files that can be run."""
        return tuple(path for path, state in self.files.items() if state.executable)


class SkippedPrompt(NamedTuple):
    """A prompt that cannot be a skill here, and why."""

    prompt: str
    folder: str
    reason: str  # "shadowed", "rejected" or "reserved"


class FailedPrompt(NamedTuple):
    """A prompt that the server lists and does not give, and why."""

    prompt: str
    error: SkillhallError


@dataclass(slots=True)
class PromptBatch:
    """What one server gave: skills, and everything that was noticed."""

    source: str = ""  # what the server calls it
    prompt_names: frozenset[str] = frozenset()  # every prompt that the server has, chosen or not
    skills: list[PromptSkill] = field(default_factory=list)
    is_fallback: bool = False  # for prompts of a repository that the server could not read
    skipped: list[SkippedPrompt] = field(default_factory=list)
    failed: list[FailedPrompt] = field(default_factory=list)
    findings: list[JudgedFinding] = field(default_factory=list)

    def add_finding(self, finding: Finding) -> None:
        """Keep a finding, if it means anything to somebody who generates."""
        judged = LENIENT.load_policy.judge([finding])
        self.findings += [one for one in judged if one.effect is not Effect.ACCEPT]


class _ChosenPrompt(NamedTuple):
    prompt: RemotePrompt
    folder: str


def fetch_prompt_skills(
    server: PromptClient,
    prompt_filter: PromptFilter = ALL_PROMPTS,
    progress: Progress | None = None,
) -> PromptBatch:
    """The prompts of a server as skills.

    A prompt that cannot be fetched is noted in the batch, and the others are fetched all the same.
    Raises: SourceUnavailable, NotAuthenticated, ServerRefused if there is no list of prompts or the
    server is gone; TooLarge if all prompts together are.
    """
    listing = server.list_prompts()
    batch = PromptBatch(listing.source, frozenset(one.name for one in listing.prompts))
    if listing.is_fallback:
        _report_fallback(listing, batch)
    _report_unmatched(listing.prompts, prompt_filter, batch)
    choices = list(_choose_prompts(listing.prompts, prompt_filter, batch))
    size = 0
    for done, (choice, given) in enumerate(_fetch_all(server, choices), start=1):
        if isinstance(given, SkillhallError):
            batch.failed.append(FailedPrompt(choice.prompt.name, given))
        else:
            size += len(given.text) + sum(map(len, given.files.values()))
            if size > MAX_BATCH_SIZE:
                raise TooLarge("all prompts together", MAX_BATCH_SIZE)
            _convert_prompt(choice, given, batch)
        if progress is not None:
            progress(_PROGRESS_STEP, done, len(choices))
    return batch


def _report_fallback(listing: RemotePromptList, batch: PromptBatch) -> None:
    batch.is_fallback = True
    message = f"the server has its built-in prompts only, so nothing is removed: {listing.stale}"
    hint = "run it again when the server can read its repository"
    batch.add_finding(Finding(Code.PROMPTS_UNREAD, message, hint=hint))


def _choose_prompts(
    prompts: Sequence[RemotePrompt], prompt_filter: PromptFilter, batch: PromptBatch
) -> Iterator[_ChosenPrompt]:
    """The prompts to fetch, each with a folder of its own; the first of two keeps it."""
    winners: dict[str, str] = {}
    for one in prompts:
        if not prompt_filter.includes(one.name):
            continue
        folder = to_folder_name(one.name)
        key = fold_name(folder)
        if not one.has_route:
            message = f"the prompt {one.name!r} cannot be asked for: its name is a route"
            batch.add_finding(Finding(Code.NAME_RESERVED, message, path=folder, skill=one.name))
            batch.skipped.append(SkippedPrompt(one.name, folder, "reserved"))
        elif key in winners:
            message = f"the prompt {winners[key]!r} takes the folder {folder!r}"
            hint = "rename one of them, or leave the other out with --exclude"
            batch.add_finding(Finding(Code.SHADOWED, message, None, hint, folder, one.name))
            batch.skipped.append(SkippedPrompt(one.name, folder, "shadowed"))
        else:
            winners[key] = one.name
            yield _ChosenPrompt(one, folder)


def _report_unmatched(
    prompts: Sequence[RemotePrompt], prompt_filter: PromptFilter, batch: PromptBatch
) -> None:
    for pattern in dict.fromkeys((*prompt_filter.include, *prompt_filter.exclude)):
        if not any(matches_glob(pattern, one.name) for one in prompts):
            hint = "check its spelling; '*' and '?' are wildcards, case counts"
            message = f"the pattern {pattern!r} matches no prompt"
            batch.add_finding(Finding(Code.PATTERN_UNMATCHED, message, hint=hint))


def to_folder_name(name: str) -> str:
    """The one folder name that a prompt's name leads to: it follows the specification."""
    text = suggest_name(name).encode()[:MAX_FOLDER_NAME].decode(errors="ignore").strip("-")
    try:
        return RelativePath.parse(text).text
    except UnsafePath:  # a device name
        return f"{text}-skill"


def _fetch_all(
    server: PromptClient, choices: Sequence[_ChosenPrompt]
) -> Iterator[tuple[_ChosenPrompt, RemotePromptContent | SkillhallError]]:
    """Each prompt or its error in order, several requests at once.

    An error that every further request would meet is raised at once.
    """
    pool = ThreadPoolExecutor(MAX_PARALLEL_REQUESTS, "prompts")
    try:
        answers = pool.map(lambda choice: _fetch_prompt(server, choice.prompt), choices)
        yield from zip(choices, answers, strict=True)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _fetch_prompt(
    server: PromptClient, prompt: RemotePrompt
) -> RemotePromptContent | SkillhallError:
    try:
        return server.fetch_prompt(*_build_request(prompt))
    except (NotAuthenticated, SourceTimedOut):
        raise
    except SkillhallError as error:
        return error


def _build_request(prompt: RemotePrompt) -> tuple[str, dict[str, str]]:
    """The name, and each argument that must be given filled by its own placeholder: it stays."""
    required = (one.name for one in prompt.arguments if one.required)
    return prompt.name, {name: f"{{{{{name}}}}}" for name in required}


def _convert_prompt(
    choice: _ChosenPrompt, fetched: RemotePromptContent, batch: PromptBatch
) -> None:
    """Put the prompt into the batch, if agents would load it."""
    listed, folder = choice
    if folder != listed.name:
        message = f"the prompt {listed.name!r} is written as {folder!r}"
        batch.add_finding(Finding(Code.NAME_NOT_FOLDER, message, path=folder, skill=listed.name))
    try:
        description = fetched.description or listed.description
        data = build_prompt_skill_md(folder, description, fetched.text, listed.arguments)
    except SkillRejected as error:
        batch.add_finding(Finding(Code.YAML_INVALID, str(error), path=folder, skill=listed.name))
        batch.skipped.append(SkippedPrompt(listed.name, folder, "rejected"))
        return
    files = {
        SKILL_MD: FileState(data, executable=False),
        **dict(_build_file_states(choice, fetched, batch)),
    }
    report = AddReport()
    if preflight_bundles([build_bundle(folder, files)], "", report):
        batch.skills.append(PromptSkill(listed.name, folder, dict(sorted(files.items()))))
    else:
        batch.skipped.append(SkippedPrompt(listed.name, folder, "rejected"))
    batch.findings += report.findings


def build_prompt_skill_md(
    name: str, description: str, body: str, arguments: Sequence[RemotePromptArgument] = ()
) -> bytes:
    """A SKILL.md for a prompt; its body is the text as it is. Raises: SkillRejected."""
    data = build_skill_md(name, description, body)
    if not arguments:
        return data
    hint = " ".join(f"<{one.name}>" if one.required else f"[{one.name}]" for one in arguments)
    try:
        return Document(data).with_field("argument-hint", hint).data
    except EditRefused as refusal:
        raise SkillRejected(name, [str(refusal)]) from None


def _build_file_states(
    choice: _ChosenPrompt, fetched: RemotePromptContent, batch: PromptBatch
) -> Iterator[tuple[str, FileState]]:
    for path, data in fetched.files.items():
        if any(part.startswith(".") or part in ALWAYS_SKIPPED for part in path.split("/")):
            message = "left out of the skill's files: hidden files are not written"
            place = f"{choice.folder}/{path}"
            batch.add_finding(
                Finding(Code.FILE_LEFT_OUT, message, path=place, skill=choice.prompt.name)
            )
        else:
            yield path, FileState(data, is_script(path, data))


def is_script(path: str, data: bytes) -> bool:
    """Whether a file is there to be run: it says so in its first line, or by its name."""
    return data.startswith(_SHEBANG) or path.lower().endswith(_SHELL_SCRIPTS)
