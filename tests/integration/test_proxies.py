"""Requests through a proxy on this machine: downloads and git."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillhall._internal.net.addresses import PUBLIC_ONLY, AddressPolicy
from skillhall._internal.net.connection import NetworkSettings
from skillhall._internal.net.fetch import FetchOptions, fetch
from skillhall._internal.settings import ProxySettings, Secret
from skillhall._internal.sources.git.git_ref import GitRef
from skillhall._internal.sources.git.remote import GitAccess
from skillhall._internal.sources.git.source import read_git
from skillhall.errors import SourceRejected, SourceUnavailable
from tests.support.git_server import git_repo, run_git_server
from tests.support.http_server import (
    HttpServer,
    ScriptedResolver,
    make_certificate,
    redirect,
    respond,
    run_http_server,
)
from tests.support.proxy_server import ProxyServer, run_proxy
from tests.support.skills import make_skill_md

HOST = "host.example"
PROXY_HOST = "127.0.0.1"
TOKEN = "s3cr3t"  # noqa: S105 - fake
USER = "ada:pa55@"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"), HOST)


@pytest.fixture
def site(certificate: tuple[Path, Path]) -> Iterator[HttpServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with run_http_server(context) as running:
        running.routes["/x"] = respond(body=b"here")
        yield running


@pytest.fixture
def proxy(site: HttpServer) -> Iterator[ProxyServer]:
    with run_proxy(site.port) as running:
        yield running


def policy(proxy: ProxyServer, *networks: str, user_info: str = USER) -> AddressPolicy:
    secret = Secret(proxy.url(user_info))
    allowed = AddressPolicy.from_cidrs(*networks).allowed
    return AddressPolicy(allowed, ProxySettings(secret, secret))


def network(certificate: tuple[Path, Path], *answers: list[str]) -> NetworkSettings:
    resolver = ScriptedResolver(*answers)
    tls = ssl.create_default_context(cafile=str(certificate[0]))
    return NetworkSettings(resolver, tls)


def test_https_goes_through_a_tunnel_that_sees_no_path(
    site: HttpServer, proxy: ProxyServer, certificate: tuple[Path, Path]
) -> None:
    options = FetchOptions(token=TOKEN)
    result = fetch(
        f"https://{HOST}/x?a=b", max_bytes=99, policy=policy(proxy), options=options,
        network=network(certificate, ["8.8.8.8"]),
    )  # fmt: skip
    assert result.data == b"here"
    [head] = proxy.heads
    assert head.splitlines()[0] == f"CONNECT {HOST}:443 HTTP/1.1"
    assert "Proxy-Authorization: Basic YWRhOnBhNTU=" in head
    assert TOKEN not in head
    assert "proxy-authorization" not in site.requests[0].headers
    assert site.requested_names == [HOST]


def test_host_that_this_machine_cannot_resolve_is_left_to_the_proxy(
    site: HttpServer, proxy: ProxyServer, certificate: tuple[Path, Path]
) -> None:
    settings = network(certificate, [])
    result = fetch(f"https://{HOST}/x", max_bytes=99, policy=policy(proxy), network=settings)
    assert (result.data, len(site.requests)) == (b"here", 1)


@pytest.mark.parametrize("url", [f"https://{HOST}/x", "https://10.0.0.1/x", "https://[fd00::1]/x"])
def test_host_known_to_be_private_is_rejected_before_the_proxy_is_asked(
    proxy: ProxyServer, certificate: tuple[Path, Path], url: str
) -> None:
    with pytest.raises(SourceRejected):
        fetch(url, max_bytes=9, policy=policy(proxy), network=network(certificate, ["10.0.0.1"]))
    assert proxy.heads == []


def test_redirect_through_a_proxy_is_checked(
    site: HttpServer, proxy: ProxyServer, certificate: tuple[Path, Path]
) -> None:
    site.routes["/x"] = redirect("https://169.254.169.254/latest")
    settings = network(certificate, ["8.8.8.8"])
    with pytest.raises(SourceRejected, match="metadata"):
        fetch(f"https://{HOST}/x", max_bytes=9, policy=policy(proxy), network=settings)
    assert len(proxy.heads) == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "needs some"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", f"connection to {HOST}:443 with status 403"),
        (b"SSH-2.0-x\r\n\r\n", "not valid HTTP"),
    ],
)
def test_refusing_proxy_is_an_error_without_its_password(
    proxy: ProxyServer, certificate: tuple[Path, Path], answer: bytes, message: str
) -> None:
    proxy.answer = answer
    settings = network(certificate, ["8.8.8.8"])
    with pytest.raises(SourceUnavailable, match=message) as raised:
        fetch(f"https://{HOST}/x", max_bytes=9, policy=policy(proxy), network=settings)
    assert "pa55" not in str(raised.value)


def test_unreachable_proxy_is_an_error_that_names_it(certificate: tuple[Path, Path]) -> None:
    proxied = AddressPolicy(proxies=ProxySettings(Secret("http://127.0.0.1:1")))
    settings = network(certificate, ["8.8.8.8"])
    with pytest.raises(SourceUnavailable, match=r"127\.0\.0\.1: the connection failed"):
        fetch(f"https://{HOST}/x", max_bytes=9, policy=proxied, network=settings)


def test_plain_http_goes_through_a_proxy_into_allowed_networks_only() -> None:
    with run_http_server() as site, run_proxy(site.port) as proxy:
        site.routes["/x"] = respond(body=b"here")
        settings = NetworkSettings(ScriptedResolver(["10.0.0.1"], ["8.8.8.8"], []))
        url, allowed = f"http://{HOST}/x?a=b", policy(proxy, "10.0.0.0/8")
        assert fetch(url, max_bytes=9, policy=allowed, network=settings).data == b"here"
        assert proxy.heads[0].startswith(f"GET http://{HOST}/x?a=b HTTP/1.1\r\nProxy-Authorization")
        for _ in range(2):
            with pytest.raises(SourceRejected, match="'http' is not safe"):
                fetch(url, max_bytes=9, policy=allowed, network=settings)
        assert len(proxy.heads) == 1


def test_fetch_without_proxies_ignores_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with run_http_server() as site:
        site.routes["/x"] = respond(body=b"direct")
        allowed = AddressPolicy.from_cidrs("127.0.0.0/8")
        assert fetch(site.url("/x"), max_bytes=9, policy=allowed).data == b"direct"
    assert PUBLIC_ONLY.proxies == ProxySettings()


def test_git_uses_the_proxy_and_gets_its_password_by_the_environment(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    git_repo(tmp_path / "served/skills.git", {"pdf/SKILL.md": make_skill_md("pdf")})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with run_git_server(tmp_path / "served", context) as git, run_proxy(git.port) as proxy:
        access = GitAccess(
            str(tmp_path / "cache"),
            policy(proxy),
            resolve=lambda _host, _port: [],
            ca_file=str(certificate[0]),
            tokens={HOST: Secret(TOKEN)},
        )
        reference = GitRef(f"https://{HOST}/skills.git")
        skills = read_git(reference, access, source_text="x")
        assert [bundle.folder for bundle in skills.bundles] == ["pdf"]
        assert all(head.startswith(f"CONNECT {HOST}:443") for head in proxy.heads)
        assert "Proxy-Authorization: Basic YWRhOnBhNTU=" in proxy.heads[-1]
        assert all("\nAuthorization" not in head for head in proxy.heads)
        assert all("authorization" in request.headers for request in git.requests)
