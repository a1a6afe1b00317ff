"""list_skills, search_skills, load_skill and read_skill_file: one set of tools for every reader.

Whatever a model sends, a tool answers: with what was asked for, or with one line that begins
"Error: ", and the class of the error beside it.
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

MAX_ENUM = 200  # names that the schema of load_skill spells out; with more, they are searched for
MAX_LIST_RESULTS = 100  # skills in one answer of list_skills
MAX_SEARCH_RESULTS = 50  # skills in one answer of search_skills
MAX_FILE_BYTES = 1024 * 1024  # bytes of one file
MAX_DESCRIPTION = 1024  # characters of a description that an answer repeats; the specification's
SKILL_TOOL_NAMES = ("list_skills", "search_skills", "load_skill", "read_skill_file")
_MAX_QUOTED = 80  # characters of a wrong argument that an error repeats
_DEFAULT_RESULTS = 10  # skills that a search gives unless it is told


class LoadedSkills:
    """What a model was given in one conversation, so that no instructions are given twice."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}

    def mark_loaded(self, name: str, text: str) -> bool:
        """Whether the skill was not given yet, or is not the same any more; it is noted."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        is_known = self._digests.get(name) == digest
        self._digests[name] = digest
        return not is_known

    def reset(self) -> None:
        """Start anew."""
        self._digests.clear()


def get_skill_uri(row: ViewedSkill) -> str:
    """Where a model is told that a skill stands: in no folder of a machine."""
    return row.uri


@dataclass(frozen=True, slots=True)
class SkillsTool:
    """One of the four tools."""

    name: str
    description: str
    build_properties: Callable[[], Mapping[str, object]] = field(repr=False)
    required: tuple[str, ...]
    handler: Callable[[Arguments], ToolContent] = field(repr=False)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON Schema of the call, for the skills there are now."""
        return {
            "type": "object",
            "properties": self.build_properties(),
            "required": [*self.required],
            "additionalProperties": False,
        }

    def call(self, arguments: object) -> ToolResult:
        """What was asked for, or the line that says why there is none."""
        try:
            return ToolResult(self.handler(self._validate_arguments(arguments)))
        except _SkillToolError as refusal:
            return ToolResult(f"Error: {refusal}", is_error=True, code=refusal.code)

    def __call__(self, arguments: object) -> ToolContent:
        """What the model sees."""
        return self.call(arguments).content

    def _validate_arguments(self, arguments: object) -> Arguments:
        """The arguments, if they are the right ones of the right types."""
        given = {} if arguments is None else arguments
        if not isinstance(given, Mapping):
            raise _SkillToolError("invalid_argument", "the arguments must be a JSON object.")
        schema = self.build_properties()
        for name, value in given.items():
            if name not in schema:
                known = ", ".join(schema) or "no arguments"
                problem = f"unknown argument {_quote(name)}; {self.name} takes: {known}."
                raise _SkillToolError("invalid_argument", problem)
            _check_type(name, value, schema[name])
        for name in self.required:
            if not str(given.get(name, "")).strip():
                raise _SkillToolError("invalid_argument", f"{name} is required.")
        return given


@dataclass(frozen=True, slots=True)
class SkillTools:
    """The tools over one offering; without a conversation, every load gives the text.

    No text names a tool that is not among `given`.
    """

    provider: SkillProvider
    loaded_skills: LoadedSkills | None = None
    get_directory: Callable[[ViewedSkill], str] = (
        get_skill_uri  # what a model is told as the skill's directory
    )
    tool_names: Collection[str] = SKILL_TOOL_NAMES  # the tools that the model has

    def tools(self) -> tuple[Tool, ...]:
        """Those of the four tools that are given; none without skills: then register nothing."""
        if not len(self.provider.current_view()):
            return ()
        return tuple(tool for tool in self._all_tools() if tool.name in self.tool_names)

    def load_skill(self, name: str) -> ToolResult:
        """What `load_skill` answers, also if the model does not have it."""
        load = next(tool for tool in self._all_tools() if tool.name == "load_skill")
        return load.call({"name": name})

    def text_if_available(self, tool: str, text: str) -> str:
        """A text about a tool, if the model has it; else nothing."""
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
    """The class of an error and its line for the model; nobody outside meets it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _check_type(name: str, value: object, schema: object) -> None:
    wanted = schema["type"] if isinstance(schema, Mapping) else "string"
    right = (
        isinstance(value, str)
        if wanted == "string"
        else isinstance(value, int) and not isinstance(value, bool)
    )
    if not right:
        kind = "text" if wanted == "string" else "a whole number"
        raise _SkillToolError("invalid_argument", f"{name} must be {kind}.")


def _list_skills(tools: SkillTools, arguments: Arguments) -> ToolContent:
    """A part of the list; it goes on after the last name of it."""
    offer, after = tools.provider.current_view(), str(arguments.get("after", ""))
    names = [*offer.skills]
    start = names.index(after) + 1 if after in offer.skills else 0
    if after and not start:
        raise _build_not_found_error(SkillNotFound(after, ()), tools, offer)
    rows = islice(offer, start, start + MAX_LIST_RESULTS)
    told: dict[str, object] = {"skills": _serialize_rows(tools, rows), "total": len(offer)}
    if start + MAX_LIST_RESULTS < len(offer):
        told["more"] = f"call list_skills with after={names[start + MAX_LIST_RESULTS - 1]!r}"
    return told


def _search_skills(tools: SkillTools, arguments: Arguments) -> ToolContent:
    """What a search finds."""
    limit = arguments.get("limit", _DEFAULT_RESULTS)
    most = min(limit, MAX_SEARCH_RESULTS) if isinstance(limit, int) else _DEFAULT_RESULTS
    rows, total = tools.provider.current_view().search(str(arguments["query"]), max(1, most))
    return {"skills": _serialize_rows(tools, rows), "total": total}


def _serialize_rows(tools: SkillTools, rows: Iterable[ViewedSkill]) -> list[Mapping[str, str]]:
    """Names and descriptions, and locations for a model without a tool that takes names."""
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
    """The instructions of a skill, or that they were given before."""
    offer = tools.provider.current_view()
    row = _find_skill(tools, offer, str(arguments["name"]))
    try:
        body, files = offer.read_body(row), offer.list_files(row)
    except SkillRejected as error:
        problem = f"the skill {row.name!r} is broken: {'; '.join(error.reasons)}"
        raise _SkillToolError(error.code, problem) from None
    except (SkillhallError, OSError) as error:
        raise _build_read_error(error, f"the skill {row.name!r}", tools) from None
    text = render_activation(row.name, tools.get_directory(row), body, files)
    if tools.loaded_skills is None or tools.loaded_skills.mark_loaded(row.name, text):
        return text
    return f"The skill {row.name!r} is already loaded; its instructions were given before."


def _read_skill_file(tools: SkillTools, arguments: Arguments) -> ToolContent:
    """The text of a file."""
    offer, path = tools.provider.current_view(), str(arguments["path"])
    row = _find_skill(tools, offer, str(arguments["name"]))
    asked = f"the file {_quote(path)} of the skill {row.name!r}"
    try:
        data = offer.read_file(row, path)
    except (SkillhallError, OSError) as error:
        raise _build_read_error(error, asked, tools) from None
    if len(data) > MAX_FILE_BYTES:
        raise _SkillToolError("too_large", f"{asked} has more than {MAX_FILE_BYTES} bytes.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _SkillToolError("not_text", f"{asked} is not UTF-8 text.") from None


_ERROR_TEMPLATES: Mapping[str, str] = {
    "not_found": "is not there{files}.",
    "invalid_path": "is refused: the path must be plain, relative, and stay in the skill.",
    "not_a_file": "is no regular file.",
    "too_large": "is too large.",
}


def _build_read_error(error: Exception, subject: str, tools: SkillTools) -> _SkillToolError:
    """The refusal for what a disk or a check reported; it does not leak the path."""
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
    near = f"Near names: {shown}." if error.close else f"Available skills: {shown}{more}."
    return _SkillToolError("not_found", f"there is no skill {_quote(error.name)}. {near}")


def _quote(text: object) -> str:
    return repr(to_single_line(str(text)[:_MAX_QUOTED]))
