"""One visit of a page: what the browser asks for, and in whose language and colours."""

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

LANGUAGE_COOKIE, THEME_COOKIE, NOTICE_COOKIE = (
    "skillhall_language",
    "skillhall_theme",
    "skillhall_notice",
)
THEMES = ("auto", "light", "dark")
_MAX_SUBJECT_LENGTH = 400  # characters of a notice's subject


class Notice(NamedTuple):
    """What was just done: a key of the texts, what it was done to, and how to take it back."""

    key: str
    subject: str = ""
    undo_ref: str = ""  # its id, the session and the block that was deleted, or a query of a source

    @property
    def undo_url(self) -> str:
        """Where it is taken back; "" if it cannot be."""
        if self.undo_ref.startswith("?"):
            return f"/sources/follow{self.undo_ref}"
        session, _, block = self.undo_ref.partition("/")
        if block:
            return f"/session/{quote(session, safe='')}/blocks/{quote(block, safe='')}/bring-back"
        return f"/changes/{quote(self.undo_ref, safe='')}/undo" if self.undo_ref else ""

    def encode(self) -> str:
        """As a cookie holds it."""
        text = json.dumps([self.key, self.subject[:_MAX_SUBJECT_LENGTH], self.undo_ref])
        return base64.urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")

    @classmethod
    def parse(cls, text: str, translations: Translations) -> Notice | None:
        """The notice in a cookie; None if it is none of ours."""
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            key, subject, change = map(str, json.loads(base64.urlsafe_b64decode(padded)))
        except (ValueError, TypeError, UnicodeError, binascii.Error, RecursionError):
            return None
        return cls(key, subject, change) if f"notice.{key}" in translations.messages else None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One request for a page."""

    path: str  # as it was asked for
    path_parts: tuple[str, ...]  # the parts of the path, decoded
    query: dict[str, str]
    form: PageForm
    translations: Translations
    theme: str
    notice: Notice | None
    is_signed_in: bool
    http_request: HttpRequest

    @property
    def is_get(self) -> bool:
        """Whether nothing is sent."""
        return bool(self.http_request.scope["method"] == "GET")

    @classmethod
    def from_http(cls, request: HttpRequest, form: PageForm) -> PageRequest:
        """The visit that a request is."""
        cookies = request.header(b"cookie")
        accepted = (request.header(b"accept-language") or b"").decode("latin-1")
        texts = load_translations(
            negotiate_language(read_cookie(cookies, LANGUAGE_COOKIE), accepted)
        )
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
    """The parts of a path; what is no text names nothing that there is."""
    return tuple(unquote_to_bytes(part).decode("utf-8", "replace") for part in raw.split("/")[1:])


def _parse_query(raw: bytes) -> dict[str, str]:
    """The first value of each parameter; none of a query that cannot be read."""
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        return {}
    return dict(reversed(pairs))
