"""Named views of the skill list, stored in a cookie of the browser."""

import base64
import binascii
import json
from collections.abc import Iterable
from typing import NamedTuple, Self
from urllib.parse import parse_qs, urlencode

from skillhall._internal.skill_store.skill_table import SkillQuery
from skillhall._internal.workspace.validation import validate_name
from skillhall.errors import FieldRefused, TooLarge

VIEWS_COOKIE = "skillhall_views"
MAX_VIEW_NAME = 60  # characters
_MAX_COOKIE = 3_500  # characters; browsers accept 4,096 bytes with the name and the attributes


class SavedView(NamedTuple):
    """A named search, with its filters and its order."""

    name: str
    query: str  # of the URL

    @classmethod
    def build(cls, name: str, query: SkillQuery) -> Self:
        """Return a view with a valid name. Raises: FieldRefused, TextRefused, TooLarge."""
        valid = validate_name("name", name)
        if len(valid) > MAX_VIEW_NAME:
            raise TooLarge("name", MAX_VIEW_NAME, "characters")
        return cls(valid, urlencode(query.parameters))

    @property
    def url(self) -> str:
        """URL of the view."""
        return f"/skills?{self.query}" if self.query else "/skills"


def encode_views(views: Iterable[SavedView]) -> str:
    """Encode views for the cookie. Raises: FieldRefused if there are too many."""
    data = json.dumps([*views], ensure_ascii=False).encode()
    text = base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")
    if len(text) > _MAX_COOKIE:
        raise FieldRefused("name", "there is no room for another saved view", "delete one first")
    return text


def decode_views(text: str) -> tuple[SavedView, ...]:
    """Decode the value of the cookie; no views if it is not valid."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        pairs = [(str(name), str(query)) for name, query in json.loads(_decode(padded))]
        queries = [parse_qs(query) for _, query in pairs]
    except (ValueError, TypeError, UnicodeError, binascii.Error, RecursionError):
        return ()
    # Only parameters of the list are used, whatever the cookie contains.
    return tuple(
        SavedView(name[:MAX_VIEW_NAME], _normalize_query(query))
        for (name, _), query in zip(pairs, queries, strict=True)
    )


def _normalize_query(query: dict[str, list[str]]) -> str:
    return urlencode(SkillQuery.parse(lambda key: query.get(key, [])).parameters)


def _decode(data: bytes) -> bytes:
    return base64.urlsafe_b64decode(data) if data else b"[]"
