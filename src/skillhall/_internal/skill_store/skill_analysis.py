"""Facts about skills that are expensive to compute, such as tokens and findings.

They are computed once for each content, in the background, and saved in the cache folder. A request
for a skill that has not been examined yet computes them immediately.
"""

from __future__ import annotations

import json
import os
import threading
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.authoring.portability import judge_skill_md
from skillhall._internal.authoring.skill_examination import SkillExamination, examine_skill
from skillhall._internal.background import PollingThread
from skillhall._internal.catalog.duplicates.near_copies import summarize_text
from skillhall._internal.catalog.skill_content import ALL_FILES_SCAN, with_bundle
from skillhall._internal.fs.write import WritableFolder
from skillhall._internal.policy.effects import Effect
from skillhall._internal.policy.portability.client_rules import Outcome
from skillhall._internal.policy.profiles import (
    LENIENT,
    LOCAL_SKILLS,
    SKILLS_REF,
    SPECIFICATION,
)
from skillhall._internal.policy.readable_files import remove_hidden_files
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill.evals.eval_check import EVALS_PATH
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.frontmatter_locator import SKILL_MD
from skillhall._internal.skill.risks.levels import rate_risk
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall._internal.sources.archive.zip_writer import pack_bundle
from skillhall._internal.sources.folder.bundle_reader import load_into_memory
from skillhall._version import VERSION
from skillhall.errors import SkillFileNotFound, SkillhallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillhall._internal.catalog.catalog import CatalogSkill
    from skillhall._internal.skill.bundle import Bundle

PUBLISHED_SCAN = LOCAL_SKILLS.scan_policy.without_hidden_files
FORMAT = 4  # increase it if the same content gives other facts in the same version
# The list of skills shows which of these profiles accept a skill.
COMPARED_PROFILES = (SPECIFICATION, SKILLS_REF, LENIENT)
_EVALS_FOLDER = EVALS_PATH.partition("/")[0] + "/"
_SCRIPT_CODES = frozenset({Code.HAS_SCRIPTS, Code.HAS_EXECUTABLES})
_FOLDER = "facts"  # in the cache folder
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700
_SAVE_INTERVAL = 30.0  # seconds, while there are new facts
_IDLE_SHARE = 1.0  # seconds of sleep for each second of work: requests come first
_THREAD_NAME = "skillhall-facts"


class PackedFiles(NamedTuple):
    """The download for installers: an archive, or the only file of a skill."""

    digest: str = ""
    paths: tuple[str, ...] = ()  # of all published files, sorted

    @property
    def is_archive(self) -> bool:
        """Whether installers download an archive."""
        return len(self.paths) > 1


class SkillFacts(NamedTuple):
    """Facts about one version of a skill."""

    tokens: int = 0
    warnings: int = 0  # findings that are not accepted
    packed: PackedFiles = PackedFiles()
    summary: str = ""  # of its text, to find near copies
    codes: tuple[str, ...] = ()  # of the warnings, sorted
    risk: str = ""  # level
    profiles: tuple[str, ...] = ()  # that accept it
    has_scripts: bool = False
    dropped_by: tuple[str, ...] = ()  # ids of the clients that do not load it, sorted

    @property
    def has_evals(self) -> bool:
        """Whether it has test cases or trigger queries."""
        return any(path.startswith(_EVALS_FOLDER) for path in self.packed.paths)

    @property
    def files(self) -> int:
        """The number of its files, at least 1."""
        return max(1, len(self.packed.paths))


class FactProgress(NamedTuple):
    """Number of examined skills, and of all skills."""

    done: int
    total: int


@dataclass(slots=True)
class FactCache:
    """Facts by skill and by content. Thread-safe.

    A catalog has a new object for each version of a skill, so objects identify versions.
    """

    directory: str  # the cache folder
    location: str  # of the skill store
    _by_location: dict[str, tuple[CatalogSkill, SkillFacts]] = field(default_factory=dict)
    _by_content: dict[str, SkillFacts] = field(default_factory=dict)
    _packed: dict[str, tuple[CatalogSkill, PackedFiles]] = field(default_factory=dict)
    _digests: dict[str, tuple[CatalogSkill, tuple[str, ...]]] = field(default_factory=dict)
    _keys: dict[str, str] = field(default_factory=dict)  # of the contents, by location
    _skills: Sequence[CatalogSkill] = ()  # to examine
    _done: int = 0
    _has_unsaved: bool = False  # facts that are not in the saved file, or the other way round
    _saved_at: float = field(default_factory=time.monotonic)
    _thread: PollingThread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, skill: CatalogSkill) -> SkillFacts:
        """Return the facts about a skill.

        Raises: SkillFileNotFound, and errors from reading.
        """
        known = self._by_location.get(skill.location)
        if known is not None and known[0] is skill:
            return known[1]
        key, facts = with_bundle(skill, PUBLISHED_SCAN, lambda bundle: self._examine(skill, bundle))
        self._by_location[skill.location] = skill, facts
        self._has_unsaved = self._has_unsaved or key not in self._by_content
        self._by_content[key], self._keys[skill.location] = facts, key
        return facts

    def get_packed(self, skill: CatalogSkill) -> PackedFiles:
        """Return the download for installers, without examining the skill. Raises: as `get`."""
        facts, known = self.find(skill), self._packed.get(skill.location)
        if facts is not None:
            return facts.packed
        if known is None or known[0] is not skill:
            packed = with_bundle(skill, PUBLISHED_SCAN, lambda one: _pack(load_into_memory(one)))
            known = self._packed[skill.location] = skill, packed
        return known[1]

    def get_digests(self, skill: CatalogSkill) -> tuple[str, ...]:
        """Return the digests of a skill, as `compute_digests`. Raises: as `get`."""
        known = self._digests.get(skill.location)
        if known is None or known[0] is not skill:
            known = self._digests[skill.location] = skill, compute_digests(skill)
        return known[1]

    def get_or_default(self, skill: CatalogSkill) -> SkillFacts:
        """Return the facts, or zeros if the skill cannot be read."""
        try:
            return self.get(skill)
        except (SkillhallError, OSError):  # removed since the catalog was read
            return SkillFacts()

    def find(self, skill: CatalogSkill) -> SkillFacts | None:
        """Return the facts if they are known; never reads a file."""
        known = self._by_location.get(skill.location)
        return known[1] if known is not None and known[0] is skill else None

    @property
    def progress(self) -> FactProgress | None:
        """Progress of the thread; `None` if it is done, or if there is no thread."""
        done, total = self._done, len(self._skills)
        return FactProgress(done, total) if self._thread is not None and done < total else None

    def start(self) -> None:
        """Examine skills in a thread. Call `close` when done."""
        self._load()
        self._thread = PollingThread(self._examine_all, lambda: None, _THREAD_NAME)

    def schedule(self, skills: Iterable[CatalogSkill]) -> None:
        """Let the thread examine these skills instead of earlier ones."""
        if self._thread is not None:
            with self._lock:
                self._skills, self._done = tuple(skills), 0
            self._thread.wake()

    def close(self) -> None:
        """Stop the thread. Idempotent."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()
            self._save(at_once=True)

    def _examine(self, skill: CatalogSkill, bundle: Bundle) -> tuple[str, SkillFacts]:
        loaded = load_into_memory(bundle)
        # Some findings depend on the names of the folder and of the file.
        names = f"{skill.folder.rpartition('/')[2]}/{skill.file}".encode("utf-8", "surrogatepass")
        key = f"{loaded.digest()} {sha256_hex(names)[:16]}"
        facts = self._by_content.get(key)
        if facts is None:
            examined = examine_skill(skill, LOCAL_SKILLS)
            file = loaded.files.get(skill.file)
            data = file.read() if file else b""
            summary = summarize_text(data) if file else ""
            facts = _sum_up(examined, _pack(loaded), summary)
            facts = facts._replace(dropped_by=_find_dropping_clients(skill, data))
        return key, facts

    def _examine_all(self) -> None:
        with self._lock:
            skills = self._skills
        if not skills:
            return  # nothing is scheduled yet, and the loaded facts will be needed
        for number, skill in enumerate(skills, 1):
            if self._skills is not skills or self._thread is None:
                return  # the thread was woken, or is to stop
            if self.find(skill) is None:
                started = time.monotonic()
                with suppress(Exception):  # a request for this skill gets the error
                    self.get(skill)
                self._save()
                time.sleep(_IDLE_SHARE * (time.monotonic() - started))
            self._done = number
        locations = {skill.location for skill in skills}
        for location in [known for known in self._by_location if known not in locations]:
            self._by_location.pop(location, None)
            self._keys.pop(location, None)
        self._packed.clear()  # the facts have them
        used = {*self._keys.values()}
        used_facts = {key: one for key, one in self._by_content.items() if key in used}
        self._has_unsaved = self._has_unsaved or len(used_facts) != len(self._by_content)
        self._by_content = used_facts
        self._save()

    def _load(self) -> None:
        with suppress(OSError, ValueError, TypeError, KeyError):
            with open(os.path.join(self.directory, _FOLDER, self._file_name), "rb") as file:
                saved = json.load(file)
            if saved["version"] == self._version:
                for key, row in saved["facts"].items():
                    self._by_content[key] = _parse_facts(*row)

    def _save(self, *, at_once: bool = False) -> None:
        """Save the facts if there are new ones, but not too often."""
        now = time.monotonic()
        if not self._has_unsaved or not (at_once or now - self._saved_at > _SAVE_INTERVAL):
            return
        self._has_unsaved, self._saved_at = False, now
        # One call for all facts would keep requests waiting: no other thread runs during a call.
        known = [*self._by_content.items()]
        rows = ", ".join([f"{json.dumps(key)}: {json.dumps(facts)}" for key, facts in known])
        data = f'{{"version": {json.dumps(self._version)}, "facts": {{{rows}}}}}'.encode()
        with suppress(OSError, SkillhallError):
            folder = os.path.join(self.directory, _FOLDER)
            os.makedirs(folder, _FOLDER_MODE, exist_ok=True)
            with WritableFolder(folder) as target:
                target.write_file(self._file_name, data, _FILE_MODE)

    @property
    def _file_name(self) -> str:
        return f"{zlib.crc32(os.fsencode(self.location)):08x}.json"

    @property
    def _version(self) -> str:
        return f"skillhall {VERSION}, facts {FORMAT}, {self.location}"


def compute_digests(skill: CatalogSkill) -> tuple[str, ...]:
    """Return the digest of all files, and of those that installers get, if they differ.

    Raises: SkillFileNotFound, and errors from reading.
    """

    def compute(bundle: Bundle) -> tuple[str, ...]:
        loaded = load_into_memory(bundle)
        return tuple(dict.fromkeys((loaded.digest(), remove_hidden_files(loaded).digest())))

    return with_bundle(skill, ALL_FILES_SCAN, compute)


def _sum_up(examined: SkillExamination, packed: PackedFiles, summary: str) -> SkillFacts:
    warnings = [found for found in examined.findings if found.effect is not Effect.ACCEPT]
    findings = [found.finding for found in examined.findings]
    codes = {found.code for found in findings}
    return SkillFacts(
        estimate_tokens(examined.parsed.body),
        len(warnings),
        packed,
        summary,
        tuple(sorted({found.code.value for found in warnings})),
        rate_risk(codes).value,
        tuple(one.name for one in COMPARED_PROFILES if one.load_policy.accepts(findings)),
        not codes.isdisjoint(_SCRIPT_CODES),
    )


def _find_dropping_clients(skill: CatalogSkill, data: bytes) -> tuple[str, ...]:
    verdicts = judge_skill_md(data, skill.folder.rpartition("/")[2] or skill.id)
    return tuple(sorted(one.client.id for one in verdicts if one.outcome is Outcome.DROPPED))


def _parse_facts(  # noqa: PLR0913, PLR0917 - the columns of a row
    tokens: int,
    warnings: int,
    packed: tuple[str, Sequence[str]],
    summary: str,
    codes: Sequence[str],
    risk: str,
    profiles: Sequence[str],
    has_scripts: bool,  # noqa: FBT001 - a value of JSON
    dropped_by: Sequence[str],
) -> SkillFacts:
    """Return the facts in a row of the saved file. Raises: TypeError, ValueError."""
    digest, paths = packed
    return SkillFacts(
        int(tokens),
        int(warnings),
        PackedFiles(str(digest), tuple(map(str, paths))),
        str(summary),
        tuple(map(str, codes)),
        str(risk),
        tuple(map(str, profiles)),
        bool(has_scripts),
        tuple(map(str, dropped_by)),
    )


def _pack(bundle: Bundle) -> PackedFiles:
    paths = tuple(sorted(bundle.files))
    if not paths:
        raise SkillFileNotFound(SKILL_MD)
    data = pack_bundle(bundle) if len(paths) > 1 else bundle.files[paths[0]].read()
    return PackedFiles(f"sha256:{sha256_hex(data)}", paths)
