"""Logins and the header that sends them."""

from skillhall._internal.settings import Secret
from skillhall._internal.sources.logins.login import Login


def test_authorization_is_user_and_password_in_base_64() -> None:
    login = Login("ada", Secret("pä:ss"))
    assert login.authorization == "Basic YWRhOnDDpDpzcw=="
    assert "pä" not in repr(login)
