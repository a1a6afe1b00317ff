"""Texts of the pages: languages are complete, and every key is used."""

import re
from pathlib import Path
from string import Formatter

import pytest

from skillhall._internal import web
from skillhall._internal.web.translations import LANGUAGES, load_translations, negotiate_language

FOLDER = Path(web.__file__).parent
ENGLISH = load_translations("en").messages


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_have_the_same_keys_and_placeholders(language: str) -> None:
    messages = load_translations(language).messages
    assert set(messages) == set(ENGLISH)
    for key, text in messages.items():
        assert placeholders(text) == placeholders(ENGLISH[key]), key
        assert text.strip(), key


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "en"])
def test_no_text_is_left_untranslated(language: str) -> None:
    messages = load_translations(language).messages
    assert {key for key, text in messages.items() if text == ENGLISH[key]} == set()


def test_every_text_key_exists_and_is_used() -> None:
    sources = [*FOLDER.glob("templates/*.html"), *FOLDER.rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    used = set(re.findall(r"""(?:\bt|translations)\(["']([a-z_]+\.[a-z_]+)["'][,)]""", code))
    # Without a title, `render` uses the one that is named like the template.
    used |= {f"{path.stem}.title" for path in sources} & set(ENGLISH)
    prefixes = set(
        re.findall(
            r"""(?:\bt\(["']|translations\(f["'])([a-z_]+\.(?:about_)?)(?:["'] ~|\{)""", code
        )
    )
    known = {".".join(key.split(".")[:2]) for key in ENGLISH}
    assert used <= known
    unused = {key for key in known - used if not key.startswith(tuple(prefixes))}
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
def test_language_is_chosen_or_negotiated(chosen: str, accepted: str, language: str) -> None:
    assert negotiate_language(chosen, accepted) == language


def test_count_selects_singular_or_plural() -> None:
    t = load_translations("en")
    assert (t("skills.files", count=1), t("skills.files", count=1200)) == ("1 file", "1,200 files")
