from skillhall import errors
from skillhall._internal.cli.errors import EXIT_CODES
from skillhall._internal.http.errors import ERROR_STATUSES, error_status
from skillhall.errors import SkillhallError


def test_every_error_has_a_status() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.code for kind in kinds if issubclass(kind, SkillhallError)}
    assert len(codes) > 10
    assert codes <= set(ERROR_STATUSES)


def test_every_code_with_an_exit_code_has_a_status() -> None:
    assert set(EXIT_CODES) - {"usage"} <= set(ERROR_STATUSES)


def test_statuses_are_errors_and_codes_are_upper_case() -> None:
    for status in ERROR_STATUSES.values():
        assert 400 <= status.http_status < 600
        assert status.code.replace("_", "").isalpha()
        assert status.code.isupper()


def test_unknown_code_is_an_internal_error() -> None:
    error = SkillhallError("?")
    error.code = "unknown"
    assert error_status(error) == ERROR_STATUSES["internal"]
