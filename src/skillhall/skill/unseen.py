"""Characters that no reader sees, but a terminal obeys or a model reads."""

from __future__ import annotations

# For a character class: controls but tab and newline, halves of characters, marks of direction,
# invisible format characters, line separators, and the tags and selectors that can carry a hidden
# text. The joiners (U+200C, U+200D) and the emoji selector (U+FE0F) stay: writing needs them.
UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f\U000e0100-\U000e01ef"
)
