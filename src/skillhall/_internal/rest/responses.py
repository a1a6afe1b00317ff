"""What the OpenAPI document says about the routes: models of answers, statuses and parameters."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from skillhall._internal.rest.requests import schema_of

BEARER = "bearer"
_SCHEMAS = "#/components/schemas/"
_ID = "3f0c9a7d5b1e42c6a8d0f1b2"


class Staleness(BaseModel):
    """Why an older copy is served, and since when."""

    reason: str
    since: str


class Meta(BaseModel):
    """About the answer."""

    timestamp: str = Field(examples=["2026-11-16T08:15:30.123Z"])
    requestId: str = Field(examples=[_ID])  # noqa: N815 - as clients read it
    version: Literal["v1"]
    commit: str | None = Field(None, description="The commit that the prompts were read at.")
    stale: Staleness | None = None


class Problem(BaseModel):
    """What went wrong: a code for programs, a message for people."""

    code: str = Field(examples=["VALIDATION_ERROR"])
    message: str = Field(examples=["Prompt not found: tides"])
    details: dict[str, Any] | None = None


class ErrorAnswer(BaseModel):
    """Every error, of every route."""

    success: Literal[False]
    error: Problem
    meta: Meta


class ArgumentData(BaseModel):
    """One argument of a prompt."""

    name: str
    description: str | None = None
    required: bool | None = None


class PromptSummary(BaseModel):
    """A prompt in a list."""

    name: str
    description: str
    arguments: list[ArgumentData] | None = None


class ListData(BaseModel):
    """All prompts of a source."""

    prompts: list[PromptSummary]
    source: str = Field(examples=["built-in"])


class TextContent(BaseModel):
    """A text."""

    type: Literal["text"]
    text: str


class MessageData(BaseModel):
    """What to tell a model."""

    role: Literal["user"]
    content: TextContent


class FileData(BaseModel):
    """A supporting file."""

    path: str
    content: str = Field(description="The bytes in base64.")


class PromptData(BaseModel):
    """One prompt."""

    description: str
    messages: list[MessageData]
    files: list[FileData] | None = None
    source: str


class SkippedData(BaseModel):
    """A skill, prompt or file that the source holds but does not serve."""

    name: str = Field(examples=["pdf-tools"])
    path: str = Field(examples=["pdf-tools/SKILL.md"])
    code: str = Field(examples=["no-frontmatter"])
    message: str


class WithSkipped(BaseModel):
    """What a source does not serve: the first 1,000 entries, and how many there are."""

    skipped: list[SkippedData]
    skippedTotal: int  # noqa: N815 - as clients read it


class RefreshData(WithSkipped):
    """What a refresh brought."""

    refreshed: bool = Field(
        description="False if the repository cannot be read now; an older copy is served."
    )
    reason: str | None = Field(None, description="Why it was not refreshed.")
    promptsLoaded: int  # noqa: N815 - as clients read it
    source: str


class IngestData(WithSkipped):
    """What became of an upload."""

    source: str
    contentHash: str | None = None  # noqa: N815 - as clients read it
    fileCount: int  # noqa: N815 - as clients read it
    status: Literal["ingested", "unchanged"]


class ToolsData(BaseModel):
    """The tools that can be called by REST. There are none."""

    tools: list[dict[str, Any]] = Field(max_length=0)
    total: Literal[0]
    categories: list[str] = Field(max_length=0)
    tags: list[str] = Field(max_length=0)


class SkillSummary(BaseModel):
    """A skill in a list."""

    id: str
    name: str
    description: str
    source: Literal["system", "user", "repository"]
    repository: str | None = Field(None, description="The repository that the skill is from.")


class SkillListData(BaseModel):
    """A page of skills, or what a search found."""

    skills: list[SkillSummary]
    total: int
    nextCursor: str | None = None  # noqa: N815 - as clients read it
    skipped: list[SkippedData] | None = Field(
        None, description="On the first page: skills that are not served, up to 1,000."
    )
    skippedTotal: int | None = None  # noqa: N815 - as clients read it


class SkillFileData(BaseModel):
    """A file of a skill."""

    path: str
    size: int
    digest: str
    executable: bool


class FindingData(BaseModel):
    """A fact that was noticed, and what it means."""

    code: str
    effect: Literal["accept", "warn", "reject"]
    message: str
    path: str | None = None
    line: int | None = None
    hint: str | None = None


class SkillData(SkillSummary):
    """Everything about one skill."""

    frontmatter: dict[str, Any]
    body: str
    tokens: int
    digest: str
    files: list[SkillFileData]
    findings: list[FindingData]
    shadowed: list[SkillSummary] = Field(
        description="Skills with the same id that are not served because of this one."
    )
    commit: str | None = Field(None, description="The commit of the repository.")


class AddedSkillData(BaseModel):
    """A skill that was made."""

    id: str
    name: str
    description: str


class ImportedSkillsData(BaseModel):
    """Skills that were taken in."""

    imported: list[AddedSkillData]
    replaced: list[str]
    findings: list[FindingData]
    change: str | None = Field(None, description="What takes the import back.")


class EditedSkillData(AddedSkillData):
    """A skill whose words were changed."""

    change: str | None = Field(None, description="What takes the change back.")


class CheckedSkillData(BaseModel):
    """What a skill would be; nothing is written."""

    id: str
    taken: bool
    problems: list[str]
    findings: list[FindingData]
    tokens: int
    prompt: str = Field(description="The system prompt of an agent with this skill alone.")


class DeletedSkillData(BaseModel):
    """A skill that was removed."""

    deleted: str
    change: str | None = Field(None, description="What takes the change back.")


class UndoneData(BaseModel):
    """A change that was taken back."""

    undone: str
    skills: list[str]


class AliveData(BaseModel):
    """A sign of life."""

    status: Literal["ok"]


class SourceData(BaseModel):
    """How one source stands."""

    source: str
    prompts: int
    skipped: int = Field(description="Skills, prompts and files that are not served.")
    commit: str | None = None
    checked: str | None = None
    stale: Staleness | None = None


class ReadyData(BaseModel):
    """How all sources stand, and the database where one is configured."""

    status: Literal["ready"]
    sources: list[SourceData]
    database: Literal["ok"] | None = None


class PushData(BaseModel):
    """A push that was noted; whether a source is read from there."""

    accepted: Literal[True]
    known: bool


class IgnoredData(BaseModel):
    """An event that means nothing to the server."""

    ignored: str


def error_schemas() -> dict[str, Any]:
    """The schemas that errors name."""
    asked: list[tuple[type[BaseModel], JsonSchemaMode]] = [(ErrorAnswer, "serialization")]
    _, found = models_json_schema(asked, ref_template=f"{_SCHEMAS}{{model}}")
    schemas: dict[str, Any] = found["$defs"]
    return schemas


@cache
def answer_model(data: type[BaseModel]) -> type[BaseModel]:
    """The whole answer around that data."""
    name = data.__name__.removesuffix("Data") + "Answer"
    return create_model(name, __doc__=data.__doc__, success=Literal[True], data=data, meta=Meta)


# Why any route may refuse; the guard stands before all of them.
GUARDED = {
    401: "The bearer token is missing or wrong.",
    403: "A page of another site asks.",
    421: "The server is not known by the name in Host.",
    429: "Too many wrong tokens came from this address.",
    500: "A bug; the log knows more under the request's id.",
}
BODY = {
    408: "The body took too long.",
    413: "The body is too large.",
    415: "The body is not sent as application/json.",
}
SOURCE = {
    400: "The request breaks a rule, or names what is not there.",
    502: "The repository cannot be read.",
    503: "The repository's host asks to wait, or the disk failed.",
    504: "The repository's host takes too long.",
    507: "The disk is full.",
}


def responses(
    data: type[BaseModel], *why: dict[int, str], status: int = 200
) -> dict[int | str, dict[str, Any]]:
    """Every status that a route answers with, and the form of the answer."""
    told = {code: text for group in (GUARDED, *why) for code, text in group.items()}
    described: dict[int | str, dict[str, Any]] = {}
    described[status] = {"model": answer_model(data), "description": data.__doc__}
    for code, text in sorted(told.items()):
        described[code] = error(code, text)
    return described


def error(code: int, text: str) -> dict[str, Any]:
    """How an error is described: by name, because hundreds would each make a schema."""
    content = {"application/json": {"schema": {"$ref": f"{_SCHEMAS}{ErrorAnswer.__name__}"}}}
    described: dict[str, Any] = {"description": text, "content": content}
    name = {401: "WWW-Authenticate", 429: "Retry-After"}.get(code)
    if name:
        described["headers"] = {name: {"schema": {"type": "string"}}}
    return described


def _query(name: str, description: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "pattern": r"\S"}
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _qualifier(name: str, description: str) -> dict[str, Any]:
    """A parameter that counts as absent if it is empty."""
    return {**_query(name, description), "schema": {"type": "string"}}


SOURCE_PARAMETERS: list[dict[str, Any]] = [
    _query("repo", "Another repository for this call."),
    _qualifier("path", "The folder in it, or in the configured repository."),
    _qualifier("branch", "The branch of it, or of the configured repository."),
    _query("source", "The name of an upload, instead of a repository."),
    {
        "name": "X-Skillhall-Git-Token",
        "in": "header",
        "description": "Opens the repository for this call alone. It is kept nowhere. "
        "X-Dot-AI-Git-Token works too.",
        "schema": {"type": "string"},
    },
]
NAME_PARAMETER: dict[str, Any] = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "The prompt's name; a slash in it is written %2F.",
    "schema": {"type": "string", "minLength": 1},
}


def body_of(model: type[BaseModel], *, required: bool) -> dict[str, Any]:
    """How a body is described."""
    return {
        "required": required,
        "content": {"application/json": {"schema": schema_of(model)}},
    }
