"""list_skills, search_skills, load_skill and read_skill_file: the skill tools of all agents.

For any input a tool returns a result: the content, or one line that starts with "Error: " and an
error code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from skillhall._internal.agents.tool_protocol import ToolResult
from skillhall._internal.render.activation import render_activation
from skillhall._internal.render.escape import to_single_line
from skillhall.errors import SkillhallError, SkillNotFound, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import TypeAlias

    from skillhall._internal.agents.tool_protocol import Tool
    from skillhall._internal.catalog.skill_view import SkillProvider, SkillView, ViewedSkill

    Arguments: TypeAlias = Mapping[str, object]
    ToolContent: TypeAlias = str | Mapping[str, object]

MAX_ENUM = 200  # with more skills, the schema of load_skill does not list the names
MAX_LIST_RESULTS = 100  # skills in one result of list_skills
MAX_SEARCH_RESULTS = 50  # skills in one result of search_skills
MAX_FILE_BYTES = 1024 * 1024
MAX_DESCRIPTION = 1024  # characters of a description in a result; the specification's limit
SKILL_TOOL_NAMES = ("list_skills", "search_skills", "load_skill", "read_skill_file")
_MAX_QUOTED = 80  # characters of an invalid argument in an error
_DEFAULT_RESULTS = 10  # skills in a search result by default


class LoadedSkills:
    """The skills loaded in one conversation, so that no instructions are returned twice."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}

    def mark_loaded(self, name: str, text: str) -> bool:
        """Record a loaded skill; return whether it is new or has changed."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        is_known = self._digests.get(name) == digest
        self._digests[name] = digest
        return not is_known

    def reset(self) -> None:
        """Start a new conversation."""
        self._digests.clear()


def get_skill_uri(row: ViewedSkill) -> str:
    """Return the skill's URI, which reveals no local path."""
    return row.uri


@dataclass(frozen=True, slots=True)
class SkillsTool:
    """One of the four skill tools."""

    name: str
    description: str
    build_properties: Callable[[], Mapping[str, object]] = field(repr=False)
    required: tuple[str, ...]
    handler: Callable[[Arguments], ToolContent] = field(repr=False)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON Schema of the arguments, for the current skills."""
        return {
            "type": "object",
            "properties": self.build_properties(),
            "required": [*self.required],
            "additionalProperties": False,
        }

    def call(self, arguments: object) -> ToolResult:
        """Return the content or an error line."""
        try:
            return ToolResult(self.handler(self._validate_arguments(arguments)))
        except _SkillToolError as error:
            return ToolResult(f"Error: {error}", is_error=True, code=error.code)

    def __call__(self, arguments: object) -> ToolContent:
        """Return what the model sees."""
        return self.call(arguments).content

    def _validate_arguments(self, arguments: object) -> Arguments:
        """Return the arguments if their names and types are valid."""
        values = {} if arguments is None else arguments
        if not isinstance(values, Mapping):
            raise _SkillToolError("invalid_argument", "the arguments must be a JSON object.")
        schema = self.build_properties()
        for name, value in values.items():
            if name not in schema:
                known = ", ".join(schema) or "no arguments"
                problem = f"unknown argument {_quote(name)}; {self.name} takes: {known}."
                raise _SkillToolError("invalid_argument", problem)
            _check_type(name, value, schema[name])
        for name in self.required:
            if not str(values.get(name, "")).strip():
                raise _SkillToolError("invalid_argument", f"{name} is required.")
        return values


@dataclass(frozen=True, slots=True)
class SkillTools:
    """The skill tools of one provider. Without `loaded_skills`, every load returns the text.

    No text mentions a tool that is not in `tool_names`.
    """

    provider: SkillProvider
    loaded_skills: LoadedSkills | None = None
    get_directory: Callable[[ViewedSkill], str] = get_skill_uri  # the directory shown to models
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

    def text_if_available(self, tool: str, text: str) -> str:
        """Return `text` if the model has the tool, else ""."""
        return text if tool in self.tool_names else ""

    def _all_tools(self) -> tuple[Tool, ...]:
        loads = self.text_if_available("load_skill", "; load_skill gives them")
        return (
            SkillsTool(
                "list_skills",
                "Lists the skills there are, by name and description, in order. A skill is a set "
                f"of instructions for a kind of task{loads}.",
                lambda: {
                    "after": _string_schema("The last name of the part before; to go on from it.")
                },
                (),
                partial(_list_skills, self),
            ),
            SkillsTool(
                "search_skills",
                "Finds skills by words in their names and descriptions, the best first.",
                lambda: {
                    "query": _string_schema("Some words."),
                    "limit": _integer_schema(MAX_SEARCH_RESULTS),
                },
                ("query",),
                partial(_search_skills, self),
            ),
            SkillsTool(
                "load_skill",
                "Returns the instructions of a skill and the names of its files. Call it before "
                "a task that matches the skill's description, then follow the instructions.",
                lambda: {"name": self._build_name_schema()},
                ("name",),
                partial(_load_skill, self),
            ),
            SkillsTool(
                "read_skill_file",
                "Returns the text of one file of a skill. Reads only; runs nothing.",
                lambda: {
                    "name": _string_schema("The name of the skill."),
                    "path": _string_schema(
                        "The path of the file, relative to the skill's directory."
                    ),
                },
                ("name", "path"),
                partial(_read_skill_file, self),
            ),
        )

    def _build_name_schema(self) -> Mapping[str, object]:
        names = [*self.provider.current_view().skills]
        sources = [name for name in SKILL_TOOL_NAMES[:2] if name in self.tool_names]
        known = f", as {' or '.join(sources)} shows it" if sources else ""
        schema = _string_schema(f"The name of the skill{known}.")
        return schema if len(names) > MAX_ENUM else {**schema, "enum": names}


def _string_schema(description: str) -> Mapping[str, object]:
    return {"type": "string", "description": description}


def _integer_schema(maximum: int) -> Mapping[str, object]:
    about = f"How many at most; {_DEFAULT_RESULTS} unless told."
    return {"type": "integer", "description": about, "minimum": 1, "maximum": maximum}


class _SkillToolError(Exception):
    """An error code and the error line for the model; never leaves this module."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _check_type(name: str, value: object, schema: object) -> None:
    expected = schema["type"] if isinstance(schema, Mapping) else "string"
    is_valid = (
        isinstance(value, str)
        if expected == "string"
        else isinstance(value, int) and not isinstance(value, bool)  # `bool` is a subclass of `int`
    )
    if not is_valid:
        kind = "a string" if expected == "string" else "an integer"
        raise _SkillToolError("invalid_argument", f"{name} must be {kind}.")


def _list_skills(tools: SkillTools, arguments: Arguments) -> ToolContent:
    """Return a page of the list; the next one starts after its last name."""
    view, after = tools.provider.current_view(), str(arguments.get("after", ""))
    names = [*view.skills]
    start = names.index(after) + 1 if after in view.skills else 0
    if after and not start:
        raise _build_not_found_error(SkillNotFound(after, ()), tools, view)
    rows = islice(view, start, start + MAX_LIST_RESULTS)
    result: dict[str, object] = {"skills": _serialize_rows(tools, rows), "total": len(view)}
    if start + MAX_LIST_RESULTS < len(view):
        result["more"] = f"call list_skills with after={names[start + MAX_LIST_RESULTS - 1]!r}"
    return result


def _search_skills(tools: SkillTools, arguments: Arguments) -> ToolContent:
    """Return the best matches."""
    limit = arguments.get("limit", _DEFAULT_RESULTS)
    count = min(limit, MAX_SEARCH_RESULTS) if isinstance(limit, int) else _DEFAULT_RESULTS
    rows, total = tools.provider.current_view().search(str(arguments["query"]), max(1, count))
    return {"skills": _serialize_rows(tools, rows), "total": total}


def _serialize_rows(tools: SkillTools, rows: Iterable[ViewedSkill]) -> list[Mapping[str, str]]:
    """Return names and descriptions; locations if no tool accepts names."""
    by_name = "load_skill" in tools.tool_names or "read_skill_file" in tools.tool_names
    return [
        {
            "name": row.name,
            "description": to_single_line(row.skill.description)[:MAX_DESCRIPTION],
            **({} if by_name else {"location": f"{tools.get_directory(row)}/{row.skill.file}"}),
        }
        for row in rows
    ]


def _load_skill(tools: SkillTools, arguments: Arguments) -> ToolContent:
    """Return the instructions of a skill, or that they are already loaded."""
    view = tools.provider.current_view()
    row = _find_skill(tools, view, str(arguments["name"]))
    try:
        body, files = view.read_body(row), view.list_files(row)
    except SkillRejected as error:
        problem = f"the skill {row.name!r} is invalid: {'; '.join(error.reasons)}"
        raise _SkillToolError(error.code, problem) from None
    except (SkillhallError, OSError) as error:
        raise _build_read_error(error, f"the skill {row.name!r}", tools) from None
    text = render_activation(row.name, tools.get_directory(row), body, files)
    if tools.loaded_skills is None or tools.loaded_skills.mark_loaded(row.name, text):
        return text
    return f"The skill {row.name!r} is already loaded; its instructions were given before."


def _read_skill_file(tools: SkillTools, arguments: Arguments) -> ToolContent:
    """Return the text of a file."""
    view, path = tools.provider.current_view(), str(arguments["path"])
    row = _find_skill(tools, view, str(arguments["name"]))
    subject = f"the file {_quote(path)} of the skill {row.name!r}"
    try:
        data = view.read_file(row, path)
    except (SkillhallError, OSError) as error:
        raise _build_read_error(error, subject, tools) from None
    if len(data) > MAX_FILE_BYTES:
        raise _SkillToolError("too_large", f"{subject} is larger than {MAX_FILE_BYTES} bytes.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _SkillToolError("not_text", f"{subject} is not UTF-8 text.") from None


_ERROR_TEMPLATES: Mapping[str, str] = {
    "not_found": "was not found{files}.",
    "invalid_path": "is not allowed: use a plain relative path inside the skill.",
    "not_a_file": "is not a regular file.",
    "too_large": "is too large.",
}


def _build_read_error(error: Exception, subject: str, tools: SkillTools) -> _SkillToolError:
    """Return the error for a failed read; it does not leak the path."""
    code = error.code if isinstance(error, SkillhallError) else "storage_unavailable"
    files = tools.text_if_available("load_skill", "; load_skill names the files")
    return _SkillToolError(
        code, f"{subject} {_ERROR_TEMPLATES.get(code, 'cannot be read.').format(files=files)}"
    )


def _find_skill(tools: SkillTools, view: SkillView, name: str) -> ViewedSkill:
    try:
        return view.find(name)
    except SkillNotFound as error:
        raise _build_not_found_error(error, tools, view) from None


def _build_not_found_error(
    error: SkillNotFound, tools: SkillTools, view: SkillView
) -> _SkillToolError:
    names: Sequence[str] = error.close or [*view.skills]
    shown = ", ".join(map(repr, map(to_single_line, names[:_DEFAULT_RESULTS])))
    see = tools.text_if_available("list_skills", "; see list_skills")
    more = (
        "" if len(names) <= _DEFAULT_RESULTS else f" and {len(names) - _DEFAULT_RESULTS} more{see}"
    )
    names_text = f"Similar names: {shown}." if error.close else f"Available skills: {shown}{more}."
    return _SkillToolError("not_found", f"there is no skill {_quote(error.name)}. {names_text}")


def _quote(text: object) -> str:
    return repr(to_single_line(str(text)[:_MAX_QUOTED]))
