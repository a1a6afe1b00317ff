"""The words of the pages: every language has all of them, and nothing else is asked for."""

import re
from pathlib import Path
from string import Formatter

import pytest

from skillhall._internal import web
from skillhall._internal.web.translations import LANGUAGES, load_translations, negotiate_language

FOLDER = Path(web.__file__).parent
ENGLISH = load_translations("en").messages


def values_in(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_text_with_the_same_values(language: str) -> None:
    words = load_translations(language).messages
    assert set(words) == set(ENGLISH)
    for key, text in words.items():
        assert values_in(text) == values_in(ENGLISH[key]), key
        assert text.strip(), key


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
def test_a_translation_is_translated(language: str) -> None:
    same = {
        key for key, text in load_translations(language).messages.items() if text == ENGLISH[key]
    }
    assert same == set()


def test_templates_ask_only_for_texts_that_exist_and_for_all_of_them() -> None:
    sources = [*FOLDER.glob("templates/*.html"), *FOLDER.rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    asked = set(re.findall(r"""(?:\bt|translations)\(["']([a-z_]+\.[a-z_]+)["'][,)]""", code))
    families = set(
        re.findall(
            r"""(?:\bt\(["']|translations\(f["'])([a-z_]+\.(?:about_)?)(?:["'] ~|\{)""", code
        )
    )
    known = {".".join(key.split(".")[:2]) for key in ENGLISH}
    assert asked <= known
    unused = {key for key in known - asked if not key.startswith(tuple(families))}
    assert unused == set()


@pytest.mark.parametrize(
    ("chosen", "accepted", "language"),
    [
        ("", "", "en"),
        ("", "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("", "de, en;q=0.5, zh;q=0.7", "zh"),
        ("", "fr;q=x,;;,", "en"),
        ("en", "zh", "en"),
        ("xx", "zh", "zh"),
    ],
)
def test_the_language_is_what_was_chosen_or_what_the_browser_asks_for(
    chosen: str, accepted: str, language: str
) -> None:
    assert negotiate_language(chosen, accepted) == language


def test_a_count_chooses_the_form() -> None:
    t = load_translations("en")
    assert (t("skills.files", count=1), t("skills.files", count=1200)) == ("1 file", "1,200 files")
