"""Host names, their IP addresses, and the policy for contacting them."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from skillhall._internal.settings import ProxySettings
from skillhall.errors import ConfigInvalid, SourceRejected, SourceTimedOut, SourceUnavailable

IpAddress: TypeAlias = IPv4Address | IPv6Address
IpNetwork: TypeAlias = IPv4Network | IPv6Network
Resolver: TypeAlias = "Callable[[str, int], Iterable[str]]"  # host and port to addresses, in order

MAX_HOST = 253  # characters, RFC 1035
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")

# The IANA special-purpose registries, and addresses of cloud platforms. `is_global` of the
# `ipaddress` module follows the registries only in newer versions of Python.
_RESERVED_NETWORKS: dict[IpNetwork, str] = {
    IPv4Network("0.0.0.0/8"): "this network",
    IPv4Network("10.0.0.0/8"): "a private network",
    IPv4Network("100.64.0.0/10"): "carrier-grade NAT",
    IPv4Network("127.0.0.0/8"): "this machine",
    IPv4Network("168.63.129.16/32"): "internal services of a cloud",
    IPv4Network("169.254.0.0/16"): "link-local use, such as cloud metadata",
    IPv4Network("172.16.0.0/12"): "a private network",
    IPv4Network("192.0.0.0/24"): "protocol assignments",
    IPv4Network("192.0.2.0/24"): "documentation",
    IPv4Network("192.88.99.0/24"): "6to4 relays",
    IPv4Network("192.168.0.0/16"): "a private network",
    IPv4Network("198.18.0.0/15"): "benchmarking",
    IPv4Network("198.51.100.0/24"): "documentation",
    IPv4Network("203.0.113.0/24"): "documentation",
    IPv4Network("224.0.0.0/4"): "multicast",
    IPv4Network("240.0.0.0/4"): "future use",
    IPv6Network("2001::/23"): "protocols and tunnels",  # Teredo, benchmarks, ORCHID
    IPv6Network("2001:db8::/32"): "documentation",
    IPv6Network("2002::/16"): "tunnels",  # 6to4
    IPv6Network("3fff::/20"): "documentation",
}
_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_GLOBAL_V6 = IPv6Network("2000::/3")
# NAT64 and IPv4-mapped addresses: their last four bytes are the IPv4 address that is contacted.
_IPV4_EMBEDDING_NETWORKS = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
_ISATAP = 0x5EFE  # bytes 8 to 11 of the address, apart from the bit for "unique"
_ISATAP_BITS = 0xFDFF_FFFF


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """IP addresses that may be contacted: public unicast ones and allowed networks.

    Hosts are contacted through the proxies, if there are any.
    """

    allowed: tuple[IpNetwork, ...] = ()
    proxies: ProxySettings = ProxySettings()  # noqa: RUF009 - a tuple

    @classmethod
    def from_cidrs(cls, *networks: str) -> AddressPolicy:
        """Build the policy that allows networks in CIDR notation. Raises: ValueError."""
        return cls(tuple(ip_network(text) for text in networks))

    def is_explicitly_allowed(self, address: IpAddress) -> bool:
        """Whether the address is in an allowed network, so that plain http is acceptable."""
        inner = _embedded_ipv4(address) or address
        return _scope_id(inner) is None and any(inner in network for network in self.allowed)

    def with_named_loopback(self, host: str) -> AddressPolicy:
        """Return the policy for a URL chosen by the user, which may name this machine.

        Loopback addresses are allowed if the host is `localhost` or a loopback address; other host
        names must not resolve to them.
        """
        return replace(self, allowed=(*self.allowed, *_LOOPBACK)) if is_loopback(host) else self

    def rejection_reason(self, address: IpAddress) -> str | None:
        """Return why the address may not be contacted, `None` if it may."""
        if self.is_explicitly_allowed(address):
            return None
        if _scope_id(address) is not None:
            return "its address is valid only on one network interface"
        inner = _embedded_ipv4(address) or address
        if isinstance(inner, IPv6Address):
            if inner not in _GLOBAL_V6:
                return "its address is not public"
            if int(inner) >> 32 & _ISATAP_BITS == _ISATAP:
                return "its address is reserved for tunnels"
        for network, purpose in _RESERVED_NETWORKS.items():
            if inner in network:
                return f"its address is reserved for {purpose}"
        return None


PUBLIC_ONLY = AddressPolicy()
ANY_ADDRESS = AddressPolicy.from_cidrs("0.0.0.0/0", "::/0")  # for URLs that the user chose


def build_address_policy(
    networks: Iterable[str],
    proxies: ProxySettings = ProxySettings(),  # noqa: B008 - a tuple
) -> AddressPolicy:
    """Build the policy that allows the configured networks. Raises: ConfigInvalid."""
    try:
        return replace(AddressPolicy.from_cidrs(*networks), proxies=proxies)
    except ValueError as error:
        hint = "write networks as 10.1.0.0/16, separated by spaces"
        raise ConfigInvalid("SKILLHALL_ALLOW_NETWORKS", str(error), hint) from None


def _embedded_ipv4(address: IpAddress) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address embeds, if any."""
    if isinstance(address, IPv6Address) and any(
        address in network for network in _IPV4_EMBEDDING_NETWORKS
    ):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def _scope_id(address: IpAddress) -> str | None:
    return address.scope_id if isinstance(address, IPv6Address) else None


def parse_host(text: str) -> str:
    """Check and normalize the host of a URL; an IPv6 address must be in brackets.

    Raises: SourceRejected.
    """
    if text.startswith("[") and text.endswith("]"):
        try:
            address = IPv6Address(text[1:-1])
        except ValueError:
            raise SourceRejected("host", text, "its host is not a valid IPv6 address") from None
        if address.scope_id is not None:
            raise SourceRejected("host", text, "its IPv6 address has a zone")
        return f"[{address}]"
    host = text.lower()
    labels = host.split(".")
    is_valid = text.isascii() and len(host) <= MAX_HOST and all(map(_LABEL.fullmatch, labels))
    if not is_valid:
        raise SourceRejected("host", text, "its host is not a valid host name")
    if not labels[-1][0].isdigit():
        return host
    # Resolvers disagree on how to read 127.1, 0x7f.1 and 2130706433, so only dotted quads pass.
    try:
        return str(IPv4Address(host))
    except ValueError:
        problem = "its host looks like a number, but is not a valid IPv4 address"
        raise SourceRejected("host", host, problem) from None


def is_loopback(host: str) -> bool:
    """Whether a parsed host is `localhost` or a loopback address."""
    return host == "localhost" or any(address.is_loopback for address in _parse_literal(host))


def resolve_host(host: str, port: int) -> list[str]:
    """Resolve a host with the system's resolver. Raises: OSError."""
    # As bytes, because a str would pass through the IDNA codec.
    results = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [str(address[0]) for _, _, _, _, address in results]


def resolve_allowed_addresses(
    host: str, port: int, policy: AddressPolicy, resolve: Resolver = resolve_host
) -> tuple[IpAddress, ...]:
    """Resolve a parsed host once and check all its IP addresses.

    A single rejected address rejects the host: legitimate hosts do not mix public and private ones.
    Raises: SourceRejected, SourceUnavailable.
    """
    try:
        addresses = _parse_literal(host) or tuple(
            map(ip_address, dict.fromkeys(resolve(host, port)))
        )
    except TimeoutError:
        raise SourceTimedOut(host, "DNS lookup timed out") from None
    except (OSError, ValueError):
        raise SourceUnavailable(host, "DNS lookup failed") from None
    if not addresses:
        raise SourceUnavailable(host, "DNS lookup returned no address")
    for address in addresses:
        if (reason := policy.rejection_reason(address)) is not None:
            raise SourceRejected("host", host, reason)
    return addresses


def resolve_proxied_addresses(
    host: str, port: int, policy: AddressPolicy, resolve: Resolver = resolve_host
) -> tuple[IpAddress, ...]:
    """Resolve a host that a proxy will contact; empty if this machine cannot resolve it.

    The proxy resolves the name again. What this machine knows to be private is rejected anyway.
    Raises: SourceRejected.
    """
    with suppress(SourceUnavailable):
        return resolve_allowed_addresses(host, port, policy, resolve)
    return ()


def _parse_literal(host: str) -> tuple[IpAddress, ...]:
    """Return the host in a tuple if it is an IP address; empty if it is a name."""
    try:
        return (ip_address(host.strip("[]")),)
    except ValueError:
        return ()
