"""One visit of a page: what the browser asks for, and in whose language and colours."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, quote, unquote_to_bytes

from skillhall._internal.http.credentials import cookie_in
from skillhall._internal.web.forms import Form
from skillhall._internal.web.translations import Texts, texts_in, wanted_language

if TYPE_CHECKING:
    from skillhall._internal.http.request import Exchange

LANGUAGE, THEME, NOTICE = "skillhall_language", "skillhall_theme", "skillhall_notice"
THEMES = ("auto", "light", "dark")
_LONGEST = 400  # characters of a notice's subject


class Notice(NamedTuple):
    """What was just done: a key of the texts, what it was done to, and how to take it back."""

    key: str
    subject: str = ""
    change: str = ""  # its id, the session and the block that was deleted, or a query of a source

    @property
    def undo(self) -> str:
        """Where it is taken back; "" if it cannot be."""
        if self.change.startswith("?"):
            return f"/sources/follow{self.change}"
        session, _, block = self.change.partition("/")
        if block:
            return f"/session/{quote(session, safe='')}/blocks/{quote(block, safe='')}/bring-back"
        return f"/changes/{quote(self.change, safe='')}/undo" if self.change else ""

    def encoded(self) -> str:
        """As a cookie holds it."""
        text = json.dumps([self.key, self.subject[:_LONGEST], self.change])
        return base64.urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")

    @classmethod
    def parse(cls, text: str, texts: Texts) -> Notice | None:
        """The notice in a cookie; None if it is none of ours."""
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            key, subject, change = map(str, json.loads(base64.urlsafe_b64decode(padded)))
        except (ValueError, TypeError, UnicodeError, binascii.Error, RecursionError):
            return None
        return cls(key, subject, change) if f"notice.{key}" in texts.words else None


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page."""

    path: str  # as it was asked for
    names: tuple[str, ...]  # the parts of the path, decoded
    query: dict[str, str]
    form: Form
    texts: Texts
    theme: str
    notice: Notice | None
    is_signed_in: bool
    exchange: Exchange

    @property
    def is_reading(self) -> bool:
        """Whether nothing is sent."""
        return bool(self.exchange.scope["method"] == "GET")

    @classmethod
    def of(cls, exchange: Exchange, form: Form) -> Visit:
        """The visit that a request is."""
        cookies = exchange.header(b"cookie")
        accepted = (exchange.header(b"accept-language") or b"").decode("latin-1")
        texts = texts_in(wanted_language(cookie_in(cookies, LANGUAGE), accepted))
        theme = cookie_in(cookies, THEME)
        raw = exchange.scope["raw_path"].decode("latin-1")
        return cls(
            path=raw,
            names=_names(raw),
            query=_query(exchange.scope["query_string"]),
            form=form,
            texts=texts,
            theme=theme if theme in THEMES else "auto",
            notice=Notice.parse(cookie_in(cookies, NOTICE), texts),
            is_signed_in=bool(cookie_in(cookies, "skillhall_session")),
            exchange=exchange,
        )


def _names(raw: str) -> tuple[str, ...]:
    """The parts of a path; what is no text names nothing that there is."""
    return tuple(unquote_to_bytes(part).decode("utf-8", "replace") for part in raw.split("/")[1:])


def _query(raw: bytes) -> dict[str, str]:
    """The first value of each parameter; none of a query that cannot be read."""
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        return {}
    return dict(reversed(pairs))
