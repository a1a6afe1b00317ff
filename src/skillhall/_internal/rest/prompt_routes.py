"""Routes of prompts."""

from __future__ import annotations

from functools import partial
from typing import Annotated, NamedTuple
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.responses import Response

from skillhall._internal.http.access import may, needs
from skillhall._internal.http.credentials import client_id
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.http.thread_pool import Work
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.policy.skipped_items import skipped_data
from skillhall._internal.prompt_server.prompt_model import SourceSelector, Upload, UploadedFile
from skillhall._internal.rest import requests, responses
from skillhall._internal.rest.api_route import ApiRoute, JsonBody, run_blocking, waits_for
from skillhall._internal.rest.prompt_responses import (
    GIT_TOKEN_HEADERS,
    PROMPTS_PATH,
    PromptResponder,
)
from skillhall._internal.rest.responses import NOT_MODIFIED, SOURCE_ERRORS, describe_errors
from skillhall._internal.rest.route_parameters import (
    AcceptEncoding,
    ActorDep,
    IfNoneMatch,
    OptionalBlankText,
    OptionalText,
    app_state,
    path_text,
)
from skillhall._internal.settings import Secret
from skillhall.errors import PromptNotFound

TOOLS_PATH = "/api/v1/tools"
MAX_UPLOAD_BYTES = 512 * 1024  # of the request body
_PROMPT_PATH_PREFIX = f"{PROMPTS_PATH}/".encode()

router = APIRouter(tags=["prompts"], route_class=ApiRoute)


class _SourceParameters(NamedTuple):
    """The source named in the query, and the token for its repository."""

    fields: dict[str, str]
    token: Secret | None
    is_admin: bool

    def select(self, body: dict[str, str] | None = None) -> SourceSelector:
        """Return the source named in the query or the body. Raises: HttpError."""
        if self.fields and body:
            message = "name the source in the query or in the body, not both"
            raise HttpError("invalid_argument", message)
        fields = self.fields or body or {}
        if "source" in fields and len(fields) > 1:
            message = "'source' cannot be combined with 'repo', 'path' or 'branch'"
            raise HttpError("invalid_argument", message)
        # Without fields, the selector is that of the configured source.
        allow_tokens = self.is_admin or not fields
        return SourceSelector(**fields, token=self.token, allow_tokens=allow_tokens)


async def _source_parameters(  # noqa: PLR0913, PLR0917 - one for each parameter of the query
    request: Request,
    repo: Annotated[
        OptionalText, Query(description="URL of a repository, instead of the configured one.")
    ] = None,
    path: Annotated[OptionalBlankText, Query(description="Folder in the repository.")] = None,
    branch: Annotated[OptionalBlankText, Query(description="Branch of the repository.")] = None,
    source: Annotated[
        OptionalText, Query(description="Name of an upload, instead of a repository.")
    ] = None,
    token: Annotated[
        OptionalBlankText,
        Header(
            alias=GIT_TOKEN_HEADERS[0],
            description="Token for the repository, used only for this request and never stored. "
            f"{GIT_TOKEN_HEADERS[1]} is accepted, too.",
        ),
    ] = None,
    dot_ai_token: Annotated[
        OptionalBlankText, Header(alias=GIT_TOKEN_HEADERS[1], include_in_schema=False)
    ] = None,
) -> _SourceParameters:
    fields = {"repo": repo, "path": path, "branch": branch, "source": source}
    secret = token or dot_ai_token
    return _SourceParameters(
        # Scripts may send an empty `path` or `branch`, which means the default.
        {name: value for name, value in fields.items() if value and value.strip()},
        Secret(secret) if secret else None,
        may(request.scope, Action.USE_GIT_TOKENS),
    )


_Prompts = Annotated[PromptResponder, app_state("prompts")]
_Source = Annotated[_SourceParameters, Depends(_source_parameters)]


async def _prompt_name(
    request: Request,
    name: Annotated[str, path_text("Name of the prompt, with slashes encoded as %2F.")],
) -> str:
    """Return the name, read from the raw path: it may contain encoded slashes."""
    raw_path = request.scope["raw_path"]
    encoded = raw_path.removeprefix(_PROMPT_PATH_PREFIX)
    if not encoded or b"/" in encoded:
        raise HttpError("not_found", "route not found")
    try:
        unquote_to_bytes(encoded).decode("utf-8")
    except UnicodeDecodeError:
        raise PromptNotFound(encoded.decode("latin-1")) from None
    return name


@router.get(
    PROMPTS_PATH,
    response_model=responses.PromptListResponse,
    responses=NOT_MODIFIED | SOURCE_ERRORS,
)
@needs(Action.READ)
async def list_prompts(
    request: Request,
    prompts: _Prompts,
    source: _Source,
    if_none_match: IfNoneMatch = None,
    accept_encoding: AcceptEncoding = "",
) -> Response:
    """List the prompts with their descriptions and arguments."""
    snapshot = await prompts.load_snapshot(source.select(), client_id(request.scope))
    return await prompts.list_prompts(snapshot, if_none_match, accept_encoding)


@router.post(
    f"{PROMPTS_PATH}/refresh", response_model=responses.RefreshResponse, responses=SOURCE_ERRORS
)
@needs(Action.REFRESH)
@waits_for(Work.FETCH)
def refresh_prompts(
    prompts: _Prompts,
    source: _Source,
    body: Annotated[requests.RefreshRequest, JsonBody(is_required=False)],
) -> Response:
    """Fetch the newest version of a source."""
    snapshot = prompts.service.refresh(source.select(body.non_blank_fields()))
    data: dict[str, object] = {
        "refreshed": snapshot.stale is None,
        "promptsLoaded": len(snapshot.names),
        "source": snapshot.source,
        **skipped_data(snapshot.skipped),
    }
    if snapshot.stale is not None:
        data["reason"] = snapshot.stale.reason
    return SuccessResponse(data, snapshot=snapshot)


@router.post(
    f"{PROMPTS_PATH}/sources", response_model=responses.IngestResponse, responses=SOURCE_ERRORS
)
@needs(Action.REFRESH)
@waits_for(Work.STORE)
def upload_source(
    prompts: _Prompts,
    actor: ActorDep,
    source: _Source,
    body: Annotated[requests.UploadRequest, JsonBody(MAX_UPLOAD_BYTES)],
) -> Response:
    """Upload files as a source."""
    source.select()  # rejects contradictory parameters
    files = [UploadedFile(file.path, file.content, file.mode_bits) for file in body.files]
    upload = Upload(body.source, files, body.content_hash)
    report = prompts.service.ingest(upload, actor=actor)
    data: dict[str, object] = {"source": report.source}
    if report.content_hash:
        data["contentHash"] = report.content_hash
    data |= {"fileCount": report.file_count, "status": report.status}
    snapshot = prompts.service.snapshot(SourceSelector(source=body.source))
    return SuccessResponse({**data, **skipped_data(snapshot.skipped)})


@router.post(
    PROMPTS_PATH + "/{name:path}",
    response_model=responses.PromptResponse,
    responses=SOURCE_ERRORS | describe_errors({404: "Route not found."}),
)
@needs(Action.READ)
async def render_prompt(
    request: Request,
    name: Annotated[str, Depends(_prompt_name)],
    body: Annotated[requests.RenderPromptRequest, JsonBody(is_required=False)],
    prompts: _Prompts,
    source: _Source,
) -> Response:
    """Render a prompt with values for its arguments."""
    snapshot = await prompts.load_snapshot(source.select(), client_id(request.scope))
    # In a worker thread, since rendering and reading files can be slow.
    render = partial(snapshot.prompt_json, name, body.arguments or {})
    data = await run_blocking(request, Work.DISK, render)
    return SuccessResponse(data, snapshot=snapshot)


@router.get(TOOLS_PATH, response_model=responses.ToolListResponse)
@needs(Action.READ)
async def list_tools() -> Response:
    """List the tools callable over REST: none. The route exists for dot-ai clients."""
    return SuccessResponse({"tools": [], "total": 0, "categories": [], "tags": []})
