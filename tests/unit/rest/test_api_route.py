import threading
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from skillhall._internal.http.access import needs
from skillhall._internal.http.request import HEADERS_KEY, REQUEST_ID_KEY
from skillhall._internal.http.response import SuccessResponse
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.rest.api_route import ApiRoute, Json, JsonBody
from skillhall._internal.rest.app import build_fastapi_app
from skillhall._internal.rest.route_parameters import OptionalText, PageSize


class Note(BaseModel):
    """A note."""

    text: str


router = APIRouter(route_class=ApiRoute)


@router.get("/thread")
@needs(Action.READ)
def get_thread() -> Response:
    return SuccessResponse(threading.current_thread() is threading.main_thread())


@router.get("/search")
@needs(Action.READ)
async def search(
    q: Annotated[OptionalText, Query(description="Text.")] = None, limit: PageSize = 100
) -> Response:
    return SuccessResponse([q, limit])


@router.post("/notes", status_code=201, response_model=Note)
@needs(Action.READ)
def add_note(body: Json[Note]) -> Response:
    """Add a note."""
    return SuccessResponse(body.model_dump(), 201)


@router.post("/short-notes", response_model=Note)
@needs(Action.READ)
async def add_short_note(
    request: Request, body: Annotated[Note, JsonBody(20, is_required=False)]
) -> Response:
    return SuccessResponse({"text": f"{request.method} {body.text}"})


@pytest.fixture
def client() -> TestClient:
    async def do_nothing() -> None:
        pass

    app = build_fastapi_app([router], do_nothing)

    async def with_request_id(scope: Scope, receive: Receive, send: Send) -> None:
        scope.update({REQUEST_ID_KEY: "7", HEADERS_KEY: {}})
        await app(scope, receive, send)

    return TestClient(with_request_id)


def test_plain_function_runs_in_a_worker_thread(client: TestClient) -> None:
    assert client.get("/thread").json()["data"] is False


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("q=a&q=b", "duplicate parameter 'q'"),
        ("q=%20", "the parameter 'q' is empty"),
        ("q=%FF", "the query is not UTF-8"),
        ("limit=+1", "'limit' must be a number from 1 to 1000"),
        ("limit=1001", "'limit' must be a number from 1 to 1000"),
        ("limit=", "the parameter 'limit' is empty"),
    ],
)
def test_invalid_query_is_rejected(client: TestClient, query: str, message: str) -> None:
    reply = client.get(f"/search?{query}")
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert (error["code"], error["message"]) == ("VALIDATION_ERROR", message)
    assert error["docs"].endswith("/reference/errors/#code-invalid_argument")


def test_unknown_query_parameters_are_ignored(client: TestClient) -> None:
    assert client.get("/search?x=1&x=&limit=5").json()["data"] == [None, 5]


def test_json_body_is_strict_and_limited(client: TestClient) -> None:
    headers = {"Content-Type": "application/json"}
    assert client.post("/notes", json={"text": "a"}).status_code == 201
    assert client.post("/notes", content='{"text":1}', headers=headers).status_code == 400
    deep = client.post("/notes", content="[" * 40 + "]" * 40, headers=headers)
    assert "nested" in deep.json()["error"]["message"]
    assert client.post("/notes", content='{"text":"a"}').status_code == 415
    assert client.post("/short-notes", json={"text": "a"}).json()["data"]["text"] == "POST a"
    assert client.post("/short-notes", json={"text": "a" * 20}).status_code == 413


def test_problems_of_a_body_name_the_field_and_not_the_value(client: TestClient) -> None:
    error = client.post("/notes", json={"text": ["secret"]}).json()["error"]
    assert error["message"] == "invalid request body"
    assert error["details"]["problems"][0]["where"] == "text"
    assert "secret" not in str(error)


def test_openapi_describes_body_envelope_and_errors(client: TestClient) -> None:
    paths: dict[str, Any] = client.get("/api/v1/openapi.json").json()["paths"]
    operation = paths["/notes"]["post"]
    assert (operation["summary"], operation["description"]) == ("Add note", "Add a note.")
    assert operation["requestBody"]["required"] is True
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["text"]
    assert operation["responses"]["201"]["description"] == "A note."
    assert {"400", "401", "408", "413", "415", "500"} <= set(operation["responses"])
    assert paths["/short-notes"]["post"]["requestBody"]["required"] is False
    assert "422" not in paths["/search"]["get"]["responses"]
