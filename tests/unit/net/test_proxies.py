"""Proxies: which one a host gets, and what is sent to it."""

import pytest

from skillhall._internal.net.proxies import Proxy, find_proxy
from skillhall._internal.net.url import WebUrl
from skillhall._internal.settings import ProxySettings, Secret
from skillhall.errors import ConfigInvalid

PASSWORD = "pa55"  # noqa: S105 - fake


def find(url: str, *exceptions: str, **proxies: str) -> Proxy | None:
    secrets = {scheme: Secret(text) for scheme, text in proxies.items()}
    settings = ProxySettings(secrets.get("https"), secrets.get("http"), exceptions)
    parsed = WebUrl.parse(url)
    return find_proxy(parsed.scheme, parsed.host, parsed.port, settings)


@pytest.mark.parametrize(
    ("text", "proxy"),
    [
        ("http://proxy.example:3128", Proxy("proxy.example", 3128)),
        ("http://proxy.example:3128/", Proxy("proxy.example", 3128)),
        ("proxy.example:3128", Proxy("proxy.example", 3128)),
        ("http://10.0.0.1", Proxy("10.0.0.1", 80)),
        ("HTTP://ada:p%40ss@proxy.example", Proxy("proxy.example", 80, "ada:p%40ss")),
    ],
)
def test_proxy_is_a_url_or_a_host_and_port(text: str, proxy: Proxy) -> None:
    assert find("https://host.example/x", https=text) == proxy
    assert find("http://host.example/x", http=text) == proxy


def test_scheme_of_the_request_selects_the_proxy() -> None:
    assert find("https://host.example", http="proxy.example:1") is None
    assert find("http://host.example", https="proxy.example:1") is None


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"])
def test_this_machine_is_contacted_directly(host: str) -> None:
    assert find(f"https://{host}:8443/x", https="proxy.example:1") is None


@pytest.mark.parametrize(
    ("entry", "is_direct"),
    [
        ("*", True),
        ("host.acme.example", True),
        ("HOST.acme.example", True),
        ("acme.example", True),
        (".acme.example", True),
        ("*.acme.example", True),
        ("host.acme.example:443", True),
        ("host.acme.example:8443", False),
        ("me.example", False),
        ("xhost.acme.example", False),
        ("example.org", False),
        ("10.0.0.0/8", False),
        (":", False),
    ],
)
def test_exception_includes_a_host_and_those_below_it(entry: str, *, is_direct: bool) -> None:
    assert (find("https://host.acme.example", entry, https="p.example:1") is None) is is_direct


@pytest.mark.parametrize(
    ("entry", "host", "is_direct"),
    [
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("fd00::/8", "[fd00::1]", True),
        ("[fd00::1]", "[fd00::1]", True),
    ],
)
def test_exception_can_be_a_network(entry: str, host: str, *, is_direct: bool) -> None:
    assert (find(f"https://{host}", entry, https="p.example:1") is None) is is_direct


@pytest.mark.parametrize(
    "text",
    [
        f"socks5://ada:{PASSWORD}@proxy.example:1080",
        f"https://ada:{PASSWORD}@proxy.example",
        f"http://ada:{PASSWORD}@proxy.example:99999",
        f"http://ada:{PASSWORD}@",
        f"http://ada:{PASSWORD}@a b",
        f"http://ada:{PASSWORD}\r\nX: y@proxy.example",
    ],
)
def test_invalid_proxy_is_an_error_without_the_password(text: str) -> None:
    with pytest.raises(ConfigInvalid, match="HTTPS_PROXY") as raised:
        find("https://host.example", https=text)
    assert PASSWORD not in str(raised.value)


def test_password_is_decoded_for_the_header_and_absent_from_the_repr() -> None:
    proxy = Proxy("proxy.example", 3128, "ada:p%40ss")
    assert proxy.authorization == "Basic YWRhOnBAc3M="
    assert proxy.url == "http://ada:p%40ss@proxy.example:3128"
    assert "ss" not in repr(proxy)
    assert Proxy("proxy.example", 3128).authorization == ""
