"""The OpenAPI document is complete and true: a fuzzer that reads it finds nothing."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import schemathesis
from hypothesis import given, settings
from schemathesis import Case, CheckFunction, GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from skillhall._internal.asgi import Services
from skillhall._internal.http.errors import ERROR_STATUSES
from skillhall._internal.prompts.prompt_model import Prompt, PromptArgument
from skillhall._internal.settings import Secret, Settings
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.skill_store.folder_store import FolderStore
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
    ("GET", "/api/v1/skills/{id}/files/{path}"),
    ("GET", "/.well-known/agent-skills/index.json"),
    ("GET", "/.well-known/skills/index.json"),
    ("GET", "/.well-known/skills/{name}/{path}"),
]
CHANGING = {"PUT", "DELETE"}  # have a body or a query on every path
# Neither a body nor a query: nothing can be wrong in them.
PLAIN = {
    "/healthz",
    "/readyz",
    "/metrics",
    "/api/v1/tools",
    "/api/v1/changes/{id}/undo",
    "/api/v1/skills/{id}",
    "/api/v1/skills/{id}/archive",
    "/api/v1/skills/{id}/files/{path}",
    "/.well-known/agent-skills/index.json",
    "/.well-known/skills/index.json",
    "/.well-known/skills/{name}/{path}",
}
CASES = [
    (method, path, mode)
    for method, path in OPERATIONS
    for mode in GenerationMode
    if not (mode.is_negative and path in PLAIN and method not in CHANGING)
]
NOWHERE = "https://127.0.0.1"  # an address that no source may have
# The contract answers 400 for names that are not there; the fuzzer knows no names.
NOT_CHECKED: list[CheckFunction] = [positive_data_acceptance]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    anywhere: defaultdict[str, Sequence[Prompt]] = defaultdict(lambda: PROMPTS)
    counter = MemoryPromptService(PROMPTS, repositories=anywhere)
    folder = tmp_path_factory.mktemp("run")
    make_skill(folder / ".agents/skills", "pdf")
    own = Settings(str(folder), str(folder / "cache"), use_git=False, github_api_url=NOWHERE)
    services = Services(counter, Collection(FolderStore(folder), own))
    chosen = make_token_settings(webhook_secret=Secret("hook-secret"))
    with run_server(settings=chosen, services=services) as one:
        yield one


@pytest.fixture(scope="module")
def schema(server: RunningServer) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}/api/v1/openapi.json")


def test_the_document_names_every_route_and_no_other(server: RunningServer) -> None:
    document = server.request("GET", "/api/v1/openapi.json").json
    found = [(m.upper(), path) for path, item in document["paths"].items() for m in item]
    assert sorted(found) == sorted(OPERATIONS)
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


def test_every_error_in_the_document_has_our_form_and_a_status_that_we_know(
    server: RunningServer,
) -> None:
    known = {str(status.http_status) for status in ERROR_STATUSES.values()}
    document = server.request("GET", "/api/v1/openapi.json").json
    for item in document["paths"].values():
        for operation in item.values():
            for status, answer in operation["responses"].items():
                if status < "400":
                    continue
                form = answer["content"]["application/json"]["schema"]
                assert form == {"$ref": "#/components/schemas/ErrorResponse"}
                assert status in known


@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_whatever_is_sent_the_answer_is_as_the_document_says(
    server: RunningServer,
    schema: schemathesis.BaseSchema,
    method: str,
    path: str,
    mode: GenerationMode,
) -> None:
    operation = schema[path][method]
    is_plain = path in PLAIN and method not in CHANGING
    assert is_plain == (not operation.body and not operation.query)

    @settings(max_examples=EXAMPLES)
    @given(case=operation.as_strategy(generation_mode=mode))
    def answers(case: Case[Any]) -> None:
        case.call_and_validate(headers=server.headers, excluded_checks=NOT_CHECKED)

    answers()
