"""Stored logins: the order of the stores, and hosts that do not accept a password."""

import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from skillhall._internal.net.url import WebUrl
from skillhall._internal.settings import Settings
from skillhall._internal.sources.base import SourceContext
from skillhall._internal.sources.logins.stored_logins import StoredLogins, open_stored_logins

URL = WebUrl.parse("https://host.example:8443/x")
ASKED = 'Basic realm="x"'
FROM_KEYRING = "from-keyring"
NETRC = "machine host.example login ada password from-netrc\n"
HELPER = """\
[credential]
    helper = "!f() { (echo $1; cat) >> {log}; echo password=from-git; echo username=ada; }; f"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without logins; the keyring has one for each service that is a URL."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)

    def get_credential(service: str, _user: str | None) -> SimpleNamespace | None:
        is_known = service == "https://host.example:8443/"
        stored = SimpleNamespace(username="ada", password=FROM_KEYRING)
        return stored if is_known else None

    keyring = ModuleType("keyring")
    keyring.get_credential = get_credential  # type: ignore[attr-defined] # as in the package
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    return tmp_path


def logins(home: Path) -> StoredLogins:
    return StoredLogins(Settings(str(home), str(home / "cache"), home=str(home)))


def find(home: Path, url: WebUrl = URL) -> str:
    login = logins(home).find(url)
    return "" if login is None else login.password.reveal()


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_stores_are_asked_in_order(home: Path) -> None:
    assert find(home) == FROM_KEYRING
    log = home / "log"
    (home / ".gitconfig").write_text(HELPER.replace("{log}", str(log)), encoding="utf-8")
    assert find(home) == "from-git"
    assert log.read_text("utf-8").splitlines()[:3] == [
        "get",
        "protocol=https",
        "host=host.example:8443",
    ]
    (home / ".netrc").write_text(NETRC, encoding="utf-8")
    assert find(home) == "from-netrc"


def test_failing_keyring_is_an_empty_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find(home, WebUrl.parse("https://other.example")) == ""
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert find(home) == ""


@pytest.mark.parametrize(
    ("challenge", "is_sent"),
    [
        (ASKED, True),
        ("", True),  # some hosts do not say what they accept
        ('Bearer realm="x", basic realm="y"', True),
        ('Bearer realm="x"', False),
        ("Negotiate", False),
        ('Digest realm="basic"', False),
    ],
)
def test_password_is_for_hosts_that_accept_one(
    home: Path, challenge: str, *, is_sent: bool
) -> None:
    (home / ".netrc").write_text(NETRC, encoding="utf-8")
    sign_in = logins(home)
    assert sign_in(URL, None) == ""
    assert bool(sign_in(URL, challenge)) is is_sent
    # From then on, it is sent at once.
    assert bool(sign_in(URL, None)) is is_sent
    assert sign_in(WebUrl.parse("https://host.example/x"), None) == ""


def test_logins_are_left_alone_where_credentials_are_not_allowed(home: Path) -> None:
    settings = Settings(str(home), str(home / "cache"), home=str(home))
    assert open_stored_logins(SourceContext(settings)) is not None
    assert open_stored_logins(SourceContext(settings, with_credentials=False)) is None
    disabled = settings._replace(use_stored_logins=False)
    assert open_stored_logins(SourceContext(disabled)) is None
