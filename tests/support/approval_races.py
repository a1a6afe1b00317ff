"""Approval races: a process changes the files of an approved skill while others read it.

`python -m tests.support.approval_races FOLDER SWAPS PAUSE` is the changing process. It edits one
byte of a file, adds a hidden file, sets an execute bit or replaces a file by a link, and undoes
that. No byte that was not approved may ever be handed out.
"""

import random
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeAlias

from skillhall._internal.agents.agent_gate import open_gate
from skillhall._internal.agents.project_gate import open_trust_gate
from skillhall._internal.authoring.skill_review import SkillReview
from skillhall._internal.catalog.folder_skill_provider import FolderSkillProvider
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.skill_content import activate, read_skill_file
from skillhall._internal.catalog.trust.gate import ClearedSkill, SkillGate
from skillhall._internal.policy.profiles import LENIENT
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import resolve_roots
from skillhall._internal.wiring.skill_provider import open_folder_provider
from skillhall.errors import SkillhallError
from tests.support.fork_server import ForkedProcess
from tests.support.skills import make_skill, make_skill_md
from tests.support.symlink_races import AttemptCounts, RaceResult

SWAPS = 10_000
MARK = "approved text"
EVIL = "apprOved text"  # one byte of the file differs
_BODY, _SCRIPT, _NOTES = "SKILL.md", "scripts/run.py", "notes.md"
_SKILL = "project/.agents/skills/pdf"
_HIDDEN = ".hidden"


def _settings(folder: Path) -> Settings:
    return Settings(
        str(folder / "project"),
        str(folder / "cache"),
        data_directory=str(folder / "data"),
        home=str(folder / "home"),
    )


def _prepare(folder: Path) -> None:
    skills = (folder / _SKILL).parent
    text = make_skill_md("pdf", MARK, f"{MARK}\n")
    make_skill(skills, "pdf", data=text, files={_SCRIPT: MARK.encode(), _NOTES: MARK.encode()})
    (folder / "outside.md").write_text(EVIL, encoding="utf-8")
    (folder / "home").mkdir()


# Changing


def swap(folder: Path, count: int, pause: float) -> None:
    """Change the skill and undo that, `count` times in all, with pauses up to `pause` seconds."""
    skill, spare = folder / _SKILL, folder / "spare"
    turns = random.Random(4711)  # noqa: S311 - reproducible
    good = {path: (skill / path).read_bytes() for path in (_BODY, _SCRIPT, _NOTES)}
    done = 0
    while done < count:
        kind = turns.choice(("byte", "hidden", "bit", "link"))
        path = turns.choice([*good])
        for is_change in (True, False):
            if kind == "bit":
                (skill / _SCRIPT).chmod(0o755 if is_change else 0o644)
            elif kind == "hidden" and is_change:
                (skill / _HIDDEN).write_text(EVIL, encoding="utf-8")
            elif kind == "hidden":
                (skill / _HIDDEN).unlink()
            else:
                data = good[path].replace(MARK.encode(), EVIL.encode())
                if kind == "link" and is_change:
                    spare.symlink_to(folder / "outside.md")
                else:
                    spare.write_bytes(data if is_change else good[path])
                spare.replace(skill / path)
            done += 1
            time.sleep(turns.random() * pause)
    sys.stdout.write(f"{done}\n")


# Reading


Reader: TypeAlias = Callable[[], str]


def _read_all(skill: ClearedSkill) -> str:
    files = [read_skill_file(skill, path).decode() for path in (_SCRIPT, _NOTES)]
    return "".join([activate(skill, LENIENT), *files])


def _clear_and_read(gate: SkillGate, settings: Settings) -> str:
    roots = resolve_roots(None, LENIENT, settings)
    cleared = gate.clear(load_roots(roots, LENIENT)).cleared
    if not cleared:
        raise SkillhallError("held")
    return f"{cleared[0].description}{_read_all(cleared[0])}"


def _read_view(provider: FolderSkillProvider) -> str:
    view = provider.current_view()
    row = view.find("pdf")
    return "".join([row.skill.description, view.read_body(row), *view.list_files(row)])


def _list_view(provider: FolderSkillProvider) -> str:
    rows = [*provider.current_view()]
    if not rows:
        raise SkillhallError("held")
    return "".join(row.skill.description for row in rows)


def run_approval_race(folder: Path, swaps: int = SWAPS, pause: float = 0.001) -> RaceResult:
    """Read the skill in three ways until the other process has made its swaps."""
    _prepare(folder)
    settings = _settings(folder)
    trust_gate = open_trust_gate(settings, LENIENT.trust_policy)
    roots = resolve_roots(None, LENIENT, settings)
    review = SkillReview(trust_gate, settings.data_directory, "user", "test")
    review.approve(trust_gate.judge_all(load_roots(roots, LENIENT)))
    gate = open_gate(settings, LENIENT.trust_policy)
    [skill] = gate.clear(load_roots(roots, LENIENT)).cleared
    provider = open_folder_provider([], LENIENT, settings, gate)
    readers: Mapping[str, Reader] = {
        "approved skill": partial(_read_all, skill),
        "skill cleared again": partial(_clear_and_read, gate, settings),
        "skill view": partial(_read_view, provider),
        "listing": partial(_list_view, open_folder_provider([], LENIENT, settings, gate)),
    }
    counts = [AttemptCounts(name) for name in readers]
    module, options = "tests.support.approval_races", (str(folder), str(swaps), str(pause))
    with closing(ForkedProcess(module, *options, imports=[module])) as process:
        while process.poll() is None:
            for score, reader in zip(counts, readers.values(), strict=True):
                _attempt(score, reader)
        done = int(process.read_output(timeout=120))
    for score, reader in zip(counts, readers.values(), strict=True):
        before = score.succeeded
        _attempt(score, reader)
        assert score.succeeded > before, "undoing all changes restores the approval"
    return RaceResult(counts, [], done)


def _attempt(score: AttemptCounts, reader: Reader) -> None:
    score.attempts += 1
    try:
        text = reader()
    except (SkillhallError, OSError):
        score.rejected += 1
        return
    leaked = EVIL in text or _HIDDEN in text
    score.leaks += leaked
    score.succeeded += not leaked


if __name__ == "__main__":
    swap(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
