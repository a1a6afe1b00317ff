"""The check of the eval files in a bundle; nothing in the skill is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillhall._internal.skill.bundle import Bundle, RelativePath, parent_folders
from skillhall._internal.skill.evals.eval_assertion import CheckKind
from skillhall._internal.skill.evals.eval_file import (
    MAX_EVAL_FILE_BYTES,
    EvalCase,
    FileMention,
    parse_eval_file,
    parse_trigger_file,
)
from skillhall._internal.skill.finding import Code, Finding
from skillhall.errors import SkillhallError, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterator

EVALS_PATH = "evals/evals.json"
# Public skills use all of these names; the agentskills.io guide has the last one only.
TRIGGER_PATHS = (
    "evals/triggers.json",
    "evals/trigger-eval.json",
    "evals/trigger-evals.json",
    "evals/trigger_eval.json",
    "evals/trigger_evals.json",
    "evals/eval_queries.json",
)


@dataclass(frozen=True, slots=True)
class EvalFileCheck:
    """The eval files of a skill: counts, and findings with paths inside the skill."""

    has_evals: bool
    cases: int
    assertions: int
    queries: int
    findings: tuple[Finding, ...]


def check_evals(bundle: Bundle, skill_name: str) -> EvalFileCheck:
    """Read the eval files of a bundle. Never raises on bad input."""
    left_out = {finding.path for finding in bundle.findings if finding.path}
    findings: list[Finding] = []
    cases = assertions = queries = 0
    has_evals = False
    for path in (EVALS_PATH, *TRIGGER_PATHS):
        if not _exists(bundle, path, left_out):
            continue
        has_evals = True
        data = _read(bundle, path)
        if isinstance(data, Finding):
            findings.append(data)
        elif path == EVALS_PATH:
            parsed = parse_eval_file(data, skill_name)
            cases = len(parsed.cases)
            assertions = sum(len(case.assertions) for case in parsed.cases)
            mentions = [mention for case in parsed.cases for mention in _list_files(case)]
            found = [*parsed.findings, *_check_files(bundle, mentions, left_out)]
            findings += (finding.with_location(path) for finding in found)
        else:
            triggers = parse_trigger_file(data, skill_name)
            queries += len(triggers.queries)
            findings += (finding.with_location(path) for finding in triggers.findings)
    return EvalFileCheck(has_evals, cases, assertions, queries, tuple(findings))


def _list_files(case: EvalCase) -> list[FileMention]:
    """Return the input files of a case and the scripts of its assertions."""
    scripts = [
        FileMention(assertion.check.value, assertion.line)
        for assertion in case.assertions
        if assertion.check is not None and assertion.check.kind is CheckKind.SCRIPT
    ]
    return [*case.files, *scripts]


def _exists(bundle: Bundle, path: str, left_out: set[str]) -> bool:
    # The folder itself may be a link, which is left out with all of its files.
    is_in_link = path == EVALS_PATH and "evals" in left_out
    return path in bundle.files or path in left_out or is_in_link


def _read(bundle: Bundle, path: str) -> bytes | Finding:
    file = bundle.files.get(path)
    if file is None:
        message = "the file or its folder is a link, or cannot be read"
        return Finding(Code.EVAL_UNREADABLE, message, hint="copy the file instead", path=path)
    if file.size > MAX_EVAL_FILE_BYTES:
        message = f"the file is larger than {MAX_EVAL_FILE_BYTES} bytes"
        return Finding(Code.EVAL_UNREADABLE, message, path=path)
    try:
        return file.read()
    except SkillhallError as error:
        return Finding(Code.EVAL_UNREADABLE, f"the file cannot be read: {error}", path=path)


def _check_files(
    bundle: Bundle, mentions: list[FileMention], left_out: set[str]
) -> Iterator[Finding]:
    """Yield a finding for each input file that is unsafe, missing or outside `evals`."""
    folders = {folder for path in bundle.files for folder in parent_folders(path)}
    for mention in mentions:
        shown = repr(mention.path[:200])
        try:
            path = RelativePath.parse(mention.path).text
        except UnsafePath as error:
            message = f"the file {shown} cannot be used: {error.reason}"
            hint = "put the file into the skill's folder 'evals/files'"
            yield Finding(Code.EVAL_FILE, message, mention.line, hint)
            continue
        if any(path == one or path.startswith(f"{one}/") for one in left_out):
            message = f"the file {shown} is a link, or cannot be read"
            yield Finding(Code.EVAL_FILE, message, mention.line, "copy the file instead")
        elif path not in bundle.files and path not in folders:
            message = f"the skill has no file {shown}"
            hint = "add the file; paths start at the folder of the skill"
            yield Finding(Code.EVAL_FILE, message, mention.line, hint)
        elif not path.startswith("evals/"):
            message = f"the file {shown} is outside the folder 'evals'"
            yield Finding(Code.EVAL_VARIANT, message, mention.line)
