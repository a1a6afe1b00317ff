"""The REST surface over a real socket: the contract, row by row."""

import gzip
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from skillhall._internal.asgi import Services
from skillhall._internal.prompts.prompt_model import Argument, Stale
from skillhall.errors import RateLimited, SourceRejected, SourceTimedOut, TooLarge
from tests.support.prompt_services import MemoryCounter, make_prompt
from tests.support.servers import Reply, Running, make_settings, running

TOPIC = Argument("topic", "What about.", required=True)
PROMPTS = (
    make_prompt("greet"),
    make_prompt("ask", "Of {{topic}}, {{depth}}.", [TOPIC, Argument("depth")]),
    make_prompt("filed", "See notes.md.", files={"notes.md": b"\xff\0"}),
    make_prompt("a/b ü?", "Odd name."),
)
NO_SKIPPED = {"skipped": [], "skippedTotal": 0}
REFRESH = "/api/v1/prompts/refresh"
REPOSITORY = "https://git.example.org/team/prompts"


@pytest.fixture(scope="module")
def counter() -> MemoryCounter:
    return MemoryCounter(PROMPTS, repositories={REPOSITORY: [make_prompt("theirs")]})


@pytest.fixture(scope="module")
def server(counter: MemoryCounter) -> Iterator[Running]:
    with running(counter) as one:
        yield one


@pytest.fixture(scope="module")
def failing() -> Iterator[tuple[Running, MemoryCounter]]:
    counter = MemoryCounter(PROMPTS)
    with running(counter) as one:
        yield one, counter


def data_of(reply: Reply) -> Any:  # noqa: ANN401 - whatever the server says
    assert reply.status == 200, reply.body
    assert set(reply.json) == {"success", "data", "meta"}
    assert reply.json["success"] is True
    assert set(reply.json["meta"]) == {"timestamp", "requestId", "version"}
    return reply.json["data"]


def test_the_list_has_names_descriptions_and_arguments_but_never_files(server: Running) -> None:
    data = data_of(server.ask("GET", "/api/v1/prompts"))
    assert data["source"] == "built-in"
    assert data["prompts"][0] == {"name": "greet", "description": "Does greet."}
    assert data["prompts"][1]["arguments"][0]["name"] == "topic"
    assert not any("files" in one for one in data["prompts"])


def test_a_prompt_is_handed_out_without_a_body(server: Running) -> None:
    assert data_of(server.ask("POST", "/api/v1/prompts/greet")) == {
        "description": "Does greet.",
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hello {{who}}."}}],
        "source": "built-in",
    }


def test_values_are_put_into_a_prompt_literally(server: Running) -> None:
    body = {"arguments": {"topic": "{{depth}} $& \\1"}}
    data = data_of(server.ask("POST", "/api/v1/prompts/ask", body))
    assert data["messages"][0]["content"]["text"] == "Of {{depth}} $& \\1, {{depth}}."


def test_files_come_in_base64(server: Running) -> None:
    data = data_of(server.ask("POST", "/api/v1/prompts/filed", {}))
    assert data["files"] == [{"path": "notes.md", "content": "/wA="}]


def test_a_name_in_a_path_is_decoded_even_if_it_has_a_slash(server: Running) -> None:
    data = data_of(server.ask("POST", "/api/v1/prompts/a%2Fb%20%C3%BC%3F"))
    assert data["description"] == "Does a/b ü?."


def test_a_refresh_tells_how_many_prompts_there_are(server: Running) -> None:
    data = data_of(server.ask("POST", "/api/v1/prompts/refresh"))
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
def test_a_refresh_refuses_a_body_that_it_does_not_understand(server: Running, body: bytes) -> None:
    reply = server.ask("POST", REFRESH, body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


def test_a_refresh_refuses_a_repository_in_the_query_and_in_the_body(server: Running) -> None:
    reply = server.ask("POST", f"{REFRESH}?branch=main", {"branch": "dev"})
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
    assert "query" in reply.message


def test_an_upload_is_kept_and_the_same_again_is_unchanged(server: Running) -> None:
    body = {"source": "mine", "contentHash": "h1", "files": [{"path": "up", "content": "eA=="}]}
    first = data_of(server.ask("POST", "/api/v1/prompts/sources", body))
    stored = {"source": "mine", "contentHash": "h1", "fileCount": 1, "status": "ingested"}
    assert first == {**stored, **NO_SKIPPED}
    again = data_of(server.ask("POST", "/api/v1/prompts/sources", body))
    assert again["status"] == "unchanged"
    assert data_of(server.ask("GET", "/api/v1/prompts?source=mine"))["source"] == "mine"


def test_an_upload_without_a_hash_is_answered_without_one(server: Running) -> None:
    body = {"source": "plain", "files": [{"path": "up", "content": "", "mode": 420}]}
    data = data_of(server.ask("POST", "/api/v1/prompts/sources", body))
    assert data == {"source": "plain", "fileCount": 1, "status": "ingested", **NO_SKIPPED}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/api/v1/openapi.json", "/api/v1/openapi"])
def test_health_and_the_document_answer(server: Running, method: str, path: str) -> None:
    reply = server.ask(method, path)
    assert reply.status == 200
    assert bool(reply.body) == (method == "GET")


def test_another_repository_is_asked_for_with_all_its_parts(
    server: Running, counter: MemoryCounter
) -> None:
    headers = {"X-Skillhall-Git-Token": "gt-1"}
    query = f"repo={REPOSITORY}&path=some%20where&branch=dev"
    data = data_of(server.ask("POST", f"/api/v1/prompts/theirs?{query}", headers=headers))
    assert data["source"] == REPOSITORY
    # The server itself asks too, when it starts.
    asked = next(one for one in reversed(counter.asked) if one.branch)
    assert asked[:4] == (REPOSITORY, "some where", "dev", "")
    assert asked.token is not None
    assert asked.token.reveal() == "gt-1"


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "message"),
    [
        ("POST", "/api/v1/prompts/nope", None, 400, "VALIDATION_ERROR", "Prompt not found: nope"),
        ("POST", "/api/v1/prompts/%FF", None, 400, "VALIDATION_ERROR", "Prompt not found: %FF"),
        ("POST", "/api/v1/prompts/a/b", None, 404, "NOT_FOUND", "there is no such route"),
        ("POST", "/api/v1/prompts/", None, 404, "NOT_FOUND", "there is no such route"),
        ("POST", "/api%2Fv1/prompts/greet", None, 404, "NOT_FOUND", "there is no such route"),
        ("GET", "/api/v1/prompts/", None, 405, "METHOD_NOT_ALLOWED", "that route takes POST only"),
        ("GET", "/", None, 404, "NOT_FOUND", "there is no such route"),
        ("GET", "/docs", None, 404, "NOT_FOUND", "there is no such route"),
        ("POST", "/api/v1/webhooks/git", {}, 404, "NOT_FOUND", "there is no such route"),
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
    server: Running, method: str, path: str, body: object, status: int, code: str, message: str
) -> None:
    reply = server.ask(method, path, body)
    assert (reply.status, reply.code, reply.message) == (status, code, message)
    assert reply.json["success"] is False
    assert reply.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("query", ["path=x", "branch=x"])
def test_a_place_in_no_repository_is_refused(server: Running, query: str) -> None:
    assert server.ask("GET", f"/api/v1/prompts?{query}").status == 400


def test_another_branch_of_the_configured_repository_can_be_asked_for() -> None:
    counter = MemoryCounter(PROMPTS, source=REPOSITORY)
    with running(counter) as server:
        assert data_of(server.ask("GET", "/api/v1/prompts?branch=dev"))["source"] == REPOSITORY
    assert "dev" in [asked.branch for asked in counter.asked]


def test_an_unknown_upload_is_refused_with_the_way_to_upload_it(server: Running) -> None:
    reply = server.ask("GET", "/api/v1/prompts?source=gone")
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
    assert "POST /api/v1/prompts/sources" in reply.message


def test_a_repository_that_cannot_be_read_is_a_bad_gateway(server: Running) -> None:
    reply = server.ask("GET", "/api/v1/prompts?repo=https://git.example.org/none")
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
    server: Running, method: str, path: str, query: str
) -> None:
    body = {"source": "a", "files": []} if path == "/sources" else None
    reply = server.ask(method, f"/api/v1/prompts{path}?{query}", body)
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
def test_a_body_that_is_not_what_it_should_be_is_refused(server: Running, body: bytes) -> None:
    reply = server.ask("POST", "/api/v1/prompts/greet", body)
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
def test_an_upload_that_breaks_a_rule_is_refused(server: Running, body: object) -> None:
    reply = server.ask("POST", "/api/v1/prompts/sources", body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


def test_of_a_wrong_body_the_place_is_told_and_never_the_value(server: Running) -> None:
    body = {"source": "a", "files": [{"path": {"oh": "secret-value"}, "content": ""}]}
    reply = server.ask("POST", "/api/v1/prompts/sources", body)
    assert reply.json["error"]["details"]["problems"][0]["where"] == "files.0.path"
    assert b"secret-value" not in reply.body


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "text/json"])
@pytest.mark.parametrize("path", ["greet", "refresh", "sources"])
def test_a_body_of_another_kind_is_refused(server: Running, path: str, kind: str) -> None:
    headers = {"Content-Type": kind}
    reply = server.ask("POST", f"/api/v1/prompts/{path}", b"{}", headers)
    assert (reply.status, reply.code) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_charset_beside_the_kind_of_a_body_is_fine(server: Running) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert server.ask("POST", "/api/v1/prompts/greet", b"{}", headers).status == 200


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
    server: Running, method: str, path: str, allowed: str
) -> None:
    reply = server.ask(method, path)
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
    failing: tuple[Running, MemoryCounter],
    path: str,
    error: Exception,
    status: int,
    code: str,
    wait: str | None,
) -> None:
    server, counter = failing
    counter.fault = error
    reply = server.ask("POST", f"/api/v1/prompts{path}", headers={"X-Request-Id": "seen-7"})
    assert (reply.status, reply.code) == (status, code)
    assert reply.headers["Retry-After"] == wait
    assert reply.json["meta"]["requestId"] == "seen-7"
    assert b"/srv/private" not in reply.body


# ------------------------------------------------------------------ what answers say beside data


def test_a_stale_copy_is_marked_with_its_commit() -> None:
    stale = Stale("the host is away", "2026-11-16T00:00:00Z")
    with running(MemoryCounter(PROMPTS, commit="abc", stale=stale)) as server:
        listed = server.ask("GET", "/api/v1/prompts")
        ready = server.ask("GET", "/readyz")
    assert listed.json["meta"]["stale"] == {"reason": stale.reason, "since": stale.since}
    assert listed.json["meta"]["commit"] == "abc"
    assert ready.status == 200
    assert ready.json["data"]["sources"][0]["stale"]["reason"] == "the host is away"


def test_a_server_with_nothing_to_hand_out_is_alive_but_not_ready() -> None:
    with running(MemoryCounter(fault=SourceRejected("host", "a private address"))) as server:
        assert server.ask("GET", "/healthz").status == 200
        reply = server.ask("GET", "/readyz")
    assert (reply.status, reply.code) == (503, "NOT_READY")
    assert reply.json["error"]["details"] == {"sources": []}


def test_a_server_that_is_still_loading_is_not_ready() -> None:
    counter = MemoryCounter(PROMPTS, gate=threading.Event())
    with running(counter) as server:
        assert counter.waiting.wait(120)
        reply = server.ask("GET", "/readyz")
        assert (reply.status, reply.code) == (503, "NOT_READY")
        assert reply.message == "the prompts are being loaded"
        assert counter.gate is not None
        counter.gate.set()
        assert server.ask("GET", "/readyz").status == 200


@pytest.mark.parametrize("form", ["{}", '"x", {}', "*"])
def test_a_list_that_is_known_is_not_sent_again(server: Running, form: str) -> None:
    tag = server.ask("GET", "/api/v1/prompts").headers["ETag"]
    assert tag.startswith('W/"')
    reply = server.ask("GET", "/api/v1/prompts", headers={"If-None-Match": form.format(tag)})
    assert (reply.status, reply.body) == (304, b"")
    assert reply.headers["ETag"] == tag
    assert reply.headers["Cache-Control"] == "no-cache"
    assert "X-Request-Id" in reply.headers
    assert "Content-Security-Policy" not in reply.headers, "the client keeps that of the list"


def test_a_list_that_has_changed_is_sent(server: Running) -> None:
    headers = {"If-None-Match": 'W/"older"'}
    assert server.ask("GET", "/api/v1/prompts", headers=headers).status == 200


def test_a_large_list_comes_in_gzip_to_whom_it_may() -> None:
    many = [make_prompt(f"prompt-{number}") for number in range(2_000)]
    with running(MemoryCounter(many)) as server:
        plain = server.ask("GET", "/api/v1/prompts", headers={"Accept-Encoding": "gzip;q=0"})
        packed = [
            server.ask("GET", "/api/v1/prompts", headers={"Accept-Encoding": "br, gzip"})
            for _ in range(2)
        ]
    assert plain.headers["Content-Encoding"] is None
    assert len(plain.body) > 65_536
    for reply in packed:
        assert reply.headers["Content-Encoding"] == "gzip"
        assert len(reply.body) < len(plain.body) / 3
        assert json.loads(gzip.decompress(reply.body))["data"] == plain.json["data"]


def test_every_answer_has_the_headers_that_keep_browsers_careful(server: Running) -> None:
    for method, path in [("GET", "/api/v1/prompts"), ("POST", "/nowhere"), ("GET", "/healthz")]:
        headers = server.ask(method, path, headers={"Origin": "http://evil.example"}).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert headers["Access-Control-Allow-Origin"] is None
        assert headers["Server"] is None


@pytest.mark.parametrize("given", ["a", "A.b_c-9", "x" * 128])
def test_a_good_request_id_is_kept(server: Running, given: str) -> None:
    reply = server.ask("GET", "/api/v1/prompts", headers={"X-Request-Id": given})
    assert reply.headers["X-Request-Id"] == reply.json["meta"]["requestId"] == given


@pytest.mark.parametrize("given", ["x" * 129, "a b", 'a"b', "a\tb", "é"])
def test_a_bad_request_id_is_replaced(server: Running, given: str) -> None:
    reply = server.ask("GET", "/api/v1/prompts", headers={"X-Request-Id": given})
    assert reply.headers["X-Request-Id"] == reply.json["meta"]["requestId"] != given


def test_the_figures_know_routes_and_never_paths(server: Running) -> None:
    server.ask("POST", "/api/v1/prompts/greet")
    server.ask("GET", "/some/secret/path")
    text = server.ask("GET", "/metrics").body.decode()
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
    server: Running, method: str, hot: str, routed: str
) -> None:
    first, second = server.ask(method, hot), server.ask(method, routed)
    assert first.body.partition(b',"meta":')[0] == second.body.partition(b',"meta":')[0]
    volatile = {"date", "x-request-id"}
    assert [pair for pair in first.headers.items() if pair[0] not in volatile] == [
        pair for pair in second.headers.items() if pair[0] not in volatile
    ]
    assert first.status == second.status


def test_a_list_stays_quick_while_repositories_are_slow() -> None:
    """Each thread waits for a repository; lists and health checks need none."""
    counter = MemoryCounter(PROMPTS, repositories={REPOSITORY: PROMPTS})
    with running(counter) as server:
        assert server.ask("GET", "/readyz").status == 200
        counter.gate = threading.Event()
        askers = [
            threading.Thread(target=server.ask, args=("GET", f"/api/v1/prompts?repo={REPOSITORY}"))
            for _ in range(20)
        ]
        for asker in askers:
            asker.start()
        assert counter.waiting.wait(120)
        assert server.ask("GET", "/api/v1/prompts").status == 200
        assert server.ask("GET", "/healthz").status == 200
        assert server.ask("GET", "/readyz").status == 200
        counter.gate.set()
        for asker in askers:
            asker.join(120)


def test_a_source_whose_time_is_over_is_looked_at_first() -> None:
    counter = MemoryCounter(PROMPTS, is_due=True)
    with running(counter, make_settings()) as server:
        assert server.ask("GET", "/api/v1/prompts").status == 200
        assert server.ask("POST", "/api/v1/prompts/greet").status == 200


def test_a_database_that_cannot_be_used_makes_the_server_not_ready() -> None:
    problems = [""]
    services = Services(MemoryCounter(), database=lambda: problems[0])
    with running(services=services) as server:
        assert server.ask("GET", "/readyz").json["data"]["database"] == "ok"
        problems[0] = "the database cannot be used: it cannot be reached"
        reply = server.ask("GET", "/readyz")
        assert (reply.status, reply.code, reply.message) == (503, "NOT_READY", problems[0])
        assert reply.json["error"]["details"]["database"] == problems[0]
        assert int(reply.headers["Retry-After"]) > 0
        assert server.ask("GET", "/healthz").status == 200
        assert server.ask("GET", "/api/v1/prompts").status == 200
