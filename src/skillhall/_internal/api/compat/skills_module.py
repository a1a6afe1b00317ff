"""The skills module: plain functions that discover, parse and bundle skills."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skillhall._internal.agents.agent_gate import open_gate
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.trust.gate import clear_with_fallbacks
from skillhall._internal.fs.handles import FolderHandle
from skillhall._internal.policy.effects import (
    MISSING_NAME_CODES,
    NAME_FORMAT_CODES,
    Effect,
    JudgedFinding,
)
from skillhall._internal.policy.profiles import SKILLS_MODULE
from skillhall._internal.render.listing import render_listing
from skillhall._internal.settings import Settings
from skillhall._internal.skill.finding import Code, Finding
from skillhall._internal.skill.frontmatter_locator import SKILL_MD, is_skill_md
from skillhall._internal.skill.parser import parse_frontmatter
from skillhall._internal.sources.folder.bundle_reader import call_with_bundle
from skillhall._internal.sources.folder.root import Root, to_paths
from skillhall.errors import SkillFileNotFound, SkillParseError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Collection

    from skillhall._internal.render.listing import ListingEntry
    from skillhall._internal.skill.bundle import Bundle
    from skillhall._internal.skill.parsed import Frontmatter
    from skillhall._internal.sources.folder.root import Paths

MAX_BUNDLE_BYTES = 100 * 1024 * 1024  # of all files together, since a bundle is in memory
EMPTY_LISTING = "<available_skills>\n</available_skills>"
# Error messages by finding code, in order of priority. The last one is for all other codes.
_PROBLEM_TEMPLATES: tuple[tuple[Collection[Code], str], ...] = (
    ((Code.NO_FRONTMATTER, Code.UNCLOSED_FRONTMATTER), "No YAML frontmatter found in {path}"),
    (MISSING_NAME_CODES, "Missing or invalid 'name' field in {path}"),
    ((Code.DESCRIPTION_MISSING,), "Missing or invalid 'description' field in {path}"),
    (NAME_FORMAT_CODES, "Invalid 'name' format in {path}: {message}"),
    (tuple(Code), "Invalid frontmatter in {path}: {message}"),
)


@dataclass(frozen=True, slots=True)
class SkillMetadata:
    """The metadata of a skill, for listings and tools; `path` is its SKILL.md.

    >>> [skill.description for skill in discover_skills("skills") if skill.name == "pdf-tools"]
    ['Fills in PDF forms.']
    """

    name: str
    description: str
    path: str
    allowed_tools: tuple[str, ...] = ()
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    hidden: bool = False  # from models

    @classmethod
    def from_frontmatter(cls, front: Frontmatter, path: str) -> SkillMetadata:
        """Return the metadata in the frontmatter."""
        return cls(
            front.name,
            front.description,
            path,
            front.allowed_tools,
            front.license,
            front.compatibility,
            front.metadata,
            front.hidden,
        )

    @property
    def location(self) -> str:
        """The path, under the name used by listings."""
        return self.path


@dataclass(frozen=True, slots=True)
class SkillBundle:
    """All files of a skill by relative path, in path order.

    >>> sorted(load_skill_bundle("skills/pdf-tools").files)
    ['SKILL.md', 'references/forms.md']
    """

    name: str
    files: Mapping[str, bytes]
    findings: tuple[Finding, ...] = ()  # about skipped files
    executable: frozenset[str] = frozenset()  # paths


class SkillList(list[SkillMetadata]):
    """A list of skills, with findings.

    >>> skills = discover_skills("skills")
    >>> len(skills), skills.findings
    (3, ())
    """

    def __init__(
        self, skills: Iterable[SkillMetadata] = (), findings: Iterable[JudgedFinding] = ()
    ) -> None:
        super().__init__(skills)
        self.findings: tuple[JudgedFinding, ...] = tuple(findings)


def discover_skills(
    paths: Paths | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> SkillList:
    """Find the skills in `paths`, by default `.skills` and `~/.skillhall/skills`.

    Of several skills with the same name, the first wins. Never raises: problems are in the list's
    `findings`.

    ```python
    from skillhall import discover_skills

    skills = discover_skills("skills")
    print([skill.name for skill in skills], skills.findings)
    ```
    """
    try:
        base = str(Path.cwd() if cwd is None else Path(cwd).expanduser().absolute())
        if paths is None:
            roots = [
                Root.resolve(path, base, label, is_required=False)
                for path, label in SKILLS_MODULE.roots
            ]
        else:
            roots = [Root.resolve(path, base) for path in to_paths(paths)]
        catalog = load_roots(roots, SKILLS_MODULE)
        gate = open_gate(Settings.read())
        clearance = clear_with_fallbacks(gate, [*catalog], catalog.shadowed)
    except OSError as error:  # the working directory is gone, or a path is invalid
        missing = Finding(Code.ROOT_MISSING, f"cannot search the folders: {error}")
        return SkillList(findings=SKILLS_MODULE.load_policy.judge([missing]))
    skills = (
        SkillMetadata.from_frontmatter(skill.frontmatter, skill.location)
        for skill in clearance.cleared
    )
    held = SKILLS_MODULE.load_policy.judge(clearance.iter_findings())
    return SkillList(skills, (*catalog.findings, *held))


def parse_skill_metadata(content: str | bytes, path: str | os.PathLike[str]) -> SkillMetadata:
    """Parse the metadata of a SKILL.md. Raises: SkillParseError.

    ```python
    from pathlib import Path

    from skillhall import parse_skill_metadata

    path = Path("skills/pdf-tools/SKILL.md")
    print(parse_skill_metadata(path.read_text(), path).description)
    ```
    """
    path = os.fspath(path)
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    head = parse_frontmatter(data)
    judged = SKILLS_MODULE.load_policy.judge(head.findings)
    rejected = {item.code: item for item, effect in judged if effect is Effect.REJECT}
    # An error names only one problem: the first in the order of the templates.
    for codes, template in _PROBLEM_TEMPLATES:
        for code, finding in rejected.items():
            if code in codes:
                message = template.format(path=path, message=finding.message)
                raise SkillParseError(path, message)
    return SkillMetadata.from_frontmatter(head.frontmatter, path)


def load_skill_bundle(directory: str | os.PathLike[str]) -> SkillBundle:
    """Read all files of a skill's folder, including hidden ones.

    Links are skipped with a finding.
    Raises: SkillFileNotFound, SkillParseError, TooLarge, NotAFile, UnsafePath.

    ```python
    from skillhall import load_skill_bundle

    bundle = load_skill_bundle("skills/pdf-tools")
    print(bundle.files["SKILL.md"])
    ```
    """
    handle = FolderHandle(str(Path(directory).expanduser().absolute()))
    read = partial(read_skill_bundle, folder=handle.path, separator=os.sep)
    return call_with_bundle(handle, SKILLS_MODULE.scan_policy, read)


def read_skill_bundle(bundle: Bundle, folder: str, separator: str = "/") -> SkillBundle:
    """Read all files of a bundle; its name is taken from the SKILL.md.

    Raises: SkillFileNotFound, SkillParseError, TooLarge.
    """
    if sum(file.size for file in bundle.files.values()) > MAX_BUNDLE_BYTES:
        raise TooLarge(folder, MAX_BUNDLE_BYTES)
    files = {path: file.read() for path, file in bundle.files.items()}
    skill_md = find_skill_md(files, folder)
    metadata = parse_skill_metadata(files[skill_md], f"{folder}{separator}{skill_md}")
    executable = frozenset(path for path, file in bundle.files.items() if file.executable)
    return SkillBundle(metadata.name, files, bundle.findings, executable)


def find_skill_md(files: Collection[str], folder: str) -> str:
    """Return the path of the SKILL.md among `files`, ignoring case.

    Raises: SkillFileNotFound.
    """
    variants = [path for path in sorted(files) if is_skill_md(path)]
    if not variants:
        raise SkillFileNotFound(f"{folder}/{SKILL_MD}")
    return variants[0]  # uppercase sorts first


def load_skill_bundles(skills: Iterable[SkillMetadata]) -> list[SkillBundle]:
    """Read the bundles of discovered skills, in order.

    Raises: the errors of `load_skill_bundle`.

    ```python
    from skillhall import discover_skills, load_skill_bundles

    bundles = load_skill_bundles(discover_skills("skills"))
    ```
    """
    return [load_skill_bundle(Path(skill.path).parent) for skill in skills]


def skills_to_xml(skills: Iterable[ListingEntry]) -> str:
    """Return the listing for a system prompt; an empty element if there are no skills.

    ```python
    from skillhall import discover_skills, skills_to_xml

    print(skills_to_xml(discover_skills("skills")))
    ```
    """
    return render_listing(skills) or EMPTY_LISTING
