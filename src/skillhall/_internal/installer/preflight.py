"""Adding skills to a folder: checked first, then written whole; nothing of a person's is lost."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.installer.lock import locked_files, set_digest
from skillhall._internal.installer.project import read_folder, refuse_loss
from skillhall._internal.policy.effects import Effect, Judged
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.skill.bundle import Bundle, RelativePath, SkillFile, folded
from skillhall._internal.skill.checks import suggest_name
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter import SKILL_MD, is_skill_md
from skillhall._internal.skill.parsed import EMPTY
from skillhall._internal.skill.parser import parse_skill
from skillhall._internal.skill.risks.scanner import scan_bundle
from skillhall.errors import SkillNotFound, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillhall._internal.skill.merge import FileState
    from skillhall._internal.skill.parsed import Frontmatter

_FILE, _PROGRAM = 0o644, 0o755
_WHAT_IT_HOLDS = "'skillhall add SOURCE --list' shows what it holds"


@dataclass(frozen=True, slots=True)
class Addition:
    """A skill that is ready to be added, or was."""

    id: str  # the name of its folder
    name: str
    path: str
    digest: str
    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Skipped:
    """A skill that was not added, and why."""

    id: str
    name: str
    reason: str  # "exists" or "rejected"


@dataclass(slots=True)
class AddReport:
    """What was added, what was not, and everything that was noticed."""

    added: list[Addition] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    findings: list[Judged] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what a person should know besides


def choose(bundles: Sequence[Bundle], names: Iterable[str]) -> list[Bundle]:
    """The bundles whose name or folder is asked for; all if none is. Raises: SkillNotFound."""
    wanted = list(names)
    if not wanted:
        return list(bundles)
    by_name = {}
    for bundle in bundles:
        by_name.update(dict.fromkeys((folder_of(bundle), name_of(bundle)), bundle))
    for name in wanted:
        if name not in by_name:
            raise SkillNotFound(name, get_close_matches(name, by_name), _WHAT_IT_HOLDS)
    return [by_name[name] for name in dict.fromkeys(wanted)]


def add(
    bundles: Iterable[Bundle], folder: str, *, overwrite: bool = False, dry_run: bool = False
) -> AddReport:
    """Put the bundles into `folder`, one folder each; it is made if it is missing.

    A skill that is there already stays, unless it may be overwritten.
    Raises: WouldLose, NotASkill, OSError.
    """
    report = AddReport()
    ready = prepare(bundles, folder, report)
    if dry_run:
        for addition in ready:
            note(addition, report, is_free=overwrite or not os.path.lexists(addition.path))
        return report
    if ready:
        os.makedirs(folder, exist_ok=True)
        with WritableFolder(folder) as target, target.locked():
            target.recover()
            for addition in ready:
                note(addition, report, is_free=_write(target, addition, overwrite=overwrite))
    return report


def prepare(bundles: Iterable[Bundle], folder: str, report: AddReport) -> list[Addition]:
    """The bundles that can be added to `folder`; what is wrong with others goes into the report."""
    checked = (_check(bundle, folder, report) for bundle in bundles)
    return _first_of_each_id([one for one in checked if one is not None], report)


def _check(bundle: Bundle, folder: str, report: AddReport) -> Addition | None:
    """The bundle, if agents would load it; its findings go into the report."""
    file = next((f for path, f in bundle.files.items() if is_skill_md(path)), None)
    if file is None and not LENIENT.load.accepts(bundle.findings):
        findings: tuple[Finding, ...] = ()  # it says itself why it has no files
    elif file is None:
        findings = (Finding(Code.NO_SKILL_MD, f"No {SKILL_MD} found", 1),)
    else:
        parsed = parse_skill(file.read(), folder_of(bundle))
        findings = (*parsed.findings, *scan_bundle(bundle, parsed.frontmatter))
    identity, name = folder_of(bundle), name_of(bundle)
    judged = LENIENT.load.judge(
        found.at(f"{identity}/{found.path or SKILL_MD}", name)
        for found in (*findings, *bundle.findings)
    )
    report.findings += [one for one in judged if one.effect is not Effect.ACCEPT]
    if any(one.effect is Effect.REJECT for one in judged):
        report.skipped.append(Skipped(identity, name, "rejected"))
        return None
    return Addition(identity, name, os.path.join(folder, identity), digest_of(bundle), bundle)


def _first_of_each_id(additions: list[Addition], report: AddReport) -> list[Addition]:
    """The additions without those that would take another one's folder, on any system."""
    first: dict[str, Addition] = {}
    for addition in additions:
        winner = first.setdefault(folded(addition.id), addition)
        if winner is not addition:
            taker, place = _told_apart(winner.bundle.folder, addition.bundle.folder)
            message = f"{taker!r} of the same source takes the folder {winner.id!r}"
            found = Finding(Code.SHADOWED, message, hint="add them into different folders")
            report.findings += LENIENT.load.judge([found.at(place, addition.name)])
            report.skipped.append(Skipped(addition.id, addition.name, "exists"))
    return list(first.values())


def _told_apart(one: str, other: str) -> tuple[str, str]:
    """Two folders of a source, without what both begin with: messages show no path of a machine."""
    above = os.path.commonpath([one, other])
    return os.path.relpath(one, above or "."), os.path.relpath(other, above or ".")


def _write(target: WritableFolder, addition: Addition, *, overwrite: bool) -> bool:
    files = {
        path: (file.read(), _PROGRAM if file.executable else _FILE)
        for path, file in addition.bundle.files.items()
    }
    if target.kind(addition.id) is None:
        target.put_folder(addition.id, files)
        return True
    if overwrite:
        refuse_loss(addition.id, read_folder(addition.path, addition.id))
        target.swap_folder(addition.id, files)
    return overwrite


def note(addition: Addition, report: AddReport, *, is_free: bool) -> None:
    """Report the addition as made, or as left out because something stands there."""
    if is_free:
        report.added.append(addition)
    else:
        report.skipped.append(Skipped(addition.id, addition.name, "exists"))


def folder_of(bundle: Bundle) -> str:
    """What the skill's folder is called: as in its source if that is safe, else after its name."""
    own = bundle.folder.replace("\\", "/").rstrip("/").rpartition("/")[2]
    try:
        safe = RelativePath.parse(own).text
    except UnsafePath:
        return suggest_name(_frontmatter_name(bundle) or own)
    return suggest_name(safe) if safe.startswith(".") else safe


def name_of(bundle: Bundle) -> str:
    """The name in the skill's frontmatter, or its folder's."""
    return _frontmatter_name(bundle) or folder_of(bundle)


def description_of(bundle: Bundle) -> str:
    """The description in the skill's frontmatter."""
    return _frontmatter(bundle).description


def bundle_of(folder: str, states: Mapping[str, FileState]) -> Bundle:
    """Files as a bundle."""
    files = {
        path: SkillFile(
            RelativePath.parse(path), len(state.data), state.executable, partial(_data, state)
        )
        for path, state in sorted(states.items())
    }
    return Bundle(folder, files)


def _data(state: FileState) -> bytes:
    return state.data


def _frontmatter_name(bundle: Bundle) -> str:
    return _frontmatter(bundle).name


def _frontmatter(bundle: Bundle) -> Frontmatter:
    file = next((file for path, file in bundle.files.items() if is_skill_md(path)), None)
    return EMPTY if file is None else parse_skill(file.read()).frontmatter


def digest_of(bundle: Bundle) -> str:
    """One digest for all files: their paths, sizes and own digests."""
    return set_digest(locked_files(bundle))
