"""What the OpenAPI document says about the routes: models of answers, statuses and parameters."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from skillhall._internal.rest.requests import inline_schema

BEARER_SCHEME = "bearer"
_SCHEMA_REF_PREFIX = "#/components/schemas/"
_EXAMPLE_REQUEST_ID = "3f0c9a7d5b1e42c6a8d0f1b2"


class StaleResponse(BaseModel):
    """Why an older copy is served, and since when."""

    reason: str
    since: str


class ResponseMeta(BaseModel):
    """About the answer."""

    timestamp: str = Field(examples=["2026-11-16T08:15:30.123Z"])
    requestId: str = Field(examples=[_EXAMPLE_REQUEST_ID])  # noqa: N815 - as clients read it
    version: Literal["v1"]
    commit: str | None = Field(None, description="The commit that the prompts were read at.")
    stale: StaleResponse | None = None


class ErrorBody(BaseModel):
    """What went wrong: a code for programs, a message for people."""

    code: str = Field(examples=["VALIDATION_ERROR"])
    message: str = Field(examples=["Prompt not found: tides"])
    hint: str | None = Field(None, examples=["reload it and apply your change again"])
    details: dict[str, Any] | None = None


class ErrorResponse(BaseModel):
    """Every error, of every route."""

    success: Literal[False]
    error: ErrorBody
    meta: ResponseMeta


class PromptArgumentResponse(BaseModel):
    """One argument of a prompt."""

    name: str
    description: str | None = None
    required: bool | None = None


class PromptSummaryResponse(BaseModel):
    """A prompt in a list."""

    name: str
    description: str
    arguments: list[PromptArgumentResponse] | None = None


class PromptListResponse(BaseModel):
    """All prompts of a source."""

    prompts: list[PromptSummaryResponse]
    source: str = Field(examples=["built-in"])


class TextContent(BaseModel):
    """A text."""

    type: Literal["text"]
    text: str


class PromptMessageResponse(BaseModel):
    """What to tell a model."""

    role: Literal["user"]
    content: TextContent


class PromptFileResponse(BaseModel):
    """A supporting file."""

    path: str
    content: str = Field(description="The bytes in base64.")


class PromptResponse(BaseModel):
    """One prompt."""

    description: str
    messages: list[PromptMessageResponse]
    files: list[PromptFileResponse] | None = None
    source: str


class SkippedResponse(BaseModel):
    """A skill, prompt or file that the source holds but does not serve."""

    name: str = Field(examples=["pdf-tools"])
    path: str = Field(examples=["pdf-tools/SKILL.md"])
    code: str = Field(examples=["no-frontmatter"])
    message: str


class SkippedListResponse(BaseModel):
    """What a source does not serve: the first 1,000 entries, and how many there are."""

    skipped: list[SkippedResponse]
    skippedTotal: int  # noqa: N815 - as clients read it


class RefreshResponse(SkippedListResponse):
    """What a refresh brought."""

    refreshed: bool = Field(
        description="False if the repository cannot be read now; an older copy is served."
    )
    reason: str | None = Field(None, description="Why it was not refreshed.")
    promptsLoaded: int  # noqa: N815 - as clients read it
    source: str


class IngestResponse(SkippedListResponse):
    """What became of an upload."""

    source: str
    contentHash: str | None = None  # noqa: N815 - as clients read it
    fileCount: int  # noqa: N815 - as clients read it
    status: Literal["ingested", "unchanged"]


class ToolListResponse(BaseModel):
    """The tools that can be called by REST. There are none."""

    tools: list[dict[str, Any]] = Field(max_length=0)
    total: Literal[0]
    categories: list[str] = Field(max_length=0)
    tags: list[str] = Field(max_length=0)


class SkillSummaryResponse(BaseModel):
    """A skill in a list."""

    id: str
    name: str
    description: str
    source: Literal["system", "user", "repository"]
    repository: str | None = Field(None, description="The repository that the skill is from.")


class SkillListResponse(BaseModel):
    """A page of skills, or what a search found."""

    skills: list[SkillSummaryResponse]
    total: int
    nextCursor: str | None = None  # noqa: N815 - as clients read it
    skipped: list[SkippedResponse] | None = Field(
        None, description="On the first page: skills that are not served, up to 1,000."
    )
    skippedTotal: int | None = None  # noqa: N815 - as clients read it


class SkillFileResponse(BaseModel):
    """A file of a skill."""

    path: str
    size: int
    digest: str
    executable: bool


class FindingResponse(BaseModel):
    """A fact that was noticed, and what it means."""

    code: str
    effect: Literal["accept", "warn", "reject"]
    message: str
    path: str | None = None
    line: int | None = None
    hint: str | None = None


class SkillResponse(SkillSummaryResponse):
    """Everything about one skill."""

    frontmatter: dict[str, Any]
    body: str
    tokens: int
    digest: str
    files: list[SkillFileResponse]
    findings: list[FindingResponse]
    shadowed: list[SkillSummaryResponse] = Field(
        description="Skills with the same id that are not served because of this one."
    )
    commit: str | None = Field(None, description="The commit of the repository.")


class AddedSkillResponse(BaseModel):
    """A skill that was made."""

    id: str
    name: str
    description: str


class ImportedSkillsResponse(BaseModel):
    """Skills that were taken in."""

    imported: list[AddedSkillResponse]
    replaced: list[str]
    findings: list[FindingResponse]
    change: str | None = Field(None, description="What takes the import back.")


class EditedSkillResponse(AddedSkillResponse):
    """A skill whose words were changed."""

    change: str | None = Field(None, description="What takes the change back.")


class CheckedSkillResponse(BaseModel):
    """What a skill would be; nothing is written."""

    id: str
    taken: bool
    problems: list[str]
    findings: list[FindingResponse]
    tokens: int
    prompt: str = Field(description="The system prompt of an agent with this skill alone.")


class DeletedSkillResponse(BaseModel):
    """A skill that was removed."""

    deleted: str
    change: str | None = Field(None, description="What takes the change back.")


class UndoResponse(BaseModel):
    """A change that was taken back."""

    undone: str
    skills: list[str]


class LivenessResponse(BaseModel):
    """A sign of life."""

    status: Literal["ok"]


class SourceStatusResponse(BaseModel):
    """How one source stands."""

    source: str
    prompts: int
    skipped: int = Field(description="Skills, prompts and files that are not served.")
    commit: str | None = None
    checked: str | None = None
    stale: StaleResponse | None = None


class ReadinessResponse(BaseModel):
    """How all sources stand, and the database where one is configured."""

    status: Literal["ready"]
    sources: list[SourceStatusResponse]
    database: Literal["ok"] | None = None


class PushResponse(BaseModel):
    """A push that was noted; whether a source is read from there."""

    accepted: Literal[True]
    known: bool


class IgnoredEventResponse(BaseModel):
    """An event that means nothing to the server."""

    ignored: str


def error_schemas() -> dict[str, Any]:
    """The schemas that errors name."""
    asked: list[tuple[type[BaseModel], JsonSchemaMode]] = [(ErrorResponse, "serialization")]
    _, found = models_json_schema(asked, ref_template=f"{_SCHEMA_REF_PREFIX}{{model}}")
    schemas: dict[str, Any] = found["$defs"]
    return schemas


@cache
def envelope_model(data: type[BaseModel]) -> type[BaseModel]:
    """The whole answer around that data."""
    name = data.__name__.removesuffix("Data") + "Answer"
    return create_model(
        name, __doc__=data.__doc__, success=Literal[True], data=data, meta=ResponseMeta
    )


# Why any route may refuse; the guard stands before all of them.
COMMON_ERRORS = {
    401: "The bearer token is missing or wrong.",
    403: "A page of another site asks.",
    421: "The server is not known by the name in Host.",
    429: "Too many wrong tokens came from this address.",
    500: "A bug; the log knows more under the request's id.",
}
BODY_ERRORS = {
    408: "The body took too long.",
    413: "The body is too large.",
    415: "The body is not sent as application/json.",
}
SOURCE_ERRORS = {
    400: "The request breaks a rule, or names what is not there.",
    502: "The repository cannot be read.",
    503: "The repository's host asks to wait, or the disk failed.",
    504: "The repository's host takes too long.",
    507: "The disk is full.",
}


def build_responses(
    data: type[BaseModel], *errors: dict[int, str], status: int = 200
) -> dict[int | str, dict[str, Any]]:
    """Every status that a route answers with, and the form of the answer."""
    told = {code: text for group in (COMMON_ERRORS, *errors) for code, text in group.items()}
    described: dict[int | str, dict[str, Any]] = {}
    described[status] = {"model": envelope_model(data), "description": data.__doc__}
    for code, text in sorted(told.items()):
        described[code] = describe_error(code, text)
    return described


def describe_error(code: int, text: str) -> dict[str, Any]:
    """How an error is described: by name, because hundreds would each make a schema."""
    content = {
        "application/json": {"schema": {"$ref": f"{_SCHEMA_REF_PREFIX}{ErrorResponse.__name__}"}}
    }
    described: dict[str, Any] = {"description": text, "content": content}
    name = {401: "WWW-Authenticate", 429: "Retry-After"}.get(code)
    if name:
        described["headers"] = {name: {"schema": {"type": "string"}}}
    return described


def _query_parameter(name: str, description: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "pattern": r"\S"}
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _optional_query_parameter(name: str, description: str) -> dict[str, Any]:
    """A parameter that counts as absent if it is empty."""
    return {**_query_parameter(name, description), "schema": {"type": "string"}}


SOURCE_PARAMETERS: list[dict[str, Any]] = [
    _query_parameter("repo", "Another repository for this call."),
    _optional_query_parameter("path", "The folder in it, or in the configured repository."),
    _optional_query_parameter("branch", "The branch of it, or of the configured repository."),
    _query_parameter("source", "The name of an upload, instead of a repository."),
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


def describe_request_body(model: type[BaseModel], *, required: bool) -> dict[str, Any]:
    """How a body is described."""
    return {
        "required": required,
        "content": {"application/json": {"schema": inline_schema(model)}},
    }
