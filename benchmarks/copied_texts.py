"""Text of generated skills with known copies, among distinct skills that share templates.

Skills have the frontmatter and the sizes of the registry, and bodies of their own. Half of the
distinct skills contain a section that others contain too, of a tenth to half of their text. The
folder of a skill names its family, so that a benchmark knows which skills are copies.
"""

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from benchmarks.collection_texts import REGISTRY, CollectionWriter
from benchmarks.texts import SUBJECTS, WORDS, make_body

TEMPLATED = 0.5  # share of families whose text is partly a template
TEMPLATE_SHARE = (0.1, 0.5)  # of the text
POPULAR_TEMPLATES = 20  # each in more than a thousand of 60,000 skills
TEMPLATE_SIZE = 60_000  # bytes; a skill contains the start of a template
RARE_TEMPLATE_USES = 8  # families of one author that share a template
POPULAR = 0.5  # share of templated families with a popular template
COPIED = 0.25  # share of families with copies; each has all four
_WORD = re.compile(rb"[^\s]+")
_BODY = b"\n# Steps\n\n"


class CopiedSkill(NamedTuple):
    """A generated skill, the family it belongs to and the way it was made."""

    family: int
    variant: str  # "original", or how the copy was made
    name: str
    content: bytes

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"family{self.family}--{self.variant}--{self.name}"


def parse_folder(name: str) -> tuple[str, str]:
    """Return the family and the variant of a folder."""
    family, variant, _ = name.split("--", 2)
    return family, variant


def write_families(rng: Random) -> Iterator[CopiedSkill]:
    """Yield skills without end: originals, each followed by its copies, if it has any."""
    writer = CollectionWriter(rng, REGISTRY)
    popular = [make_body(rng, TEMPLATE_SIZE) for _ in range(POPULAR_TEMPLATES)]
    rare, family = b"", 0
    while True:
        if family % (RARE_TEMPLATE_USES * 4) == 0:
            rare = make_body(rng, TEMPLATE_SIZE)
        name = writer.draw_name()
        head, _, body = writer.registry_text(name, rng.choice(SUBJECTS)).content.partition(_BODY)
        size = len(body)
        shared = b""
        if rng.random() < TEMPLATED:
            template = rng.choice(popular) if rng.random() < POPULAR else rare
            shared = template[: round(size * rng.uniform(*TEMPLATE_SHARE))]
        own = make_body(rng, size - len(shared))[: size - len(shared)]
        content = head + _BODY + own + b"\n\n" + shared
        yield CopiedSkill(family, "original", name, content)
        if rng.random() < COPIED:
            for variant, make in VARIANTS.items():
                new_name, copy = make(rng, name, content)
                yield CopiedSkill(family, variant, new_name, copy)
        family += 1


def _change_layout(rng: Random, name: str, content: bytes) -> tuple[str, bytes]:
    head, body = _split(content)
    body = body.replace(b"\n\n", b"\n\n\n").replace(b". ", b".  ").replace(b"\n- ", b"\n*   ")
    if rng.random() < 0.5:
        return name, head + body.replace(b"\n", b"\r\n")
    return name, head + b"\n".join(line.rstrip() for line in body.split(b"\n")) + b"\n\n"


def _rename(rng: Random, name: str, content: bytes) -> tuple[str, bytes]:
    new = f"{rng.choice(SUBJECTS)}-{name}"
    return new, content.replace(f"name: {name}\n".encode(), f"name: {new}\n".encode(), 1)


def _edit(share: float) -> Callable[[Random, str, bytes], tuple[str, bytes]]:
    """Return a function that replaces, deletes or inserts this share of the words."""

    def edit(rng: Random, name: str, content: bytes) -> tuple[str, bytes]:
        def change(word: re.Match[bytes]) -> bytes:
            if rng.random() >= share:
                return word[0]
            new = rng.choice(WORDS).encode()
            return rng.choices((new, b"", word[0] + b" " + new), (60, 20, 20))[0]

        head, body = _split(content)
        return name, head + _WORD.sub(change, body)

    return edit


def _split(content: bytes) -> tuple[bytes, bytes]:
    at = content.index(_BODY)
    return content[:at], content[at:]


VARIANTS: dict[str, Callable[[Random, str, bytes], tuple[str, bytes]]] = {
    "whitespace": _change_layout,
    "renamed": _rename,
    "edited5": _edit(0.05),
    "edited20": _edit(0.2),
}
