"""Texts of the pages in every supported language, from `texts/*.toml`."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

DEFAULT_LANGUAGE = "en"
LANGUAGES: Mapping[str, str] = {"en": "English", "zh": "中文"}  # names in their own language


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
