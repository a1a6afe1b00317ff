"""Access scopes and those that they include."""

from skillhall._internal.policy.access.access_scopes import (
    DEFAULT_SCOPES,
    AccessScope,
    expand_scopes,
)


def test_scopes_have_the_order_of_their_declaration() -> None:
    assert expand_scopes([AccessScope.REPORT, AccessScope.WRITE]) == ("read", "write", "report")


def test_read_audit_and_report_include_nothing() -> None:
    for scope in (AccessScope.READ, AccessScope.AUDIT, AccessScope.REPORT):
        assert expand_scopes([scope]) == (scope,)


def test_default_allows_what_tokens_allowed_before_there_were_scopes() -> None:
    assert DEFAULT_SCOPES == ("read", "write", "review", "admin")
