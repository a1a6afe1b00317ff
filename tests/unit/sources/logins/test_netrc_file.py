"""Logins in `~/.netrc`."""

from pathlib import Path

import pytest

from skillhall._internal.settings import Settings
from skillhall._internal.sources.logins.netrc_file import find_netrc_login
from skillhall.errors import ConfigInvalid

FILE = """\
# machine ignored.example login no password no
machine one.example login ada password s3cret
machine Two.Example
    login "ada l."
    account x
    password "a \\"b\\" #c"
macdef init
  machine macro.example login no password no

machine token.example password only
machine empty.example login ada
machine word.example login login password machine
machine one.example login second password second
default login anyone password leaked
"""


def find(home: Path, host: str, **variables: str) -> tuple[str, str] | None:
    settings = Settings(str(home), str(home / "cache"), home=str(home), variables=variables)
    login = find_netrc_login(host, settings)
    return None if login is None else (login.user, login.password.reveal())


@pytest.mark.parametrize(
    ("host", "login"),
    [
        ("one.example", ("ada", "s3cret")),
        ("two.example", ("ada l.", 'a "b" #c')),
        ("token.example", ("", "only")),
        ("word.example", ("login", "machine")),
        ("sub.one.example", None),
        ("example", None),
        ("ignored.example", None),
        ("macro.example", None),
        ("empty.example", None),
        ("other.example", None),  # not even the default entry
    ],
)
def test_login_is_that_of_the_entry_that_names_the_host(
    tmp_path: Path, host: str, login: tuple[str, str] | None
) -> None:
    (tmp_path / ".netrc").write_text(FILE, encoding="utf-8")
    assert find(tmp_path, host) == login


def test_another_file_is_named_by_the_environment(tmp_path: Path) -> None:
    (tmp_path / "other").write_text(FILE, encoding="utf-8")
    assert find(tmp_path, "one.example", NETRC=str(tmp_path / "other")) == ("ada", "s3cret")
    assert find(tmp_path, "one.example") is None


def test_unreadable_file_is_an_error_without_its_content(tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_bytes(b"machine one.example password s3cret\xff")
    with pytest.raises(ConfigInvalid) as raised:
        find(tmp_path, "one.example")
    assert "s3cret" not in str(raised.value)
