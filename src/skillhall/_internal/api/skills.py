"""`Skills` and `Skill`: a public snapshot of the skills in folders or a source."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from skillhall._internal.agents.agent_gate import open_gate
from skillhall._internal.agents.skill_tools import SkillTools
from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.duplicates.duplicate_report import (
    DEFAULT_THRESHOLD,
    DuplicateReport,
)
from skillhall._internal.catalog.fingerprint import take_fingerprint
from skillhall._internal.catalog.head_cache import HeadCache
from skillhall._internal.catalog.loader import load_roots
from skillhall._internal.catalog.skill_content import activate, read_accepted_body
from skillhall._internal.catalog.skill_view import SkillView, ViewedSkill
from skillhall._internal.catalog.trust.gate import clear_with_fallbacks
from skillhall._internal.policy.selection import build_group_matcher, find_pinned, matches_glob
from skillhall._internal.render.listing import (
    ListingRow,
    render_listing,
    render_markdown,
    serialize_listing,
)
from skillhall._internal.render.prompt_plan import PlanRequest, plan_prompt
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import find_profile, resolve_roots
from skillhall.errors import SkillFileNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillhall._internal.agents.agent_skills import AgentSkills
    from skillhall._internal.agents.tool_definition import Tool
    from skillhall._internal.api.source_copy import SourceCopy
    from skillhall._internal.catalog.fingerprint import Fingerprint
    from skillhall._internal.catalog.search.search_index import SearchIndex
    from skillhall._internal.policy.effects import JudgedFinding
    from skillhall._internal.policy.profiles import Profile
    from skillhall._internal.sources.folder.root import Root

    StrPath = str | os.PathLike[str]

ListingFormat = Literal["xml", "markdown", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One skill: its frontmatter, instructions and files.

    The fields keep the values that they had when the skill was loaded. The body and the files are
    read when you access them.

    ```python
    from skillhall import Skills

    skill = Skills.load("skills")["pdf-tools"]
    print(skill.description, skill.files)
    print(skill.read_text("references/forms.md"))
    ```
    """

    name: str
    id: str
    """The folder of the skill relative to its root."""
    description: str
    path: Path
    """The path of the SKILL.md."""
    hidden: bool
    """Whether models must not see the skill: `disable-model-invocation: true`."""
    source: str
    """The origin of its root: `given` if you passed the folder, else a label such as `project`.

    For `Skills.open`, it is the source as you passed it.
    """
    findings: tuple[JudgedFinding, ...] = ()
    _row: ViewedSkill = field(repr=False, compare=False)
    _view: SkillView = field(repr=False, compare=False)

    @property
    def directory(self) -> Path:
        """The folder of the skill."""
        return self.path.parent

    @property
    def frontmatter(self) -> Mapping[str, object]:
        """All fields of the frontmatter, as written."""
        return MappingProxyType(self._row.skill.frontmatter.fields)

    @property
    def body(self) -> str:
        """The Markdown below the frontmatter, read from disk.

        Raises: SkillRejected if the file is no longer a valid skill, SkillFileNotFound.
        """
        return read_accepted_body(self._row.skill, self._view.profile)

    @property
    def files(self) -> tuple[str, ...]:
        """The relative paths of the files besides SKILL.md, without hidden files."""
        return tuple(self._view.list_files(self._row))

    def read_bytes(self, path: StrPath) -> bytes:
        """Read a file of the skill.

        Raises: SkillFileNotFound, UnsafePath for a path outside of the skill, NotAFile, TooLarge.
        """
        return self._view.read_file(self._row, os.fspath(path))

    def read_text(self, path: StrPath) -> str:
        """Read a UTF-8 file of the skill.

        Raises: the same errors as `read_bytes`, and UnicodeDecodeError.
        """
        return self.read_bytes(path).decode("utf-8")

    def activate(self) -> str:
        """Return the text for a model that loads the skill.

        It contains the body, the folder and the names of the other files.
        Raises: SkillRejected, SkillFileNotFound.
        """
        return activate(self._row.skill, self._view.profile)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A skill that matches a query.

    ```python
    from skillhall import Skills

    for hit in Skills.load("skills").search("forms"):
        print(hit.skill.name, hit.snippet)
    ```
    """

    skill: Skill
    snippet: str
    """The part of the description or the body that matches."""
    score: float
    """From 0 to 1; comparable only within one result."""
    copies: tuple[Skill, ...] = ()
    """Other skills with the same text."""


# Methods that many programs never call import their modules themselves: the search with its
# database, the tools for models and the comparison of texts take 15 ms of CPU to import, the rest
# 45 ms.
class Skills(Mapping[str, Skill]):
    """The skills in folders or in a source, by name. Immutable and thread-safe.

    Skills that are hidden from models are only in `hidden`.

    ```python
    from skillhall import Skills

    skills = Skills.load("skills")
    print(list(skills))
    system_prompt = skills.listing()
    text = skills.activate("pdf-tools")  # when the model asks for it
    ```
    """

    def __init__(
        self,
        catalog: Catalog,
        origin: _FolderOrigin | SourceCopy,
        keep: Callable[[str], bool] | None = None,
    ) -> None:
        """Private: use `Skills.load` or `Skills.open`."""
        self._catalog = catalog
        self._origin = origin
        self._keep = keep

    @classmethod
    def load(
        cls, *roots: StrPath, profile: str | Profile = "lenient", cache: bool = True
    ) -> Skills:
        """Load the skills below `roots`, by default below the folders of coding agents.

        Only frontmatter is read. Invalid skills are skipped and reported in `findings`. With
        `cache`, unchanged frontmatter is read from a cache on disk.
        Raises: SkillFileNotFound if a root is not an existing folder, UnknownProfile.

        ```python
        skills = Skills.load()  # .agents/skills, .claude/skills, …
        skills = Skills.load("skills", "more-skills", profile="specification")
        ```
        """
        settings = Settings.read()
        chosen = find_profile(profile) if isinstance(profile, str) else profile
        paths = resolve_roots(roots, chosen, settings)
        for path, root in zip(roots, paths, strict=False):
            if not Path(root.path).is_dir():
                raise SkillFileNotFound(os.fspath(path))
        use_cache = cache and settings.use_head_cache
        origin = _FolderOrigin(paths, chosen, settings if use_cache else None)
        return cls(origin.load_catalog(), origin)

    @classmethod
    def open(cls, source: StrPath, *, profile: str | Profile = "lenient") -> Skills:
        """Load the skills of any source: `owner/repo`, a URL, an archive, `mcp:label`.

        A path object is always a local folder or archive. The files are copied to a temporary
        folder, which exists as long as the `Skills` object. `refresh` opens the source again.
        Raises: SourceError, SkillFileNotFound, UnknownMcpServer, UnknownProfile.

        ```python
        skills = Skills.open("skills.zip")
        ```
        """
        # Readers of git, archives and MCP, and the risk scan, take 150 ms of CPU to import.
        from skillhall._internal.api.source_copy import SourceCopy  # noqa: PLC0415

        chosen = find_profile(profile) if isinstance(profile, str) else profile
        text = source if isinstance(source, str) else os.path.abspath(source)  # noqa: PTH100 - does not follow links
        origin = SourceCopy(text, chosen, Settings.read())
        return cls(origin.load_catalog(), origin)

    def __getitem__(self, name: str) -> Skill:
        """Return the skill with this name, else with this id. Raises: SkillNotFound."""
        return self._build_skill(self._view.find(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._view.skills)

    def __len__(self) -> int:
        return len(self._view)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._view.has(name)

    def __repr__(self) -> str:
        return f"<Skills: {len(self)} skills>"

    @cached_property
    def hidden(self) -> Mapping[str, Skill]:
        """The skills that models must not see, by name. Users can still call them."""
        hidden = [skill for skill in self._view.all_skills if skill.hidden]
        view = SkillView("", self._view.profile, [skill._replace(hidden=False) for skill in hidden])
        return MappingProxyType(
            {row.name: replace(self._build_skill(row), hidden=True) for row in view}
        )

    @property
    def profile(self) -> Profile:
        """The rules that decide which skills are accepted."""
        return self._view.profile

    @property
    def findings(self) -> tuple[JudgedFinding, ...]:
        """The findings about the skills, such as the reason why a skill was skipped."""
        return self._view.findings

    @property
    def revision(self) -> str:
        """A digest that changes if a skill is added or removed, or a SKILL.md is edited."""
        return self._origin.revision

    def search(self, query: str, *, limit: int = 10, offset: int = 0) -> list[SearchHit]:
        """Return the skills that match a few words or a complete prompt, best first.

        Names, descriptions and instructions are searched; copies of a skill are one hit. The first
        search reads every SKILL.md, unless a stored search index already contains them.
        """
        rows = self._rows_by_location
        result = self._index.search(query, limit, offset, lambda one: one.location in rows)
        return [
            SearchHit(
                skill=self._build_skill(rows[hit.skill.location]),
                snippet=hit.snippet.text,
                score=hit.score,
                copies=tuple(self._build_skill(rows[one.location]) for one in hit.copies),
            )
            for hit in result.hits
        ]

    def duplicates(self, *, threshold: float = DEFAULT_THRESHOLD) -> DuplicateReport:
        """Find groups of skills that are equal, similar or overlapping.

        Hidden skills are compared too, as are skills shadowed by another one with the same name.
        Every SKILL.md is read. `threshold` is the minimum similarity, from 0 to 1.
        Raises: ValueError if the threshold is out of range.

        ```python
        for group in skills.duplicates(threshold=0.8).groups:
            print(group.kind, [skill.location for skill in group.skills])
        ```
        """
        # Few programs need it, and the import takes 5 ms of CPU.
        from skillhall._internal.catalog.duplicates.duplicate_finder import (  # noqa: PLC0415
            find_duplicates,
        )

        catalog, keep = self._catalog, self._keep
        chosen = (s for s in catalog.iter_listed() if keep is None or keep(s.name))
        return find_duplicates(chosen, catalog.profile.scan_policy, threshold)

    def listing(
        self,
        *,
        max_tokens: int | None = None,
        format: ListingFormat = "xml",  # noqa: A002 - the word users know
        task: str = "",
        pinned: Sequence[str] = (),
        excluded: Sequence[str] = (),
    ) -> str:
        """Return the skills as an `<available_skills>` block for a system prompt.

        `format` can also be `markdown` or `json`. Without skills, the text is empty, or `[]` in
        JSON. If the block is larger than `max_tokens`, descriptions are shortened, then left out;
        then skills are left out, and a last line says how many. In that case, the skills that match
        the `task`, such as a user's message, come first and keep their descriptions. Skills that
        match a pattern in `pinned` always come first; those in `excluded` are left out. Patterns
        match names, or ids such as `office/*`.
        Raises: ValueError for `max_tokens` with a format other than `xml`.

        ```python
        system = "You are helpful." + skills.listing(max_tokens=2_000)
        system = skills.listing(task="Fill in a PDF form", max_tokens=2_000, pinned=["house-*"])
        ```
        """
        if max_tokens is not None and format != "xml":
            raise ValueError(f"max_tokens requires format='xml', not {format!r}")
        rows, pinned_count = self._select_rows(pinned, excluded)
        if format == "markdown":
            return render_markdown(rows)
        if format == "json":
            return json.dumps(serialize_listing(rows), ensure_ascii=False, indent=2)
        if max_tokens is None:
            return render_listing(rows)

        def find_leading() -> list[str]:
            matching = (row.skill.location for row in self._view.rank(task))
            return [*(row.location for row in rows[:pinned_count]), *matching]

        is_ranked = bool(pinned_count or task.strip())
        request = PlanRequest(
            rows, search_hint="", find_leading=find_leading if is_ranked else None
        )
        return plan_prompt(request, max_tokens).text

    def _select_rows(
        self, pinned: Sequence[str], excluded: Sequence[str]
    ) -> tuple[Sequence[ListingRow], int]:
        """Return the rows of a listing, and how many at the beginning are pinned."""
        if not pinned and not excluded:
            return self._rows, 0
        is_excluded = build_group_matcher(excluded)
        rows = {row.name: row for row in self._view if not is_excluded(row)}
        first = {row.name: row for row in find_pinned([*rows.values()], pinned)}
        return [*map(_build_listing_row, {**first, **rows}.values())], len(first)

    def activate(self, name: str) -> str:
        """Return the text for a model that loads the skill `name`, read from disk.

        Raises: SkillNotFound, SkillRejected, SkillFileNotFound.
        """
        return self[name].activate()

    def tools(self) -> tuple[Tool, ...]:
        """Return list_skills, search_skills, load_skill and read_skill_file for a model.

        Each tool has a name, a description, a JSON Schema and `call`. Without skills, there are no
        tools.

        ```python
        tools = {tool.name: tool for tool in skills.tools()}
        result = tools["load_skill"].call({"name": "pdf-tools"})
        print(result.text, result.is_error)
        ```
        """
        return SkillTools(self._view, get_directory=lambda row: row.skill.directory).tools()

    def select(self, *patterns: str) -> Skills:
        """Return only the skills whose names match a pattern; `*` and `?` are wildcards."""
        previous = self._keep

        def keep(name: str) -> bool:
            is_kept = previous is None or previous(name)
            return is_kept and any(matches_glob(pattern, name) for pattern in patterns)

        return Skills(self._catalog, self._origin, keep)

    def explain(self, name: str) -> str:
        """Explain which copy of a skill is used, and why the others are not.

        Raises: SkillNotFound.
        """
        explanation = self._catalog.explain(name)
        if explanation.is_empty:
            self._catalog.find(name)  # raises SkillNotFound with similar names
        return "\n".join(explanation.describe())

    def refresh(self) -> Skills:
        """Return the current skills; the same object if nothing changed.

        For folders, the first call loads them again. Later calls need only a few `stat` calls per
        skill, so you can refresh before every turn of a conversation. With
        `Skills.open`, every call opens the source again.

        ```python
        skills = skills.refresh()
        ```
        """
        origin = self._origin.renew()
        if origin is self._origin:
            return self
        catalog = origin.load_catalog()
        if self._origin.known_revision is None and catalog == self._catalog:
            self._origin = origin  # the next call compares fingerprints
            return self
        return Skills(catalog, origin, self._keep)

    def as_agent_skills(self) -> AgentSkills:
        """Return these skills as `AgentSkills`, for adapters."""
        # Only adapters need the modules for agents, whose import takes 16 to 26 ms of CPU.
        from skillhall._internal.agents.agent_skills import FixedAgentSkills  # noqa: PLC0415

        return FixedAgentSkills(self._view)

    # Names and URIs are assigned on first use: for tens of thousands of skills, that takes a third
    # of the time of loading them.
    @cached_property
    def _view(self) -> SkillView:
        catalog, keep = self._catalog, self._keep
        chosen = catalog.skills if keep is None else [s for s in catalog if keep(s.name)]
        shadowed = [one for one in catalog.shadowed if keep is None or keep(one.skill.name)]
        clearance = clear_with_fallbacks(open_gate(Settings.read()), chosen, shadowed)
        held = catalog.profile.load_policy.judge(clearance.iter_findings())
        findings = (*catalog.findings, *held)
        return SkillView(
            "", catalog.profile, clearance.cleared, findings, self._get_index, clearance=clearance
        )

    @cached_property
    def _rows(self) -> Sequence[ListingRow]:
        return [*map(_build_listing_row, self._view)]

    @cached_property
    def _get_index(self) -> Callable[[], SearchIndex]:
        # Not a method: the view must not keep this object alive, which may own temporary files.
        return cache(partial(_build_index, self._catalog, self._origin.cache_settings))

    @property
    def _index(self) -> SearchIndex:
        return self._get_index()

    @cached_property
    def _rows_by_location(self) -> Mapping[str, ViewedSkill]:
        return {row.skill.location: row for row in self._view}

    def _build_skill(self, row: ViewedSkill) -> Skill:
        skill = row.skill
        return Skill(
            name=row.name,
            id=skill.id,
            description=skill.description,
            path=Path(skill.location),
            hidden=skill.hidden,
            source=skill.source,
            findings=skill.findings,
            _row=row,
            _view=self._view,
        )


def _build_index(catalog: Catalog, settings: Settings | None) -> SearchIndex:
    # Only a search needs the index, whose import takes 24 ms of CPU.
    from skillhall._internal.wiring.catalog_index import index_catalog  # noqa: PLC0415

    return index_catalog(catalog, settings)


def _build_listing_row(row: ViewedSkill) -> ListingRow:
    return ListingRow(row.name, row.skill.description, row.skill.location)


class _FolderOrigin:
    """The folders that skills were loaded from, to load them again."""

    def __init__(
        self, roots: Sequence[Root], profile: Profile, cache_settings: Settings | None
    ) -> None:
        self._roots = roots
        self._profile = profile
        self.cache_settings = cache_settings  # `None`: caches are not used

    def load_catalog(self) -> Catalog:
        settings = self.cache_settings
        head_cache = HeadCache(settings.cache_directory) if settings is not None else None
        return load_roots(self._roots, self._profile, head_cache)

    def renew(self) -> _FolderOrigin:
        """Return the current origin; `self` if its revision is known and unchanged.

        Call it before loading the folders, so that a change during the load is noticed later.
        """
        if self.known_revision is not None and self._fingerprint.is_current():
            return self
        renewed = _FolderOrigin(self._roots, self._profile, self.cache_settings)
        if renewed.revision == self.known_revision:
            self._fingerprint = renewed._fingerprint
            return self
        return renewed

    @property
    def revision(self) -> str:
        return self._fingerprint.revision

    @property
    def known_revision(self) -> str | None:
        """The revision if it has been computed, else `None`."""
        return self.revision if "_fingerprint" in vars(self) else None

    # Computed on demand: it costs as much as loading, and many programs load their skills once.
    @cached_property
    def _fingerprint(self) -> Fingerprint:
        paths = [root.path for root in self._roots]
        follow_links = {root.path for root in self._roots if root.follow_links}
        return take_fingerprint(paths, self._profile.scan_policy, follow_links)
