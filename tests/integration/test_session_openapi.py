"""Fuzz tests of the session routes, generated from the OpenAPI document."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import given, settings
from schemathesis import Case, CheckFunction, GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from skillhall._internal.asgi import Services
from skillhall._internal.http.errors import ERROR_STATUSES
from skillhall._internal.settings import Secret, ServerSettings, Settings
from skillhall._internal.wiring.workspace import open_lazy_workspace
from tests.support.prompt_services import MemoryPromptService
from tests.support.servers import TOKEN, RunningServer, run_server

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = 5
SESSION = "/api/v1/sessions/{session}"
BLOCK, SNAPSHOT = f"{SESSION}/blocks/{{block}}", f"{SESSION}/snapshots/{{snapshot}}"
EVENTS = "/api/v1/events"
OPERATIONS = [
    ("GET", "/api/v1/sessions"),
    ("POST", "/api/v1/sessions"),
    ("POST", "/api/v1/sessions/import"),
    ("GET", SESSION),
    ("PATCH", SESSION),
    ("DELETE", SESSION),
    ("POST", f"{SESSION}/duplicate"),
    ("GET", "/api/v1/block-types"),
    ("GET", f"{SESSION}/blocks"),
    ("POST", f"{SESSION}/blocks"),
    ("GET", BLOCK),
    ("PATCH", BLOCK),
    ("DELETE", BLOCK),
    ("POST", f"{BLOCK}/move"),
    ("POST", f"{BLOCK}/undelete"),
    ("GET", f"{SESSION}/deleted-blocks"),
    ("POST", f"{SESSION}/import"),
    ("POST", "/api/v1/skill-previews"),
    ("GET", "/api/v1/folder-skills"),
    ("GET", f"{SESSION}/context"),
    ("GET", f"{SESSION}/export"),
    ("GET", f"{SESSION}/snapshots"),
    ("POST", f"{SESSION}/snapshots"),
    ("GET", SNAPSHOT),
    ("DELETE", SNAPSHOT),
    ("POST", f"{SNAPSHOT}/restore"),
    ("GET", "/api/v1/templates"),
    ("POST", "/api/v1/templates"),
    ("GET", "/api/v1/templates/{template}"),
    ("PATCH", "/api/v1/templates/{template}"),
    ("DELETE", "/api/v1/templates/{template}"),
    ("POST", f"{SESSION}/apply-template"),
    ("GET", EVENTS),
]
# The fuzzer does not know ids, so valid requests may get a 404.
NOT_CHECKED: list[CheckFunction] = [positive_data_acceptance]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("workspace")
    config = Settings(
        working_directory=str(folder),
        cache_directory=str(folder / "cache"),
        data_directory=str(folder / "data"),
        use_git=False,
        github_api_url="https://127.0.0.1",  # an address that the server never contacts
        server=ServerSettings(port="0", auth_token=Secret(TOKEN)),
    )
    workspace = open_lazy_workspace(config)
    services = Services(MemoryPromptService(), workspace=workspace)
    with run_server(settings=config, services=services) as running:
        yield running
    workspace.close()


@pytest.fixture(scope="module")
def existing_ids(server: RunningServer) -> dict[str, str]:
    """Ids of existing records, by the names of the path parameters."""
    session = server.request("POST", "/api/v1/sessions", {"name": "fuzz"}).json["data"]["id"]
    path = f"/api/v1/sessions/{session}"
    block = server.request("POST", f"{path}/blocks", {"type": "note", "content": "x"}).json["data"]
    saved = server.request("POST", f"{path}/snapshots", {"name": "s"}).json["data"]
    body = {"name": f"T {session}", "session": session}
    template = server.request("POST", "/api/v1/templates", body).json["data"]
    records = {"block": block, "snapshot": saved, "template": template}
    return {"session": session, **{name: record["id"] for name, record in records.items()}}


@pytest.fixture(scope="module")
def schema(server: RunningServer) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}/api/v1/openapi.json")


HEALTH = ("/healthz", "/readyz", "/metrics")


def test_openapi_lists_every_session_route(server: RunningServer) -> None:
    document = server.request("GET", "/api/v1/openapi.json").json
    operations = {(m.upper(), path) for path, item in document["paths"].items() for m in item}
    others = ("/api/v1/prompts", "/api/v1/tools", "/api/v1/webhooks", *HEALTH)
    assert {pair for pair in operations if not pair[1].startswith(others)} == set(OPERATIONS)


def test_every_session_route_is_in_the_reference() -> None:
    reference = (ROOT / "docs/reference/rest.md").read_text(encoding="utf-8")
    for _, path in OPERATIONS:
        end = path.removeprefix("/api/v1/sessions/{session}") or path
        assert end in reference, path


def test_every_session_error_has_the_envelope_and_a_known_status(
    server: RunningServer,
) -> None:
    known = {str(status.http_status) for status in ERROR_STATUSES.values()}
    document = server.request("GET", "/api/v1/openapi.json").json
    for _, path in OPERATIONS:
        for operation in document["paths"][path].values():
            for status, response in operation["responses"].items():
                if status >= "400":
                    form = response["content"]["application/json"]["schema"]
                    assert form == {"$ref": "#/components/schemas/ErrorResponse"}
                    assert status in known


@pytest.mark.parametrize(("method", "path"), [pair for pair in OPERATIONS if pair[1] != EVENTS])
def test_fuzzed_requests_get_documented_responses(
    server: RunningServer,
    schema: schemathesis.BaseSchema,
    existing_ids: dict[str, str],
    method: str,
    path: str,
) -> None:
    operation = schema[path][method]

    @settings(max_examples=EXAMPLES)
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def valid(case: Case[Any]) -> None:
        parameters = case.path_parameters or {}
        case.path_parameters = {name: existing_ids[name] for name in parameters}
        case.call_and_validate(headers=server.headers, excluded_checks=NOT_CHECKED)

    @settings(max_examples=EXAMPLES)
    @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def invalid(case: Case[Any]) -> None:
        case.call_and_validate(headers=server.headers, excluded_checks=NOT_CHECKED)

    valid()
    if operation.body or operation.query:
        invalid()
