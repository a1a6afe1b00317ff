"""The configured timeout of database calls, and its shares."""

import pytest

from skillhall._internal.storage.sql.timeouts import DatabaseTimeouts, parse_timeout
from skillhall.errors import ConfigInvalid


@pytest.mark.parametrize("text", ["", "soon", "3.9", "3601", "-5", "nan", "inf"])
def test_unusable_timeout_is_rejected(text: str) -> None:
    with pytest.raises(ConfigInvalid, match="allowed range"):
        parse_timeout(text)


@pytest.mark.parametrize("seconds", [4, 5, 10, 60, 3600])
def test_no_step_exceeds_the_timeout(seconds: int) -> None:
    timeouts = parse_timeout(str(seconds))
    assert timeouts.pool + timeouts.ping + timeouts.connect <= seconds
    assert timeouts.statement < timeouts.response < seconds


def test_frozen_transaction_ends_before_others_give_up() -> None:
    timeouts = DatabaseTimeouts(10)
    assert timeouts.idle < timeouts.lock < timeouts.statement


@pytest.mark.parametrize("is_postgres", [True, False])
def test_attempt_that_would_end_too_late_is_not_made(*, is_postgres: bool) -> None:
    timeouts = DatabaseTimeouts(10)
    assert timeouts.allows_retry(1, is_postgres=is_postgres)
    assert not timeouts.allows_retry(8, is_postgres=is_postgres)
