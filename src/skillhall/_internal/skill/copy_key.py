"""Normalized words of text, and a key that all copies of a skill share."""

from __future__ import annotations

import re
from hashlib import blake2b
from unicodedata import category, normalize

from skillhall._internal.skill.frontmatter_locator import FrontmatterBlock, find_frontmatter

KEY_SIZE = 16  # bytes
_MAX_FOLDED = 50_000  # characters; all scripts in use have fewer
_MAX_REPLACEMENTS = 40  # different characters; each replacement reads the text once

_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789") | frozenset(range(0x80, 0x100))
# Lowercase letters and digits; everything else in ASCII is a space.
_ASCII_TABLE = bytes(b if b in _LETTERS else 0x20 for b in bytes(range(0x100)).lower())
_SEPARATORS = bytes(b for b in range(0x100) if _ASCII_TABLE[b] == 0x20)  # noqa: PLR2004 - a space
_LOWERCASE = bytes(range(0x100)).lower()
_ASCII = bytes(range(0x80))

# Accents of Latin, Greek and Cyrillic. In other scripts, marks distinguish words.
_ACCENTS = range(0x300, 0x370)
# Scripts without spaces between words: Thai, Lao, Khmer, kana, Chinese characters.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_DESCRIPTION = re.compile(
    rb"^description[ \t]*:(.*(?:\n(?:[ \t].*)?)*)", re.IGNORECASE | re.MULTILINE
)


class _FoldedCharacters(dict[int, str]):
    """Table for `str.translate` that folds each character on first use."""

    def __missing__(self, code: int) -> str:
        folded = "".join(map(_fold_character, normalize("NFKD", chr(code)).casefold()))
        # A text with every Unicode character must not fill the memory.
        if len(self) < _MAX_FOLDED:
            self[code] = folded
        return folded


def _fold_character(character: str) -> str:
    if ord(character) in _ACCENTS:
        return ""
    # Punctuation, symbols such as emoji, spaces and control characters separate words.
    if category(character)[0] in "PSZC":
        return " "
    return f" {character} " if _UNSPACED.match(character) else character


_FOLDED = _FoldedCharacters({code: chr(code) for code in _ASCII})


def split_words(data: bytes) -> list[bytes]:
    """Return the words in UTF-8 text, without case, accents or punctuation.

    A character of a script without spaces, such as Chinese, is a word of its own. Bytes that are
    not UTF-8 separate words.
    """
    return _fold(data).translate(_ASCII_TABLE).split()


def copy_key(data: bytes) -> bytes:
    """Return a key that copies of a SKILL.md share; empty if it has no words.

    The key covers the description and the body, without case, punctuation or whitespace. The name
    and the other fields may differ: copies are often renamed, and registries add fields.
    """
    return words_key(find_copied_text(data))


def words_key(data: bytes) -> bytes:
    """Return a key of the letters and digits in UTF-8 text; empty if there are none."""
    text = _fold(data).translate(_LOWERCASE, _SEPARATORS)
    return blake2b(text, digest_size=KEY_SIZE).digest() if text else b""


def find_copied_text(data: bytes) -> bytes:
    """Return the text that copies share: the description, as written, and the body."""
    block = find_frontmatter(data)
    if not isinstance(block, FrontmatterBlock):
        return data
    description = _DESCRIPTION.search(data, block.start, block.end)
    return (description[1] if description else b"") + b"\n" + data[block.body_start :]


def _fold(data: bytes) -> bytes:
    """Remove case, accents and punctuation of non-ASCII characters only."""
    if data.isascii():
        return data
    others = data.translate(None, _ASCII)
    try:
        characters = set(others.decode("utf-8"))
    except UnicodeDecodeError:
        return _fold(data.decode("utf-8", "replace").encode("utf-8"))
    if len(characters) > _MAX_REPLACEMENTS:
        return data.decode("utf-8", "replace").translate(_FOLDED).encode("utf-8")
    # Most texts contain a few dashes and quotes again and again: `replace` is the fastest way.
    for character in characters:
        data = data.replace(character.encode("utf-8"), _FOLDED[ord(character)].encode("utf-8"))
    return data
