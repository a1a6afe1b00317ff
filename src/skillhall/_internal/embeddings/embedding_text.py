"""The text of a skill that is embedded, and its digest, the key of its vector."""

from __future__ import annotations

from skillhall._internal.skill.bundle import sha256_hex

# Small models read 512 tokens, about 2,000 characters of English, and ignore or reject the rest.
MAX_DESCRIPTION = 1024  # characters; also the limit of the specification
MAX_BODY = 1000  # characters


def build_embedding_text(name: str, description: str, body: str) -> str:
    """Build the text of a skill that is sent to the embedding model.

    It contains the name, the description and the start of the body, and nothing else.
    """
    words = " ".join(name.replace("-", " ").replace("_", " ").split())
    parts = (words, description[:MAX_DESCRIPTION].strip(), body.lstrip()[:MAX_BODY].rstrip())
    return clean_text("\n".join(filter(None, parts)))


def clean_text(text: str) -> str:
    """Return the text without characters that UTF-8 or a model server rejects."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def compute_text_digest(text: str) -> str:
    """Return the digest of an embedding text."""
    return sha256_hex(text.encode("utf-8"))
