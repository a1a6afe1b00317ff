"""The OpenAPI document is true about sessions: a fuzzer that reads it finds nothing."""

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
# The contract answers 404 for what is not there; the fuzzer knows no ids.
NOT_CHECKED: list[CheckFunction] = [positive_data_acceptance]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("desk")
    own = Settings(
        working_directory=str(folder),
        cache_directory=str(folder / "cache"),
        data_directory=str(folder / "data"),
        use_git=False,
        github_api_url="https://127.0.0.1",  # an address that no source may have
        server=ServerSettings(port="0", auth_token=Secret(TOKEN)),
    )
    door = open_lazy_workspace(own)
    with run_server(settings=own, services=Services(MemoryPromptService(), workspace=door)) as one:
        yield one
    door.close()


@pytest.fixture(scope="module")
def there(server: RunningServer) -> dict[str, str]:
    """Ids of things that are there, by what routes call them."""
    session = server.request("POST", "/api/v1/sessions", {"name": "there"}).json["data"]["id"]
    path = f"/api/v1/sessions/{session}"
    block = server.request("POST", f"{path}/blocks", {"type": "note", "content": "x"}).json["data"]
    saved = server.request("POST", f"{path}/snapshots", {"name": "s"}).json["data"]
    body = {"name": f"T {session}", "session": session}
    template = server.request("POST", "/api/v1/templates", body).json["data"]
    found = {"block": block, "snapshot": saved, "template": template}
    return {"session": session, **{name: one["id"] for name, one in found.items()}}


@pytest.fixture(scope="module")
def schema(server: RunningServer) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}/api/v1/openapi.json")


HEALTH = ("/healthz", "/readyz", "/metrics")


def test_the_document_names_every_route_of_sessions(server: RunningServer) -> None:
    document = server.request("GET", "/api/v1/openapi.json").json
    found = {(m.upper(), path) for path, item in document["paths"].items() for m in item}
    others = ("/api/v1/prompts", "/api/v1/tools", "/api/v1/webhooks", *HEALTH)
    assert {one for one in found if not one[1].startswith(others)} == set(OPERATIONS)


def test_every_route_of_sessions_is_in_the_reference() -> None:
    reference = (ROOT / "docs/reference/rest.md").read_text(encoding="utf-8")
    for _, path in OPERATIONS:
        end = path.removeprefix("/api/v1/sessions/{session}") or path
        assert end in reference, path


def test_every_error_of_sessions_has_our_form_and_a_status_that_we_know(
    server: RunningServer,
) -> None:
    known = {str(status.http_status) for status in ERROR_STATUSES.values()}
    document = server.request("GET", "/api/v1/openapi.json").json
    for _, path in OPERATIONS:
        for operation in document["paths"][path].values():
            for status, answer in operation["responses"].items():
                if status >= "400":
                    form = answer["content"]["application/json"]["schema"]
                    assert form == {"$ref": "#/components/schemas/ErrorResponse"}
                    assert status in known


@pytest.mark.parametrize(("method", "path"), [one for one in OPERATIONS if one[1] != EVENTS])
def test_whatever_is_sent_the_answer_is_as_the_document_says(
    server: RunningServer,
    schema: schemathesis.BaseSchema,
    there: dict[str, str],
    method: str,
    path: str,
) -> None:
    operation = schema[path][method]

    @settings(max_examples=EXAMPLES)
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def right(case: Case[Any]) -> None:
        given = case.path_parameters or {}
        case.path_parameters = {name: there[name] for name in given}
        case.call_and_validate(headers=server.headers, excluded_checks=NOT_CHECKED)

    @settings(max_examples=EXAMPLES)
    @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def wrong(case: Case[Any]) -> None:
        case.call_and_validate(headers=server.headers, excluded_checks=NOT_CHECKED)

    right()
    if operation.body or operation.query:
        wrong()
