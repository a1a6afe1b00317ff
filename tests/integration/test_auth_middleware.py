"""Who is let in, over a real socket: names, origins, tokens, sizes and secrets."""

import hashlib
import hmac
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from fastapi import APIRouter
from starlette.responses import StreamingResponse

from skillhall._internal.asgi import Services, listen
from skillhall._internal.http.credentials import MAX_FAILURES
from skillhall._internal.settings import Secret
from skillhall.errors import ConfigInvalid
from tests.support.prompt_services import MemoryPromptService, make_prompt
from tests.support.servers import (
    DEADLINE,
    TOKEN,
    HttpResponse,
    MemoryTokens,
    RunningServer,
    make_settings,
    make_token_settings,
    read_response,
    run_server,
)

HOOK = "hook-secret-0123456789"
LIST = "/api/v1/prompts"


@pytest.fixture(scope="module")
def counter() -> MemoryPromptService:
    return MemoryPromptService([make_prompt()], source="https://github.com/acme/prompts")


@pytest.fixture(scope="module")
def server(counter: MemoryPromptService) -> Iterator[RunningServer]:
    with run_server(counter, make_settings(public_url="https://hall.example.org")) as one:
        yield one


@pytest.fixture(scope="module")
def locked(counter: MemoryPromptService) -> Iterator[RunningServer]:
    settings = make_token_settings(allowed_hosts=("hall.lan",), webhook_secret=Secret(HOOK))
    with run_server(counter, settings) as one:
        yield one


# ------------------------------------------------------------------ R2, R12: names


@pytest.mark.parametrize("host", ["localhost:{}", "127.0.0.1:{}", "[::1]:{}", "LocalHost:{}"])
def test_a_name_of_this_machine_is_answered(server: RunningServer, host: str) -> None:
    headers = {"Host": host.format(server.port)}
    assert server.request("GET", LIST, headers=headers).status == 200


@pytest.mark.parametrize("host", ["hall.example.org", "hall.example.org:443"])
def test_the_public_name_is_answered(server: RunningServer, host: str) -> None:
    assert server.request("GET", LIST, headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:{}",
        "127.0.0.1:{}@evil.example",
        "",
        ":{}",
        "hall.example.org:80",
        "0.0.0.0:{}",
        "[::1",
    ],
)
@pytest.mark.parametrize("path", [LIST, "/healthz", "/mcp", "/metrics"])
def test_another_name_is_misdirected_whatever_is_asked(
    server: RunningServer, host: str, path: str
) -> None:
    reply = server.request("GET", path, headers={"Host": host.format(server.port)})
    assert (reply.status, reply.code) == (421, "MISDIRECTED")


def test_no_name_and_two_names_are_misdirected(server: RunningServer) -> None:
    good = b"Host: 127.0.0.1:%d\r\n" % server.port
    for head in (b"", good * 2):
        answer = server.send_raw(b"GET /healthz HTTP/1.1\r\n" + head + b"\r\n")
        assert answer.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400"))


def test_forwarded_headers_change_nothing(server: RunningServer) -> None:
    headers = {"Host": "evil.example", "X-Forwarded-Host": f"127.0.0.1:{server.port}"}
    headers |= {"Forwarded": "host=localhost", "X-Forwarded-For": "127.0.0.1"}
    assert server.request("GET", LIST, headers=headers).status == 421


def test_a_name_that_is_allowed_by_the_settings_is_answered(locked: RunningServer) -> None:
    assert locked.request("GET", LIST, headers={"Host": "hall.lan"}).status == 200


# ------------------------------------------------------------------ R1, R3: origins


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:{}"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{}"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://127.0.0.1:{}.evil.example"},
    ],
)
def test_a_page_of_another_site_changes_nothing(
    server: RunningServer, counter: MemoryPromptService, headers: dict[str, str]
) -> None:
    given = {name: value.format(server.port) for name, value in headers.items()}
    before = len(counter.refreshed_selectors)
    reply = server.request("POST", f"{LIST}/refresh", headers=given)
    assert (reply.status, reply.code) == (403, "CROSS_ORIGIN")
    assert len(counter.refreshed_selectors) == before


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://127.0.0.1:{}"},
        {"Origin": "https://hall.example.org"},
        {"Origin": "http://evil.example", "Authorization": "Bearer x"},
    ],
)
def test_our_own_pages_and_programs_may_write(
    server: RunningServer, headers: dict[str, str]
) -> None:
    given = {name: value.format(server.port) for name, value in headers.items()}
    assert server.request("POST", f"{LIST}/refresh", headers=given).status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("query", ["repo=https://evil.example/x", "r%65po=acme/x", "branch=dev"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
    ],
)
def test_a_page_of_another_site_cannot_make_the_server_fetch(
    server: RunningServer, method: str, query: str, headers: dict[str, str]
) -> None:
    assert server.request(method, f"{LIST}?{query}", headers=headers).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://127.0.0.1:{}"},
        {"Sec-Fetch-Site": "cross-site", "Authorization": f"Bearer {TOKEN}"},
    ],
)
def test_programs_and_our_own_pages_may_name_a_repository(
    server: RunningServer, headers: dict[str, str]
) -> None:
    given = {name: value.format(server.port) for name, value in headers.items()}
    query = "?repo=https://github.com/acme/prompts"
    assert server.request("GET", LIST + query, headers=given).code == "PROMPTS_SOURCE_ERROR"


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_foreign_page_does_not_even_read_from_mcp(server: RunningServer, method: str) -> None:
    headers = {"Origin": "http://evil.example", "Authorization": "Bearer x"}
    assert server.request(method, "/mcp", headers=headers).code == "CROSS_ORIGIN"
    assert server.request("GET", LIST, headers=headers).status == 200


# ------------------------------------------------------------------ R5, R6: tokens


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN]
)
@pytest.mark.parametrize("path", [LIST, "/metrics", "/nowhere"])
def test_a_missing_and_a_wrong_token_get_the_same_answer(
    counter: MemoryPromptService, locked: RunningServer, path: str, given: str
) -> None:
    headers = {"Authorization": given, "X-Request-Id": "one"}
    reply = locked.request("GET", path, headers=headers)
    assert (reply.status, reply.code) == (401, "UNAUTHORIZED")
    assert reply.headers["WWW-Authenticate"] == "Bearer"
    assert reply.message == "bearer token missing or invalid"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/api/v1/openapi.json"])
def test_health_needs_no_token(locked: RunningServer, path: str) -> None:
    assert locked.request("GET", path, headers={"Authorization": ""}).status == 200


def test_the_scheme_of_a_token_is_written_in_any_case(locked: RunningServer) -> None:
    assert locked.request("GET", LIST, headers={"Authorization": f"bearer {TOKEN}"}).status == 200


def test_whoever_guesses_is_slowed_down_and_whoever_knows_is_not() -> None:
    with run_server(MemoryPromptService(), make_token_settings()) as server:
        wrong = {"Authorization": "Bearer guess"}
        guesses = [server.request("GET", LIST, headers=wrong) for _ in range(MAX_FAILURES + 1)]
        assert {reply.status for reply in guesses[:-1]} == {401}
        assert (guesses[-1].status, guesses[-1].code) == (429, "TOO_MANY_REQUESTS")
        assert 0 < int(guesses[-1].headers["Retry-After"]) <= 900
        assert server.request("GET", LIST).status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])  # noqa: S104 - refused
def test_without_a_token_nobody_else_can_be_served(host: str) -> None:
    with pytest.raises(ConfigInvalid, match="no token") as refusal:
        listen(make_settings(host=host).server)
    assert "SKILLHALL_AUTH_TOKEN" in refusal.value.hint


def test_with_a_token_everybody_can_be_served() -> None:
    with listen(make_token_settings(host="0.0.0.0").server) as listening:  # noqa: S104 - that is the test
        assert listening.getsockname()[1] > 0


@pytest.mark.parametrize("token", ["x", "password", "changeme-changeme", "1234567890123456"])
@pytest.mark.parametrize(
    "place",
    [
        {"host": "0.0.0.0"},  # noqa: S104 - refused
        {"host": "192.0.2.7"},
        {"public_url": "https://hall.example.org"},
    ],
)
def test_a_trivial_token_is_refused_where_others_can_reach_the_server(
    token: str, place: dict[str, str]
) -> None:
    with pytest.raises(ConfigInvalid, match="too easy to guess") as refusal:
        listen(make_settings(auth_token=Secret(token), **place).server)
    assert "secrets.token_urlsafe(32)" in refusal.value.hint
    assert token not in str(refusal.value) + refusal.value.hint


@pytest.mark.parametrize("public_url", ["", "http://localhost:9000"])
def test_a_trivial_token_is_accepted_on_this_machine(public_url: str) -> None:
    with listen(make_settings(auth_token=Secret("x"), public_url=public_url).server) as listening:
        assert listening.getsockname()[1] > 0


@pytest.mark.parametrize("port", ["70000", "x", "-1", "8_0"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(ConfigInvalid, match="is not a port"):
        listen(make_settings(port=port).server)


def test_a_port_that_is_taken_is_refused(server: RunningServer) -> None:
    with pytest.raises(ConfigInvalid, match="cannot be used") as refusal:
        listen(make_settings(port=str(server.port)).server)
    assert "--port" in refusal.value.hint


# ------------------------------------------------------------------ R7, R10: sizes and patience


def post(server: RunningServer, path: str, head: bytes, body: bytes) -> bytes:
    start = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n".encode()
    return server.send_raw(start + b"Content-Type: application/json\r\n" + head + b"\r\n" + body)


@pytest.mark.parametrize(
    ("path", "limit"), [(f"{LIST}/sources", 512 * 1024), (f"{LIST}/greet", 1 << 20)]
)
def test_a_body_over_the_limit_is_refused(server: RunningServer, path: str, limit: int) -> None:
    fits = server.request("POST", path, b" " * (limit - 2) + b"{}")
    assert fits.status == (200 if path.endswith("greet") else 400)
    reply = server.request("POST", path, b" " * limit + b"{}")
    assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize("path", [f"{LIST}/sources", f"{LIST}/refresh", f"{LIST}/greet"])
def test_a_body_in_chunks_is_counted_while_it_comes(server: RunningServer, path: str) -> None:
    chunk = b"%x\r\n%s\r\n" % (65_536, b" " * 65_536)
    answer = post(server, path, b"Transfer-Encoding: chunked\r\n", chunk * 20 + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")


def test_a_body_without_end_is_cut_off(server: RunningServer) -> None:
    with server.connect() as line:
        start = f"POST {LIST}/sources HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        line.sendall(start.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"%x\r\n%s\r\n" % (65_536, b" " * 65_536)
        for _ in range(24):  # 512 KiB that are read, and what is dropped after them
            line.sendall(chunk)
        answer = read_response(line)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer


def test_a_length_that_is_only_claimed_is_refused_at_once(server: RunningServer) -> None:
    answer = post(server, f"{LIST}/sources", b"Content-Length: 99999999999\r\n", b"")
    assert answer.startswith(b"HTTP/1.1 413")


def test_two_lengths_are_no_request(server: RunningServer) -> None:
    for head in (
        b"Content-Length: 2\r\nContent-Length: 3\r\n",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
    ):
        assert post(server, f"{LIST}/greet", head, b"{}").startswith(b"HTTP/1.1 400")


def test_headers_without_end_are_cut_off(server: RunningServer) -> None:
    with server.connect() as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: " + b"a" * 300_000)
        assert line.recv(65_536).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/prompts/greet%0d%0aX-Evil:%201",
        "/api/v1/prompts/..%2f..%2fetc%2fpasswd",
        "/api/v1/prompts/%00",
        "/static/..%2f..%2fetc/passwd",
    ],
)
def test_an_encoded_attack_is_an_ordinary_wrong_name(server: RunningServer, path: str) -> None:
    reply = server.request("POST", path)
    assert reply.status in (400, 404)
    assert reply.headers["X-Evil"] is None
    assert b"root:" not in reply.body


def test_a_method_is_not_overridden_by_a_header(server: RunningServer) -> None:
    headers = {"X-HTTP-Method-Override": "POST", "X-Method-Override": "POST"}
    assert server.request("GET", f"{LIST}/refresh", headers=headers).status == 405


# ------------------------------------------------------------------ what git hosts tell


def hook(
    server: RunningServer, payload: object, event: str = "push", **headers: str
) -> HttpResponse:
    body = json.dumps(payload).encode()
    signature = "sha256=" + hmac.new(HOOK.encode(), body, hashlib.sha256).hexdigest()
    given = {"X-GitHub-Event": event, "X-Hub-Signature-256": signature}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    given |= {"Authorization": "", "Origin": "https://github.com", **names}
    return server.request("POST", "/api/v1/webhooks/git", body, given)


def test_wrong_signatures_are_limited_and_right_ones_never_wait() -> None:
    settings = make_settings(webhook_secret=Secret(HOOK))
    with run_server(MemoryPromptService(), settings) as server:
        wrong = [
            hook(server, PUSH, X_Hub_Signature_256="sha256=0") for _ in range(MAX_FAILURES + 1)
        ]
        assert {one.status for one in wrong[:-1]} == {401}
        assert (wrong[-1].status, wrong[-1].code) == (429, "TOO_MANY_REQUESTS")
        assert 0 < int(wrong[-1].headers["Retry-After"]) <= 900
        assert hook(server, PUSH).status == 202


PUSH = {
    "ref": "refs/heads/main",
    "repository": {"clone_url": "https://github.com/acme/prompts", "id": 3},
}


def test_a_signed_push_is_noted(locked: RunningServer, counter: MemoryPromptService) -> None:
    reply = hook(locked, PUSH)
    assert (reply.status, reply.json["data"]) == (202, {"accepted": True, "known": True})
    assert counter.pushes[-1] == (("https://github.com/acme/prompts",), "main")


def test_a_push_of_gitlab_is_noted(locked: RunningServer, counter: MemoryPromptService) -> None:
    body = {"ref": "refs/heads/dev", "project": {"git_http_url": "https://gitlab.com/a/b.git"}}
    headers = {"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": HOOK, "Authorization": ""}
    assert locked.request("POST", "/api/v1/webhooks/git", body, headers).status == 202
    assert counter.pushes[-1] == (("https://gitlab.com/a/b.git",), "dev")


@pytest.mark.parametrize(
    ("payload", "event"),
    [
        ({"zen": "…"}, "ping"),
        ({}, "issues"),
        ({**PUSH, "ref": "refs/tags/v1"}, "push"),
        ({**PUSH, "deleted": True}, "push"),
    ],
)
def test_other_events_are_ignored(
    locked: RunningServer, counter: MemoryPromptService, payload: object, event: str
) -> None:
    before = len(counter.pushes)
    assert hook(locked, payload, event).status == 200
    assert len(counter.pushes) == before


@pytest.mark.parametrize("payload", [[], 3, {"ref": "refs/heads/main"}])
def test_a_signed_body_that_is_no_push_is_refused(locked: RunningServer, payload: object) -> None:
    assert hook(locked, payload).status == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"X_Hub_Signature_256": ""},
        {"X_Hub_Signature_256": "sha256=" + "0" * 64},
        {"X_Hub_Signature_256": "sha256=é"},
        {"X_Gitlab_Token": "wrong"},
    ],
)
def test_a_push_without_the_right_signature_is_refused(
    locked: RunningServer, counter: MemoryPromptService, headers: dict[str, str]
) -> None:
    before = len(counter.pushes)
    assert hook(locked, PUSH, **headers).status == 401
    assert len(counter.pushes) == before


def test_a_push_must_know_the_servers_name_too(locked: RunningServer) -> None:
    assert hook(locked, PUSH, Host="evil.example").status == 421


# ------------------------------------------------------------------ stopping


def test_an_open_request_is_answered_before_the_server_stops() -> None:
    counter = MemoryPromptService([make_prompt()], is_refresh_due=True)
    with run_server(counter) as server:
        assert server.request("GET", "/readyz").status == 200
        counter.gate = threading.Event()
        counter.is_waiting.clear()
        replies: list[HttpResponse] = []
        asker = threading.Thread(target=lambda: replies.append(server.request("GET", LIST)))
        asker.start()
        assert counter.is_waiting.wait(DEADLINE)
        server.stop()
        counter.gate.set()
        asker.join(DEADLINE)
    assert [reply.status for reply in replies] == [200]


def streaming(tokens: MemoryTokens | None = None) -> Services:
    """A server whose route /stream says hello, and good bye when the server stops."""
    router = APIRouter()

    @router.get("/stream")
    async def stream() -> StreamingResponse:
        async def lines() -> Any:  # noqa: ANN401 - an asynchronous generator
            yield b"hello\n"
            await services.shutdown.wait()
            yield b"good bye\n"

        return StreamingResponse(lines())

    given = tokens or MemoryTokens()
    services = Services(MemoryPromptService(), routers=(router,), accepted_tokens=given)
    return services


def test_a_stream_ends_by_itself_when_the_server_stops() -> None:
    services = streaming()
    with run_server(services=services) as server, server.connect() as line:
        line.sendall(f"GET /stream HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        text = b""
        while b"hello" not in text:
            text += line.recv(4096)
        server.stop()
        while piece := line.recv(4096):
            text += piece
    assert b"good bye" in text


def test_any_stream_ends_when_its_token_is_revoked() -> None:
    tokens = MemoryTokens("laptop", "phone")
    services = streaming(tokens)
    with (
        run_server(settings=make_token_settings(), services=services) as server,
        ExitStack() as held,
    ):
        lines = {name: held.enter_context(server.connect()) for name in ("laptop", "phone")}
        for name, line in lines.items():
            line.sendall(
                f"GET /stream HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                f"Authorization: Bearer {name}\r\n\r\n".encode()
            )
            text = b""
            while b"hello" not in text:
                text += line.recv(4096)
        tokens.revoke("laptop")
        assert b"good bye" not in b"".join(iter(lambda: lines["laptop"].recv(4096), b""))
        server.stop()
        assert b"good bye" in b"".join(iter(lambda: lines["phone"].recv(4096), b""))


# ------------------------------------------------------------------ secrets


def test_no_secret_is_told_or_logged(caplog: pytest.LogCaptureFixture) -> None:
    planted = ["per-request-git-token", "configured-git-token", "user-info-pass", TOKEN, HOOK]
    failure = RuntimeError(f"git clone https://x:user-info-pass@h/r with {planted[1]} and {TOKEN}")
    counter = MemoryPromptService([make_prompt()])
    settings = make_token_settings(webhook_secret=Secret(HOOK))._replace(
        tokens={"github.com": Secret("configured-git-token")}
    )
    told = b""
    with caplog.at_level(logging.DEBUG), run_server(counter, settings) as server:
        headers = {"X-Skillhall-Git-Token": "per-request-git-token"}
        query = "?repo=https://u:user-info-pass@git.example.org/x"
        for path in (query, f"/{TOKEN}", f"/refresh{query}", "/configured-git-token"):
            reply = server.request("POST" if path != query else "GET", LIST + path, headers=headers)
            told += str(reply.headers).encode()
            told += reply.body if path in (query, f"/refresh{query}") else b""
        counter.error = failure
        broken = server.request("POST", f"{LIST}/greet{query}", headers=headers)
        told += broken.body + hook(server, {}, X_Hub_Signature_256=HOOK).body
        told += server.request("GET", "/metrics").body
    assert broken.status == 500
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert "RuntimeError" in logged
    assert '"status":502' in logged
    for secret in planted:
        assert secret not in logged
        assert secret.encode() not in told


def test_a_request_is_one_line_of_json_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.INFO, "skillhall.access"),
        run_server(MemoryPromptService()) as server,
    ):
        server.request("GET", f"{LIST}?source=%0aforged", headers={"X-Request-Id": "line-1"})
        server.request("GET", "/healthz", headers={"X-Request-Id": "line-2"})
    told = "\n".join(caplog.messages).splitlines()
    lines = [json.loads(text) for text in told if '"line-' in text]
    assert [line["requestId"] for line in lines] == ["line-1"]
    assert lines[0] | {"time": "", "ms": 0, "bytes": 0} == {
        "time": "",
        "method": "GET",
        "path": LIST,
        "status": 400,
        "bytes": 0,
        "ms": 0,
        "requestId": "line-1",
        "client": "127.0.0.1",
    }


def test_further_tokens_are_accepted_beside_the_configured_one() -> None:
    services = Services(MemoryPromptService(), accepted_tokens=MemoryTokens("further-token"))
    with run_server(settings=make_token_settings(), services=services) as server:
        assert server.request("GET", LIST).status == 200
        for token, status in (("further-token", 200), ("other-token", 401), ("", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            assert server.request("GET", LIST, headers=headers).status == status


def test_further_tokens_close_no_server_that_is_open() -> None:
    services = Services(MemoryPromptService(), accepted_tokens=MemoryTokens("further-token"))
    with run_server(services=services) as server:
        assert server.request("GET", LIST).status == 200
