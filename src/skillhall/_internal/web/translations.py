"""Texts of the pages in every supported language, from `texts/*.toml`.

Findings, errors and hints come from the library as English messages. `messages.<language>.toml` has
a translation of every template of these messages, and of words that are values in them.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

DEFAULT_LANGUAGE = "en"
LANGUAGES: Mapping[str, str] = {"en": "English", "zh": "中文"}  # names in their own language
_MAX_MESSAGE_LENGTH = 1_000  # characters; longer messages are not translated
_MAX_NESTED = 4  # messages in values of messages
_JOINERS = ("; ", ": ", ", ")  # between two messages, or a name and a message
_WORD = re.compile(r"[a-z]+[ ,:]")


@dataclass(frozen=True, slots=True)
class Translations:
    """Texts of one language by key."""

    language: str
    messages: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with its placeholders replaced.

        `count` selects `<key>.one` or `<key>.other`.
        """
        if "count" in values:
            is_one = values["count"] == 1
            values["count"] = f"{values['count']:,}"
            key = f"{key}.one" if is_one else f"{key}.other"
        return self.messages[key].format(**values) if values else self.messages[key]

    def message(self, text: str) -> str:
        """Return a message of the library in this language, with a capital letter.

        A message without a translation, such as one of another server, stays as it is.
        """
        if self.language == DEFAULT_LANGUAGE or len(text) > _MAX_MESSAGE_LENGTH:
            return capitalize(text)
        return load_message_templates(self.language).translate(text) or capitalize(text)


class MessageTemplates:
    """Templates of messages in English, and their translations."""

    def __init__(self, translations: Mapping[str, str]) -> None:
        """Create the templates; `translations` are by the English template."""
        self._exact = {text: shown for text, shown in translations.items() if "{}" not in text}
        self._patterns: Sequence[tuple[re.Pattern[str], str]] = [
            (_compile_template(text), shown)
            # The most specific template that matches is the right one.
            for text, shown in sorted(translations.items(), key=lambda item: -len(item[0]))
            if "{}" in text
        ]
        self._cached = lru_cache(maxsize=2_048)(self._translate)

    def translate(self, message: str) -> str | None:
        """Return the translation of a message; None if no template matches."""
        return self._cached(message, _MAX_NESTED)

    def _translate(self, message: str, depth: int) -> str | None:
        exact = self._exact.get(message)
        if exact is not None or not depth or " " not in message:
            return exact
        for pattern, shown in self._patterns:
            if match := pattern.fullmatch(message):
                values = (self._cached(value, depth - 1) or value for value in match.groups())
                return shown.format(*values)
        for joiner in _JOINERS:
            head, found, tail = message.partition(joiner)
            parts = [self._cached(part, depth - 1) for part in (head, tail)]
            if found and any(parts):
                shown = self._exact.get(joiner, joiner)
                return f"{parts[0] or head}{shown}{parts[1] or tail}"
        return None


def capitalize(text: str) -> str:
    """Capitalize a message of the library if it starts with a lowercase word."""
    # `allowed-tools` or `pdf/SKILL.md` at the start is not a word.
    return text[0].upper() + text[1:] if _WORD.match(text) else text


@cache
def load_message_templates(language: str) -> MessageTemplates:
    """Return the templates of messages of a language other than the default."""
    tables = load_message_tables(language)
    return MessageTemplates({**tables["values"], **tables["templates"]})


def load_message_tables(language: str) -> Mapping[str, Mapping[str, str]]:
    """Read the file of messages of a language other than the default."""
    path = files(__package__) / "texts" / f"messages.{language}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _compile_template(template: str) -> re.Pattern[str]:
    """Return a pattern with a group for each value."""
    first, *rest = (re.escape(literal) for literal in template.split("{}"))
    # A message that follows a name and a colon is a message of its own.
    leading = "(.+?)" if first else "((?:(?!: |; ).)+?)"
    return re.compile(first + leading + "(.+?)".join(rest), re.DOTALL)


@cache
def load_translations(language: str) -> Translations:
    """Return the texts of a supported language."""
    text = (files(__package__) / "texts" / f"{language}.toml").read_text(encoding="utf-8")
    return Translations(language, dict(_flatten(tomllib.loads(text), "")))


def negotiate_language(chosen: str, accepted: str) -> str:
    """Return the chosen language, else the best match for Accept-Language."""
    if chosen in LANGUAGES:
        return chosen
    tags = [_parse_weighted_tag(tag) for tag in accepted[:1000].lower().split(",")]
    for _, language in sorted(tags, key=lambda pair: -pair[0]):
        if language in LANGUAGES:
            return language
    return DEFAULT_LANGUAGE


def _parse_weighted_tag(text: str) -> tuple[float, str]:
    tag, _, weight = text.replace(" ", "").partition(";q=")
    try:
        quality = float(weight or "1")
    except ValueError:
        quality = 0.0
    return quality, tag.partition("-")[0]


def _flatten(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)
