"""REST API of prompts, health and metrics on a running server."""

import gzip
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.prompt_server.prompt_model import PromptArgument, Stale
from skillhall.errors import RateLimited, SourceRejected, SourceTimedOut, TooLarge
from tests.support.prompt_services import MemoryPromptService, make_prompt
from tests.support.replicas import wait_until
from tests.support.servers import HttpResponse, RunningServer, make_settings, run_server

TOPIC = PromptArgument("topic", "What about.", required=True)
PROMPTS = (
    make_prompt("greet"),
    make_prompt("ask", "Of {{topic}}, {{depth}}.", [TOPIC, PromptArgument("depth")]),
    make_prompt("filed", "See notes.md.", files={"notes.md": b"\xff\0"}),
    make_prompt("a/b ü?", "Odd name."),
)
NO_SKIPPED = {"skipped": [], "skippedTotal": 0}
REFRESH = "/api/v1/prompts/refresh"
REPOSITORY = "https://git.example.org/team/prompts"


@pytest.fixture(scope="module")
def prompt_service() -> MemoryPromptService:
    return MemoryPromptService(PROMPTS, repositories={REPOSITORY: [make_prompt("theirs")]})


@pytest.fixture(scope="module")
def server(prompt_service: MemoryPromptService) -> Iterator[RunningServer]:
    with run_server(prompt_service) as running:
        yield running


@pytest.fixture(scope="module")
def failing() -> Iterator[tuple[RunningServer, MemoryPromptService]]:
    prompt_service = MemoryPromptService(PROMPTS)
    with run_server(prompt_service) as running:
        yield running, prompt_service


def data_of(reply: HttpResponse) -> Any:  # noqa: ANN401 - JSON
    assert reply.status == 200, reply.body
    assert set(reply.json) == {"success", "data", "meta"}
    assert reply.json["success"] is True
    assert set(reply.json["meta"]) == {"timestamp", "requestId", "version"}
    return reply.json["data"]


def test_prompt_list_has_no_files(
    server: RunningServer,
) -> None:
    data = data_of(server.request("GET", "/api/v1/prompts"))
    assert data["source"] == "built-in"
    assert data["prompts"][0] == {"name": "greet", "description": "Does greet."}
    assert data["prompts"][1]["arguments"][0]["name"] == "topic"
    assert not any("files" in prompt for prompt in data["prompts"])


def test_prompt_is_rendered_without_a_body(server: RunningServer) -> None:
    assert data_of(server.request("POST", "/api/v1/prompts/greet")) == {
        "description": "Does greet.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hello {{who}}."}}],
        "source": "built-in",
    }


def test_argument_values_are_inserted_literally(server: RunningServer) -> None:
    body = {"arguments": {"topic": "{{depth}} $& \\1"}}
    data = data_of(server.request("POST", "/api/v1/prompts/ask", body))
    assert data["messages"][0]["content"]["text"] == "Of {{depth}} $& \\1, {{depth}}."


def test_prompt_files_are_base64(server: RunningServer) -> None:
    data = data_of(server.request("POST", "/api/v1/prompts/filed", {}))
    assert data["files"] == [{"path": "notes.md", "content": "/wA="}]


def test_encoded_prompt_name_is_decoded(server: RunningServer) -> None:
    data = data_of(server.request("POST", "/api/v1/prompts/a%2Fb%20%C3%BC%3F"))
    assert data["description"] == "Does a/b ü?."


def test_refresh_returns_the_number_of_prompts(server: RunningServer) -> None:
    data = data_of(server.request("POST", "/api/v1/prompts/refresh"))
    assert data == {"refreshed": True, "promptsLoaded": 4, "source": "built-in", **NO_SKIPPED}


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"[]",
        b'"main"',
        b'{"repository": "acme/skills"}',
        b'{"repo": 1}',
        b'{"repo": ""}',
        b'{"source": "team", "repo": "acme/skills"}',
    ],
)
def test_refresh_with_an_invalid_body_is_rejected(server: RunningServer, body: bytes) -> None:
    reply = server.request("POST", REFRESH, body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


def test_refresh_with_source_in_query_and_body_is_rejected(server: RunningServer) -> None:
    reply = server.request("POST", f"{REFRESH}?branch=main", {"branch": "dev"})
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
    assert "query" in reply.message


def test_repeated_upload_is_unchanged(server: RunningServer) -> None:
    body = {"source": "mine", "contentHash": "h1", "files": [{"path": "up", "content": "eA=="}]}
    first = data_of(server.request("POST", "/api/v1/prompts/sources", body))
    stored = {"source": "mine", "contentHash": "h1", "fileCount": 1, "status": "ingested"}
    assert first == {**stored, **NO_SKIPPED}
    again = data_of(server.request("POST", "/api/v1/prompts/sources", body))
    assert again["status"] == "unchanged"
    assert data_of(server.request("GET", "/api/v1/prompts?source=mine"))["source"] == "mine"


def test_upload_without_a_hash_returns_none(server: RunningServer) -> None:
    body = {"source": "plain", "files": [{"path": "up", "content": "", "mode": 420}]}
    data = data_of(server.request("POST", "/api/v1/prompts/sources", body))
    assert data == {"source": "plain", "fileCount": 1, "status": "ingested", **NO_SKIPPED}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/api/v1/openapi.json", "/api/v1/openapi"])
def test_health_and_openapi_respond(server: RunningServer, method: str, path: str) -> None:
    reply = server.request(method, path)
    assert reply.status == 200
    assert bool(reply.body) == (method == "GET")


def test_repository_of_the_query_is_selected_with_path_branch_and_token(
    server: RunningServer, prompt_service: MemoryPromptService
) -> None:
    headers = {"X-Skillhall-Git-Token": "gt-1"}
    query = f"repo={REPOSITORY}&path=some%20where&branch=dev"
    data = data_of(server.request("POST", f"/api/v1/prompts/theirs?{query}", headers=headers))
    assert data["source"] == REPOSITORY
    # The server also loads the configured source when it starts.
    selector = next(selector for selector in reversed(prompt_service.selectors) if selector.branch)
    assert selector[:4] == (REPOSITORY, "some where", "dev", "")
    assert selector.token is not None
    assert selector.token.reveal() == "gt-1"


# Rejected requests


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "message"),
    [
        ("POST", "/api/v1/prompts/nope", None, 400, "VALIDATION_ERROR", "Prompt not found: nope"),
        ("POST", "/api/v1/prompts/%FF", None, 400, "VALIDATION_ERROR", "Prompt not found: %FF"),
        ("POST", "/api/v1/prompts/a/b", None, 404, "NOT_FOUND", "route not found"),
        ("POST", "/api/v1/prompts/", None, 404, "NOT_FOUND", "route not found"),
        ("POST", "/api%2Fv1/prompts/greet", None, 404, "NOT_FOUND", "route not found"),
        (
            "GET",
            "/api/v1/prompts/",
            None,
            405,
            "METHOD_NOT_ALLOWED",
            "method not allowed; use POST",
        ),
        ("GET", "/", None, 404, "NOT_FOUND", "route not found"),
        ("GET", "/docs", None, 404, "NOT_FOUND", "route not found"),
        ("POST", "/api/v1/webhooks/git", {}, 404, "NOT_FOUND", "route not found"),
        (
            "POST",
            "/api/v1/prompts/ask",
            {"arguments": {"topic": ""}},
            400,
            "VALIDATION_ERROR",
            "Missing required arguments: topic",
        ),
        (
            "POST",
            "/api/v1/prompts/ask",
            None,
            400,
            "VALIDATION_ERROR",
            "Missing required arguments: topic",
        ),
    ],
)
def test_rejected_request_has_status_code_and_message(  # noqa: PLR0913, PLR0917 - a row of the table
    server: RunningServer,
    method: str,
    path: str,
    body: object,
    status: int,
    code: str,
    message: str,
) -> None:
    reply = server.request(method, path, body)
    assert (reply.status, reply.code, reply.message) == (status, code, message)
    assert reply.json["success"] is False
    assert reply.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("query", ["path=x", "branch=x"])
def test_path_or_branch_without_a_repository_is_rejected(server: RunningServer, query: str) -> None:
    assert server.request("GET", f"/api/v1/prompts?{query}").status == 400


def test_branch_of_the_configured_repository_can_be_selected() -> None:
    prompt_service = MemoryPromptService(PROMPTS, source=REPOSITORY)
    with run_server(prompt_service) as server:
        assert data_of(server.request("GET", "/api/v1/prompts?branch=dev"))["source"] == REPOSITORY
    assert "dev" in [selector.branch for selector in prompt_service.selectors]


def test_unknown_upload_is_rejected_with_a_hint(server: RunningServer) -> None:
    reply = server.request("GET", "/api/v1/prompts?source=gone")
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
    assert "POST /api/v1/prompts/sources" in reply.message


def test_unreadable_repository_gets_502(server: RunningServer) -> None:
    reply = server.request("GET", "/api/v1/prompts?repo=https://git.example.org/none")
    assert (reply.status, reply.code) == (502, "PROMPTS_SOURCE_ERROR")


@pytest.mark.parametrize(
    "query",
    [
        "repo=a&repo=b",
        "repo=",
        "source=%20",
        "repo=a&source=b",
        "source=a&path=b",
        "repo=%FF",
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("POST", "/greet"), ("POST", "/refresh"), ("POST", "/sources")],
)
def test_ambiguous_query_is_rejected(
    server: RunningServer, method: str, path: str, query: str
) -> None:
    body = {"source": "a", "files": []} if path == "/sources" else None
    reply = server.request(method, f"/api/v1/prompts{path}?{query}", body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b"\xff\xfe",
        b'{"arguments":{"a":NaN}}',
        b'{"arguments":{"a":-Infinity}}',
        b'{"arguments":{"a":"\\ud800"}}',
        b'{"arguments":{"a":' + b"9" * 5000 + b"}}",
        b'{"arguments":' + b"[" * 100_000,
        b'{"arguments":' + b'{"a":' * 40 + b"1" + b"}" * 41,
        b'"' + b'\\"' * 200_000,
        b"null",
        b"[]",
        b"3",
        b'{"arguments":[]}',
        b'{"arguments":{"a":[1]}}',
        b'{"arguments":{"a":{}}}',
        b'{"arguments":{"a":1e999}}',
        "{}".encode("utf-16"),
    ],
    ids=lambda body: repr(body[:24]),
)
def test_invalid_json_body_is_rejected(server: RunningServer, body: bytes) -> None:
    reply = server.request("POST", "/api/v1/prompts/greet", body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {"source": "a"},
        {"source": 1, "files": []},
        {"source": "a", "files": {}},
        {"source": "a", "files": [{"path": "x"}]},
        {"source": "a", "files": [{"path": "x", "content": "", "mode": "rwx"}]},
        {"source": "a", "files": [{"path": "x", "content": "", "mode": -1}]},
        {"source": "a", "files": [{"path": "../x", "content": ""}]},
    ],
)
def test_invalid_upload_is_rejected(server: RunningServer, body: object) -> None:
    reply = server.request("POST", "/api/v1/prompts/sources", body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


def test_validation_errors_show_the_field_and_not_the_value(server: RunningServer) -> None:
    body = {"source": "a", "files": [{"path": {"oh": "secret-value"}, "content": ""}]}
    reply = server.request("POST", "/api/v1/prompts/sources", body)
    assert reply.json["error"]["details"]["problems"][0]["where"] == "files.0.path"
    assert b"secret-value" not in reply.body


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "text/json"])
@pytest.mark.parametrize("path", ["greet", "refresh", "sources"])
def test_body_of_another_media_type_is_rejected(
    server: RunningServer, path: str, kind: str
) -> None:
    headers = {"Content-Type": kind}
    reply = server.request("POST", f"/api/v1/prompts/{path}", b"{}", headers)
    assert (reply.status, reply.code) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_media_type_with_charset_is_accepted(server: RunningServer) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert server.request("POST", "/api/v1/prompts/greet", b"{}", headers).status == 200


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/api/v1/prompts", "GET, HEAD"),
        ("DELETE", "/api/v1/prompts/greet", "POST"),
        ("GET", "/api/v1/prompts/refresh", "POST"),
        ("PUT", "/api/v1/prompts/sources", "POST"),
        ("OPTIONS", "/api/v1/prompts/greet", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("GET", "/api/v1/webhooks/git", "POST"),
    ],
)
def test_wrong_method_gets_405_with_allow(
    server: RunningServer, method: str, path: str, allowed: str
) -> None:
    reply = server.request(method, path)
    assert (reply.status, reply.code) == (405, "METHOD_NOT_ALLOWED")
    assert reply.headers["Allow"] == allowed


@pytest.mark.parametrize(
    ("error", "status", "code", "wait"),
    [
        (RateLimited("git.example.org", 30), 503, "RATE_LIMITED", "30"),
        (SourceTimedOut("git.example.org", "too slow"), 504, "UPSTREAM_TIMEOUT", None),
        (SourceRejected("host", "a private address"), 400, "VALIDATION_ERROR", None),
        (TooLarge("x", 5), 413, "PAYLOAD_TOO_LARGE", None),
        (OSError(28, "full", "/srv/private"), 507, "STORAGE_FULL", None),
        (PermissionError(13, "denied", "/srv/private"), 503, "STORAGE_UNAVAILABLE", None),
        (ZeroDivisionError("/srv/private"), 500, "INTERNAL_ERROR", None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
@pytest.mark.parametrize("path", ["/greet", "/refresh"])
def test_internal_failures_get_the_status_of_their_class(  # noqa: PLR0913, PLR0917 - a row of a table
    failing: tuple[RunningServer, MemoryPromptService],
    path: str,
    error: Exception,
    status: int,
    code: str,
    wait: str | None,
) -> None:
    server, prompt_service = failing
    prompt_service.error = error
    reply = server.request("POST", f"/api/v1/prompts{path}", headers={"X-Request-Id": "seen-7"})
    assert (reply.status, reply.code) == (status, code)
    assert reply.headers["Retry-After"] == wait
    assert reply.json["meta"]["requestId"] == "seen-7"
    assert b"/srv/private" not in reply.body


# Metadata and headers


def test_stale_list_is_marked_with_reason_and_commit() -> None:
    stale = Stale("the host is away", "2026-11-16T00:00:00Z")
    with run_server(MemoryPromptService(PROMPTS, commit="abc", stale=stale)) as server:
        listed = server.request("GET", "/api/v1/prompts")
        ready = server.request("GET", "/readyz")
    assert listed.json["meta"]["stale"] == {"reason": stale.reason, "since": stale.since}
    assert listed.json["meta"]["commit"] == "abc"
    assert ready.status == 200
    assert ready.json["data"]["sources"][0]["stale"]["reason"] == "the host is away"


def test_server_without_prompts_is_alive_but_not_ready() -> None:
    with run_server(
        MemoryPromptService(error=SourceRejected("host", "a private address"))
    ) as server:
        assert server.request("GET", "/healthz").status == 200
        reply = server.request("GET", "/readyz")
    assert (reply.status, reply.code) == (503, "NOT_READY")
    assert reply.json["error"]["details"] == {"sources": []}


def test_loading_server_is_not_ready() -> None:
    prompt_service = MemoryPromptService(PROMPTS, gate=threading.Event())
    with run_server(prompt_service) as server:
        assert prompt_service.is_waiting.wait(120)
        reply = server.request("GET", "/readyz")
        assert (reply.status, reply.code) == (503, "NOT_READY")
        assert reply.message == "the prompts are being loaded"
        assert prompt_service.gate is not None
        prompt_service.gate.set()
        assert server.request("GET", "/readyz").status == 200


@pytest.mark.parametrize("form", ["{}", '"x", {}', "*"])
def test_known_list_gets_304(server: RunningServer, form: str) -> None:
    tag = server.request("GET", "/api/v1/prompts").headers["ETag"]
    assert tag.startswith('W/"')
    reply = server.request("GET", "/api/v1/prompts", headers={"If-None-Match": form.format(tag)})
    assert (reply.status, reply.body) == (304, b"")
    assert reply.headers["ETag"] == tag
    assert reply.headers["Cache-Control"] == "no-cache"
    assert "X-Request-Id" in reply.headers
    assert "Content-Security-Policy" not in reply.headers, "the client keeps that of the list"


def test_list_with_another_etag_is_sent(server: RunningServer) -> None:
    headers = {"If-None-Match": 'W/"older"'}
    assert server.request("GET", "/api/v1/prompts", headers=headers).status == 200


def test_large_lists_are_gzipped_for_clients_that_accept_it() -> None:
    many = [make_prompt(f"prompt-{number}") for number in range(2_000)]
    with run_server(MemoryPromptService(many)) as server:
        plain = server.request("GET", "/api/v1/prompts", headers={"Accept-Encoding": "gzip;q=0"})
        compressed = [
            server.request("GET", "/api/v1/prompts", headers={"Accept-Encoding": "br, gzip"})
            for _ in range(2)
        ]
    assert plain.headers["Content-Encoding"] is None
    assert len(plain.body) > 65_536
    for reply in compressed:
        assert reply.headers["Content-Encoding"] == "gzip"
        assert len(reply.body) < len(plain.body) / 3
        assert json.loads(gzip.decompress(reply.body))["data"] == plain.json["data"]


def test_every_response_has_security_headers(server: RunningServer) -> None:
    for method, path in [("GET", "/api/v1/prompts"), ("POST", "/nowhere"), ("GET", "/healthz")]:
        headers = server.request(method, path, headers={"Origin": "http://evil.example"}).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert headers["Access-Control-Allow-Origin"] is None
        assert headers["Server"] is None


@pytest.mark.parametrize("request_id", ["a", "A.b_c-9", "x" * 128])
def test_valid_request_id_is_used(server: RunningServer, request_id: str) -> None:
    reply = server.request("GET", "/api/v1/prompts", headers={"X-Request-Id": request_id})
    assert reply.headers["X-Request-Id"] == reply.json["meta"]["requestId"] == request_id


@pytest.mark.parametrize("request_id", ["x" * 129, "a b", 'a"b', "a\tb", "é"])
def test_invalid_request_id_is_replaced(server: RunningServer, request_id: str) -> None:
    reply = server.request("GET", "/api/v1/prompts", headers={"X-Request-Id": request_id})
    assert reply.headers["X-Request-Id"] == reply.json["meta"]["requestId"] != request_id


def test_metrics_contain_routes_and_no_paths(server: RunningServer) -> None:
    server.request("POST", "/api/v1/prompts/greet")
    server.request("GET", "/some/secret/path")
    text = server.request("GET", "/metrics").body.decode()
    assert 'method="POST",route="/api/v1/prompts/{name}",status="200"' in text
    assert 'route="none",status="404"' in text
    assert 'skillhall_prompts{source="built-in"} 4.0' in text
    assert "skillhall_requests_in_flight 1.0" in text
    assert "secret" not in text


# Fast path and threads


@pytest.mark.parametrize(
    ("method", "fast", "routed"),
    [
        ("GET", "/api/v1/prompts", "/api/v1/%70rompts"),
        ("POST", "/api/v1/prompts/greet", "/api/v1/prompts/%67reet"),
        ("POST", "/api/v1/prompts/filed", "/api/v1/prompts/%66iled"),
        ("POST", "/api/v1/prompts/nope", "/api/v1/prompts/%6eope"),
        ("POST", "/api/v1/prompts/ask", "/api/v1/prompts/%61sk"),
    ],
)
def test_fast_path_and_fastapi_give_equal_responses(
    server: RunningServer, method: str, fast: str, routed: str
) -> None:
    first, second = server.request(method, fast), server.request(method, routed)
    assert first.body.partition(b',"meta":')[0] == second.body.partition(b',"meta":')[0]
    volatile = {"date", "x-request-id"}
    assert [pair for pair in first.headers.items() if pair[0] not in volatile] == [
        pair for pair in second.headers.items() if pair[0] not in volatile
    ]
    assert first.status == second.status


def test_lists_are_served_while_repositories_are_slow() -> None:
    """All worker threads wait for a repository; lists and health checks need none."""
    prompt_service = MemoryPromptService(PROMPTS, repositories={REPOSITORY: PROMPTS})
    with run_server(prompt_service) as server:
        assert server.request("GET", "/readyz").status == 200
        prompt_service.gate = threading.Event()
        clients = [
            threading.Thread(
                target=server.request, args=("GET", f"/api/v1/prompts?repo={REPOSITORY}")
            )
            for _ in range(20)
        ]
        for client in clients:
            client.start()
        assert prompt_service.is_waiting.wait(120)
        assert server.request("GET", "/api/v1/prompts").status == 200
        assert server.request("GET", "/healthz").status == 200
        assert server.request("GET", "/readyz").status == 200
        prompt_service.gate.set()
        for client in clients:
            client.join(120)


def test_source_due_for_refresh_is_served() -> None:
    prompt_service = MemoryPromptService(PROMPTS, is_refresh_due=True)
    with run_server(prompt_service, make_settings()) as server:
        assert server.request("GET", "/api/v1/prompts").status == 200
        assert server.request("POST", "/api/v1/prompts/greet").status == 200


def test_unavailable_database_makes_the_server_not_ready() -> None:
    problems = [""]
    services = Services(MemoryPromptService(), check_database=lambda: problems[0])
    with run_server(services=services) as server:
        assert server.request("GET", "/readyz").json["data"]["database"] == "ok"
        problems[0] = "the database cannot be used: it cannot be reached"
        reply = server.request("GET", "/readyz")
        assert (reply.status, reply.code, reply.message) == (503, "NOT_READY", problems[0])
        assert reply.json["error"]["details"]["database"] == problems[0]
        assert int(reply.headers["Retry-After"]) > 0
        assert server.request("GET", "/healthz").status == 200
        assert server.request("GET", "/api/v1/prompts").status == 200


def test_hanging_database_makes_the_server_not_ready() -> None:
    calls, released = [], threading.Event()

    def hang() -> str:
        calls.append(1)
        assert released.wait(120)
        return ""

    with run_server(services=Services(MemoryPromptService(), check_database=hang)) as server:
        with ThreadPoolExecutor(2) as pool:
            for reply in pool.map(lambda _: server.request("GET", "/readyz"), range(2)):
                assert (reply.status, reply.code) == (503, "NOT_READY")
                assert "does not respond" in reply.message
        assert len(calls) == 1  # a check that hangs is not started again
        released.set()
        wait_until(lambda: server.request("GET", "/readyz").status == 200)
