"""Adding skills to a folder: checked first, then written whole; nothing of a person's is lost."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.lock import compute_files_digest, to_locked_files
from skillhall._internal.installer.project import check_replaceable, read_installed_folder
from skillhall._internal.policy.effects import Effect, JudgedFinding
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile, fold_name
from skillhall._internal.skill.checks import suggest_name
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall._internal.skill.parsed import EMPTY_FRONTMATTER
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall.errors import SkillNotInSource, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.skill.merge import FileState
    from skillhall._internal.skill.parsed import Frontmatter

_FILE_MODE, _EXECUTABLE_MODE = 0o644, 0o755


@dataclass(frozen=True, slots=True)
class AddedSkill:
    """A skill that is ready to be added, or was."""

    id: str  # the name of its folder
    name: str
    path: str
    digest: str
    bundle: Bundle


@dataclass(frozen=True, slots=True)
class SkippedSkill:
    """A skill that was not added, and why."""

    id: str
    name: str
    reason: str  # "exists" or "rejected"


@dataclass(slots=True)
class AddReport:
    """What was added, what was not, and everything that was noticed."""

    added: list[AddedSkill] = field(default_factory=list)
    skipped: list[SkippedSkill] = field(default_factory=list)
    findings: list[JudgedFinding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what a person should know besides


def select_bundles(bundles: Sequence[Bundle], names: Iterable[str]) -> list[Bundle]:
    """The bundles whose name or folder is asked for; all if none is. Raises: SkillNotFound."""
    wanted = list(names)
    if not wanted:
        return list(bundles)
    by_name = {}
    for bundle in bundles:
        by_name.update(
            dict.fromkeys((choose_folder_name(bundle), read_bundle_name(bundle)), bundle)
        )
    for name in wanted:
        if name not in by_name:
            raise SkillNotInSource(name, get_close_matches(name, by_name))
    return [by_name[name] for name in dict.fromkeys(wanted)]


def add_to_folder(
    bundles: Iterable[Bundle], folder: str, *, overwrite: bool = False, dry_run: bool = False
) -> AddReport:
    """Put the bundles into `folder`, one folder each; it is made if it is missing.

    A skill that is there already stays, unless it may be overwritten.
    Raises: UnsavedFilesError, NotASkill, OSError.
    """
    report = AddReport()
    ready = preflight_bundles(bundles, folder, report)
    if dry_run:
        for addition in ready:
            report_addition(
                addition, report, is_added=overwrite or not os.path.lexists(addition.path)
            )
        return report
    if ready:
        os.makedirs(folder, exist_ok=True)
        with WritableFolder(folder) as target, target.lock():
            target.recover()
            for addition in ready:
                report_addition(
                    addition, report, is_added=_write_skill(target, addition, overwrite=overwrite)
                )
    return report


def preflight_bundles(
    bundles: Iterable[Bundle], folder: str, report: AddReport
) -> list[AddedSkill]:
    """The bundles that can be added to `folder`; what is wrong with others goes into the report."""
    checked = (_check_bundle(bundle, folder, report) for bundle in bundles)
    return _drop_duplicate_ids([one for one in checked if one is not None], report)


def _check_bundle(bundle: Bundle, folder: str, report: AddReport) -> AddedSkill | None:
    """The bundle, if agents would load it; its findings go into the report."""
    file = next((f for path, f in bundle.files.items() if is_skill_md(path)), None)
    if file is None and not LENIENT.load_policy.accepts(bundle.findings):
        findings: tuple[Finding, ...] = ()  # it says itself why it has no files
    elif file is None:
        findings = (Finding(Code.NO_SKILL_MD, f"No {SKILL_MD} found", 1),)
    else:
        parsed = parse_skill(file.read(), choose_folder_name(bundle))
        findings = (*parsed.findings, *scan_bundle(bundle, parsed.frontmatter))
    identity, name = choose_folder_name(bundle), read_bundle_name(bundle)
    judged = LENIENT.load_policy.judge(
        found.with_location(f"{identity}/{found.path or SKILL_MD}", name)
        for found in (*findings, *bundle.findings)
    )
    report.findings += [one for one in judged if one.effect is not Effect.ACCEPT]
    if any(one.effect is Effect.REJECT for one in judged):
        report.skipped.append(SkippedSkill(identity, name, "rejected"))
        return None
    return AddedSkill(
        identity, name, os.path.join(folder, identity), compute_bundle_digest(bundle), bundle
    )


def _drop_duplicate_ids(additions: list[AddedSkill], report: AddReport) -> list[AddedSkill]:
    """The additions without those that would take another one's folder, on any system."""
    first: dict[str, AddedSkill] = {}
    for addition in additions:
        winner = first.setdefault(fold_name(addition.id), addition)
        if winner is not addition:
            taker, place = _strip_common_parent(winner.bundle.folder, addition.bundle.folder)
            message = f"{taker!r} of the same source takes the folder {winner.id!r}"
            found = Finding(Code.SHADOWED, message, hint="add them into different folders")
            report.findings += LENIENT.load_policy.judge(
                [found.with_location(place, addition.name)]
            )
            report.skipped.append(SkippedSkill(addition.id, addition.name, "exists"))
    return list(first.values())


def _strip_common_parent(one: str, other: str) -> tuple[str, str]:
    """Two folders of a source, without what both begin with: messages show no path of a machine."""
    above = os.path.commonpath([one, other])
    return os.path.relpath(one, above or "."), os.path.relpath(other, above or ".")


def _write_skill(target: WritableFolder, addition: AddedSkill, *, overwrite: bool) -> bool:
    files = {
        path: (file.read(), _EXECUTABLE_MODE if file.executable else _FILE_MODE)
        for path, file in addition.bundle.files.items()
    }
    if target.entry_kind(addition.id) is None:
        target.create_folder(addition.id, files)
        return True
    if overwrite:
        check_replaceable(addition.id, read_installed_folder(addition.path, addition.id))
        target.replace_folder(addition.id, files)
    return overwrite


def report_addition(addition: AddedSkill, report: AddReport, *, is_added: bool) -> None:
    """Report the addition as made, or as left out because something stands there."""
    if is_added:
        report.added.append(addition)
    else:
        report.skipped.append(SkippedSkill(addition.id, addition.name, "exists"))


def choose_folder_name(bundle: Bundle) -> str:
    """What the skill's folder is called: as in its source if that is safe, else after its name."""
    own = bundle.folder.replace("\\", "/").rstrip("/").rpartition("/")[2]
    try:
        safe = RelativePath.parse(own).text
    except UnsafePath:
        return suggest_name(_read_frontmatter_name(bundle) or own)
    return suggest_name(safe) if safe.startswith(".") else safe


def read_bundle_name(bundle: Bundle) -> str:
    """The name in the skill's frontmatter, or its folder's."""
    return _read_frontmatter_name(bundle) or choose_folder_name(bundle)


def read_bundle_description(bundle: Bundle) -> str:
    """The description in the skill's frontmatter."""
    return _read_frontmatter(bundle).description


def build_bundle(folder: str, states: Mapping[str, FileState]) -> Bundle:
    """Files as a bundle."""
    files = {
        path: SkillFile(
            RelativePath.parse(path), len(state.data), state.executable, partial(_read_state, state)
        )
        for path, state in sorted(states.items())
    }
    return Bundle(folder, files)


def _read_state(state: FileState) -> bytes:
    return state.data


def _read_frontmatter_name(bundle: Bundle) -> str:
    return _read_frontmatter(bundle).name


def _read_frontmatter(bundle: Bundle) -> Frontmatter:
    file = next((file for path, file in bundle.files.items() if is_skill_md(path)), None)
    return EMPTY_FRONTMATTER if file is None else parse_skill(file.read()).frontmatter


def compute_bundle_digest(bundle: Bundle) -> str:
    """One digest for all files: their paths, sizes and own digests."""
    return compute_files_digest(to_locked_files(bundle))
