"""Fuzz tests of the REST API, generated from the OpenAPI document."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest
import schemathesis
from hypothesis import given, settings
from schemathesis import Case, CheckFunction, GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from skillhall._internal.asgi import Services
from skillhall._internal.http.errors import ERROR_STATUSES
from skillhall._internal.prompt_server.prompt_model import Prompt, PromptArgument
from skillhall._internal.settings import Secret, ServerSettings, Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.wiring.database import open_database_services
from tests.support.prompt_services import MemoryPromptService, make_prompt
from tests.support.servers import RunningServer, make_token_settings, run_server
from tests.support.skills import make_skill

PROMPTS = (make_prompt(), make_prompt("ask", arguments=[PromptArgument("topic", required=True)]))
EXAMPLES = 12
OPERATIONS = [
    ("GET", "/api/v1/prompts"),
    ("POST", "/api/v1/prompts/refresh"),
    ("POST", "/api/v1/prompts/sources"),
    ("POST", "/api/v1/prompts/{name}"),
    ("GET", "/api/v1/tools"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("POST", "/api/v1/webhooks/git"),
    ("GET", "/api/v1/skills"),
    ("POST", "/api/v1/skills"),
    ("POST", "/api/v1/skills/import"),
    ("POST", "/api/v1/skills/check"),
    ("PUT", "/api/v1/skills/{id}"),
    ("POST", "/api/v1/changes/{id}/undo"),
    ("GET", "/api/v1/skills/{id}"),
    ("DELETE", "/api/v1/skills/{id}"),
    ("GET", "/api/v1/skills/{id}/archive"),
    ("GET", "/api/v1/skills/{id}/compat"),
    ("GET", "/api/v1/skills/{id}/evals"),
    ("GET", "/api/v1/skills/{id}/trust"),
    ("GET", "/api/v1/skills/{id}/files/{path}"),
    ("PUT", "/api/v1/skills/{id}/files/{path}"),
    ("DELETE", "/api/v1/skills/{id}/files/{path}"),
    ("GET", "/api/v1/reviews"),
    ("GET", "/api/v1/skills/{id}/versions"),
    ("GET", "/api/v1/skills/{id}/versions/{number}"),
    ("GET", "/api/v1/skills/{id}/versions/{number}/diff"),
    ("POST", "/api/v1/skills/{id}/versions/{number}/submit"),
    ("POST", "/api/v1/skills/{id}/versions/{number}/return"),
    ("POST", "/api/v1/skills/{id}/versions/{number}/approve"),
    ("POST", "/api/v1/skills/{id}/versions/{number}/yank"),
    ("POST", "/api/v1/skills/{id}/versions/{number}/restore"),
    ("PUT", "/api/v1/skills/{id}/current"),
    ("GET", "/api/v1/bin"),
    ("POST", "/api/v1/bin/{id}/restore"),
    ("DELETE", "/api/v1/bin/{id}"),
    ("GET", "/.well-known/agent-skills/index.json"),
    ("GET", "/.well-known/skills/index.json"),
    ("GET", "/.well-known/skills/{name}/{path}"),
]
CHANGING = {"PUT", "DELETE"}  # with a body or a query on nearly every path
# Without a body and a query there are no invalid requests to generate.
PLAIN = {
    "/healthz",
    "/readyz",
    "/metrics",
    "/api/v1/tools",
    "/api/v1/skills/{id}/evals",
    "/api/v1/changes/{id}/undo",
    "/api/v1/skills/{id}/trust",
    "/api/v1/reviews",
    "/api/v1/skills/{id}/versions",
    "/api/v1/skills/{id}/versions/{number}",
    "/api/v1/skills/{id}/versions/{number}/restore",
    "/api/v1/bin",
    "/api/v1/bin/{id}",
    "/api/v1/bin/{id}/restore",
    "/.well-known/agent-skills/index.json",
    "/.well-known/skills/index.json",
    "/.well-known/skills/{name}/{path}",
}
PLAIN_CHANGES = {"/api/v1/bin/{id}"}


def is_plain(method: str, path: str) -> bool:
    """Whether requests have no body and no query."""
    return path in PLAIN and (method not in CHANGING or path in PLAIN_CHANGES)


CASES = [
    (method, path, mode)
    for method, path in OPERATIONS
    for mode in GenerationMode
    if not (mode.is_negative and is_plain(method, path))
]
NOWHERE = "https://127.0.0.1"  # an address that the server never contacts
# The fuzzer does not know names, so valid requests may get a 400.
NOT_CHECKED: list[CheckFunction] = [positive_data_acceptance]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    repositories: defaultdict[str, Sequence[Prompt]] = defaultdict(lambda: PROMPTS)
    prompt_service = MemoryPromptService(PROMPTS, repositories=repositories)
    folder = tmp_path_factory.mktemp("run")
    make_skill(folder / ".agents/skills", "pdf")
    config = Settings(
        str(folder),
        str(folder / "cache"),
        use_git=False,
        github_api_url=NOWHERE,
        data_directory=str(folder / "data"),
        server=ServerSettings(review="one"),
    )
    server_config = make_token_settings(webhook_secret=Secret("hook-secret"))
    with closing(open_database_services(config)) as database:
        assert database.skill_store is not None
        collection = Collection(database.skill_store, config, versions=database.versions)
        services = Services(prompt_service, collection)
        with run_server(settings=server_config, services=services) as running:
            yield running


@pytest.fixture(scope="module")
def schema(server: RunningServer) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}/api/v1/openapi.json")


def test_openapi_lists_exactly_the_routes(server: RunningServer) -> None:
    document = server.request("GET", "/api/v1/openapi.json").json
    operations = [(m.upper(), path) for path, item in document["paths"].items() for m in item]
    assert sorted(operations) == sorted(OPERATIONS)
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


def test_every_error_has_the_envelope_and_a_known_status(
    server: RunningServer,
) -> None:
    known = {str(status.http_status) for status in ERROR_STATUSES.values()}
    document = server.request("GET", "/api/v1/openapi.json").json
    for item in document["paths"].values():
        for operation in item.values():
            for status, response in operation["responses"].items():
                if status < "400":
                    continue
                form = response["content"]["application/json"]["schema"]
                assert form == {"$ref": "#/components/schemas/ErrorResponse"}
                assert status in known


@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_fuzzed_requests_get_documented_responses(
    server: RunningServer,
    schema: schemathesis.BaseSchema,
    method: str,
    path: str,
    mode: GenerationMode,
) -> None:
    operation = schema[path][method]
    assert is_plain(method, path) == (not operation.body and not operation.query)

    @settings(max_examples=EXAMPLES)
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Case[Any]) -> None:
        case.call_and_validate(headers=server.headers, excluded_checks=NOT_CHECKED)

    check()
