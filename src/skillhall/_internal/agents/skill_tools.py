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

from skillhall._internal.agents.tool_protocol import Answer
from skillhall._internal.render.activation import render_activation
from skillhall._internal.render.escape import one_line
from skillhall.errors import SkillhallError, SkillNotFound, SkillRejected

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import TypeAlias

    from skillhall._internal.agents.tool_protocol import Tool
    from skillhall._internal.catalog.skill_view import Offer, Offered, Offering

    Arguments: TypeAlias = Mapping[str, object]
    Content: TypeAlias = str | Mapping[str, object]

MAX_ENUM = 200  # names that the schema of load_skill spells out; with more, they are searched for
MAX_LISTED = 100  # skills in one answer of list_skills
MAX_FOUND = 50  # skills in one answer of search_skills
MAX_ANSWER = 1024 * 1024  # bytes of one file
MAX_DESCRIPTION = 1024  # characters of a description that an answer repeats; the specification's
NAMES = ("list_skills", "search_skills", "load_skill", "read_skill_file")
_SHOWN = 80  # characters of a wrong argument that an error repeats
_FOUND = 10  # skills that a search gives unless it is told


class Conversation:
    """What a model was given in one conversation, so that no instructions are given twice."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}

    def is_news(self, name: str, text: str) -> bool:
        """Whether the skill was not given yet, or is not the same any more; it is noted."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        is_known = self._given.get(name) == digest
        self._given[name] = digest
        return not is_known

    def reset(self) -> None:
        """Start anew."""
        self._given.clear()


def address_of(row: Offered) -> str:
    """Where a model is told that a skill stands: in no folder of a machine."""
    return row.uri


@dataclass(frozen=True, slots=True)
class SkillsTool:
    """One of the four tools."""

    name: str
    description: str
    make_schema: Callable[[], Mapping[str, object]] = field(repr=False)
    required: tuple[str, ...]
    run: Callable[[Arguments], Content] = field(repr=False)

    @property
    def parameters(self) -> Mapping[str, object]:
        """The JSON Schema of the call, for the skills there are now."""
        return {
            "type": "object",
            "properties": self.make_schema(),
            "required": [*self.required],
            "additionalProperties": False,
        }

    def answer(self, arguments: object) -> Answer:
        """What was asked for, or the line that says why there is none."""
        try:
            return Answer(self.run(self._checked(arguments)))
        except _Refused as refusal:
            return Answer(f"Error: {refusal}", is_error=True, code=refusal.code)

    def __call__(self, arguments: object) -> Content:
        """What the model sees."""
        return self.answer(arguments).content

    def _checked(self, arguments: object) -> Arguments:
        """The arguments, if they are the right ones of the right types."""
        given = {} if arguments is None else arguments
        if not isinstance(given, Mapping):
            raise _Refused("invalid_argument", "the arguments must be a JSON object.")
        schema = self.make_schema()
        for name, value in given.items():
            if name not in schema:
                known = ", ".join(schema) or "no arguments"
                problem = f"unknown argument {_quoted(name)}; {self.name} takes: {known}."
                raise _Refused("invalid_argument", problem)
            _check_type(name, value, schema[name])
        for name in self.required:
            if not str(given.get(name, "")).strip():
                raise _Refused("invalid_argument", f"{name} is required.")
        return given


@dataclass(frozen=True, slots=True)
class SkillTools:
    """The tools over one offering; without a conversation, every load gives the text.

    No text names a tool that is not among `given`.
    """

    offering: Offering
    conversation: Conversation | None = None
    place: Callable[[Offered], str] = address_of  # what a model is told as the skill's directory
    given: Collection[str] = NAMES  # the tools that the model has

    def tools(self) -> tuple[Tool, ...]:
        """Those of the four tools that are given; none without skills: then register nothing."""
        if not len(self.offering.offer()):
            return ()
        return tuple(tool for tool in self._every_tool() if tool.name in self.given)

    def load(self, name: str) -> Answer:
        """What `load_skill` answers, also if the model does not have it."""
        load = next(tool for tool in self._every_tool() if tool.name == "load_skill")
        return load.answer({"name": name})

    def mention(self, tool: str, text: str) -> str:
        """A text about a tool, if the model has it; else nothing."""
        return text if tool in self.given else ""

    def _every_tool(self) -> tuple[Tool, ...]:
        loads = self.mention("load_skill", "; load_skill gives them")
        return (
            SkillsTool(
                "list_skills",
                "Lists the skills there are, by name and description, in order. A skill is a set "
                f"of instructions for a kind of task{loads}.",
                lambda: {"after": _text("The last name of the part before; to go on from it.")},
                (),
                partial(_list_skills, self),
            ),
            SkillsTool(
                "search_skills",
                "Finds skills by words in their names and descriptions, the best first.",
                lambda: {"query": _text("Some words."), "limit": _number(MAX_FOUND)},
                ("query",),
                partial(_search_skills, self),
            ),
            SkillsTool(
                "load_skill",
                "Returns the instructions of a skill and the names of its files. Call it before "
                "a task that matches the skill's description, then follow the instructions.",
                lambda: {"name": self._name_schema()},
                ("name",),
                partial(_load_skill, self),
            ),
            SkillsTool(
                "read_skill_file",
                "Returns the text of one file of a skill. Reads only; runs nothing.",
                lambda: {
                    "name": _text("The name of the skill."),
                    "path": _text("The path of the file, relative to the skill's directory."),
                },
                ("name", "path"),
                partial(_read_skill_file, self),
            ),
        )

    def _name_schema(self) -> Mapping[str, object]:
        names = [*self.offering.offer().skills]
        sources = [name for name in NAMES[:2] if name in self.given]
        known = f", as {' or '.join(sources)} shows it" if sources else ""
        schema = _text(f"The name of the skill{known}.")
        return schema if len(names) > MAX_ENUM else {**schema, "enum": names}


def _text(about: str) -> Mapping[str, object]:
    return {"type": "string", "description": about}


def _number(most: int) -> Mapping[str, object]:
    about = f"How many at most; {_FOUND} unless told."
    return {"type": "integer", "description": about, "minimum": 1, "maximum": most}


class _Refused(Exception):
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
        raise _Refused("invalid_argument", f"{name} must be {kind}.")


def _list_skills(tools: SkillTools, given: Arguments) -> Content:
    """A part of the list; it goes on after the last name of it."""
    offer, after = tools.offering.offer(), str(given.get("after", ""))
    names = [*offer.skills]
    start = names.index(after) + 1 if after in offer.skills else 0
    if after and not start:
        raise _not_found(SkillNotFound(after, ()), tools, offer)
    rows = islice(offer, start, start + MAX_LISTED)
    told: dict[str, object] = {"skills": _told(tools, rows), "total": len(offer)}
    if start + MAX_LISTED < len(offer):
        told["more"] = f"call list_skills with after={names[start + MAX_LISTED - 1]!r}"
    return told


def _search_skills(tools: SkillTools, given: Arguments) -> Content:
    """What a search finds."""
    limit = given.get("limit", _FOUND)
    most = min(limit, MAX_FOUND) if isinstance(limit, int) else _FOUND
    rows, total = tools.offering.offer().search(str(given["query"]), max(1, most))
    return {"skills": _told(tools, rows), "total": total}


def _told(tools: SkillTools, rows: Iterable[Offered]) -> list[Mapping[str, str]]:
    """Names and descriptions, and locations for a model without a tool that takes names."""
    by_name = "load_skill" in tools.given or "read_skill_file" in tools.given
    return [
        {
            "name": row.name,
            "description": one_line(row.skill.description)[:MAX_DESCRIPTION],
            **({} if by_name else {"location": f"{tools.place(row)}/{row.skill.file}"}),
        }
        for row in rows
    ]


def _load_skill(tools: SkillTools, given: Arguments) -> Content:
    """The instructions of a skill, or that they were given before."""
    offer = tools.offering.offer()
    row = _find(tools, offer, str(given["name"]))
    try:
        body, files = offer.body(row), offer.files(row)
    except SkillRejected as error:
        problem = f"the skill {row.name!r} is broken: {'; '.join(error.reasons)}"
        raise _Refused(error.code, problem) from None
    except (SkillhallError, OSError) as error:
        raise _unreadable(error, f"the skill {row.name!r}", tools) from None
    text = render_activation(row.name, tools.place(row), body, files)
    if tools.conversation is None or tools.conversation.is_news(row.name, text):
        return text
    return f"The skill {row.name!r} is already loaded; its instructions were given before."


def _read_skill_file(tools: SkillTools, given: Arguments) -> Content:
    """The text of a file."""
    offer, path = tools.offering.offer(), str(given["path"])
    row = _find(tools, offer, str(given["name"]))
    asked = f"the file {_quoted(path)} of the skill {row.name!r}"
    try:
        data = offer.read_file(row, path)
    except (SkillhallError, OSError) as error:
        raise _unreadable(error, asked, tools) from None
    if len(data) > MAX_ANSWER:
        raise _Refused("too_large", f"{asked} has more than {MAX_ANSWER} bytes.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _Refused("not_text", f"{asked} is not UTF-8 text.") from None


_REASONS: Mapping[str, str] = {
    "not_found": "is not there{files}.",
    "invalid_path": "is refused: the path must be plain, relative, and stay in the skill.",
    "not_a_file": "is no regular file.",
    "too_large": "is too large.",
}


def _unreadable(error: Exception, what: str, tools: SkillTools) -> _Refused:
    """The refusal for what a disk or a check reported; it does not leak the path."""
    code = error.code if isinstance(error, SkillhallError) else "storage_unavailable"
    files = tools.mention("load_skill", "; load_skill names the files")
    return _Refused(code, f"{what} {_REASONS.get(code, 'cannot be read.').format(files=files)}")


def _find(tools: SkillTools, offer: Offer, name: str) -> Offered:
    try:
        return offer.find(name)
    except SkillNotFound as error:
        raise _not_found(error, tools, offer) from None


def _not_found(error: SkillNotFound, tools: SkillTools, offer: Offer) -> _Refused:
    names: Sequence[str] = error.close or [*offer.skills]
    shown = ", ".join(map(repr, map(one_line, names[:_FOUND])))
    see = tools.mention("list_skills", "; see list_skills")
    more = "" if len(names) <= _FOUND else f" and {len(names) - _FOUND} more{see}"
    near = f"Near names: {shown}." if error.close else f"Available skills: {shown}{more}."
    return _Refused("not_found", f"there is no skill {_quoted(error.name)}. {near}")


def _quoted(text: object) -> str:
    return repr(one_line(str(text)[:_SHOWN]))
