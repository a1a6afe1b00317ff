"""Response models, and the descriptions of errors in the OpenAPI document."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field, create_model
from pydantic.json_schema import JsonSchemaMode, models_json_schema

BEARER_SCHEME = "bearer"
_SCHEMA_REF_PREFIX = "#/components/schemas/"
_EXAMPLE_REQUEST_ID = "3f0c9a7d5b1e42c6a8d0f1b2"


class StaleResponse(BaseModel):
    """Why a cached version is served, and since when."""

    reason: str
    since: str


class ResponseMeta(BaseModel):
    """Metadata of the response."""

    timestamp: str = Field(examples=["2026-11-16T08:15:30.123Z"])
    requestId: str = Field(examples=[_EXAMPLE_REQUEST_ID])  # noqa: N815 - JSON key
    version: Literal["v1"]
    commit: str | None = Field(None, description="Commit of the prompts.")
    stale: StaleResponse | None = None


class ErrorBody(BaseModel):
    """An error: a code for programs and a message for people."""

    code: str = Field(examples=["VALIDATION_ERROR"])
    message: str = Field(examples=["Prompt not found: tides"])
    hint: str | None = Field(None, examples=["reload it and apply your change again"])
    docs: str | None = Field(None, description="URL of the page about the error.")
    details: dict[str, Any] | None = None


class ErrorResponse(BaseModel):
    """Error response of every route."""

    success: Literal[False]
    error: ErrorBody
    meta: ResponseMeta


class PromptArgumentResponse(BaseModel):
    """An argument of a prompt."""

    name: str
    description: str | None = None
    required: bool | None = None


class PromptSummaryResponse(BaseModel):
    """A prompt in a list."""

    name: str
    description: str
    arguments: list[PromptArgumentResponse] | None = None


class PromptListResponse(BaseModel):
    """The prompts of a source."""

    prompts: list[PromptSummaryResponse]
    source: str = Field(examples=["built-in"])


class TextContent(BaseModel):
    """Text content."""

    type: Literal["text"]
    text: str


class PromptMessageResponse(BaseModel):
    """A message for a model."""

    role: Literal["user"]
    content: TextContent


class PromptFileResponse(BaseModel):
    """A supporting file of a prompt."""

    path: str
    content: str = Field(description="Content in base64.")


class PromptResponse(BaseModel):
    """A rendered prompt."""

    description: str
    messages: list[PromptMessageResponse]
    files: list[PromptFileResponse] | None = None
    source: str


class SkippedResponse(BaseModel):
    """A skill, prompt or file of the source that is not served."""

    name: str = Field(examples=["pdf-tools"])
    path: str = Field(examples=["pdf-tools/SKILL.md"])
    code: str = Field(examples=["no-frontmatter"])
    message: str


class SkippedListResponse(BaseModel):
    """The first 1,000 skipped entries of a source, and their total."""

    skipped: list[SkippedResponse]
    skippedTotal: int  # noqa: N815 - JSON key


class RefreshResponse(SkippedListResponse):
    """Result of a refresh."""

    refreshed: bool = Field(
        description="False if the repository cannot be read; a cached version is served."
    )
    reason: str | None = Field(None, description="Why the source was not refreshed.")
    promptsLoaded: int  # noqa: N815 - JSON key
    source: str


class IngestResponse(SkippedListResponse):
    """Result of an upload."""

    source: str
    contentHash: str | None = None  # noqa: N815 - JSON key
    fileCount: int  # noqa: N815 - JSON key
    status: Literal["ingested", "unchanged"]


class UserResponse(BaseModel):
    """A user."""

    name: str = Field(examples=["dev1"])
    display: str
    role: str = Field(examples=["author"])
    state: Literal["active", "disabled", "invited"]
    issuer: str = Field(description="Identity provider of the user, or an empty string.")
    subject: str = Field(description="Id of the user at the identity provider.")
    created: str
    seen: str | None = Field(description="When the user was last seen, to the minute.")


class UserListResponse(BaseModel):
    """The users of the server."""

    users: list[UserResponse]


class NewUserResponse(UserResponse):
    """A new user with the link to sign in the first time."""

    link: str = Field(description="Empty if the subject at the identity provider is known.")
    tokens: int = Field(description="Existing tokens that now belong to the user.")


class RemovedUserResponse(BaseModel):
    """The removed user."""

    removed: str


class LinkResponse(BaseModel):
    """A link with which a user signs in. It works once."""

    name: str
    link: str
    expires: str


class AccountResponse(BaseModel):
    """Who sends the request, and what the credential allows."""

    name: str
    role: str
    scopes: list[str]
    token: str = Field(description="Label of the token, or an empty string.")


class TokenResponse(BaseModel):
    """An access token, without its text."""

    id: str
    label: str
    created: str
    owner: str
    scopes: list[str]
    expires: str | None
    used: str | None = Field(description="When it was last used, to the minute.")
    state: Literal["active", "expired", "revoked"]


class TokenListResponse(BaseModel):
    """Access tokens."""

    tokens: list[TokenResponse]


class NewTokenResponse(TokenResponse):
    """A new access token. Its text is shown only once."""

    token: str


class RevokedTokenResponse(BaseModel):
    """The revoked token."""

    revoked: str


class ToolListResponse(BaseModel):
    """The tools that can be called over REST. There are none."""

    tools: list[dict[str, Any]] = Field(max_length=0)
    total: Literal[0]
    categories: list[str] = Field(max_length=0)
    tags: list[str] = Field(max_length=0)


class RevocationFields(BaseModel):
    """A revoked digest, and why."""

    digest: str
    skill: str
    reason: str
    at: str
    instead: str


class VersionResponse(BaseModel):
    """A version of a skill. Only its state ever changes."""

    number: int
    digest: str
    state: Literal["draft", "in-review", "approved", "yanked"]
    author: str = Field(description="User, and token if there is one; empty for edits by hand.")
    created: str
    source: str = Field(description="Where it was imported from; empty if it was written here.")
    commit: str
    signer: str


class SkillSummaryResponse(BaseModel):
    """A skill in a list."""

    id: str
    name: str
    description: str
    source: Literal["system", "user", "repository"]
    repository: str | None = Field(None, description="Repository of the skill.")
    copies: list[str] | None = Field(
        None, description="In search results: ids of skills with the same text."
    )
    revoked: RevocationFields | None = Field(
        None, description="Set if neither models nor installers get the skill."
    )
    version: VersionResponse | None = Field(
        None, description="Set if the request names a version, or asks for drafts."
    )


class ListedSkillResponse(SkillSummaryResponse):
    """A skill in the list of skills; the facts are only returned with `facets`."""

    risk: str | None = Field(None, description='Risk level, `L0` to `L3`; "" if not known.')
    tokens: int | None = None
    files: int | None = None
    warnings: int | None = None
    codes: list[str] | None = Field(None, description="Codes of the warnings.")
    profiles: list[str] | None = Field(
        None, description="Which of `specification`, `skills-ref` and `lenient` accept the skill."
    )
    scripts: bool | None = None
    evals: bool | None = None
    dropped: list[str] | None = Field(
        None, description="Ids of the agents and libraries that do not load the skill."
    )


class SkillListResponse(BaseModel):
    """A page of skills, or search results."""

    skills: list[ListedSkillResponse]
    total: int
    facets: dict[str, dict[str, int]] | None = Field(
        None, description="Numbers of skills by facet and value, without that facet's own filter."
    )
    nextCursor: str | None = None  # noqa: N815 - JSON key
    skipped: list[SkippedResponse] | None = Field(
        None, description="On the first page: up to 1,000 skills that are not served."
    )
    skippedTotal: int | None = None  # noqa: N815 - JSON key


class SkillFileResponse(BaseModel):
    """A file of a skill."""

    path: str
    size: int
    digest: str
    executable: bool


class FindingResponse(BaseModel):
    """A fact noticed by a check, and its effect."""

    code: str
    effect: Literal["accept", "warn", "reject"]
    message: str
    path: str | None = None
    line: int | None = None
    hint: str | None = None


class VersionReviewResponse(BaseModel):
    """A decision about a version, and the digest that was reviewed."""

    decision: Literal["submit", "return", "approve", "yank", "use"]
    by: str
    at: str
    comment: str
    digest: str


class ListedVersionResponse(VersionResponse):
    """A version in the list of a skill."""

    reviews: list[VersionReviewResponse]


class VersionListResponse(BaseModel):
    """The versions of a skill, newest first."""

    id: str
    review: Literal["off", "one", "two"]
    current: int | None = Field(description="Number of the served version.")
    versions: list[ListedVersionResponse]


class WaitingVersionResponse(VersionResponse):
    """A version that waits for a review."""

    id: str


class ReviewQueueResponse(BaseModel):
    """The versions that wait for a review, oldest first."""

    versions: list[WaitingVersionResponse]


class SkillInBinResponse(BaseModel):
    """A deleted skill, and the version that would be restored."""

    id: str
    version: int
    deletedBy: str = Field(description="Who deleted it.")  # noqa: N815 - JSON key
    deleted: str = Field(description="When it was deleted, in UTC.")


class BinResponse(BaseModel):
    """The deleted skills that can be restored, the last one first."""

    skills: list[SkillInBinResponse]


class RestoredSkillResponse(BaseModel):
    """A restored skill, and the number of its newest version."""

    id: str
    name: str
    description: str
    number: int


class PurgedSkillResponse(BaseModel):
    """The skill whose files were deleted permanently."""

    purged: str


class VersionDetailsResponse(ListedVersionResponse):
    """A version with its files and findings."""

    id: str
    current: bool = Field(description="Whether this version is served.")
    risk: Literal["L0", "L1", "L2", "L3"]
    files: list[SkillFileResponse]
    findings: list[FindingResponse]


class DiffLineResponse(BaseModel):
    """A line of a diff, with its numbers in both files. A gap replaces unchanged lines."""

    kind: Literal["same", "old", "new", "gap"]
    old: int | None
    new: int | None
    text: str


class FileChangeResponse(BaseModel):
    """A change to a file; it has no lines if the file is too large or not text."""

    path: str
    kind: Literal["added", "removed", "changed"]
    truncated: bool
    lines: list[DiffLineResponse]


class VersionDiffResponse(BaseModel):
    """A version compared with another one."""

    id: str
    number: int
    against: int | None = Field(description="The other version; null if there is none.")
    riskBefore: Literal["L0", "L1", "L2", "L3"]  # noqa: N815 - JSON key
    riskAfter: Literal["L0", "L1", "L2", "L3"]  # noqa: N815 - JSON key
    newFindings: list[FindingResponse]  # noqa: N815 - JSON key
    otherFindings: list[FindingResponse]  # noqa: N815 - JSON key
    changes: list[FileChangeResponse]
    modeChanges: list[str] = Field(  # noqa: N815 - JSON key
        description="Files whose execute bit differs."
    )


class ChangedVersionResponse(VersionResponse):
    """The changed version, and the version that is served afterwards."""

    id: str
    current: int | None = Field(description="Number of the served version; null if none is.")


class SkillResponse(SkillSummaryResponse):
    """A skill with its instructions, files and findings."""

    frontmatter: dict[str, Any]
    body: str
    tokens: int
    digest: str
    files: list[SkillFileResponse]
    findings: list[FindingResponse]
    shadowed: list[SkillSummaryResponse] = Field(
        description="Skills with the same id that this skill shadows."
    )
    commit: str | None = Field(None, description="Commit of the repository.")


class SkillApprovalResponse(BaseModel):
    """Who approved a version of a skill."""

    digest: str
    by: str
    at: str
    via: str
    reason: str


class SkillTrustResponse(BaseModel):
    """Who wrote a skill, who approved it, whether it changed, and whether agents get it."""

    name: str
    digest: str
    state: str = Field(description="`approved`, `new`, `changed` or `blocked`.")
    action: str = Field(description="`load`, `warn`, `ask`, `hold` or `block`.")
    reason: str = Field(description="The rule that decided.")
    used: bool = Field(description="Whether agents get the skill.")
    risk: str = Field(description="Risk level, from `L0` to `L3`.")
    source: str
    commit: str
    signer: str = Field(description="Names of the known signers.")
    signature: str = Field(description="`unsigned`, `known`, `unknown`, `unchecked` or `broken`.")
    approval: SkillApprovalResponse | None = None
    lines: list[str] = Field(description="The trust facts in four sentences.")
    evals: str | None = Field(default=None, description="The latest eval results in one line.")


class EvalRateResponse(BaseModel):
    """A rate or difference with its 95% interval."""

    name: str = Field(
        description="`with_skill`, `without_skill`, `old_skill` or `difference` for pass rates; "
        "`recall`, `precision` or `false_triggers` for triggers."
    )
    value: float
    low: float
    high: float


class EvalRunMeansResponse(BaseModel):
    """The means of a run; `null` if a value is not known."""

    tokens: float | None
    seconds: float | None
    cost: float | None = Field(description="In US dollars.")


class EvalModelResponse(BaseModel):
    """The newest results of the test cases with one model."""

    model: str
    rates: list[EvalRateResponse]
    verdict: str
    runs: dict[str, EvalRunMeansResponse] = Field(description="By `with_skill` and so on.")


class EvalResultResponse(BaseModel):
    """Rates of the test cases and trigger queries of a skill."""

    digest: str = Field(description="The digest of the evaluated version.")
    current: bool = Field(description="Whether this is the current version.")
    model: str
    rates: list[EvalRateResponse]
    verdicts: list[str] = Field(description="Such as `better` or `not enough runs`.")
    models: list[EvalModelResponse] = Field(description="The test cases, the newest first.")


class SkillEvalsResponse(BaseModel):
    """The latest eval results of a skill; `null` if there are none."""

    result: EvalResultResponse | None


class PortabilityReasonResponse(BaseModel):
    """Why a client drops a skill, or loses a field of it."""

    trait: str
    field: str = Field(description="The field that is wrong or lost; empty if it is the file.")
    text: str
    repair: str
    source: str = Field(description="Where the client decides this.")


class ClientVerdictResponse(BaseModel):
    """What one client makes of a skill."""

    client: str
    label: str
    kind: Literal["agent", "library", "installer", "guide"]
    version: str
    checked: str = Field(description="The date of the last comparison with the client.")
    agent: str | None = Field(None, description="An agent that the client guide judges.")
    outcome: Literal["loads", "loss", "dropped"]
    reasons: list[PortabilityReasonResponse]


class SkillCompatResponse(BaseModel):
    """What each client makes of a skill."""

    clients: list[ClientVerdictResponse]


class AddedSkillResponse(BaseModel):
    """The created skill."""

    id: str
    name: str
    description: str


class ImportedSkillsResponse(BaseModel):
    """Result of an import."""

    imported: list[AddedSkillResponse]
    replaced: list[str]
    findings: list[FindingResponse]
    change: str | None = Field(None, description="Id to undo the import with.")


class EditedSkillResponse(AddedSkillResponse):
    """The edited skill."""

    change: str | None = Field(None, description="Id to undo the edit with.")


class CheckedSkillResponse(BaseModel):
    """Result of checking a skill. Nothing is saved."""

    id: str
    taken: bool
    problems: list[str]
    findings: list[FindingResponse]
    tokens: int
    prompt: str = Field(description="System prompt of an agent that has only this skill.")


class DeletedSkillResponse(BaseModel):
    """The deleted skill."""

    deleted: str
    change: str | None = Field(None, description="Id to undo the deletion with.")


class UndoResponse(BaseModel):
    """The undone change and the skills it restored."""

    undone: str
    skills: list[str]


class RevocationEntryResponse(RevocationFields):
    """An entry of the list, which revokes or restores a digest."""

    number: int
    by: str
    revoked: bool


class RevocationListResponse(BaseModel):
    """All entries, oldest first."""

    revocations: list[RevocationEntryResponse]


class RevocationResponse(BaseModel):
    """The current entry."""

    digest: str
    revoked: bool
    changed: bool
    number: int | None = None
    skill: str | None = None
    reason: str | None = None
    at: str | None = None
    instead: str | None = None
    by: str | None = None


class MachineSkillResponse(BaseModel):
    """A skill on one machine."""

    label: str
    at: str
    name: str
    digest: str
    source: str
    commit: str
    signer: str
    state: str
    risk: str


class InventoryRowResponse(BaseModel):
    """A version of a skill, and the machines that have it."""

    digest: str
    state: str = Field(examples=["approved"])
    names: list[str]
    revoked: RevocationFields | None = None
    machines: list[MachineSkillResponse]


class MachineResponse(BaseModel):
    """The last report of a machine."""

    label: str
    by: str
    at: str
    skills: int


class InventoryResponse(BaseModel):
    """The skills on all machines."""

    skills: list[InventoryRowResponse]
    machines: list[MachineResponse]


class EvidenceResponse(BaseModel):
    """Evidence for an answer: a finding, command, setting, guide or fact."""

    kind: str = Field(examples=["command"])
    name: str = Field(examples=["verify"])


class ChecklistRowResponse(BaseModel):
    """A question of the security checklist, and its answer."""

    id: str = Field(examples=["2.2"])
    risk: str = Field(examples=["AST02"])
    question: str
    answer: str = Field(description="`yes`, `in part`, `no` or `out of scope`.")
    note: str
    evidence: list[EvidenceResponse]
    problems: list[EvidenceResponse]


class ChecklistResponse(BaseModel):
    """The answers, and how often each occurs."""

    rows: list[ChecklistRowResponse]
    counts: dict[str, int]


class SentInventoryResponse(BaseModel):
    """A stored report."""

    label: str
    at: str
    skills: int


class LivenessResponse(BaseModel):
    """The server is running."""

    status: Literal["ok"]


class SourceStatusResponse(BaseModel):
    """Status of a source."""

    source: str
    prompts: int
    skipped: int = Field(description="Number of skills, prompts and files that are not served.")
    commit: str | None = None
    checked: str | None = None
    stale: StaleResponse | None = None


class EmbeddingStatusResponse(BaseModel):
    """Progress of the embeddings. Readiness does not depend on it."""

    state: Literal["idle", "running", "paused", "done", "failed", "canceled"]
    done: int
    total: int
    rate: float  # texts per second


class ReadinessResponse(BaseModel):
    """Status of all sources, of the audit log, and of the database and embeddings if used."""

    status: Literal["ready"]
    sources: list[SourceStatusResponse]
    database: Literal["ok"] | None = None
    embeddings: EmbeddingStatusResponse | None = None
    audit: Literal["ok", "broken"] | None = Field(
        None, description="`broken` if rows of the audit log were changed."
    )


class PushResponse(BaseModel):
    """An accepted push. `known` is true if a source uses the repository."""

    accepted: Literal[True]
    known: bool


class IgnoredEventResponse(BaseModel):
    """An ignored event: anything other than a push to an existing branch."""

    ignored: str


def error_schemas() -> dict[str, Any]:
    """Return the schemas of error responses."""
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(ErrorResponse, "serialization")]
    _, schema = models_json_schema(models, ref_template=f"{_SCHEMA_REF_PREFIX}{{model}}")
    schemas: dict[str, Any] = schema["$defs"]
    return schemas


@cache
def envelope(data: type[BaseModel]) -> type[BaseModel]:
    """Return the model of a success envelope with this data."""
    name = data.__name__.removesuffix("Response") + "Envelope"
    return create_model(
        name, __doc__=data.__doc__, success=Literal[True], data=data, meta=ResponseMeta
    )


Responses: TypeAlias = dict[int | str, dict[str, Any]]  # as in FastAPI's `responses`, by status


def describe_errors(texts: dict[int, str]) -> Responses:
    """Return the OpenAPI responses of errors, with references to the shared schema."""
    reference = {"$ref": f"{_SCHEMA_REF_PREFIX}{ErrorResponse.__name__}"}
    described: Responses = {}
    for code, text in texts.items():
        content = {"application/json": {"schema": reference}}
        described[code] = {"description": text, "content": content}
        header = {401: "WWW-Authenticate", 429: "Retry-After"}.get(code)
        if header:
            described[code]["headers"] = {header: {"schema": {"type": "string"}}}
    return described


def describe_content(
    description: str, media_type: str, schema: dict[str, Any] | None = None
) -> Responses:
    """Return the OpenAPI response of a body without an envelope."""
    content = {media_type: {"schema": schema or {"type": "string"}}}
    return {200: {"description": description, "content": content}}


# The authentication middleware runs before all routes.
PUBLIC_ERRORS = describe_errors(
    {
        403: "Cross-origin request rejected.",
        421: "Unknown host name in the Host header.",
        500: "Internal error. The log has details under the request id.",
    }
)
BUSY_ERRORS = describe_errors(
    {
        503: "The server is busy. See Retry-After.",
        504: "The request took longer than the server allows.",
    }
)
COMMON_ERRORS = (
    PUBLIC_ERRORS
    | BUSY_ERRORS
    | describe_errors(
        {
            401: "Bearer token missing, invalid or expired.",
            403: "Cross-origin request rejected, or the token lacks a scope.",
            429: "Too many invalid tokens from this address.",
        }
    )
)
BAD_REQUEST = describe_errors({400: "Invalid request."})
BODY_ERRORS = describe_errors(
    {
        408: "Timed out reading the request body.",
        413: "Request body too large.",
        415: "The request body is not application/json.",
    }
)
SOURCE_ERRORS = describe_errors(
    {
        400: "Invalid request, or an unknown prompt or source.",
        502: "The repository cannot be read.",
        503: "The server is busy, the repository's host limits the rate, or the disk failed.",
        504: "The repository's host timed out, or the request took too long.",
        507: "The disk is full.",
    }
)
NOT_MODIFIED: Responses = {304: {"description": "Not modified since the ETag in If-None-Match."}}
PUBLIC: dict[str, Any] = {"security": []}  # `openapi_extra` of routes without a token
BINARY_SCHEMA = {"type": "string", "format": "binary"}


class SettingResponse(BaseModel):
    """A setting that can be changed while the server runs."""

    name: str
    value: str | int | None = Field(description="null: no limit, or the choice of each visitor.")
    default: str | int | None
    variable: str = Field(description="Environment variable that takes precedence.")
    fixed: bool = Field(description="Whether the variable is set on this server.")
    by: str | None = Field(None, description="Who changed the setting.")
    at: str | None = None


class SettingListResponse(BaseModel):
    """The settings that can be changed while the server runs."""

    settings: list[SettingResponse]
