"""Automatic fixes for SKILL.md files, applied only if they reduce the findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from skillhall._internal.authoring.validate import ValidationResult, validate
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.fs.write import rename_file, replace_file
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.profiles import Profile
from skillhall._internal.settings import Settings
from skillhall._internal.skill.autofix import AutofixResult, Fix, autofix, find_fixes
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import MAX_SKILL_MD_BYTES, SKILL_MD, is_skill_md
from skillhall._internal.skill.line_diff import render_diff
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.sources.folder.bundle_reader import read_file_at
from skillhall._internal.sources.folder.candidate import format_os_error
from skillhall.errors import SkillhallError


@dataclass(frozen=True, slots=True)
class FixResult:
    """One SKILL.md that was fixed, or would be in a dry run."""

    path: str
    changes: tuple[str, ...]
    diff: str
    written: bool
    problem: str = ""  # why it could not be written


class Fixer(NamedTuple):
    """What fixes a SKILL.md, and what tells whether that has improved it."""

    apply: Callable[[bytes, str], AutofixResult]  # gets the bytes and the name of the folder
    measure: Callable[[bytes, Path], tuple[int, ...]]  # gets the bytes and the path; less is better


def fix(
    paths: Sequence[str],
    profile: Profile,
    settings: Settings,
    *,
    dry_run: bool = False,
    fixer: Fixer | None = None,
) -> tuple[FixResult, ...]:
    """Apply safe fixes below `paths`; files that would not improve are left unchanged.

    With `dry_run`, nothing is written. The default `fixer` reduces the findings under `profile`.
    The results are in path order.
    Raises: SkillFileNotFound if a path does not exist.
    """
    # Follows no links: a fix must not write outside of the paths.
    report = validate(paths, profile, settings._replace(follow_links=False))
    if fixer is None:
        fixer = Fixer(autofix, partial(_measure_severity, profile=profile))
    results = (_fix_file(result, fixer, dry_run=dry_run) for result in report.results)
    return tuple(result for result in results if result is not None)


def read_validated_file(result: ValidationResult) -> bytes | None:
    """Read the SKILL.md of a result; `None` if it is another file, or cannot be read."""
    location = Path(result.location)
    if not is_skill_md(location.name):
        return None
    try:
        folder = FolderHandle(str(location.parent))
        return read_file_at(folder, RelativePath.parse(location.name), MAX_SKILL_MD_BYTES)
    except SkillhallError:
        return None  # `validate` has reported it


def _fix_file(result: ValidationResult, fixer: Fixer, *, dry_run: bool) -> FixResult | None:
    location = Path(result.location)
    data = read_validated_file(result)
    if data is None:
        return None
    fixed, changes = fixer.apply(data, location.parent.name)
    if fixer.measure(fixed, location.with_name(SKILL_MD)) >= fixer.measure(data, location):
        return None
    if location.name != SKILL_MD:
        changes = (*changes, f"renamed {location.name!r} to {SKILL_MD!r}")
    names = str(location), str(location.with_name(SKILL_MD))
    diff = render_diff(data, fixed, *names)
    problem = "" if dry_run else _write_fix(location, data, fixed)
    is_written = not dry_run and not problem
    return FixResult(result.location, changes, diff, is_written, problem)


def propose_fixes(path: str, data: bytes, profile: Profile) -> tuple[Fix, ...]:
    """Return the safe fixes of a SKILL.md that is open in an editor, each on its own.

    There are none if all of them together would not improve the file. A single fix may add
    findings: a name, for example, is only checked once its field is found.
    """
    if fix_all(path, data, profile) == data:
        return ()
    return find_fixes(data, Path(path).parent.name)


def fix_all(path: str, data: bytes, profile: Profile) -> bytes:
    """Return an open SKILL.md with all safe fixes; unchanged if it would not improve."""
    location = Path(path)
    fixed = autofix(data, location.parent.name).data
    is_better = _measure_severity(fixed, location, profile) < _measure_severity(
        data, location, profile
    )
    return fixed if is_better else data


def _measure_severity(data: bytes, location: Path, profile: Profile) -> tuple[int, int, int]:
    """Return the numbers of rejections, warnings and all findings, most severe first."""
    parsed = parse_skill(data, location.parent.name, profile.key_case)
    codes = [finding.code for finding in parsed.findings]
    codes += [Code.CASE_VARIANT] if location.name != SKILL_MD else []
    effects = [profile.load_policy.get_effect(code) for code in codes]
    return effects.count(Effect.REJECT), effects.count(Effect.WARN), len(effects)


def _write_fix(location: Path, before: bytes, after: bytes) -> str:
    """Write the fixed file; return the problem, or "" on success."""
    folder = str(location.parent)
    try:
        if after != before:
            replace_file(folder, location.name, after)
        if location.name != SKILL_MD:
            rename_file(folder, location.name, SKILL_MD)
    except OSError as error:
        return f"cannot be written: {format_os_error(error)}"
    except SkillhallError as error:
        return str(error)
    return ""
