"""Fetching from a real server: responses, rejections and headers."""

import gzip
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from email.utils import formatdate
from pathlib import Path

import pytest

from skillhall._internal.net.addresses import PUBLIC_ONLY, AddressPolicy
from skillhall._internal.net.connection import NetworkSettings
from skillhall._internal.net.fetch import FetchOptions, FetchResult, fetch, open_stream
from skillhall._internal.net.url import WebUrl
from skillhall.errors import (
    RateLimited,
    SkillhallError,
    SourceNotFound,
    SourceRejected,
    SourceTimedOut,
    SourceUnavailable,
    TooLarge,
)
from tests.support.http_server import (
    HttpServer,
    ReceivedRequest,
    ResponseWriter,
    Route,
    ScriptedResolver,
    build_head,
    make_certificate,
    never_respond,
    redirect,
    respond,
    respond_chunked,
    respond_endlessly,
    respond_without_length,
    run_http_server,
)

LOOPBACK = AddressPolicy.from_cidrs("127.0.0.0/8")
LIMIT = 100_000
HASTY = NetworkSettings(total=0.5, idle=0.2)
TOKEN = "s3cr3t-t0ken"  # noqa: S105 - a fake token


@pytest.fixture
def site() -> Iterator[HttpServer]:
    with run_http_server() as running:
        yield running


def get(
    site: HttpServer,
    path: str = "/x",
    network: NetworkSettings = NetworkSettings(),  # noqa: B008
) -> FetchResult:
    return fetch(site.url(path), max_bytes=LIMIT, policy=LOOPBACK, network=network)


def test_body_is_returned_unchanged(site: HttpServer) -> None:
    data = bytes(range(256)) * 300
    site.routes["/x"] = respond(
        body=data, headers={"ETag": '"1"', "Content-Type": "application/zip"}
    )
    assert get(site) == FetchResult(data, site.url("/x"), '"1"', "application/zip")


def test_request_has_user_agent_and_host(site: HttpServer) -> None:
    site.routes["/x"] = respond()
    get(site, "/x?a=b")
    [request] = site.requests
    assert request.target == "/x?a=b"
    assert request.headers["host"] == f"127.0.0.1:{site.port}"
    assert request.headers["user-agent"].startswith("skillhall/")
    assert "authorization" not in request.headers


def test_chunked_body_is_joined(site: HttpServer) -> None:
    site.routes["/x"] = respond_chunked(b"a" * 10, b"b" * 70_000)
    assert get(site).data == b"a" * 10 + b"b" * 70_000


def test_body_without_length_ends_with_connection(site: HttpServer) -> None:
    site.routes["/x"] = respond_without_length(b"abc")
    assert get(site).data == b"abc"


def test_gzip_body_is_decompressed(site: HttpServer) -> None:
    data = b"text " * 10_000
    site.routes["/x"] = respond(body=gzip.compress(data), headers={"Content-Encoding": "gzip"})
    assert get(site).data == data


def test_matching_etag_gives_not_modified(site: HttpServer) -> None:
    site.routes["/x"] = respond("304 Not Modified", headers={"ETag": '"1"'})
    result = fetch(site.url("/x"), max_bytes=9, policy=LOOPBACK, options=FetchOptions(etag='"1"'))
    assert (result.is_not_modified, result.data, result.etag) == (True, b"", '"1"')
    assert site.requests[0].headers["if-none-match"] == '"1"'


def test_not_modified_without_etag_raises(site: HttpServer) -> None:
    site.routes["/x"] = respond("304 Not Modified")
    with pytest.raises(SourceUnavailable, match="status 304"):
        get(site)


# Streams


def test_stream_yields_chunks_as_they_arrive(site: HttpServer) -> None:
    size, waiting = 65_536, threading.Event()

    def send(writer: ResponseWriter) -> None:
        writer.send(build_head("200 OK", {"Content-Length": str(size + 3), "ETag": '"1"'}))
        writer.send(b"x" * size)
        waiting.wait(20)
        writer.send(b"end")

    site.routes["/x"] = send
    with open_stream(site.url("/x"), max_bytes=LIMIT, policy=LOOPBACK) as stream:
        assert next(stream.chunks) == b"x" * size
        waiting.set()
        assert b"".join(stream.chunks) == b"end"
        assert (stream.etag, stream.length) == ('"1"', size + 3)


def test_stream_reports_progress(site: HttpServer) -> None:
    site.routes |= {"/x": respond(body=b"x" * 70_000), "/y": respond_without_length(b"abc")}
    reports: list[tuple[int, int]] = []
    for path in ("/x", "/y"):
        with open_stream(site.url(path), max_bytes=LIMIT, policy=LOOPBACK) as stream:
            assert b"".join(stream.iterate_with_progress(lambda *counts: reports.append(counts)))
    assert reports[-2:] == [(70_000, 70_000), (3, 0)]


def test_stream_beyond_limit_raises_after_limit(site: HttpServer) -> None:
    site.routes["/x"] = respond_endlessly(b"HTTP/1.1 200 OK\r\n\r\n")
    reports = [0]
    with open_stream(site.url("/x"), max_bytes=LIMIT, policy=LOOPBACK) as stream:
        chunks = stream.iterate_with_progress(lambda count, _: reports.append(count))
        with pytest.raises(TooLarge, match=str(LIMIT)):
            list(chunks)
    assert 0 < reports[-1] <= LIMIT


def test_truncated_stream_raises(site: HttpServer) -> None:
    site.routes["/x"] = respond(body=b"abc", length=4)
    with open_stream(site.url("/x"), max_bytes=LIMIT, policy=LOOPBACK) as stream:
        assert next(stream.chunks) == b"abc"
        with pytest.raises(SourceUnavailable):
            next(stream.chunks)


def test_error_of_caller_is_not_translated(site: HttpServer) -> None:
    site.routes["/x"] = respond(body=b"abc")
    with (
        pytest.raises(OSError, match="disk full"),
        open_stream(site.url("/x"), max_bytes=LIMIT, policy=LOOPBACK),
    ):
        raise OSError("disk full")


# Addresses


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"])
def test_private_address_is_rejected_before_connecting(site: HttpServer, host: str) -> None:
    with pytest.raises(SourceRejected) as caught:
        fetch(f"https://{host}:{site.port}/x", max_bytes=LIMIT)
    assert caught.value.reason == "host"
    assert site.requests == []


def test_name_of_private_address_is_rejected_before_connecting(site: HttpServer) -> None:
    network = NetworkSettings(resolve=ScriptedResolver(["127.0.0.1"]))
    with pytest.raises(SourceRejected):
        fetch(site.url("/x", "host.example"), max_bytes=LIMIT, policy=PUBLIC_ONLY, network=network)
    assert site.requests == []


def test_dns_rebinding_has_no_effect(site: HttpServer) -> None:
    site.routes["/x"] = respond(body=b"checked")
    resolver = ScriptedResolver(["127.0.0.1"], ["10.0.0.1"])
    url = site.url("/x", "host.example")
    result = fetch(url, max_bytes=LIMIT, policy=LOOPBACK, network=NetworkSettings(resolve=resolver))
    assert result.data == b"checked"
    assert resolver.hosts == ["host.example"]
    assert site.requests[0].headers["host"] == f"host.example:{site.port}"


def test_redirects_are_resolved_and_checked(site: HttpServer) -> None:
    site.routes["/x"] = redirect("/y")
    resolver = ScriptedResolver(["127.0.0.1"], ["10.0.0.1"])
    with pytest.raises(SourceRejected, match="private network"):
        fetch(
            site.url("/x", "host.example"),
            max_bytes=LIMIT,
            policy=LOOPBACK,
            network=NetworkSettings(resolve=resolver),
        )
    assert [request.target for request in site.requests] == ["/x"]


def test_http_is_limited_to_allowed_networks() -> None:
    network = NetworkSettings(resolve=ScriptedResolver(["8.8.8.8"]))
    with pytest.raises(SourceRejected) as caught:
        fetch("http://host.example/x", max_bytes=LIMIT, policy=LOOPBACK, network=network)
    assert caught.value.reason == "scheme"


def test_second_address_is_tried_if_first_fails(site: HttpServer) -> None:
    site.routes["/x"] = respond(body=b"second")
    network = NetworkSettings(resolve=ScriptedResolver(["127.0.0.2", "127.0.0.1"]))
    url = site.url("/x", "host.example")
    assert fetch(url, max_bytes=LIMIT, policy=LOOPBACK, network=network).data == b"second"


# Redirects


@pytest.mark.parametrize("status", ["301 A", "302 B", "303 C", "307 D", "308 E"])
def test_redirect_is_followed(site: HttpServer, status: str) -> None:
    site.routes |= {"/a/x": redirect("../y?z=1#f", status), "/y": respond(body=b"here")}
    result = get(site, "/a/x")
    assert (result.data, result.url) == (b"here", site.url("/y"))
    assert site.requests[1].target == "/y?z=1"


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("http://10.0.0.1/x", "host"),
        ("http://169.254.169.254/latest/meta-data", "host"),
        ("//192.168.0.1/x", "host"),
        ("https://[::1]/x", "host"),
        ("http://2130706433/x", "host"),
        ("http://user:s3cr3t-t0ken@127.0.0.1/x", "host"),
        ("file:///etc/passwd", "scheme"),
        ("ftp://127.0.0.1/x", "scheme"),
        ("javascript:alert(1)", "url"),
        ("http://127.0.0.1\\@10.0.0.1/x", "url"),
        ("http://127.0.0.1\t/x", "url"),
        ("http://b\xfccher.example/x", "url"),
        ("http://[::1/x", "url"),
    ],
)
def test_redirect_to_forbidden_url_is_rejected(site: HttpServer, place: str, reason: str) -> None:
    site.routes["/x"] = redirect(place)
    with pytest.raises(SourceRejected) as caught:
        get(site)
    assert caught.value.reason == reason
    assert TOKEN not in str(caught.value)


def test_redirects_are_limited_to_five(site: HttpServer) -> None:
    site.routes |= {f"/{n}": redirect(f"/{n - 1}") for n in range(1, 7)}
    site.routes["/0"] = respond(body=b"end")
    assert get(site, "/5").data == b"end"
    with pytest.raises(SourceUnavailable, match="more than 5 redirects"):
        get(site, "/6")


def test_redirect_cycle_ends(site: HttpServer) -> None:
    site.routes["/x"] = redirect("/x")
    with pytest.raises(SourceUnavailable, match="redirects"):
        get(site)
    assert len(site.requests) == 6


def test_redirect_without_location_raises(site: HttpServer) -> None:
    site.routes["/x"] = respond("302 Found")
    with pytest.raises(SourceUnavailable, match="without a location"):
        get(site)


def test_token_is_sent_after_redirect_on_same_host(site: HttpServer) -> None:
    site.routes |= {"/x": redirect("/y"), "/y": respond()}
    fetch(site.url("/x"), max_bytes=9, policy=LOOPBACK, options=FetchOptions(token=TOKEN))
    sent = [request.headers["authorization"] for request in site.requests]
    assert sent == [f"Bearer {TOKEN}"] * 2


def test_token_is_dropped_when_redirect_leaves_host(site: HttpServer) -> None:
    network = NetworkSettings(resolve=ScriptedResolver(["127.0.0.1"], ["127.0.0.1"], ["127.0.0.1"]))
    site.routes["/x"] = redirect(site.url("/y", "other.example"))
    site.routes["/y"] = redirect(site.url("/z", "host.example"))
    site.routes["/z"] = respond()
    url = site.url("/x", "host.example")
    fetch(url, max_bytes=9, policy=LOOPBACK, options=FetchOptions(token=TOKEN), network=network)
    assert ["authorization" in request.headers for request in site.requests] == [
        True,
        False,
        False,
    ]


# Credentials of hosts that ask for them


class ProviderRecorder:
    """Provider that always returns the same credentials, and records what it was asked."""

    def __init__(self, value: str = f"Basic {TOKEN}") -> None:
        self.value = value
        self.asked: list[tuple[str, str | None]] = []

    def __call__(self, url: WebUrl, challenge: str | None) -> str:
        self.asked.append((url.path, challenge))
        return "" if challenge is None else self.value


UNAUTHORIZED = respond("401 No", headers={"WWW-Authenticate": 'Basic realm="acme"'})


def ask_for_credentials(site: HttpServer, body: bytes = b"secret") -> None:
    """Serve the body to clients with credentials."""

    def answer(request: ReceivedRequest) -> Route:
        has_token = request.headers.get("authorization") == f"Basic {TOKEN}"
        return respond(body=body) if has_token else UNAUTHORIZED

    site.default_route = answer


def test_credentials_are_sent_after_the_host_asks_for_them(site: HttpServer) -> None:
    ask_for_credentials(site)
    provider = ProviderRecorder()
    result = fetch(
        site.url("/x"), max_bytes=9, policy=LOOPBACK, options=FetchOptions(credentials=provider)
    )
    assert result.data == b"secret"
    assert provider.asked == [("/x", None), ("/x", 'Basic realm="acme"')]
    assert ["authorization" in request.headers for request in site.requests] == [False, True]


@pytest.mark.parametrize("value", ["", "Basic wrong"])
def test_missing_or_rejected_credentials_raise_after_one_attempt(
    site: HttpServer, value: str
) -> None:
    site.routes["/x"] = UNAUTHORIZED
    options = FetchOptions(credentials=ProviderRecorder(value))
    with pytest.raises(SourceUnavailable, match="credentials") as caught:
        fetch(site.url("/x"), max_bytes=9, policy=LOOPBACK, options=options)
    assert caught.value.access == ("login_rejected" if value else "no_login")
    assert len(site.requests) == (2 if value else 1)


def test_credentials_are_not_sent_over_plain_http_to_other_machines(site: HttpServer) -> None:
    site.routes["/x"] = UNAUTHORIZED
    provider = ProviderRecorder()
    with pytest.raises(SourceUnavailable, match="asks for credentials"):
        fetch(
            site.url("/x", "host.example"), max_bytes=9, policy=LOOPBACK,
            options=FetchOptions(credentials=provider),
            network=NetworkSettings(resolve=ScriptedResolver(["127.0.0.1"])),
        )  # fmt: skip
    assert provider.asked == [("/x", None)]


@pytest.mark.parametrize("path", ["/open", "/private"])
def test_redirect_to_another_host_gets_no_credentials(site: HttpServer, path: str) -> None:
    ask_for_credentials(site)
    with run_http_server() as other:
        other.routes |= {"/open": respond(body=b"x"), "/private": UNAUTHORIZED}
        site.routes["/x"] = redirect(other.url(path))
        provider = ProviderRecorder()
        options = FetchOptions(credentials=provider)
        with suppress(SourceUnavailable):
            fetch(site.url("/x"), max_bytes=9, policy=LOOPBACK, options=options)
        assert [request.headers.get("authorization") for request in other.requests] == [None]
    assert provider.asked == [("/x", None)]


# Sizes and times


def test_body_at_limit_is_returned(site: HttpServer) -> None:
    site.routes["/x"] = respond(body=b"x" * LIMIT)
    assert len(get(site).data) == LIMIT


def test_content_length_beyond_limit_is_rejected_unread(site: HttpServer) -> None:
    site.routes["/x"] = respond(length=LIMIT + 1)
    with pytest.raises(TooLarge):
        get(site)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    ],
)
def test_endless_body_is_rejected(site: HttpServer, head: bytes) -> None:
    site.routes["/x"] = respond_endlessly(head)
    with pytest.raises(TooLarge):
        get(site)
    assert site.responses[0].bytes_sent < 50_000_000  # the size of system buffers


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nA: "])
def test_endless_headers_raise(site: HttpServer, head: bytes) -> None:
    site.routes["/x"] = respond_endlessly(head)
    with pytest.raises(SourceUnavailable, match="not valid HTTP"):
        get(site)


def test_gzip_bomb_is_rejected(site: HttpServer) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < LIMIT
    site.routes["/x"] = respond(body=bomb, headers={"Content-Encoding": "gzip"})
    with pytest.raises(TooLarge):
        get(site)


def test_slow_body_times_out(site: HttpServer) -> None:
    head = build_head("200 OK", {"Content-Length": "1000"})

    def drip(writer: ResponseWriter) -> None:
        writer.send(head)
        writer.send_slowly(b"x" * 1000, 0.05)

    site.routes["/x"] = drip
    began = time.monotonic()
    with pytest.raises(SourceTimedOut):
        get(site, network=HASTY)
    assert time.monotonic() - began < 5


def test_slow_headers_time_out(site: HttpServer) -> None:
    site.routes["/x"] = lambda writer: writer.send_slowly(b"HTTP/1.1 200 OK\r\n" * 100, 0.05)
    with pytest.raises(SourceTimedOut):
        get(site, network=HASTY)


def test_silent_host_times_out(site: HttpServer) -> None:
    site.routes["/x"] = never_respond
    with pytest.raises(SourceTimedOut) as caught:
        get(site, network=HASTY)
    assert caught.value.code == "upstream_timeout"


def test_redirects_share_one_deadline(site: HttpServer) -> None:
    def slow(writer: ResponseWriter) -> None:
        writer.closed.wait(0.15)
        writer.send(build_head("302 Found", {"Location": "/x"}))

    site.routes["/x"] = slow
    with pytest.raises(SourceTimedOut):
        get(site, network=HASTY)


def test_unknown_host_raises() -> None:
    def resolve(_host: str, _port: int) -> list[str]:
        raise socket.gaierror

    with pytest.raises(SourceUnavailable, match="DNS lookup failed"):
        fetch("https://host.example/x", max_bytes=LIMIT, network=NetworkSettings(resolve=resolve))


def test_hanging_lookup_times_out() -> None:
    over = threading.Event()

    def resolve(_host: str, _port: int) -> list[str]:
        over.wait(20)
        return []

    network = NetworkSettings(resolve=resolve, total=0.2, idle=0.2)
    with pytest.raises(SourceTimedOut):
        fetch("https://host.example/x", max_bytes=LIMIT, network=network)
    over.set()


# Failing responses


@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone"])
def test_missing_resource_is_not_found(site: HttpServer, status: str) -> None:
    site.routes["/x"] = respond(status)
    with pytest.raises(SourceNotFound) as caught:
        get(site, "/x?token=s3cr3t-t0ken")
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    "status", ["500 A", "502 B", "503 C", "401 D", "403 E", "204 F", "206 G", "300 H", "999 I"]
)
def test_other_status_raises_unavailable(site: HttpServer, status: str) -> None:
    site.routes["/x"] = respond(status)
    with pytest.raises(SourceUnavailable, match=f"status {status[:3]}") as caught:
        get(site)
    assert caught.value.code == "upstream_error"


DATE = 1_900_000_000


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        ("429 A", {}, 60),
        ("429 A", {"Retry-After": "7"}, 7),
        ("403 A", {"Retry-After": "7"}, 7),
        ("429 A", {"Retry-After": formatdate(DATE + 90, usegmt=True)}, 90),
        ("429 A", {"Retry-After": "soon"}, 0),
        ("429 A", {"Retry-After": "9" * 19}, 86_400),
        ("429 A", {"X-RateLimit-Reset": str(DATE + 30)}, 30),
        ("403 A", {"X-RateLimit-Reset": str(DATE + 30), "X-RateLimit-Remaining": "0"}, 30),
        ("403 A", {"X-RateLimit-Reset": str(DATE - 30), "X-RateLimit-Remaining": "0"}, 0),
    ],
)
def test_rate_limit_has_retry_time(
    site: HttpServer, status: str, headers: dict[str, str], seconds: int
) -> None:
    site.routes["/x"] = respond(status, b"", {"Date": formatdate(DATE, usegmt=True), **headers})
    with pytest.raises(RateLimited) as caught:
        get(site)
    assert (caught.value.host, caught.value.seconds) == ("127.0.0.1", seconds)


def test_forbidden_with_remaining_requests_is_not_a_rate_limit(site: HttpServer) -> None:
    headers = {"X-RateLimit-Reset": str(DATE), "X-RateLimit-Remaining": "59"}
    site.routes["/x"] = respond("403 Forbidden", b"", headers)
    with pytest.raises(SourceUnavailable, match="status 403"):
        get(site)


PACKED = gzip.compress(b"abc")


@pytest.mark.parametrize(
    "route",
    [
        respond(body=b"abc", length=4),
        respond_chunked(b"abc", end=b""),
        respond_chunked(b"abc", end=b"5\r\nab"),
        respond_chunked(end=b"nonsense\r\n"),
        respond_chunked(end=b"-5\r\n"),
        respond(body=PACKED[:-3], headers={"Content-Encoding": "gzip"}),
        respond(body=PACKED + b"more", headers={"Content-Encoding": "gzip"}),
        respond(body=b"no gzip at all", headers={"Content-Encoding": "gzip"}),
        respond(body=b"abc", headers={"Content-Encoding": "br"}),
        lambda writer: writer.send(b"SSH-2.0-OpenSSH\r\n"),
        lambda writer: writer.send(b"HTTP/1.1 abc\r\n\r\n"),
        lambda writer: writer.send(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n"),
        lambda _: None,
    ],
)
def test_malformed_response_raises_unavailable(site: HttpServer, route: object) -> None:
    assert callable(route)
    site.routes["/x"] = route
    with pytest.raises(SourceUnavailable) as caught:
        get(site)
    assert caught.value.code == "upstream_error"


def test_closed_port_raises_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(SourceUnavailable, match="the connection failed"):
        fetch(f"http://127.0.0.1:{port}/x", max_bytes=9, policy=LOOPBACK)


@pytest.mark.parametrize("status", ["404 A", "429 B", "500 C"])
def test_errors_do_not_repeat_token(site: HttpServer, status: str) -> None:
    site.routes["/x"] = respond(status)
    request = FetchOptions(token=TOKEN)
    with pytest.raises(SkillhallError) as caught:
        fetch(site.url("/x"), max_bytes=9, policy=LOOPBACK, options=request)
    assert TOKEN not in f"{caught.value!r} {caught.value.hint} {request!r}"


def test_token_with_line_break_is_rejected_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="the token is not a single line") as caught:
        FetchOptions(token=f"{TOKEN}\r\nX: y")
    assert TOKEN not in str(caught.value)


# https


@pytest.fixture
def trusted(tmp_path: Path) -> Iterator[tuple[HttpServer, NetworkSettings]]:
    """A server named host.example, and network settings that resolve and trust it."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    certificate, key = make_certificate(tmp_path, "host.example")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=str(certificate))
    with run_http_server(serving) as running:
        yield running, NetworkSettings(lambda *_: ["127.0.0.1"], trusting)


def get_safely(
    trusted: tuple[HttpServer, NetworkSettings], host: str = "host.example"
) -> FetchResult:
    site, network = trusted
    return fetch(site.url("/x", host), max_bytes=LIMIT, policy=LOOPBACK, network=network)


def test_certificate_is_verified_by_host_name(trusted: tuple[HttpServer, NetworkSettings]) -> None:
    trusted[0].routes["/x"] = respond(body=b"safe")
    assert get_safely(trusted).data == b"safe"
    assert trusted[0].requested_names == ["host.example"]


def test_certificate_of_other_host_is_rejected(trusted: tuple[HttpServer, NetworkSettings]) -> None:
    with pytest.raises(SourceUnavailable, match="certificate"):
        get_safely(trusted, "other.example")
    assert trusted[0].requests == []


def test_self_signed_certificate_is_rejected(trusted: tuple[HttpServer, NetworkSettings]) -> None:
    site, network = trusted
    with pytest.raises(SourceUnavailable, match="certificate"):
        get_safely((site, NetworkSettings(network.resolve)))
    assert site.requests == []


def test_redirect_from_https_to_http_is_rejected(
    trusted: tuple[HttpServer, NetworkSettings],
) -> None:
    trusted[0].routes["/x"] = redirect(f"http://host.example:{trusted[0].port}/x")
    with pytest.raises(SourceRejected, match="from https to http") as caught:
        get_safely(trusted)
    assert caught.value.reason == "scheme"


def test_truncated_tls_body_raises(trusted: tuple[HttpServer, NetworkSettings]) -> None:
    def cut(writer: ResponseWriter) -> None:
        writer.send(b"HTTP/1.1 200 OK\r\n\r\nabc")
        raise ConnectionError

    trusted[0].routes["/x"] = cut
    with pytest.raises(SourceUnavailable):
        get_safely(trusted)


def test_plain_http_on_https_port_raises(site: HttpServer) -> None:
    url = site.url("/x").replace("http:", "https:")
    with pytest.raises(SourceUnavailable):
        fetch(url, max_bytes=9, policy=LOOPBACK, network=HASTY)
