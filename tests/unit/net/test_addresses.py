"""IP addresses: which may be contacted."""

import socket
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillhall._internal.net.addresses import (
    PUBLIC_ONLY,
    AddressPolicy,
    IpAddress,
    is_loopback,
    parse_host,
    resolve_allowed_addresses,
    resolve_host,
)
from skillhall.errors import SourceRejected, SourceTimedOut, SourceUnavailable

LOOPBACK = AddressPolicy.from_cidrs("127.0.0.0/8", "::1/128")


@pytest.mark.parametrize(
    "address",
    [
        *["8.8.8.8", "1.1.1.1", "140.82.112.3", "100.63.255.255", "100.128.0.0", "172.32.0.1"],
        *["2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888", "::ffff:8.8.8.8"],
        "64:ff9b::8.8.8.8",
    ],
)
def test_public_address_is_allowed(address: str) -> None:
    assert PUBLIC_ONLY.rejection_reason(ip_address(address)) is None


@pytest.mark.parametrize(
    "address",
    [
        *["0.0.0.1", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1"],
        *["127.255.255.254", "169.254.169.254", "169.254.0.1", "172.16.0.1", "172.31.255.255"],
        *["192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1"],
        *["198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255"],
        *["240.0.0.1", "255.255.255.255", "168.63.129.16", "100.100.100.200"],
        *["::", "::1", "::2", "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1"],
        *["ff0e::1", "100::1", "2001:db8::1", "3fff::1", "2001::1", "2001:2::1", "2001:10::1"],
        *["4000::1", "5f00::1", "fe80::1%eth0", "2606:4700::1%1"],
        # IPv4 inside: mapped, compatible, NAT64, 6to4, Teredo, ISATAP
        *["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1"],
        *["::8.8.8.8", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8"],
        *["2002:7f00:1::", "2002:808:808::", "2001:0:7f00:1::", "2606:4700::5efe:127.0.0.1"],
        *["2606:4700::200:5efe:10.0.0.1", "fe80::5efe:10.0.0.1"],
    ],
)
def test_non_public_address_is_rejected(address: str) -> None:
    assert PUBLIC_ONLY.rejection_reason(ip_address(address)) is not None


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_explicitly_allowed_network_is_allowed(address: str) -> None:
    assert LOOPBACK.rejection_reason(ip_address(address)) is None
    assert LOOPBACK.is_explicitly_allowed(ip_address(address))


@pytest.mark.parametrize("address", ["10.0.0.1", "fe80::1", "::2", "::1%lo"])
def test_allowed_network_does_not_allow_others(address: str) -> None:
    assert LOOPBACK.rejection_reason(ip_address(address)) is not None


def test_public_address_is_not_explicitly_allowed() -> None:
    assert not LOOPBACK.is_explicitly_allowed(ip_address("8.8.8.8"))


@given(st.ip_addresses(v=4) | st.ip_addresses(network="2000::/3"))
def test_allowed_addresses_are_global_for_python(address: IpAddress) -> None:
    verdicts = [address.is_private, address.is_loopback, address.is_link_local]
    verdicts += [address.is_multicast, address.is_reserved, address.is_unspecified]
    assert PUBLIC_ONLY.rejection_reason(address) is not None or not any(verdicts)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("GitHub.com", "github.com"),
        ("localhost", "localhost"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("8.8.8.8", "8.8.8.8"),
        ("[0:0::1]", "[::1]"),
    ],
)
def test_parse_host_normalizes_spelling(text: str, host: str) -> None:
    assert parse_host(text) == host


@pytest.mark.parametrize(
    "text",
    [
        *["", ".", "a..b", "a.", "-a", "a-", "a_b", "a b", "bücher.example", "１.1.1.1", "a%2eb"],
        *["1", "127.1", "0x7f.1", "0177.0.0.1", "1.1.1.256", "1.2.3.4.5", "a.0x1", "[", "[]"],
        *["[1.2.3.4]", "[::1%lo]", "::1", "\u212a.example", "a" * 64, "a." * 127 + "a"],
    ],
)
def test_ambiguous_host_is_rejected(text: str) -> None:
    with pytest.raises(SourceRejected) as caught:
        parse_host(text)
    assert caught.value.reason == "host"


@pytest.mark.parametrize(
    ("host", "answer"),
    [("localhost", True), ("127.9.9.9", True), ("[::1]", True), ("8.8.8.8", False), ("a", False)],
)
def test_is_loopback_recognizes_spellings(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer


def test_resolved_addresses_are_ordered_and_unique() -> None:
    def resolve(host: str, port: int) -> list[str]:
        assert (host, port) == ("host.example", 443)
        return ["2606:4700::1", "8.8.8.8", "2606:4700::1"]

    result = resolve_allowed_addresses("host.example", 443, PUBLIC_ONLY, resolve)
    assert [str(address) for address in result] == ["2606:4700::1", "8.8.8.8"]


def test_one_private_address_rejects_host() -> None:
    with pytest.raises(SourceRejected, match="private network") as caught:
        resolve_allowed_addresses(
            "host.example", 443, PUBLIC_ONLY, lambda *_: ["8.8.8.8", "10.0.0.1"]
        )
    assert caught.value.reason == "host"


@pytest.mark.parametrize("host", ["8.8.8.8", "[2606:4700::1]"])
def test_literal_address_is_not_resolved(host: str) -> None:
    def resolve(_host: str, _port: int) -> list[str]:
        raise AssertionError

    assert len(resolve_allowed_addresses(host, 443, PUBLIC_ONLY, resolve)) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254"])
def test_literal_private_address_is_rejected(host: str) -> None:
    with pytest.raises(SourceRejected):
        resolve_allowed_addresses(host, 443, PUBLIC_ONLY)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [(socket.gaierror(), SourceUnavailable), (TimeoutError(), SourceTimedOut)],
)
def test_failed_lookup_is_unavailable(failure: OSError, expected: type[SourceUnavailable]) -> None:
    def resolve(_host: str, _port: int) -> list[str]:
        raise failure

    with pytest.raises(expected):
        resolve_allowed_addresses("host.example", 443, PUBLIC_ONLY, resolve)


@pytest.mark.parametrize("answer", [[], ["nonsense"]])
def test_host_without_address_is_unavailable(answer: list[str]) -> None:
    with pytest.raises(SourceUnavailable):
        resolve_allowed_addresses("host.example", 443, PUBLIC_ONLY, lambda *_: answer)


def test_resolve_host_resolves_localhost() -> None:
    assert resolve_host("127.0.0.1", 80) == ["127.0.0.1"]
