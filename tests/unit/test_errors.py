"""Exceptions: families, codes, facts, pickling, and hints that each surface words itself."""

import inspect
import pickle
from collections.abc import Mapping

import pytest

from skillhall import errors
from skillhall._internal.cli.errors import EXIT_CODES
from skillhall._internal.cli.errors import HINTS as CLI_HINTS
from skillhall._internal.hints import COMMON_HINTS, TOKEN_HINTS, find_hint
from skillhall._internal.http.errors import ERROR_STATUSES
from skillhall._internal.http.errors import HINTS as REST_HINTS
from skillhall._internal.web.translations import load_translations
from skillhall.errors import (
    ConfigError,
    InstallError,
    InvalidInputError,
    InvalidSkillError,
    LockNotFound,
    ModelError,
    NotFoundError,
    SkillhallError,
    SkillNotFound,
    SourceError,
    StoreError,
)

FAMILIES = (
    NotFoundError,
    InvalidSkillError,
    InvalidInputError,
    SourceError,
    InstallError,
    StoreError,
    ConfigError,
    ModelError,
)
CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, SkillhallError)
]
# Those that are raised: all but the base and the families.
EXCEPTIONS = [kind for kind in CLASSES if kind not in (SkillhallError, *FAMILIES)]
SAMPLES: Mapping[str, object] = {
    "limit": 10,
    "line": 3,
    "seconds": 30,
    "status": 404,
    "version": 3,
    "given": 1,
    "known": 2,
    "close": ("a", "b"),
    "reasons": ("a", "b"),
    "files": ["a", "b"],
    "names": ("a", "b"),
    "agents": ("a", "b"),
}
VARIANTS = {"archive_rejected.no_skill", "lock_not_found.other", "not_authenticated.no_variable"}
VARIANTS |= {"read_only.repository", "read_only.shadows", "source_unavailable.token_rejected"}
VARIANTS |= set(TOKEN_HINTS)


def make_error(kind: type[SkillhallError]) -> SkillhallError:
    """An error with a fact for each parameter of its constructor."""
    names = [*inspect.signature(kind).parameters]
    if names == ["args", "named"]:
        names = [*kind._fact_names]  # noqa: SLF001
    if not names and not kind._template:  # noqa: SLF001
        return kind("message")
    return kind(**{name: SAMPLES.get(name, name) for name in names})


@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: kind.__name__)
def test_an_error_survives_pickling(kind: type[SkillhallError]) -> None:
    error = make_error(kind)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert type(copy) is kind
    assert str(copy) == str(error) != ""
    assert vars(copy) == vars(error)
    assert dict(copy.facts) == dict(error.facts)


@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: kind.__name__)
def test_an_error_belongs_to_one_family_and_has_an_exit_code_and_a_status(
    kind: type[SkillhallError],
) -> None:
    assert sum(issubclass(kind, family) for family in FAMILIES) == 1
    code = make_error(kind).code
    assert code == "code" or code in EXIT_CODES  # "code" is the sample fact of ModelUnavailable
    assert code == "code" or code in ERROR_STATUSES


def test_kinds_are_unique() -> None:
    kinds = [kind.kind for kind in CLASSES if kind is not SkillhallError]
    assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_messages_and_common_hints_name_no_surface(kind: type[SkillhallError]) -> None:
    for text in (kind._template, COMMON_HINTS.get(kind.kind, "")):  # noqa: SLF001
        assert not any(word in text for word in ("--", "skillhall ", "POST", "SKILLHALL_"))


@pytest.mark.parametrize("table", [COMMON_HINTS, CLI_HINTS, REST_HINTS])
def test_hints_are_for_errors_that_exist(table: Mapping[str, str]) -> None:
    kinds = {kind.kind for kind in CLASSES}
    assert {key for key in table if key not in kinds and key not in VARIANTS} == set()


def test_the_page_has_hints_for_errors_that_exist() -> None:
    kinds = {kind.kind for kind in CLASSES} | {key.replace(".", "_") for key in VARIANTS}
    keys = {key for key in load_translations("en").messages if key.startswith("hint.")}
    assert {key for key in keys if key.removeprefix("hint.") not in kinds} == set()


def test_every_hint_can_be_formatted_with_the_facts_of_its_error() -> None:
    for kind in EXCEPTIONS:
        for table in (CLI_HINTS, REST_HINTS):
            assert "{" not in find_hint(make_error(kind), table)


def test_a_surface_words_the_hint() -> None:
    error = LockNotFound("skillhall-lock.json", "skills-lock.json")
    assert "skillhall install" in find_hint(error, CLI_HINTS)
    assert find_hint(error, {}) == ""


def test_near_names_are_suggested_on_every_surface() -> None:
    error = SkillNotFound("pfd", ["pdf"])
    assert find_hint(error, {}) == "did you mean 'pdf'?"
    assert find_hint(error, CLI_HINTS).startswith("did you mean 'pdf'? ")


def test_a_missing_skill_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="there is no skill named 'x'"):
        raise SkillNotFound("x")


def test_old_spellings_work_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="StaleVersionError"):
        assert errors.ChangedMeanwhile is errors.StaleVersionError
    with pytest.raises(AttributeError, match="NoSuchError"):
        _ = errors.NoSuchError


def test_wrong_facts_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="takes path, files"):
        errors.Edited("x")  # type: ignore[call-arg]
