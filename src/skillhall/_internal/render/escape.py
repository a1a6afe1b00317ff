"""Making text safe to stand in a prompt: one line, five XML characters, no way out of a tag."""

from __future__ import annotations

import re

from skillhall._internal.skill.invisible import INVISIBLE_CHARACTERS, replace_invisible

_INVISIBLE = re.compile(f"[{INVISIBLE_CHARACTERS}]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_PRINTABLE = bytes(range(0x20, 0x7F))
_SAFE_BYTES = _PRINTABLE.translate(None, b"&<>\"'")


def to_single_line(text: str) -> str:
    """`text` with a space for its line breaks and a replacement for its unseen characters."""
    if _is_printable(_remove_bytes(_PRINTABLE, text)):
        return text
    lines = [line.strip() for line in text.splitlines()]
    folded = " ".join([line for line in lines if line])
    if _is_printable(_remove_bytes(_PRINTABLE, folded)):
        return folded
    return replace_invisible(folded.replace("\t", " "), lambda _: _REPLACEMENT)


def escape(text: str) -> str:
    """`text` with the five XML characters escaped, once; what is escaped already is so again."""
    # Looking for a character costs a fifth of replacing one that is not there.
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
    """What `escape` was given."""
    for name, character in (("lt", "<"), ("gt", ">"), ("quot", '"'), ("apos", "'"), ("amp", "&")):
        text = text.replace(f"&{name};", character)
    return text


def escape_field(text: str) -> str:
    """`text` as the content of a one-line element or of an attribute."""
    return escape(to_single_line(text))


def escape_fields(*texts: str) -> tuple[str, ...]:
    """`field` of each; one look at all of them together mostly tells that nothing is to do."""
    unusual = _remove_bytes(_SAFE_BYTES, "".join(texts))
    if not unusual:
        return texts
    fix = escape if _is_printable(unusual) else escape_field
    return tuple([fix(text) for text in texts])


def escape_closing_tag(body: str, tag: str) -> str:
    """`body` as it is, trimmed, except that it cannot close the element `tag` it stands in."""
    return re.sub(f"<(?=/{tag})", "&lt;", body.strip(), flags=re.IGNORECASE)


def _remove_bytes(usual: bytes, text: str) -> bytes:
    """What is left of `text` without its usual bytes: next to nothing, and found quickly."""
    return text.encode("utf-8", "surrogatepass").translate(None, usual)


def _is_printable(unusual: bytes) -> bool:
    """Whether nothing in it is unseen; Python calls the selectors that hide text printable."""
    if not unusual:
        return True
    text = unusual.decode("utf-8", "surrogatepass")
    return text.isprintable() and (text.isascii() or _INVISIBLE.search(text) is None)
