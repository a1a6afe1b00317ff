"""Settings of a running server: their values."""

import pytest

from skillhall._internal.storage.runtime_settings import SETTINGS, parse_fixed
from skillhall._internal.web.translations import LANGUAGES
from skillhall.errors import ConfigInvalid, FieldRefused


def test_number_may_have_separators_and_an_empty_value_is_the_default() -> None:
    setting = SETTINGS["budget_total"]
    assert [setting.parse(text) for text in (" 12,000 ", "12 000", "0", " ")] == [
        "12000",
        "12000",
        "0",
        "",
    ]
    assert (setting.convert("12000"), setting.convert("")) == (12_000, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("language", "xx"),
        ("budget_total", "-1"),
        ("budget_total", "1000000001"),
        ("budget_working", "many"),
        ("budget_working", "9" * 5_000),
        ("bin_retention", "0"),
        ("bin_retention", "3651"),
    ],
)
def test_invalid_value_is_refused(name: str, value: str) -> None:
    with pytest.raises(FieldRefused, match="must be"):
        SETTINGS[name].parse(value)
    with pytest.raises(ConfigInvalid, match=f"{SETTINGS[name].variable}: must be"):
        parse_fixed({name: value})


def test_languages_are_those_of_the_pages() -> None:
    assert SETTINGS["language"].choices == tuple(LANGUAGES)
