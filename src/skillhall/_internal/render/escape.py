"""Escapes text for prompts: line breaks, XML characters and closing tags."""

from __future__ import annotations

import re

from skillhall._internal.skill.invisible_characters import INVISIBLE_CHARACTERS, replace_invisible

_INVISIBLE = re.compile(f"[{INVISIBLE_CHARACTERS}]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_PRINTABLE = bytes(range(0x20, 0x7F))
_SAFE_BYTES = _PRINTABLE.translate(None, b"&<>\"'")


def to_single_line(text: str) -> str:
    """Join lines with spaces and replace invisible characters."""
    if _is_printable(_remove_bytes(_PRINTABLE, text)):
        return text
    lines = [line.strip() for line in text.splitlines()]
    folded = " ".join([line for line in lines if line])
    if _is_printable(_remove_bytes(_PRINTABLE, folded)):
        return folded
    return replace_invisible(folded.replace("\t", " "), lambda _: _REPLACEMENT)


def escape(text: str) -> str:
    """Escape the five XML characters; existing entities are escaped again."""
    # Testing for a character takes a fifth of the time of replacing one that does not occur.
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    if '"' in text:
        text = text.replace('"', "&quot;")
    if "'" in text:
        text = text.replace("'", "&apos;")
    return text


def unescape(text: str) -> str:
    """Reverse `escape`."""
    # "&amp;" comes last, so that "&amp;lt;" becomes "&lt;" and not "<".
    for name, character in (("lt", "<"), ("gt", ">"), ("quot", '"'), ("apos", "'"), ("amp", "&")):
        text = text.replace(f"&{name};", character)
    return text


def escape_field(text: str) -> str:
    """Escape the content of a one-line element or an attribute."""
    return escape(to_single_line(text))


def escape_fields(*texts: str) -> tuple[str, ...]:
    """Apply `escape_field` to each text."""
    # Most texts need no escaping, so that one test of all of them together is usually enough.
    unusual = _remove_bytes(_SAFE_BYTES, "".join(texts))
    if not unusual:
        return texts
    escape_text = escape if _is_printable(unusual) else escape_field
    return tuple([escape_text(text) for text in texts])


def escape_closing_tag(body: str, tag: str) -> str:
    """Trim `body` and escape closing tags of the element `tag` that contains it."""
    return re.sub(f"<(?=/{tag})", "&lt;", body.strip(), flags=re.IGNORECASE)


def _remove_bytes(usual: bytes, text: str) -> bytes:
    """Return the UTF-8 bytes of `text` that are not in `usual`."""
    # `bytes.translate` is the fastest way, and the remainder is nearly always empty.
    return text.encode("utf-8", "surrogatepass").translate(None, usual)


def _is_printable(unusual: bytes) -> bool:
    """Whether these bytes contain no invisible character."""
    if not unusual:
        return True
    text = unusual.decode("utf-8", "surrogatepass")
    # `isprintable` accepts the selectors that can hide text.
    return text.isprintable() and (text.isascii() or _INVISIBLE.search(text) is None)
