"""The profiles: each founding design's way with a skill, as data. No code asks which one runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.policy.effects import NAME_PATTERN, NO_NAME, Effect, LoadPolicy
from skillhall._internal.policy.naming import (
    described_else_folder,
    from_frontmatter,
    frontmatter_else_folder,
)
from skillhall._internal.policy.precedence import Identity, PrecedencePolicy, SameName
from skillhall._internal.policy.scan_rules import (
    CLUTTER,
    MAX_DEPTH,
    EmptyFolders,
    Links,
    ScanPolicy,
)
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parsed import KeyCase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillhall._internal.policy.naming import NamePolicy

ACCEPT, WARN, REJECT = Effect.ACCEPT, Effect.WARN, Effect.REJECT

# Where agents keep skills: the project's folders first, then the person's.
AGENT_FOLDERS = (
    (".agents/skills", "project"),
    (".claude/skills", "project"),
    (".skills", "project"),
    ("~/.agents/skills", "user"),
    ("~/.claude/skills", "user"),
    ("~/.skillhall/skills", "user"),
)


class Profile(NamedTuple):
    """A named set of decisions, read from top to bottom as a skill comes in."""

    name: str
    summary: str
    roots: tuple[tuple[str, str], ...]  # folder and source label, in order of precedence
    scan: ScanPolicy
    load: LoadPolicy
    label: NamePolicy = from_frontmatter
    keys: KeyCase = KeyCase.EXACT
    reserved_names: frozenset[str] = frozenset()
    precedence: PrecedencePolicy = PrecedencePolicy()
    checked: ScanPolicy | None = None  # where `validate` searches, if that is not `scan`

    def searching(self, depth: int | None = None) -> Profile:
        """The profile with another depth of search. Raises: ValueError."""
        if depth is None:
            return self
        if not 1 <= depth <= MAX_DEPTH:
            message = f"depth must be from 1 to {MAX_DEPTH}, not {depth}"
            raise ValueError(message)
        checked = None if self.checked is None else self.checked.searching(depth)
        return self._replace(scan=self.scan.searching(depth), checked=checked)


# The client guide's bounds, for folders that may be whole repositories.
_COLLECTION = ScanPolicy(
    depth=6,
    root_itself=True,
    skip_names=CLUTTER,
    collections=True,
    empty_folders=EmptyFolders.SEARCHED,
    links=Links.INSIDE,
)
# The specification speaks about one skill. What is checked is found as agents would find it.
_CHECKED = _COLLECTION._replace(empty_folders=EmptyFolders.AMONG_SKILLS, links=Links.NOT_FOLLOWED)

SPECIFICATION = Profile(
    name="specification",
    summary="The text of the specification: every rule counts.",
    roots=AGENT_FOLDERS,
    scan=ScanPolicy(root_itself=True, skip_names=CLUTTER),
    load=LoadPolicy.of(REJECT),
    checked=_CHECKED,
)

SKILLS_REF = Profile(
    name="skills-ref",
    summary="What the reference validator accepts, its gaps included.",
    roots=AGENT_FOLDERS,
    scan=ScanPolicy(root_itself=True, skip_names=CLUTTER),
    load=LoadPolicy.of(
        ACCEPT,
        reject=NAME_PATTERN
        | NO_NAME
        | {
            Code.NAME_NOT_FOLDER,
            Code.NAME_MARKS,
            Code.DESCRIPTION_MISSING,
            Code.DESCRIPTION_TOO_LONG,
            Code.COMPATIBILITY_TOO_LONG,
            Code.BOM,
            Code.LEADING_BLANK,
            Code.YAML_REPAIRED,
            Code.YAML_FLOW,
            Code.DUPLICATE_KEY,
            Code.KEY_CASE,
            Code.UNKNOWN_FIELD,
        },
        accept={Code.NOT_TEXT, Code.ALLOWED_TOOLS_FORM},
    ),
    checked=_CHECKED,
)

LENIENT = Profile(
    name="lenient",
    summary="The client guide's advice for agents: warn and load.",
    roots=AGENT_FOLDERS,
    scan=_COLLECTION,
    load=LoadPolicy.of(WARN, reject={Code.DESCRIPTION_MISSING}, accept={Code.ALLOWED_TOOLS_FORM}),
    label=frontmatter_else_folder,
)

PROMPT_REPOSITORY = Profile(
    name="prompt-repository",
    summary="A server's prompts: flat files and folders of a git repository.",
    roots=(),
    scan=ScanPolicy(flat_files=True, skip_names=CLUTTER),
    load=LoadPolicy.of(
        WARN,
        reject={Code.FLAT_NAME_MISSING, Code.NAME_RESERVED, Code.DESCRIPTION_MISSING},
        accept=NAME_PATTERN | {Code.NAME_MISSING, Code.NAME_NOT_FOLDER, Code.ALLOWED_TOOLS_FORM},
    ),
    label=frontmatter_else_folder,
    reserved_names=frozenset({"refresh", "sources"}),  # they are routes
)

LOCAL_SKILLS = Profile(
    name="local-skills",
    summary="A run directory's system and user skills, known by their folders.",
    roots=((".agents/sys.skills", "system"), (".agents/skills", "user")),
    scan=ScanPolicy(links=Links.INSIDE),
    load=LoadPolicy.of(
        WARN,
        reject=NO_NAME | {Code.DESCRIPTION_MISSING},
        accept=NAME_PATTERN | {Code.NAME_NOT_FOLDER, Code.KEY_CASE, Code.ALLOWED_TOOLS_FORM},
    ),
    keys=KeyCase.ANY,
    precedence=PrecedencePolicy(identity=Identity.ID),
)

INSTRUCTION_SKILLS = Profile(
    name="instruction-skills",
    summary="The sources of an agent's config, searched to the bottom.",
    roots=(),
    scan=ScanPolicy(
        depth=MAX_DEPTH,
        root_itself=True,
        inside_skills=True,
        empty_folders=EmptyFolders.SEARCHED,
        skip_names=frozenset({"node_modules"}),
        links=Links.INSIDE,
    ),
    load=LoadPolicy.of(
        WARN,
        reject={Code.DESCRIPTION_MISSING, Code.YAML_REPAIRED},
        accept={Code.ALLOWED_TOOLS_FORM},
    ),
    label=frontmatter_else_folder,
    precedence=PrecedencePolicy(across_roots=SameName.ALL_KEPT),
)

SKILL_IMPORT = Profile(
    name="skill-import",
    summary="Skills that a person picks for a session, equal names included.",
    roots=(("~/.claude/skills", "user"),),
    scan=ScanPolicy(root_itself=True),
    load=LoadPolicy.of(
        WARN,
        reject=NO_NAME,
        accept=NAME_PATTERN | {Code.NAME_NOT_FOLDER, Code.KEY_CASE, Code.ALLOWED_TOOLS_FORM},
    ),
    label=described_else_folder,
    keys=KeyCase.ANY,
    precedence=PrecedencePolicy(in_root=SameName.ALL_KEPT, across_roots=SameName.ALL_KEPT),
)

SKILLS_MODULE = Profile(
    name="skills-module",
    summary="The library functions: strict names, the project's skills before the person's.",
    roots=((".skills", "project"), ("~/.skillhall/skills", "user")),
    scan=ScanPolicy(hidden_in_bundles=True),
    load=LoadPolicy.of(
        WARN,
        reject=NAME_PATTERN | NO_NAME | {Code.DESCRIPTION_MISSING},
        accept={Code.ALLOWED_TOOLS_FORM},
    ),
)

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        SPECIFICATION,
        SKILLS_REF,
        LENIENT,
        PROMPT_REPOSITORY,
        LOCAL_SKILLS,
        INSTRUCTION_SKILLS,
        SKILL_IMPORT,
        SKILLS_MODULE,
    )
}
