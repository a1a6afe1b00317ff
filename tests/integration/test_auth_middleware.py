"""Hosts, origins, tokens, size limits and secrets, tested on a running server."""

import hashlib
import hmac
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter
from starlette.responses import StreamingResponse

from skillhall._internal.asgi import Services, listen
from skillhall._internal.http.access import needs
from skillhall._internal.http.credentials import MAX_FAILURES
from skillhall._internal.policy.access.access_scopes import AccessScope, expand_scopes
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.settings import Secret
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.storage.credential_cache import UseRecorder
from skillhall._internal.storage.sign_ins import SignIns
from skillhall._internal.storage.sql.engine import build_sqlite_url
from skillhall._internal.storage.sql.token_rows import SqlSignInTable
from skillhall.errors import ConfigInvalid
from tests.support.actors import ACTOR
from tests.support.databases import TIMESTAMP
from tests.support.prompt_services import MemoryPromptService, make_prompt
from tests.support.servers import (
    DEADLINE,
    TOKEN,
    HttpResponse,
    MemoryTokens,
    RunningServer,
    make_settings,
    make_token_settings,
    open_sign_ins,
    read_response,
    run_server,
)
from tests.support.switchable_database import SwitchableDatabase

HOOK = "hook-secret-0123456789"
LIST = "/api/v1/prompts"


@pytest.fixture(scope="module")
def prompt_service() -> MemoryPromptService:
    return MemoryPromptService([make_prompt()], source="https://github.com/acme/prompts")


@pytest.fixture(scope="module")
def server(prompt_service: MemoryPromptService) -> Iterator[RunningServer]:
    with run_server(
        prompt_service, make_settings(public_url="https://hall.example.org")
    ) as running:
        yield running


@pytest.fixture(scope="module")
def locked(prompt_service: MemoryPromptService) -> Iterator[RunningServer]:
    settings = make_token_settings(allowed_hosts=("hall.lan",), webhook_secret=Secret(HOOK))
    with run_server(prompt_service, settings) as running:
        yield running


# R2, R12: hosts


@pytest.mark.parametrize("host", ["localhost:{}", "127.0.0.1:{}", "[::1]:{}", "LocalHost:{}"])
def test_loopback_host_is_accepted(server: RunningServer, host: str) -> None:
    headers = {"Host": host.format(server.port)}
    assert server.request("GET", LIST, headers=headers).status == 200


@pytest.mark.parametrize("host", ["hall.example.org", "hall.example.org:443"])
def test_public_host_is_accepted(server: RunningServer, host: str) -> None:
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
def test_other_hosts_get_421_on_every_path(server: RunningServer, host: str, path: str) -> None:
    reply = server.request("GET", path, headers={"Host": host.format(server.port)})
    assert (reply.status, reply.code) == (421, "MISDIRECTED")


def test_missing_or_duplicate_host_is_rejected(server: RunningServer) -> None:
    good = b"Host: 127.0.0.1:%d\r\n" % server.port
    for head in (b"", good * 2):
        response = server.send_raw(b"GET /healthz HTTP/1.1\r\n" + head + b"\r\n")
        assert response.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400"))


def test_forwarded_headers_are_ignored(server: RunningServer) -> None:
    headers = {"Host": "evil.example", "X-Forwarded-Host": f"127.0.0.1:{server.port}"}
    headers |= {"Forwarded": "host=localhost", "X-Forwarded-For": "127.0.0.1"}
    assert server.request("GET", LIST, headers=headers).status == 421


def test_allowed_host_of_the_settings_is_accepted(locked: RunningServer) -> None:
    assert locked.request("GET", LIST, headers={"Host": "hall.lan"}).status == 200


# R1, R3: origins


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
def test_cross_origin_write_is_rejected(
    server: RunningServer, prompt_service: MemoryPromptService, headers: dict[str, str]
) -> None:
    sent = {name: value.format(server.port) for name, value in headers.items()}
    before = len(prompt_service.refreshed_selectors)
    reply = server.request("POST", f"{LIST}/refresh", headers=sent)
    assert (reply.status, reply.code) == (403, "CROSS_ORIGIN")
    assert len(prompt_service.refreshed_selectors) == before


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
def test_same_origin_and_programs_may_write(server: RunningServer, headers: dict[str, str]) -> None:
    sent = {name: value.format(server.port) for name, value in headers.items()}
    assert server.request("POST", f"{LIST}/refresh", headers=sent).status == 200


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
def test_cross_origin_page_cannot_make_the_server_fetch(
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
def test_same_origin_and_programs_may_name_a_repository(
    server: RunningServer, headers: dict[str, str]
) -> None:
    sent = {name: value.format(server.port) for name, value in headers.items()}
    query = "?repo=https://github.com/acme/prompts"
    assert server.request("GET", LIST + query, headers=sent).code == "PROMPTS_SOURCE_ERROR"


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_cross_origin_page_cannot_read_from_mcp(server: RunningServer, method: str) -> None:
    headers = {"Origin": "http://evil.example", "Authorization": "Bearer x"}
    assert server.request(method, "/mcp", headers=headers).code == "CROSS_ORIGIN"
    assert server.request("GET", LIST, headers=headers).status == 200


# R5, R6: tokens


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN]
)
@pytest.mark.parametrize("path", [LIST, "/metrics", "/nowhere"])
def test_missing_and_wrong_token_get_the_same_response(
    prompt_service: MemoryPromptService, locked: RunningServer, path: str, header: str
) -> None:
    headers = {"Authorization": header, "X-Request-Id": "one"}
    reply = locked.request("GET", path, headers=headers)
    assert (reply.status, reply.code) == (401, "UNAUTHORIZED")
    assert reply.headers["WWW-Authenticate"] == "Bearer"
    assert reply.message == "bearer token missing or invalid"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/api/v1/openapi.json"])
def test_health_and_openapi_need_no_token(locked: RunningServer, path: str) -> None:
    assert locked.request("GET", path, headers={"Authorization": ""}).status == 200


def test_bearer_scheme_is_case_insensitive(locked: RunningServer) -> None:
    assert locked.request("GET", LIST, headers={"Authorization": f"bearer {TOKEN}"}).status == 200


def test_wrong_tokens_are_rate_limited_and_valid_ones_are_not() -> None:
    with run_server(MemoryPromptService(), make_token_settings()) as server:
        wrong = {"Authorization": "Bearer guess"}
        guesses = [server.request("GET", LIST, headers=wrong) for _ in range(MAX_FAILURES + 1)]
        assert {reply.status for reply in guesses[:-1]} == {401}
        assert (guesses[-1].status, guesses[-1].code) == (429, "TOO_MANY_REQUESTS")
        assert 0 < int(guesses[-1].headers["Retry-After"]) <= 900
        assert server.request("GET", LIST).status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])  # noqa: S104 - rejected
def test_public_address_without_a_token_is_rejected(host: str) -> None:
    with pytest.raises(ConfigInvalid, match="no token") as caught:
        listen(make_settings(host=host).server)
    assert "SKILLHALL_AUTH_TOKEN" in caught.value.hint


def test_public_address_with_a_token_is_accepted() -> None:
    with listen(make_token_settings(host="0.0.0.0").server) as listening:  # noqa: S104 - under test
        assert listening.getsockname()[1] > 0


@pytest.mark.parametrize("token", ["x", "password", "changeme-changeme", "1234567890123456"])
@pytest.mark.parametrize(
    "options",
    [
        {"host": "0.0.0.0"},  # noqa: S104 - rejected
        {"host": "192.0.2.7"},
        {"public_url": "https://hall.example.org"},
    ],
)
def test_weak_token_is_rejected_on_a_public_server(token: str, options: dict[str, str]) -> None:
    with pytest.raises(ConfigInvalid, match="too easy to guess") as caught:
        listen(make_settings(auth_token=Secret(token), **options).server)
    assert "secrets.token_urlsafe(32)" in caught.value.hint
    assert token not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize("secret", ["x", "hook-secret-1234567"])
def test_weak_webhook_secret_is_rejected_on_a_public_server(secret: str) -> None:
    options = {"webhook_secret": Secret(secret)}
    with pytest.raises(ConfigInvalid, match="SKILLHALL_WEBHOOK_SECRET") as caught:
        listen(make_token_settings(host="0.0.0.0", **options).server)  # noqa: S104 - rejected
    assert "at least 20 characters" in caught.value.hint
    assert "secrets.token_urlsafe(32)" in caught.value.hint
    with listen(make_token_settings(**options).server) as listening:
        assert listening.getsockname()[1] > 0


@pytest.mark.parametrize("public_url", ["", "http://localhost:9000"])
def test_weak_token_is_accepted_on_a_local_server(public_url: str) -> None:
    with listen(make_settings(auth_token=Secret("x"), public_url=public_url).server) as listening:
        assert listening.getsockname()[1] > 0


@pytest.mark.parametrize("port", ["70000", "x", "-1", "8_0"])
def test_invalid_port_is_rejected(port: str) -> None:
    with pytest.raises(ConfigInvalid, match="is not a port"):
        listen(make_settings(port=port).server)


def test_port_in_use_is_rejected_with_a_hint(server: RunningServer) -> None:
    with pytest.raises(ConfigInvalid, match="cannot listen") as caught:
        listen(make_settings(port=str(server.port)).server)
    assert "--port" in caught.value.hint


# R7, R10: size limits and timeouts


def post(server: RunningServer, path: str, head: bytes, body: bytes) -> bytes:
    start = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n".encode()
    return server.send_raw(start + b"Content-Type: application/json\r\n" + head + b"\r\n" + body)


@pytest.mark.parametrize(
    ("path", "limit"), [(f"{LIST}/sources", 512 * 1024), (f"{LIST}/greet", 1 << 20)]
)
def test_body_over_the_limit_is_rejected(server: RunningServer, path: str, limit: int) -> None:
    fits = server.request("POST", path, b" " * (limit - 2) + b"{}")
    assert fits.status == (200 if path.endswith("greet") else 400)
    reply = server.request("POST", path, b" " * limit + b"{}")
    assert (reply.status, reply.code) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize("path", [f"{LIST}/sources", f"{LIST}/refresh", f"{LIST}/greet"])
def test_chunked_body_over_the_limit_is_rejected(server: RunningServer, path: str) -> None:
    chunk = b"%x\r\n%s\r\n" % (65_536, b" " * 65_536)
    response = post(server, path, b"Transfer-Encoding: chunked\r\n", chunk * 20 + b"0\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 413")


def test_endless_body_is_cut_off(server: RunningServer) -> None:
    with server.connect() as connection:
        start = f"POST {LIST}/sources HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        connection.sendall(start.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"%x\r\n%s\r\n" % (65_536, b" " * 65_536)
        for _ in range(24):  # 512 KiB that are read, and more that is discarded
            connection.sendall(chunk)
        response = read_response(connection)
    assert response.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in response


def test_oversized_content_length_is_rejected_at_once(server: RunningServer) -> None:
    response = post(server, f"{LIST}/sources", b"Content-Length: 99999999999\r\n", b"")
    assert response.startswith(b"HTTP/1.1 413")


def test_contradictory_body_lengths_are_rejected(server: RunningServer) -> None:
    for head in (
        b"Content-Length: 2\r\nContent-Length: 3\r\n",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
    ):
        assert post(server, f"{LIST}/greet", head, b"{}").startswith(b"HTTP/1.1 400")


def test_endless_headers_are_cut_off(server: RunningServer) -> None:
    with server.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: " + b"a" * 300_000)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/prompts/greet%0d%0aX-Evil:%201",
        "/api/v1/prompts/..%2f..%2fetc%2fpasswd",
        "/api/v1/prompts/%00",
        "/static/..%2f..%2fetc/passwd",
    ],
)
def test_encoded_attacks_in_paths_are_not_found(server: RunningServer, path: str) -> None:
    reply = server.request("POST", path)
    assert reply.status in (400, 404)
    assert reply.headers["X-Evil"] is None
    assert b"root:" not in reply.body


def test_method_override_headers_are_ignored(server: RunningServer) -> None:
    headers = {"X-HTTP-Method-Override": "POST", "X-Method-Override": "POST"}
    assert server.request("GET", f"{LIST}/refresh", headers=headers).status == 405


# Webhooks


def send_push(
    server: RunningServer, payload: object, event: str = "push", **headers: str
) -> HttpResponse:
    body = json.dumps(payload).encode()
    signature = "sha256=" + hmac.new(HOOK.encode(), body, hashlib.sha256).hexdigest()
    sent = {"X-GitHub-Event": event, "X-Hub-Signature-256": signature}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    sent |= {"Authorization": "", "Origin": "https://github.com", **names}
    return server.request("POST", "/api/v1/webhooks/git", body, sent)


def test_wrong_signatures_are_rate_limited_and_valid_ones_are_not() -> None:
    settings = make_settings(webhook_secret=Secret(HOOK))
    with run_server(MemoryPromptService(), settings) as server:
        wrong = [
            send_push(server, PUSH, X_Hub_Signature_256="sha256=0") for _ in range(MAX_FAILURES + 1)
        ]
        assert {reply.status for reply in wrong[:-1]} == {401}
        assert (wrong[-1].status, wrong[-1].code) == (429, "TOO_MANY_REQUESTS")
        assert 0 < int(wrong[-1].headers["Retry-After"]) <= 900
        assert send_push(server, PUSH).status == 202


PUSH = {
    "ref": "refs/heads/main",
    "repository": {"clone_url": "https://github.com/acme/prompts", "id": 3},
}


def test_signed_push_is_accepted(
    locked: RunningServer, prompt_service: MemoryPromptService
) -> None:
    reply = send_push(locked, PUSH)
    assert (reply.status, reply.json["data"]) == (202, {"accepted": True, "known": True})
    assert prompt_service.pushes[-1] == (("https://github.com/acme/prompts",), "main")


def test_gitlab_push_is_accepted(
    locked: RunningServer, prompt_service: MemoryPromptService
) -> None:
    body = {"ref": "refs/heads/dev", "project": {"git_http_url": "https://gitlab.com/a/b.git"}}
    headers = {"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": HOOK, "Authorization": ""}
    assert locked.request("POST", "/api/v1/webhooks/git", body, headers).status == 202
    assert prompt_service.pushes[-1] == (("https://gitlab.com/a/b.git",), "dev")


@pytest.mark.parametrize(
    ("payload", "event"),
    [
        ({"zen": "…"}, "ping"),
        ({}, "issues"),
        ({**PUSH, "ref": "refs/tags/v1"}, "push"),
        ({**PUSH, "deleted": True}, "push"),
    ],
)
def test_other_webhook_events_are_ignored(
    locked: RunningServer, prompt_service: MemoryPromptService, payload: object, event: str
) -> None:
    before = len(prompt_service.pushes)
    assert send_push(locked, payload, event).status == 200
    assert len(prompt_service.pushes) == before


@pytest.mark.parametrize("payload", [[], 3, {"ref": "refs/heads/main"}])
def test_signed_body_that_is_not_a_push_is_rejected(locked: RunningServer, payload: object) -> None:
    assert send_push(locked, payload).status == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"X_Hub_Signature_256": ""},
        {"X_Hub_Signature_256": "sha256=" + "0" * 64},
        {"X_Hub_Signature_256": "sha256=é"},
        {"X_Gitlab_Token": "wrong"},
    ],
)
def test_push_without_a_valid_signature_is_rejected(
    locked: RunningServer, prompt_service: MemoryPromptService, headers: dict[str, str]
) -> None:
    before = len(prompt_service.pushes)
    assert send_push(locked, PUSH, **headers).status == 401
    assert len(prompt_service.pushes) == before


def test_push_to_another_host_is_rejected(locked: RunningServer) -> None:
    assert send_push(locked, PUSH, Host="evil.example").status == 421


# Shutdown


def test_open_request_completes_before_the_server_stops() -> None:
    prompt_service = MemoryPromptService([make_prompt()], is_refresh_due=True)
    with run_server(prompt_service) as server:
        assert server.request("GET", "/readyz").status == 200
        prompt_service.gate = threading.Event()
        prompt_service.is_waiting.clear()
        replies: list[HttpResponse] = []
        client = threading.Thread(target=lambda: replies.append(server.request("GET", LIST)))
        client.start()
        assert prompt_service.is_waiting.wait(DEADLINE)
        server.stop()
        prompt_service.gate.set()
        client.join(DEADLINE)
    assert [reply.status for reply in replies] == [200]


def streaming(tokens: MemoryTokens | None = None) -> Services:
    """Services with a route /stream that sends "good bye" when the server stops."""
    router = APIRouter()

    @router.get("/stream")
    @needs(Action.READ)
    async def stream() -> StreamingResponse:
        async def lines() -> Any:  # noqa: ANN401 - an async generator
            yield b"hello\n"
            await services.shutdown.wait()
            yield b"good bye\n"

        return StreamingResponse(lines())

    accepted = tokens or MemoryTokens()
    services = Services(MemoryPromptService(), routers=(router,), accepted_tokens=accepted)
    return services


def test_stream_ends_when_the_server_stops() -> None:
    services = streaming()
    with run_server(services=services) as server, server.connect() as connection:
        connection.sendall(
            f"GET /stream HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
        )
        text = b""
        while b"hello" not in text:
            text += connection.recv(4096)
        server.stop()
        while chunk := connection.recv(4096):
            text += chunk
    assert b"good bye" in text


def test_stream_ends_when_its_token_is_revoked() -> None:
    tokens = MemoryTokens("laptop", "phone")
    services = streaming(tokens)
    with (
        run_server(settings=make_token_settings(), services=services) as server,
        ExitStack() as stack,
    ):
        lines = {name: stack.enter_context(server.connect()) for name in ("laptop", "phone")}
        for name, connection in lines.items():
            connection.sendall(
                f"GET /stream HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                f"Authorization: Bearer {name}\r\n\r\n".encode()
            )
            text = b""
            while b"hello" not in text:
                text += connection.recv(4096)
        tokens.revoke("laptop")
        assert b"good bye" not in b"".join(iter(lambda: lines["laptop"].recv(4096), b""))
        server.stop()
        assert b"good bye" in b"".join(iter(lambda: lines["phone"].recv(4096), b""))


def test_stream_ends_when_its_sign_in_ends(tmp_path: Path) -> None:
    with open_sign_ins(tmp_path) as sign_ins:
        services = replace(streaming(MemoryTokens("laptop")), sign_ins=sign_ins)
        laptop = sign_ins.create(sha256_hex(b"laptop")[:8], "", "", 60, actor=ACTOR)
        with (
            run_server(settings=make_token_settings(), services=services) as server,
            server.connect() as connection,
        ):
            connection.sendall(
                f"GET /stream HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                f"Cookie: skillhall_session={laptop.cookie}\r\n\r\n".encode()
            )
            text = b""
            while b"hello" not in text:
                text += connection.recv(4096)
            assert sign_ins.end(laptop.stored.token, laptop.stored.id, actor=ACTOR)
            assert b"good bye" not in b"".join(iter(lambda: connection.recv(4096), b""))


def test_cookie_of_another_server_is_looked_up_and_a_database_outage_is_503(
    tmp_path: Path,
) -> None:
    url = build_sqlite_url(str(tmp_path / "sign-ins.db"))
    recorder, database = UseRecorder(), SwitchableDatabase(url, TIMESTAMP)
    with (
        open_sign_ins(tmp_path) as other,
        closing(database),
        closing(recorder),
        closing(SignIns(SqlSignInTable(database), recorder)) as sign_ins,
    ):
        sign_ins.close()  # it polls no more
        services = replace(streaming(MemoryTokens("laptop")), sign_ins=sign_ins)
        with run_server(settings=make_token_settings(), services=services) as server:
            server.headers = {}
            first, second = (
                other.create(sha256_hex(b"laptop")[:8], "", "", 60, actor=ACTOR) for _ in range(2)
            )

            def status(cookie: str) -> int:
                headers = {"Cookie": f"skillhall_session={cookie}"}
                return server.request("GET", LIST, headers=headers).status

            assert status(first.cookie) == 200
            database.is_down = True
            assert [status(first.cookie), status(second.cookie), status("x" * 42)] == [
                200,
                503,
                401,
            ]
            database.is_down = False
            assert [status(second.cookie), status("x" * 43)] == [200, 401]


def test_expired_token_gets_401_with_the_reason() -> None:
    tokens = MemoryTokens()
    tokens.add("old", expires="2020-01-01T00:00:00+00:00")
    services = Services(MemoryPromptService(), accepted_tokens=tokens)
    with run_server(settings=make_token_settings(), services=services) as server:
        reply = server.request("GET", LIST, headers={"Authorization": "Bearer old"})
    assert (reply.status, reply.code) == (401, "UNAUTHORIZED")
    assert reply.message == "the access token has expired"


# Scopes


@pytest.fixture(scope="module")
def scoped(prompt_service: MemoryPromptService) -> Iterator[RunningServer]:
    """A server with a token for each scope; the token has the name of the scope."""
    tokens = MemoryTokens()
    for scope in AccessScope:
        tokens.add(scope, tuple(expand_scopes([scope])))
    services = Services(prompt_service, accepted_tokens=tokens)
    with run_server(settings=make_token_settings(), services=services) as running:
        yield running


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", LIST, {"read", "write", "review", "admin"}),
        ("POST", f"{LIST}/greet", {"read", "write", "review", "admin"}),
        ("GET", "/metrics", {"read", "write", "review", "admin"}),
        ("POST", f"{LIST}/refresh", {"write", "admin"}),
    ],
)
def test_token_allows_what_its_scopes_allow(
    scoped: RunningServer, method: str, path: str, allowed: set[str]
) -> None:
    for scope in AccessScope:
        headers = {"Authorization": f"Bearer {scope}"}
        reply = scoped.request(method, path, headers=headers)
        assert (reply.status == 403) == (scope not in allowed)
    assert scoped.request(method, path).status != 403  # the operator's token


def test_rejected_request_names_the_scope_and_changes_nothing(
    scoped: RunningServer, prompt_service: MemoryPromptService
) -> None:
    before = len(prompt_service.refreshed_selectors)
    headers = {"Authorization": "Bearer read"}
    reply = scoped.request("POST", f"{LIST}/refresh", headers=headers)
    assert (reply.status, reply.code) == (403, "FORBIDDEN")
    assert "it needs the scope 'write'" in reply.message
    assert "--scope write" in reply.json["error"]["hint"]
    assert len(prompt_service.refreshed_selectors) == before


# Secrets


def test_secrets_are_neither_sent_nor_logged(caplog: pytest.LogCaptureFixture) -> None:
    planted = ["per-request-git-token", "configured-git-token", "user-info-pass", TOKEN, HOOK]
    failure = RuntimeError(f"git clone https://x:user-info-pass@h/r with {planted[1]} and {TOKEN}")
    prompt_service = MemoryPromptService([make_prompt()])
    settings = make_token_settings(webhook_secret=Secret(HOOK))._replace(
        tokens={"github.com": Secret("configured-git-token")}
    )
    sent = b""
    with caplog.at_level(logging.DEBUG), run_server(prompt_service, settings) as server:
        headers = {"X-Skillhall-Git-Token": "per-request-git-token"}
        query = "?repo=https://u:user-info-pass@git.example.org/x"
        for path in (query, f"/{TOKEN}", f"/refresh{query}", "/configured-git-token"):
            reply = server.request("POST" if path != query else "GET", LIST + path, headers=headers)
            sent += str(reply.headers).encode()
            sent += reply.body if path in (query, f"/refresh{query}") else b""
        prompt_service.error = failure
        broken = server.request("POST", f"{LIST}/greet{query}", headers=headers)
        sent += broken.body + send_push(server, {}, X_Hub_Signature_256=HOOK).body
        sent += server.request("GET", "/metrics").body
    assert broken.status == 500
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert "RuntimeError" in logged
    assert '"status":502' in logged
    for secret in planted:
        assert secret not in logged
        assert secret.encode() not in sent


def test_each_request_is_logged_as_one_json_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.INFO, "skillhall.access"),
        run_server(MemoryPromptService()) as server,
    ):
        server.request("GET", f"{LIST}?source=%0aforged", headers={"X-Request-Id": "line-1"})
        server.request("GET", "/healthz", headers={"X-Request-Id": "line-2"})
    logged = "\n".join(caplog.messages).splitlines()
    lines = [json.loads(text) for text in logged if '"line-' in text]
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


def test_access_tokens_are_accepted_besides_the_operators() -> None:
    services = Services(MemoryPromptService(), accepted_tokens=MemoryTokens("further-token"))
    with run_server(settings=make_token_settings(), services=services) as server:
        assert server.request("GET", LIST).status == 200
        for token, status in (("further-token", 200), ("other-token", 401), ("", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            assert server.request("GET", LIST, headers=headers).status == status


def test_access_tokens_do_not_make_an_open_server_require_one() -> None:
    services = Services(MemoryPromptService(), accepted_tokens=MemoryTokens("further-token"))
    with run_server(services=services) as server:
        assert server.request("GET", LIST).status == 200
