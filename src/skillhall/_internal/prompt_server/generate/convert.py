"""Conversion of a server's prompts to skills.

The server has checked its prompts, but it is not trusted, so they are checked again.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from skillhall._internal.authoring.scaffold import build_skill_md
from skillhall._internal.installer.install import AddReport, build_bundle, preflight_bundles
from skillhall._internal.installer.install_rules import NO_RULES
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.folder_walk_rules import ALWAYS_SKIPPED
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.policy.selection import matches_glob
from skillhall._internal.skill.bundle import RelativePath, fold_name
from skillhall._internal.skill.checks import suggest_name
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.lossless_editor import Document, EditRefused
from skillhall._internal.skill.merge import FileState
from skillhall._internal.skill.signatures.statement import SIGNATURE_FILE
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

    from skillhall._internal.installer.install_rules import InstallRules
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.sources.server_api.prompt_client import (
        PromptClient,
        RemotePrompt,
        RemotePromptArgument,
        RemotePromptContent,
    )

    _ChosenPrompt: TypeAlias = tuple[RemotePrompt, str]  # with the name of its folder
    Progress: TypeAlias = Callable[[str, int, int], None]  # step, done, total

MAX_PARALLEL_REQUESTS: Final = 4
MAX_BATCH_SIZE: Final = 512 * 1024 * 1024  # bytes; all skills of a run are in memory
# File systems allow 255 bytes; staging a folder adds a prefix to its name.
MAX_FOLDER_NAME: Final = 200
_PROGRESS_STEP = "prompts"
_SHEBANG = b"#!"
_SHELL_SCRIPTS = (".sh", ".bash")


class PromptFilter(NamedTuple):
    """Globs that select prompts by name. An empty `include` means all prompts."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def includes(self, name: str) -> bool:
        """Whether a prompt is selected."""
        included = not self.include or any(matches_glob(pattern, name) for pattern in self.include)
        return included and not any(matches_glob(pattern, name) for pattern in self.exclude)


ALL_PROMPTS: Final = PromptFilter()


class PromptSkill(NamedTuple):
    """Prompt that is ready to be written as a skill."""

    prompt: str
    folder: str
    files: Mapping[str, FileState]

    @property
    def executables(self) -> tuple[str, ...]:
        """Paths of the executable files."""
        return tuple(path for path, state in self.files.items() if state.executable)


class SkippedPrompt(NamedTuple):
    """Prompt whose skill is not written, and the reason."""

    name: str
    path: str  # of the skill; in a batch only the name of its folder
    reason: str


class FailedPrompt(NamedTuple):
    """Prompt that is listed but could not be fetched, and the error."""

    prompt: str
    error: SkillhallError


@dataclass(slots=True)
class PromptBatch:
    """Skills from one server, with all findings."""

    source: str = ""  # as named by the server
    prompt_names: frozenset[str] = frozenset()  # all prompts of the server, selected or not
    skills: list[PromptSkill] = field(default_factory=list)
    is_fallback: bool = False  # the server could not read its repository
    skipped: list[SkippedPrompt] = field(default_factory=list)
    failed: list[FailedPrompt] = field(default_factory=list)
    findings: list[JudgedFinding] = field(default_factory=list)

    def add_finding(self, finding: Finding) -> None:
        """Add a finding, unless the lenient profile accepts it."""
        judged = LENIENT.load_policy.judge([finding])
        self.findings += [item for item in judged if item.effect is not Effect.ACCEPT]


def fetch_prompt_skills(
    server: PromptClient,
    prompt_filter: PromptFilter = ALL_PROMPTS,
    progress: Progress | None = None,
    rules: InstallRules = NO_RULES,
) -> PromptBatch:
    """Fetch the prompts of a server as skills.

    Skills that the rules reject are skipped. A prompt that cannot be fetched is recorded in the
    batch and does not stop the others.
    Raises: SourceUnavailable, NotAuthenticated, ServerRefused if the prompts cannot be listed or
    the server becomes unreachable; TooLarge if all prompts together are too large.
    """
    listing = server.list_prompts()
    batch = PromptBatch(listing.source, frozenset(prompt.name for prompt in listing.prompts))
    if listing.is_fallback:
        batch.is_fallback = True
        message = "the server serves only its built-in prompts, so nothing is removed"
        hint = "run the command again when the server can read its repository"
        batch.add_finding(Finding(Code.PROMPTS_UNREAD, f"{message}: {listing.stale}", hint=hint))
    for pattern in dict.fromkeys((*prompt_filter.include, *prompt_filter.exclude)):
        if not any(matches_glob(pattern, prompt.name) for prompt in listing.prompts):
            hint = "check the spelling and the case; '*' and '?' are wildcards"
            message = f"the pattern {pattern!r} matches no prompt"
            batch.add_finding(Finding(Code.PATTERN_UNMATCHED, message, hint=hint))
    choices = list(_choose_prompts(listing.prompts, prompt_filter, batch))
    size = 0
    for done, (choice, result) in enumerate(_fetch_all(server, choices), start=1):
        if isinstance(result, SkillhallError):
            batch.failed.append(FailedPrompt(choice[0].name, result))
        else:
            size += len(result.text) + sum(map(len, result.files.values()))
            if size > MAX_BATCH_SIZE:
                raise TooLarge("all prompts together", MAX_BATCH_SIZE)
            _convert_prompt(choice, result, batch, rules)
        if progress is not None:
            progress(_PROGRESS_STEP, done, len(choices))
    return batch


def _choose_prompts(
    prompts: Sequence[RemotePrompt], prompt_filter: PromptFilter, batch: PromptBatch
) -> Iterator[_ChosenPrompt]:
    """Yield the prompts to fetch, each with the name of its folder.

    If several prompts have the same folder name, the first wins.
    """
    winners: dict[str, str] = {}
    for prompt in prompts:
        if not prompt_filter.includes(prompt.name):
            continue
        folder = to_folder_name(prompt.name)
        key = fold_name(folder)
        if not prompt.has_route:
            message = f"the prompt {prompt.name!r} cannot be requested: its name is reserved"
            batch.add_finding(Finding(Code.NAME_RESERVED, message, path=folder, skill=prompt.name))
            batch.skipped.append(SkippedPrompt(prompt.name, folder, "reserved"))
        elif key in winners:
            message = f"the prompt {winners[key]!r} already uses the folder {folder!r}"
            hint = "rename one of the two prompts, or leave one out with --exclude"
            batch.add_finding(Finding(Code.SHADOWED, message, None, hint, folder, prompt.name))
            batch.skipped.append(SkippedPrompt(prompt.name, folder, "shadowed"))
        else:
            winners[key] = prompt.name
            yield prompt, folder


def to_folder_name(name: str) -> str:
    """Convert a prompt's name to a folder name that follows the specification."""
    text = suggest_name(name).encode()[:MAX_FOLDER_NAME].decode(errors="ignore").strip("-")
    try:
        return RelativePath.parse(text).text
    except UnsafePath:  # a Windows device name
        return f"{text}-skill"


def _fetch_all(
    server: PromptClient, choices: Sequence[_ChosenPrompt]
) -> Iterator[tuple[_ChosenPrompt, RemotePromptContent | SkillhallError]]:
    """Fetch prompts in parallel; yield each prompt or its error, in order.

    Errors that would make all further requests fail are raised.
    """

    def fetch(choice: _ChosenPrompt) -> RemotePromptContent | SkillhallError:
        # The value of a required argument is its own placeholder, which remains in the text.
        prompt, _ = choice
        required = (argument.name for argument in prompt.arguments if argument.required)
        values = {name: f"{{{{{name}}}}}" for name in required}
        try:
            return server.fetch_prompt(prompt.name, values)
        except (NotAuthenticated, SourceTimedOut):
            raise
        except SkillhallError as error:
            return error

    pool = ThreadPoolExecutor(MAX_PARALLEL_REQUESTS, "prompts")
    try:
        yield from zip(choices, pool.map(fetch, choices), strict=True)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _convert_prompt(
    choice: _ChosenPrompt, fetched: RemotePromptContent, batch: PromptBatch, rules: InstallRules
) -> None:
    """Add the prompt to the batch: as a skill, or as skipped if it is rejected."""
    prompt, folder = choice
    if folder != prompt.name:
        message = f"the prompt {prompt.name!r} is written as {folder!r}"
        batch.add_finding(Finding(Code.NAME_NOT_FOLDER, message, path=folder, skill=prompt.name))
    try:
        description = fetched.description or prompt.description
        data = build_prompt_skill_md(folder, description, fetched.text, prompt.arguments)
    except SkillRejected as error:
        batch.add_finding(Finding(Code.YAML_INVALID, str(error), path=folder, skill=prompt.name))
        batch.skipped.append(SkippedPrompt(prompt.name, folder, "rejected"))
        return
    files = {SKILL_MD: FileState(data, executable=False)}
    for path, content in fetched.files.items():
        if path == SIGNATURE_FILE:
            continue  # it covers the SKILL.md of the repository, not the one written here
        if any(part.startswith(".") or part in ALWAYS_SKIPPED for part in path.split("/")):
            message = "left out of the skill's files: hidden files are not written"
            hidden_path = f"{folder}/{path}"
            batch.add_finding(
                Finding(Code.FILE_LEFT_OUT, message, path=hidden_path, skill=prompt.name)
            )
        else:
            files[path] = FileState(content, is_script(path, content))
    report = AddReport()
    if preflight_bundles([build_bundle(folder, files)], "", report, rules):
        batch.skills.append(PromptSkill(prompt.name, folder, dict(sorted(files.items()))))
    else:
        batch.skipped.append(SkippedPrompt(prompt.name, folder, "rejected"))
    batch.findings += report.findings


def build_prompt_skill_md(
    name: str, description: str, body: str, arguments: Sequence[RemotePromptArgument] = ()
) -> bytes:
    """Build the SKILL.md of a prompt with the text `body`. Raises: SkillRejected."""
    data = build_skill_md(name, description, body)
    if not arguments:
        return data
    hint = " ".join(f"<{arg.name}>" if arg.required else f"[{arg.name}]" for arg in arguments)
    try:
        return Document(data).with_field("argument-hint", hint).data
    except EditRefused as error:
        raise SkillRejected(name, [str(error)]) from None


def is_script(path: str, data: bytes) -> bool:
    """Whether a file is a script, by its first line or its extension."""
    return data.startswith(_SHEBANG) or path.lower().endswith(_SHELL_SCRIPTS)
