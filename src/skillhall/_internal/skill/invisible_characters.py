"""Invisible characters: people do not see them, but terminals and models do."""

from __future__ import annotations

import re
from collections.abc import Callable

# For a character class: controls except tab and newline, surrogates, direction marks, invisible
# format characters, line separators, and the tags and selectors that can carry hidden text. The
# joiners (U+200C, U+200D) and the emoji selector (U+FE0F) are not included: scripts need them.
INVISIBLE_CHARACTERS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f\U000e0100-\U000e01ef"
)

# An emoji flag of a subdivision, such as that of Scotland: a black flag, tags that spell an
# ISO 3166-2 code, and the cancel tag (UTS #51, ED-14a). Longer runs can carry hidden text.
BLACK_FLAG = "\U0001f3f4"
FLAG_TAGS = "[\U000e0061-\U000e007a]{2}[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,3}\U000e007f"
EMOJI_FLAG = f"{BLACK_FLAG}{FLAG_TAGS}"


def replace_invisible(text: str, replacement: Callable[[str], str]) -> str:
    """Replace each invisible character in `text`, except inside emoji flags."""

    def replace(match: re.Match[str]) -> str:
        characters = match.group()  # one invisible character, or a complete emoji flag
        return characters if len(characters) > 1 else replacement(characters)

    # Compiled on first use, and cached by `re`: most listings have no such character.
    return re.sub(f"{EMOJI_FLAG}|[{INVISIBLE_CHARACTERS}]", replace, text)
