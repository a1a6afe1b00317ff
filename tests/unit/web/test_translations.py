"""Texts of the pages: languages are complete, and every key is used."""

import re
from pathlib import Path
from string import Formatter

import pytest

from skillhall._internal import web
from skillhall._internal.web.translations import (
    LANGUAGES,
    load_message_tables,
    load_translations,
    negotiate_language,
)
from tests.support.message_templates import find_message_templates, read_sources

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


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "en"])
def test_every_message_that_a_page_can_show_is_translated(language: str) -> None:
    found, tables, code = find_message_templates(), load_message_tables(language), read_sources()
    untranslated = {text: found[text] for text in found.keys() - tables["templates"].keys()}
    assert untranslated == {}
    assert tables["templates"].keys() - found.keys() == set(), "no longer used"
    parts = [part for word in tables["values"] for part in word.split("{}")]
    assert [part for part in parts if part not in code] == []


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code != "en"])
def test_translated_messages_have_the_values_of_their_template(language: str) -> None:
    tables = load_message_tables(language)
    for template, text in {**tables["values"], **tables["templates"]}.items():
        fields = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
        numbers = {int(name or place) for place, name in enumerate(fields)}
        assert numbers == set(range(template.count("{}"))), template


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("the name 'PDF' is not lowercase", "名称 'PDF' 不是小写"),
        ("'name' is a list, not text", "'name' 是列表，不是文本"),
        ("'a' from x is shadowed by y with the same id", "来自 x 的 'a' 被 ID 相同的 y 遮盖"),
        ("pdf: 'name' is missing; 'x' is empty", "pdf：缺少 'name'；'x' 为空"),
        ("pipes a download into a shell: curl x | sh", "把下载内容送入 shell 执行：curl x | sh"),
        ("{0} is missing", "缺少 {0}"),
        ("something of another program", "Something of another program"),
    ],
)
def test_message_is_translated_with_its_values(message: str, shown: str) -> None:
    assert load_translations("zh").message(message) == shown


def test_long_message_with_many_values_is_read_quickly() -> None:
    text = "version 1 of the skill x is y, not " * 60
    assert load_translations("zh").message(text[:990])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the description is missing", "The description is missing"),
        ("unrestricted tools: Bash", "Unrestricted tools: Bash"),
        ("'acme' is rejected", "'acme' is rejected"),
        ("allowed-tools is a list", "allowed-tools is a list"),
        ("pdf/SKILL.md cannot be read", "pdf/SKILL.md cannot be read"),
        ("", ""),
    ],
)
def test_english_message_gets_a_capital_letter_only_in_a_leading_word(
    text: str, expected: str
) -> None:
    assert load_translations("en").message(text) == expected
