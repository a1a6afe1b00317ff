"""The skill tools: list_skills, search_skills, load_skill and read_skill_file.

A tool never raises: its result is the content, or one line that starts with "Error: ", with an
error code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, cast

from skillhall._internal.agents.tool_definition import Tool, ToolError, string_schema
from skillhall._internal.render.activation import render_activation, render_section
from skillhall._internal.render.escape import to_single_line
from skillhall._internal.render.prompt_plan import shorten
from skillhall._internal.skill.markdown.headings import find_section_texts, list_sections
from skillhall._internal.skill.token_count import estimate_tokens
from skillhall.errors import SkillhallError, SkillNotApproved, SkillNotFound, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import TypeAlias

    from skillhall._internal.agents.tool_definition import ToolContent, ToolResult
    from skillhall._internal.catalog.skill_view import (
        SkillProvider,
        SkillView,
        ViewedHit,
        ViewedSkill,
    )

    Arguments: TypeAlias = Mapping[str, object]
    Properties: TypeAlias = Mapping[str, Mapping[str, object]]

MAX_ENUM = 200  # with more skills, the schema of load_skill does not list the names
MAX_LIST_RESULTS = 100  # skills in one result of list_skills
MAX_SEARCH_RESULTS = 50  # skills in one result of search_skills
MAX_SEARCH_TOKENS = 2000  # of one result of search_skills
MAX_ITEMS = 100  # strings in a list
MAX_FILE_BYTES = 1024 * 1024
MAX_DESCRIPTION = 1024  # characters of a description in a result; the specification's limit
MAX_HEADINGS = 100  # in the error about an unknown heading
SKILL_TOOL_NAMES = ("list_skills", "search_skills", "load_skill", "read_skill_file")
_MAX_QUOTED = 80  # characters of an invalid argument in an error
_DEFAULT_RESULTS = 10  # skills in a search result by default
_DESCRIPTION_LENGTHS = (MAX_DESCRIPTION, 512, 256, 128)  # in a search result; the first that fits
_MAX_REASONS = 6  # words of a field that explain a match
# By error code; other errors say "cannot be read".
_READ_PROBLEMS: Mapping[str, str] = {
    "invalid_path": "is not allowed: use a plain relative path inside the skill.",
    "not_a_file": "is not a regular file.",
    "not_approved": "is not approved: the skill has changed since it was approved.",
    "too_large": "is too large.",
}


class LoadedSkills:
    """The skills loaded in one conversation, so that none is returned twice."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}

    def mark_loaded(self, name: str, text: str) -> bool:
        """Record a loaded skill; return whether it is new or has changed."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        is_known = self._digests.get(name) == digest
        self._digests[name] = digest
        return not is_known

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the loaded skills, in the order in which they were first loaded."""
        return tuple(self._digests)

    def reset(self) -> None:
        """Start a new conversation."""
        self._digests.clear()


@dataclass(frozen=True, slots=True)
class SkillTools:
    """The skill tools for the skills of one provider.

    Without `loaded_skills`, every load returns the instructions. Descriptions and results mention
    only the tools in `tool_names`.
    """

    provider: SkillProvider
    loaded_skills: LoadedSkills | None = None
    # The directory shown to models; the default is the URI, which reveals no local path.
    get_directory: Callable[[ViewedSkill], str] = attrgetter("uri")
    tool_names: Collection[str] = SKILL_TOOL_NAMES  # the tools that the model has

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools in `tool_names`; none if there are no skills."""
        if not len(self.provider.current_view()):
            return ()
        return tuple(tool for tool in self._all_tools() if tool.name in self.tool_names)

    def load_skill(self, name: str) -> ToolResult:
        """Return the result of `load_skill`, even if the model does not have that tool."""
        load = next(tool for tool in self._all_tools() if tool.name == "load_skill")
        return load.call({"name": name})

    def _all_tools(self) -> tuple[Tool, ...]:
        loads = self._text_if_available("load_skill", "; load_skill returns them")
        return (
            build_tool(
                "list_skills",
                "Lists the names and descriptions of the available skills. A skill is a set "
                f"of instructions for a kind of task{loads}.",
                lambda: {
                    "after": string_schema("The last name of the previous page, to continue there.")
                },
                (),
                self._list_skills,
            ),
            build_tool(
                "search_skills",
                "Searches the names, descriptions and instructions of skills, best match first, "
                "and says why each one matches.",
                lambda: {
                    "query": string_schema("A few words, or the task in a sentence or more."),
                    "limit": {
                        "type": "integer",
                        "description": f"Maximum number of results; default {_DEFAULT_RESULTS}.",
                        "minimum": 1,
                        "maximum": MAX_SEARCH_RESULTS,
                    },
                    "offset": {
                        "type": "integer",
                        "description": "Number of best matches to leave out, for the next page.",
                        "minimum": 0,
                    },
                },
                ("query",),
                self._search_skills,
            ),
            build_tool(
                "load_skill",
                "Returns the instructions of a skill and the names of its files. Call it before "
                "a task that matches the skill's description, then follow the instructions.",
                lambda: {
                    "name": self._build_name_schema(),
                    "heading": string_schema(
                        "Returns only the section below this heading, to read a part of a long "
                        "skill again. For an unknown heading, the error lists all headings."
                    ),
                },
                ("name",),
                self._load_skill,
            ),
            build_tool(
                "read_skill_file",
                "Returns the text of one file of a skill. Reads only; runs nothing.",
                lambda: {
                    "name": string_schema("The name of the skill."),
                    "path": string_schema(
                        "The path of the file, relative to the skill's directory."
                    ),
                },
                ("name", "path"),
                self._read_skill_file,
            ),
        )

    def _text_if_available(self, tool: str, text: str) -> str:
        return text if tool in self.tool_names else ""

    def _build_name_schema(self) -> Mapping[str, object]:
        names = self.provider.current_view().skills
        sources = [name for name in SKILL_TOOL_NAMES[:2] if name in self.tool_names]
        known = f", as returned by {' or '.join(sources)}" if sources else ""
        schema = string_schema(f"The name of the skill{known}.")
        return schema if len(names) > MAX_ENUM else {**schema, "enum": [*names]}

    def _list_skills(self, arguments: Arguments) -> ToolContent:
        """Return a page of skills; the next page starts after the last name of this one."""
        view, after = self.provider.current_view(), str(arguments.get("after", ""))
        names = [*view.skills]
        start = names.index(after) + 1 if after in view.skills else 0
        if after and not start:
            raise self._build_not_found_error(SkillNotFound(after, ()), view)
        rows = islice(view, start, start + MAX_LIST_RESULTS)
        result: dict[str, object] = {"skills": self._serialize_rows(rows), "total": len(view)}
        if count := sum(one.is_undecided for one in view.held):
            result["held"] = f"{count} not approved; the user can review them with: skillhall trust"
        if start + MAX_LIST_RESULTS < len(view):
            result["more"] = f"call list_skills with after={names[start + MAX_LIST_RESULTS - 1]!r}"
        return result

    def _search_skills(self, arguments: Arguments) -> ToolContent:
        """Return a page of the best matches within `MAX_SEARCH_TOKENS`."""
        query = str(arguments["query"])
        limit = _get_int(arguments, "limit", _DEFAULT_RESULTS)
        offset = max(0, _get_int(arguments, "offset", 0))
        count = max(1, min(limit, MAX_SEARCH_RESULTS))
        hits, total = self.provider.current_view().search(query, count, offset)
        # Shorter descriptions first, then fewer skills; the next page begins with the others.
        pages = [
            *((len(hits), length) for length in _DESCRIPTION_LENGTHS),
            *((count, _DESCRIPTION_LENGTHS[-1]) for count in range(len(hits) - 1, 0, -1)),
        ]
        result: dict[str, object] = {}
        for size, length in pages:
            result = {"skills": self._serialize_hits(hits[:size], length), "total": total}
            if offset + size < total:
                result["more"] = (
                    f"call search_skills with the same query and offset={offset + size}"
                )
            if estimate_tokens(json.dumps(result, ensure_ascii=False)) <= MAX_SEARCH_TOKENS:
                break
        return result

    def _serialize_hits(self, hits: Iterable[ViewedHit], length: int) -> list[Mapping[str, str]]:
        return [
            {
                **self._serialize_row(hit.row, shorten(hit.row.skill.description, length)),
                "why": _explain_hit(hit),
            }
            for hit in hits
        ]

    def _serialize_rows(self, rows: Iterable[ViewedSkill]) -> list[Mapping[str, str]]:
        return [
            self._serialize_row(row, to_single_line(row.skill.description)[:MAX_DESCRIPTION])
            for row in rows
        ]

    def _serialize_row(self, row: ViewedSkill, description: str) -> Mapping[str, str]:
        """Return name and description, and the location if no tool accepts names."""
        by_name = "load_skill" in self.tool_names or "read_skill_file" in self.tool_names
        location = {} if by_name else {"location": f"{self.get_directory(row)}/{row.skill.file}"}
        return {"name": row.name, "description": description, **location}

    def _load_skill(self, arguments: Arguments) -> ToolContent:
        """Return the instructions of a skill, or a note that they are already loaded.

        With a heading, return the section below it.
        """
        view = self.provider.current_view()
        row = self.find_skill(view, str(arguments["name"]))
        heading = str(arguments.get("heading", ""))
        try:
            body = view.read_body(row)
            files = () if heading.strip() else view.list_files(row)
        except SkillRejected as error:
            problem = f"the skill {row.name!r} is invalid: {'; '.join(error.reasons)}"
            raise ToolError(problem, error.code) from None
        except (SkillhallError, OSError) as error:
            raise self.build_read_error(error, f"the skill {row.name!r}") from None
        if heading.strip():
            return _render_section(row.name, body, heading)
        text = render_activation(row.name, self.get_directory(row), body, files)
        if self.loaded_skills is None or self.loaded_skills.mark_loaded(row.name, text):
            return text
        return f"The skill {row.name!r} is already loaded; its instructions were given before."

    def _read_skill_file(self, arguments: Arguments) -> ToolContent:
        """Return the text of a file."""
        view, path = self.provider.current_view(), str(arguments["path"])
        row = self.find_skill(view, str(arguments["name"]))
        subject = f"the file {quote(path)} of the skill {row.name!r}"
        try:
            data = view.read_file(row, path)
        except (SkillhallError, OSError) as error:
            raise self.build_read_error(error, subject) from None
        if len(data) > MAX_FILE_BYTES:
            raise ToolError(f"{subject} is larger than {MAX_FILE_BYTES} bytes.", "too_large")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise ToolError(f"{subject} is not UTF-8 text.", "not_text") from None

    def build_read_error(self, error: Exception, subject: str) -> ToolError:
        """Return the error for a failed read, which does not reveal the local path."""
        code = error.code if isinstance(error, SkillhallError) else "storage_unavailable"
        problem = _READ_PROBLEMS.get(code, "cannot be read.")
        if code == "not_found":
            files = self._text_if_available("load_skill", "; load_skill lists the files")
            problem = f"was not found{files}."
        return ToolError(f"{subject} {problem}", code)

    def find_skill(self, view: SkillView, name: str) -> ViewedSkill:
        """Return a cleared skill. Raises: ToolError if it is unknown or not approved."""
        try:
            return view.find(name)
        except SkillNotFound as error:
            raise self._build_not_found_error(error, view) from None
        except SkillNotApproved as error:
            hint = f"the user can review it with: skillhall trust {to_single_line(error.name)}"
            raise ToolError(f"not approved: {error.reason}; {hint}", error.code) from None

    def _build_not_found_error(self, error: SkillNotFound, view: SkillView) -> ToolError:
        names: Sequence[str] = error.close or [*view.skills]
        shown = ", ".join(map(repr, map(to_single_line, names[:_DEFAULT_RESULTS])))
        if error.close:
            known = f"Similar names: {shown}."
        else:
            rest = len(names) - _DEFAULT_RESULTS
            see = self._text_if_available("list_skills", "; see list_skills")
            known = f"Available skills: {shown}{f' and {rest} more{see}' if rest > 0 else ''}."
        return ToolError(f"there is no skill {quote(error.name)}. {known}", "not_found")


def _render_section(name: str, body: str, heading: str) -> str:
    """Return the sections with this heading. Raises: ToolError, which lists the headings."""
    if texts := find_section_texts(body, heading):
        return render_section(name, to_single_line(heading), "\n\n".join(texts))
    sections = list_sections(body)
    shown = [f"{to_single_line(one.title)!r} ({one.tokens})" for one in sections[:MAX_HEADINGS]]
    rest = len(sections) - len(shown)
    known = f"Headings and their tokens: {', '.join(shown)}{f' and {rest} more' if rest else ''}."
    if not sections:
        known = "It has no headings: call load_skill without a heading."
    raise ToolError(f"the skill {name!r} has no heading {quote(heading)}. {known}", "not_found")


def _explain_hit(hit: ViewedHit) -> str:
    """Return the matching words by field; if only the body matches, a snippet of it."""
    fields = {field: words for field, words in hit.words.items() if field != "body"}
    if not fields and "body" in hit.words:
        return f"instructions: {hit.snippet}"
    reasons = [f"{field}: {', '.join(words[:_MAX_REASONS])}" for field, words in fields.items()]
    return (
        to_single_line("; ".join(reasons)) or "similar in meaning, but no word of the query matches"
    )


def _get_int(arguments: Arguments, key: str, default: int) -> int:
    value = arguments.get(key, default)
    return value if isinstance(value, int) else default


def build_tool(
    name: str,
    description: str,
    get_properties: Callable[[], Properties],
    required: tuple[str, ...],
    run: Callable[[Arguments], ToolContent],
) -> Tool:
    """Return a tool that checks the names and types of its arguments."""

    def handle(arguments: object) -> ToolContent:
        values = {} if arguments is None else arguments
        if not isinstance(values, Mapping):
            raise ToolError("the arguments must be a JSON object.", "invalid_argument")
        properties = get_properties()
        for key, value in values.items():
            if key not in properties:
                problem = f"unknown argument {quote(key)}; {name} takes: {', '.join(properties)}."
                raise ToolError(problem, "invalid_argument")
            if problem := _find_type_error(properties[key]["type"], value):
                raise ToolError(f"{key!r} must be {problem}.", "invalid_argument")
        for key in required:
            if not str(values.get(key, "")).strip():
                raise ToolError(f"{key!r} is required.", "invalid_argument")
        return run(values)

    return Tool(
        name=name,
        description=description,
        required=required,
        get_properties=get_properties,
        handler=handle,
    )


def _find_type_error(expected: object, value: object) -> str:
    """Return what a value must be; "" if it is."""
    if expected == "string":
        return "" if isinstance(value, str) else "a string"
    if expected == "integer":  # `bool` is a subclass of `int`
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return "" if is_integer else "an integer"
    is_list = isinstance(value, list) and len(value) <= MAX_ITEMS
    if is_list and all(isinstance(item, str) for item in cast("list[object]", value)):
        return ""
    return f"a list of up to {MAX_ITEMS} strings"


def quote(text: object) -> str:
    """Return an argument of a model as it is shown in an error."""
    return repr(to_single_line(str(text)[:_MAX_QUOTED]))
