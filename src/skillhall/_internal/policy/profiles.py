"""Built-in profiles: the rules of the specification and of other designs, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from skillhall._internal.policy.duplicate_precedence import (
    DuplicatePolicy,
    Identity,
    PrecedencePolicy,
)
from skillhall._internal.policy.effects import (
    MISSING_NAME_CODES,
    NAME_FORMAT_CODES,
    Effect,
    LoadPolicy,
)
from skillhall._internal.policy.folder_walk_rules import (
    GENERATED_FOLDERS,
    MAX_DEPTH,
    EmptyFolderPolicy,
    LinkPolicy,
    ScanPolicy,
)
from skillhall._internal.policy.trust.trust_action import (
    ASK_ABOUT_PROJECTS,
    LOAD_EVERYTHING,
    TrustPolicy,
)
from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.parsed import KeyCase

# Returns the name and description to use, given those in the frontmatter and the folder name.
NamePolicy: TypeAlias = Callable[[str, str, str], tuple[str, str]]


ACCEPT, WARN, REJECT = Effect.ACCEPT, Effect.WARN, Effect.REJECT

# The folders that agents use: those of the project first, then those of the user.
AGENT_FOLDERS = (
    (".agents/skills", "project"),
    (".claude/skills", "project"),
    (".skills", "project"),
    ("~/.agents/skills", "user"),
    ("~/.claude/skills", "user"),
    ("~/.skillhall/skills", "user"),
)


def use_frontmatter_only(name: str, description: str, _folder: str) -> tuple[str, str]:
    """Use the name and description in the frontmatter, even if they are empty."""
    return name, description


def fill_name_from_folder(name: str, description: str, folder: str) -> tuple[str, str]:
    """Use the folder name if the frontmatter has no name."""
    return name or folder, description


def fill_description_from_folder(name: str, description: str, folder: str) -> tuple[str, str]:
    """Use the folder name if the frontmatter has no description."""
    return name, description if description.strip() else folder


class Profile(NamedTuple):
    """A named set of rules, in the order in which they apply.

    ```python
    from skillhall import Skills

    profile = Skills.load("skills", profile="specification").profile
    print(profile.name, profile.summary)
    ```
    """

    name: str
    summary: str
    roots: tuple[tuple[str, str], ...]  # folder and source label, in order of precedence
    scan_policy: ScanPolicy
    load_policy: LoadPolicy
    name_policy: NamePolicy = use_frontmatter_only
    key_case: KeyCase = KeyCase.EXACT
    reserved_names: frozenset[str] = frozenset()
    precedence_policy: PrecedencePolicy = PrecedencePolicy()
    trust_policy: TrustPolicy = LOAD_EVERYTHING  # for skills that were found in a project
    validation_scan_policy: ScanPolicy | None = None  # for `validate`, if it differs

    def with_depth(self, depth: int | None = None) -> Profile:
        """Return the profile with this scan depth, unchanged if `depth` is `None`.

        Raises: ValueError if the depth is out of range.
        """
        if depth is None:
            return self
        if not 1 <= depth <= MAX_DEPTH:
            message = f"depth must be between 1 and {MAX_DEPTH}, not {depth}"
            raise ValueError(message)
        scan, validation = self.scan_policy.with_depth(depth), self.validation_scan_policy
        if validation is not None:
            validation = validation.with_depth(depth)
        return self._replace(scan_policy=scan, validation_scan_policy=validation)


# The limits of the client guide, for roots that may be complete repositories.
_REPOSITORY_SCAN = ScanPolicy(
    max_depth=6,
    include_root=True,
    skip_names=GENERATED_FOLDERS,
    search_as_repository=True,
    empty_folders=EmptyFolderPolicy.SEARCH,
    link_policy=LinkPolicy.FOLLOW_INSIDE,
)
# The specification defines a single skill. `validate` finds skills the way agents do.
_VALIDATION_SCAN = _REPOSITORY_SCAN._replace(
    empty_folders=EmptyFolderPolicy.REJECT_AMONG_SKILLS, link_policy=LinkPolicy.DO_NOT_FOLLOW
)

SPECIFICATION = Profile(
    name="specification",
    summary="The specification: every rule is enforced.",
    roots=AGENT_FOLDERS,
    scan_policy=ScanPolicy(include_root=True, skip_names=GENERATED_FOLDERS),
    load_policy=LoadPolicy.create(REJECT),
    validation_scan_policy=_VALIDATION_SCAN,
)

SKILLS_REF = Profile(
    name="skills-ref",
    summary="The behavior of the reference validator, including its gaps.",
    roots=AGENT_FOLDERS,
    scan_policy=ScanPolicy(include_root=True, skip_names=GENERATED_FOLDERS),
    load_policy=LoadPolicy.create(
        ACCEPT,
        reject=NAME_FORMAT_CODES
        | MISSING_NAME_CODES
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
    validation_scan_policy=_VALIDATION_SCAN,
)

LENIENT = Profile(
    name="lenient",
    summary="The client guide for agents: warn, but load.",
    roots=AGENT_FOLDERS,
    scan_policy=_REPOSITORY_SCAN,
    load_policy=LoadPolicy.create(
        WARN, reject={Code.DESCRIPTION_MISSING}, accept={Code.ALLOWED_TOOLS_FORM}
    ),
    name_policy=fill_name_from_folder,
    trust_policy=ASK_ABOUT_PROJECTS,
)

PROMPT_REPOSITORY = Profile(
    name="prompt-repository",
    summary="Prompts of a server: flat files and folders of a git repository.",
    roots=(),
    scan_policy=ScanPolicy(include_flat_files=True, skip_names=GENERATED_FOLDERS),
    load_policy=LoadPolicy.create(
        WARN,
        reject={Code.FLAT_NAME_MISSING, Code.NAME_RESERVED, Code.DESCRIPTION_MISSING},
        accept=NAME_FORMAT_CODES
        | {Code.NAME_MISSING, Code.NAME_NOT_FOLDER, Code.ALLOWED_TOOLS_FORM},
    ),
    name_policy=fill_name_from_folder,
    reserved_names=frozenset({"refresh", "sources"}),  # REST routes
)

LOCAL_SKILLS = Profile(
    name="local-skills",
    summary="System and user skills of a run directory, identified by folder.",
    roots=((".agents/sys.skills", "system"), (".agents/skills", "user")),
    scan_policy=ScanPolicy(link_policy=LinkPolicy.FOLLOW_INSIDE),
    load_policy=LoadPolicy.create(
        WARN,
        reject=MISSING_NAME_CODES | {Code.DESCRIPTION_MISSING},
        accept=NAME_FORMAT_CODES | {Code.NAME_NOT_FOLDER, Code.KEY_CASE, Code.ALLOWED_TOOLS_FORM},
    ),
    key_case=KeyCase.ANY,
    precedence_policy=PrecedencePolicy(identity=Identity.ID),
)

INSTRUCTION_SKILLS = Profile(
    name="instruction-skills",
    summary="Sources of an agent config, scanned recursively.",
    roots=(),
    scan_policy=ScanPolicy(
        max_depth=MAX_DEPTH,
        include_root=True,
        search_inside_skills=True,
        empty_folders=EmptyFolderPolicy.SEARCH,
        skip_names=frozenset({"node_modules"}),
        link_policy=LinkPolicy.FOLLOW_INSIDE,
    ),
    load_policy=LoadPolicy.create(
        WARN,
        reject={Code.DESCRIPTION_MISSING, Code.YAML_REPAIRED},
        accept={Code.ALLOWED_TOOLS_FORM},
    ),
    name_policy=fill_name_from_folder,
    precedence_policy=PrecedencePolicy(across_roots=DuplicatePolicy.KEEP_ALL),
)

SKILL_IMPORT = Profile(
    name="skill-import",
    summary="Skills that a user picks for a session, duplicate names included.",
    roots=(("~/.claude/skills", "user"),),
    scan_policy=ScanPolicy(include_root=True),
    load_policy=LoadPolicy.create(
        WARN,
        reject=MISSING_NAME_CODES,
        accept=NAME_FORMAT_CODES | {Code.NAME_NOT_FOLDER, Code.KEY_CASE, Code.ALLOWED_TOOLS_FORM},
    ),
    name_policy=fill_description_from_folder,
    key_case=KeyCase.ANY,
    precedence_policy=PrecedencePolicy(
        in_root=DuplicatePolicy.KEEP_ALL, across_roots=DuplicatePolicy.KEEP_ALL
    ),
)

SKILLS_MODULE = Profile(
    name="skills-module",
    summary="The library functions: strict names, project skills before user skills.",
    roots=((".skills", "project"), ("~/.skillhall/skills", "user")),
    scan_policy=ScanPolicy(include_hidden_files=True),
    load_policy=LoadPolicy.create(
        WARN,
        reject=NAME_FORMAT_CODES | MISSING_NAME_CODES | {Code.DESCRIPTION_MISSING},
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
