"""The REST surface over a real socket: the contract, row by row."""

import gzip
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.prompts.prompt_model import PromptArgument, Stale
from skillhall.errors import RateLimited, SourceRejected, SourceTimedOut, TooLarge
from tests.support.prompt_services import MemoryPromptService, make_prompt
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
def counter() -> MemoryPromptService:
    return MemoryPromptService(PROMPTS, repositories={REPOSITORY: [make_prompt("theirs")]})


@pytest.fixture(scope="module")
def server(counter: MemoryPromptService) -> Iterator[RunningServer]:
    with run_server(counter) as one:
        yield one


@pytest.fixture(scope="module")
def failing() -> Iterator[tuple[RunningServer, MemoryPromptService]]:
    counter = MemoryPromptService(PROMPTS)
    with run_server(counter) as one:
        yield one, counter


def data_of(reply: HttpResponse) -> Any:  # noqa: ANN401 - whatever the server says
    assert reply.status == 200, reply.body
    assert set(reply.json) == {"success", "data", "meta"}
    assert reply.json["success"] is True
    assert set(reply.json["meta"]) == {"timestamp", "requestId", "version"}
    return reply.json["data"]


def test_the_list_has_names_descriptions_and_arguments_but_never_files(
    server: RunningServer,
) -> None:
    data = data_of(server.request("GET", "/api/v1/prompts"))
    assert data["source"] == "built-in"
    assert data["prompts"][0] == {"name": "greet", "description": "Does greet."}
    assert data["prompts"][1]["arguments"][0]["name"] == "topic"
    assert not any("files" in one for one in data["prompts"])


def test_a_prompt_is_handed_out_without_a_body(server: RunningServer) -> None:
    assert data_of(server.request("POST", "/api/v1/prompts/greet")) == {
        "description": "Does greet.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hello {{who}}."}}],
        "source": "built-in",
    }


def test_values_are_put_into_a_prompt_literally(server: RunningServer) -> None:
    body = {"arguments": {"topic": "{{depth}} $& \\1"}}
    data = data_of(server.request("POST", "/api/v1/prompts/ask", body))
    assert data["messages"][0]["content"]["text"] == "Of {{depth}} $& \\1, {{depth}}."


def test_files_come_in_base64(server: RunningServer) -> None:
    data = data_of(server.request("POST", "/api/v1/prompts/filed", {}))
    assert data["files"] == [{"path": "notes.md", "content": "/wA="}]


def test_a_name_in_a_path_is_decoded_even_if_it_has_a_slash(server: RunningServer) -> None:
    data = data_of(server.request("POST", "/api/v1/prompts/a%2Fb%20%C3%BC%3F"))
    assert data["description"] == "Does a/b ü?."


def test_a_refresh_tells_how_many_prompts_there_are(server: RunningServer) -> None:
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
def test_a_refresh_refuses_a_body_that_it_does_not_understand(
    server: RunningServer, body: bytes
) -> None:
    reply = server.request("POST", REFRESH, body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


def test_a_refresh_refuses_a_repository_in_the_query_and_in_the_body(server: RunningServer) -> None:
    reply = server.request("POST", f"{REFRESH}?branch=main", {"branch": "dev"})
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
    assert "query" in reply.message


def test_an_upload_is_kept_and_the_same_again_is_unchanged(server: RunningServer) -> None:
    body = {"source": "mine", "contentHash": "h1", "files": [{"path": "up", "content": "eA=="}]}
    first = data_of(server.request("POST", "/api/v1/prompts/sources", body))
    stored = {"source": "mine", "contentHash": "h1", "fileCount": 1, "status": "ingested"}
    assert first == {**stored, **NO_SKIPPED}
    again = data_of(server.request("POST", "/api/v1/prompts/sources", body))
    assert again["status"] == "unchanged"
    assert data_of(server.request("GET", "/api/v1/prompts?source=mine"))["source"] == "mine"


def test_an_upload_without_a_hash_is_answered_without_one(server: RunningServer) -> None:
    body = {"source": "plain", "files": [{"path": "up", "content": "", "mode": 420}]}
    data = data_of(server.request("POST", "/api/v1/prompts/sources", body))
    assert data == {"source": "plain", "fileCount": 1, "status": "ingested", **NO_SKIPPED}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/api/v1/openapi.json", "/api/v1/openapi"])
def test_health_and_the_document_answer(server: RunningServer, method: str, path: str) -> None:
    reply = server.request(method, path)
    assert reply.status == 200
    assert bool(reply.body) == (method == "GET")


def test_another_repository_is_asked_for_with_all_its_parts(
    server: RunningServer, counter: MemoryPromptService
) -> None:
    headers = {"X-Skillhall-Git-Token": "gt-1"}
    query = f"repo={REPOSITORY}&path=some%20where&branch=dev"
    data = data_of(server.request("POST", f"/api/v1/prompts/theirs?{query}", headers=headers))
    assert data["source"] == REPOSITORY
    # The server itself asks too, when it starts.
    asked = next(one for one in reversed(counter.selectors) if one.branch)
    assert asked[:4] == (REPOSITORY, "some where", "dev", "")
    assert asked.token is not None
    assert asked.token.reveal() == "gt-1"


# ------------------------------------------------------------------ what is refused


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
            "method not allowed, use POST",
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
def test_a_refusal_has_its_status_code_and_message(  # noqa: PLR0913, PLR0917 - a row of the table
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
def test_a_place_in_no_repository_is_refused(server: RunningServer, query: str) -> None:
    assert server.request("GET", f"/api/v1/prompts?{query}").status == 400


def test_another_branch_of_the_configured_repository_can_be_asked_for() -> None:
    counter = MemoryPromptService(PROMPTS, source=REPOSITORY)
    with run_server(counter) as server:
        assert data_of(server.request("GET", "/api/v1/prompts?branch=dev"))["source"] == REPOSITORY
    assert "dev" in [asked.branch for asked in counter.selectors]


def test_an_unknown_upload_is_refused_with_the_way_to_upload_it(server: RunningServer) -> None:
    reply = server.request("GET", "/api/v1/prompts?source=gone")
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
    assert "POST /api/v1/prompts/sources" in reply.message


def test_a_repository_that_cannot_be_read_is_a_bad_gateway(server: RunningServer) -> None:
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
def test_a_query_that_is_not_clear_is_refused(
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
def test_a_body_that_is_not_what_it_should_be_is_refused(
    server: RunningServer, body: bytes
) -> None:
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
def test_an_upload_that_breaks_a_rule_is_refused(server: RunningServer, body: object) -> None:
    reply = server.request("POST", "/api/v1/prompts/sources", body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


def test_of_a_wrong_body_the_place_is_told_and_never_the_value(server: RunningServer) -> None:
    body = {"source": "a", "files": [{"path": {"oh": "secret-value"}, "content": ""}]}
    reply = server.request("POST", "/api/v1/prompts/sources", body)
    assert reply.json["error"]["details"]["problems"][0]["where"] == "files.0.path"
    assert b"secret-value" not in reply.body


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "text/json"])
@pytest.mark.parametrize("path", ["greet", "refresh", "sources"])
def test_a_body_of_another_kind_is_refused(server: RunningServer, path: str, kind: str) -> None:
    headers = {"Content-Type": kind}
    reply = server.request("POST", f"/api/v1/prompts/{path}", b"{}", headers)
    assert (reply.status, reply.code) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_charset_beside_the_kind_of_a_body_is_fine(server: RunningServer) -> None:
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
def test_a_wrong_method_is_told_the_right_one(
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
def test_what_fails_inside_is_answered_by_its_class(  # noqa: PLR0913, PLR0917 - a row of a table
    failing: tuple[RunningServer, MemoryPromptService],
    path: str,
    error: Exception,
    status: int,
    code: str,
    wait: str | None,
) -> None:
    server, counter = failing
    counter.error = error
    reply = server.request("POST", f"/api/v1/prompts{path}", headers={"X-Request-Id": "seen-7"})
    assert (reply.status, reply.code) == (status, code)
    assert reply.headers["Retry-After"] == wait
    assert reply.json["meta"]["requestId"] == "seen-7"
    assert b"/srv/private" not in reply.body


# ------------------------------------------------------------------ what answers say beside data


def test_a_stale_copy_is_marked_with_its_commit() -> None:
    stale = Stale("the host is away", "2026-11-16T00:00:00Z")
    with run_server(MemoryPromptService(PROMPTS, commit="abc", stale=stale)) as server:
        listed = server.request("GET", "/api/v1/prompts")
        ready = server.request("GET", "/readyz")
    assert listed.json["meta"]["stale"] == {"reason": stale.reason, "since": stale.since}
    assert listed.json["meta"]["commit"] == "abc"
    assert ready.status == 200
    assert ready.json["data"]["sources"][0]["stale"]["reason"] == "the host is away"


def test_a_server_with_nothing_to_hand_out_is_alive_but_not_ready() -> None:
    with run_server(
        MemoryPromptService(error=SourceRejected("host", "a private address"))
    ) as server:
        assert server.request("GET", "/healthz").status == 200
        reply = server.request("GET", "/readyz")
    assert (reply.status, reply.code) == (503, "NOT_READY")
    assert reply.json["error"]["details"] == {"sources": []}


def test_a_server_that_is_still_loading_is_not_ready() -> None:
    counter = MemoryPromptService(PROMPTS, gate=threading.Event())
    with run_server(counter) as server:
        assert counter.is_waiting.wait(120)
        reply = server.request("GET", "/readyz")
        assert (reply.status, reply.code) == (503, "NOT_READY")
        assert reply.message == "the prompts are being loaded"
        assert counter.gate is not None
        counter.gate.set()
        assert server.request("GET", "/readyz").status == 200


@pytest.mark.parametrize("form", ["{}", '"x", {}', "*"])
def test_a_list_that_is_known_is_not_sent_again(server: RunningServer, form: str) -> None:
    tag = server.request("GET", "/api/v1/prompts").headers["ETag"]
    assert tag.startswith('W/"')
    reply = server.request("GET", "/api/v1/prompts", headers={"If-None-Match": form.format(tag)})
    assert (reply.status, reply.body) == (304, b"")
    assert reply.headers["ETag"] == tag
    assert reply.headers["Cache-Control"] == "no-cache"
    assert "X-Request-Id" in reply.headers
    assert "Content-Security-Policy" not in reply.headers, "the client keeps that of the list"


def test_a_list_that_has_changed_is_sent(server: RunningServer) -> None:
    headers = {"If-None-Match": 'W/"older"'}
    assert server.request("GET", "/api/v1/prompts", headers=headers).status == 200


def test_a_large_list_comes_in_gzip_to_whom_it_may() -> None:
    many = [make_prompt(f"prompt-{number}") for number in range(2_000)]
    with run_server(MemoryPromptService(many)) as server:
        plain = server.request("GET", "/api/v1/prompts", headers={"Accept-Encoding": "gzip;q=0"})
        packed = [
            server.request("GET", "/api/v1/prompts", headers={"Accept-Encoding": "br, gzip"})
            for _ in range(2)
        ]
    assert plain.headers["Content-Encoding"] is None
    assert len(plain.body) > 65_536
    for reply in packed:
        assert reply.headers["Content-Encoding"] == "gzip"
        assert len(reply.body) < len(plain.body) / 3
        assert json.loads(gzip.decompress(reply.body))["data"] == plain.json["data"]


def test_every_answer_has_the_headers_that_keep_browsers_careful(server: RunningServer) -> None:
    for method, path in [("GET", "/api/v1/prompts"), ("POST", "/nowhere"), ("GET", "/healthz")]:
        headers = server.request(method, path, headers={"Origin": "http://evil.example"}).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert headers["Access-Control-Allow-Origin"] is None
        assert headers["Server"] is None


@pytest.mark.parametrize("given", ["a", "A.b_c-9", "x" * 128])
def test_a_good_request_id_is_kept(server: RunningServer, given: str) -> None:
    reply = server.request("GET", "/api/v1/prompts", headers={"X-Request-Id": given})
    assert reply.headers["X-Request-Id"] == reply.json["meta"]["requestId"] == given


@pytest.mark.parametrize("given", ["x" * 129, "a b", 'a"b', "a\tb", "é"])
def test_a_bad_request_id_is_replaced(server: RunningServer, given: str) -> None:
    reply = server.request("GET", "/api/v1/prompts", headers={"X-Request-Id": given})
    assert reply.headers["X-Request-Id"] == reply.json["meta"]["requestId"] != given


def test_the_figures_know_routes_and_never_paths(server: RunningServer) -> None:
    server.request("POST", "/api/v1/prompts/greet")
    server.request("GET", "/some/secret/path")
    text = server.request("GET", "/metrics").body.decode()
    assert 'method="POST",route="/api/v1/prompts/{name}",status="200"' in text
    assert 'route="none",status="404"' in text
    assert 'skillhall_prompts{source="built-in"} 4.0' in text
    assert "skillhall_requests_in_flight 1.0" in text
    assert "secret" not in text


# ------------------------------------------------------------------ one function for each answer


@pytest.mark.parametrize(
    ("method", "hot", "routed"),
    [
        ("GET", "/api/v1/prompts", "/api/v1/%70rompts"),
        ("POST", "/api/v1/prompts/greet", "/api/v1/prompts/%67reet"),
        ("POST", "/api/v1/prompts/filed", "/api/v1/prompts/%66iled"),
        ("POST", "/api/v1/prompts/nope", "/api/v1/prompts/%6eope"),
        ("POST", "/api/v1/prompts/ask", "/api/v1/prompts/%61sk"),
    ],
)
def test_the_hot_front_and_the_framework_give_the_same_bytes(
    server: RunningServer, method: str, hot: str, routed: str
) -> None:
    first, second = server.request(method, hot), server.request(method, routed)
    assert first.body.partition(b',"meta":')[0] == second.body.partition(b',"meta":')[0]
    volatile = {"date", "x-request-id"}
    assert [pair for pair in first.headers.items() if pair[0] not in volatile] == [
        pair for pair in second.headers.items() if pair[0] not in volatile
    ]
    assert first.status == second.status


def test_a_list_stays_quick_while_repositories_are_slow() -> None:
    """Each thread waits for a repository; lists and health checks need none."""
    counter = MemoryPromptService(PROMPTS, repositories={REPOSITORY: PROMPTS})
    with run_server(counter) as server:
        assert server.request("GET", "/readyz").status == 200
        counter.gate = threading.Event()
        askers = [
            threading.Thread(
                target=server.request, args=("GET", f"/api/v1/prompts?repo={REPOSITORY}")
            )
            for _ in range(20)
        ]
        for asker in askers:
            asker.start()
        assert counter.is_waiting.wait(120)
        assert server.request("GET", "/api/v1/prompts").status == 200
        assert server.request("GET", "/healthz").status == 200
        assert server.request("GET", "/readyz").status == 200
        counter.gate.set()
        for asker in askers:
            asker.join(120)


def test_a_source_whose_time_is_over_is_looked_at_first() -> None:
    counter = MemoryPromptService(PROMPTS, is_refresh_due=True)
    with run_server(counter, make_settings()) as server:
        assert server.request("GET", "/api/v1/prompts").status == 200
        assert server.request("POST", "/api/v1/prompts/greet").status == 200


def test_a_database_that_cannot_be_used_makes_the_server_not_ready() -> None:
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
