"""Request for a page, with the visitor's language, theme and pending notice."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, quote, unquote_to_bytes

from skillhall._internal.http.credentials import read_cookie
from skillhall._internal.web.forms import PageForm
from skillhall._internal.web.translations import Translations, load_translations, negotiate_language

if TYPE_CHECKING:
    from skillhall._internal.http.request import HttpRequest

LANGUAGE_COOKIE = "skillhall_language"
THEME_COOKIE = "skillhall_theme"
NOTICE_COOKIE = "skillhall_notice"
THEMES = ("auto", "light", "dark")
_MAX_SUBJECT_LENGTH = 400  # characters of a notice's subject


class Notice(NamedTuple):
    """Message about the last change, shown once by the next page."""

    key: str  # text key below `notice`
    subject: str = ""
    # A change id, "session/block" of a deleted block, or "?query" of a removed repository.
    undo_ref: str = ""

    @property
    def undo_url(self) -> str:
        """URL that undoes the change; "" if it cannot be undone."""
        if self.undo_ref.startswith("?"):
            return f"/sources/follow{self.undo_ref}"
        session, _, block = self.undo_ref.partition("/")
        if block:
            return f"/session/{quote(session, safe='')}/blocks/{quote(block, safe='')}/restore"
        return f"/changes/{quote(self.undo_ref, safe='')}/undo" if self.undo_ref else ""

    def encode(self) -> str:
        """Encode the notice for its cookie."""
        text = json.dumps([self.key, self.subject[:_MAX_SUBJECT_LENGTH], self.undo_ref])
        return base64.urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")

    @classmethod
    def parse(cls, text: str, translations: Translations) -> Notice | None:
        """Parse the value of a notice cookie; None if it is not valid."""
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            key, subject, undo_ref = map(str, json.loads(base64.urlsafe_b64decode(padded)))
        except (ValueError, TypeError, UnicodeError, binascii.Error, RecursionError):
            return None
        return cls(key, subject, undo_ref) if f"notice.{key}" in translations.messages else None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Request for a page, decoded."""

    path: str  # percent-encoded
    path_parts: tuple[str, ...]  # decoded segments of the path
    query: dict[str, str]
    form: PageForm
    translations: Translations
    theme: str
    notice: Notice | None
    is_signed_in: bool
    http_request: HttpRequest

    @property
    def is_get(self) -> bool:
        """Whether the method is GET."""
        return bool(self.http_request.scope["method"] == "GET")

    @classmethod
    def from_http(cls, request: HttpRequest, form: PageForm) -> PageRequest:
        """Return the page request of an HTTP request."""
        cookies = request.header(b"cookie")
        accepted = (request.header(b"accept-language") or b"").decode("latin-1")
        language = negotiate_language(read_cookie(cookies, LANGUAGE_COOKIE), accepted)
        texts = load_translations(language)
        theme = read_cookie(cookies, THEME_COOKIE)
        raw = request.scope["raw_path"].decode("latin-1")
        return cls(
            path=raw,
            path_parts=_split_path(raw),
            query=_parse_query(request.scope["query_string"]),
            form=form,
            translations=texts,
            theme=theme if theme in THEMES else "auto",
            notice=Notice.parse(read_cookie(cookies, NOTICE_COOKIE), texts),
            is_signed_in=bool(read_cookie(cookies, "skillhall_session")),
            http_request=request,
        )


def _split_path(raw: str) -> tuple[str, ...]:
    # Bytes that are not UTF-8 become U+FFFD, which matches no id.
    return tuple(unquote_to_bytes(part).decode("utf-8", "replace") for part in raw.split("/")[1:])


def _parse_query(raw: bytes) -> dict[str, str]:
    """Return the first value of each parameter; empty if the query is malformed."""
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        return {}
    return dict(reversed(pairs))  # the first of repeated parameters wins
