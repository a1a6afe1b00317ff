"""Git remotes: URLs, addresses and tokens."""

import base64

import pytest

from skillhall._internal.net.addresses import AddressPolicy
from skillhall._internal.settings import Secret
from skillhall._internal.sources.git.remote import GitAccess, cache_key, open_remote, parse_endpoint
from skillhall.errors import SourceRejected

UNTIL = float("inf")
HERE = AddressPolicy.from_cidrs("127.0.0.0/8")


def access(**tokens: str) -> GitAccess:
    by_host = {name.replace("_", "."): Secret(text) for name, text in tokens.items()}
    return GitAccess("cache", HERE, by_host, resolve=lambda *_: ["1.1.1.1", "2606:4700::1"])


@pytest.mark.parametrize(
    ("url", "scheme", "authority"),
    [
        ("https://git.example/acme/skills.git", "https", "git.example"),
        ("https://git.example:8443/skills", "https", "git.example:8443"),
        ("ssh://git@git.example/acme/skills.git", "ssh", "git.example"),
        ("ssh://git.example:2222/acme/skills.git", "ssh", "git.example:2222"),
        ("git@git.example:skills.git", "ssh", "git.example"),
    ],
)
def test_parse_endpoint_splits_url(url: str, scheme: str, authority: str) -> None:
    endpoint = parse_endpoint(url)
    assert (endpoint.scheme, endpoint.authority) == (scheme, authority)


@pytest.mark.parametrize(
    "url",
    ["", "ext::sh", "file:///x", "https://a@b/x", "ssh://-x/y", "ssh://a b/y", "x y", "git@-x:y"],
)
def test_parse_endpoint_rejects_other_text(url: str) -> None:
    with pytest.raises(SourceRejected):
        parse_endpoint(url)


def test_configuration_pins_addresses_and_scheme() -> None:
    remote = open_remote(parse_endpoint("https://git.example/x.git"), access(), UNTIL)
    lines = remote.build_configuration()
    assert "http.curloptResolve=git.example:443:1.1.1.1,2606:4700::1" in lines
    assert [line for line in lines if line.startswith("protocol.")] == [
        "protocol.https.allow=always"
    ]
    assert remote.build_environment() == {"GIT_ALLOW_PROTOCOL": "https"}


def test_token_is_in_environment_not_in_configuration() -> None:
    tokens = access(git_example="s3cr3t")
    remote = open_remote(parse_endpoint("https://git.example/x.git"), tokens, UNTIL)
    variables = remote.build_environment()
    assert variables["GIT_CONFIG_KEY_0"] == "http.https://git.example/.extraHeader"
    sent = variables["GIT_CONFIG_VALUE_0"].removeprefix("Authorization: Basic ")
    assert base64.b64decode(sent) == b"x-access-token:s3cr3t"
    assert "s3cr3t" not in f"{remote} {remote.build_configuration()}"
    for other in (
        "https://git.example:8443/x.git",
        "https://x.git.example/x.git",
        "git@git.example:x",
    ):
        elsewhere = open_remote(parse_endpoint(other), tokens, UNTIL)
        assert "GIT_CONFIG_COUNT" not in elsewhere.build_environment()


def test_ssh_connects_to_address_and_checks_key_of_name() -> None:
    remote = open_remote(parse_endpoint("ssh://git@git.example:2222/x.git"), access(), UNTIL)
    command = remote.build_environment()["GIT_SSH_COMMAND"]
    assert "-oHostName=1.1.1.1" in command
    assert "'-oHostKeyAlias=[git.example]:2222'" in command
    assert "SSH_AUTH_SOCK" not in remote.build_environment()


def test_ssh_ends_when_host_is_silent() -> None:
    remote = open_remote(parse_endpoint("git@git.example:x.git"), access(), UNTIL)
    command = remote.build_environment()["GIT_SSH_COMMAND"].split()
    for option in ("ConnectTimeout=30", "ServerAliveInterval=15", "ServerAliveCountMax=2"):
        assert f"-o{option}" in command


def test_cache_key_depends_on_url_and_token() -> None:
    one, two = parse_endpoint("https://git.example/x.git"), parse_endpoint("https://git.example/y")
    keys = {
        cache_key(one, access()),
        cache_key(two, access()),
        cache_key(one, access(git_example="a")),
        cache_key(one, access(git_example="b")),
    }
    assert len(keys) == 4
    assert cache_key(one, access()) == cache_key(one, access(git_other="a"))
