"""Text of generated skills that match two public collections: a registry and a mirror.

The shares and quantiles were measured on real skills: the registry has 61,452 in one folder, the
mirror 15,728 in folders of repositories. `tests/unit/test_generated_trees.py` compares generated
trees with these figures. Every function uses the `random.Random` it gets.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from benchmarks.texts import AUTHORS, LICENSES, SUBJECTS, SUFFIXES, TOOLS, VERBS, make_body, words

LONGEST_FILE = 110_000  # bytes
_CJK_TEXT = "生成分析技能文档测试数据用户需要时使用本工具创建编辑检查代码项目报告"
_CJK = 0.02

Quantiles = Sequence[tuple[float, float]]  # share and value; between them, values are interpolated


class Figures(NamedTuple):
    """Measured figures of a collection."""

    size: Quantiles  # bytes of SKILL.md
    description: Quantiles  # characters
    files: Quantiles  # per skill
    repeated_name: float  # share whose name an earlier skill already has
    styles: Mapping[str, float]  # how the description is written, in percent


REGISTRY = Figures(
    size=((0, 400), (0.1, 1600), (0.5, 5900), (0.9, 16_000), (0.99, 37_000), (1, LONGEST_FILE)),
    description=((0, 25), (0.1, 88), (0.5, 189), (0.9, 412), (0.99, 764), (1, 1100)),
    files=((0, 2), (1, 2)),
    repeated_name=0.34,
    styles={"plain": 77.1, "inline block": 14.7, "colon": 7.4, "double": 0.2, "other": 0.6},
)
MIRROR = Figures(
    size=((0, 400), (0.1, 1600), (0.5, 6600), (0.9, 17_000), (0.99, 37_000), (1, LONGEST_FILE)),
    description=((0, 20), (0.1, 65), (0.5, 147), (0.9, 333), (0.99, 628), (1, 1100)),
    files=((0, 1), (0.6, 1), (0.75, 2), (0.9, 4), (0.99, 15), (1, 40)),
    repeated_name=0.47,
    styles={
        "plain": 46.0,
        "double": 39.0,
        "single": 7.0,
        "block": 4.6,
        "colon": 0.3,
        "other": 0.1,
        "none": 2.5,
        "missing": 0.5,
    },
)
INVALID_STYLES = ("inline block", "colon", "other")  # not valid YAML

MIRROR_RENAMED = 0.16  # share of names that differ from the folder
MIRROR_HIDDEN = 0.12  # share in folders such as `.claude/skills`
MIRROR_NESTED = 0.058  # share in the folder of another skill, besides the first of a repository
# Shares of optional fields of the mirror, by what they cost a parser.
_MIRROR_METADATA = 0.32  # a map on the lines below
_MIRROR_BLOCK_LIST = 0.105
_MIRROR_FLOW = 0.13  # besides those in metadata
_MIRROR_UNKNOWN = 0.48  # share with fields that are not in the specification, besides lists
_UNKNOWN_FIELDS = ("version", "author", "category", "tags", "model", "user-invocable", "tools")
_RARE_FIELDS = tuple(f"{subject}-{kind}" for kind in ("mode", "level") for subject in SUBJECTS)


class SkillText(NamedTuple):
    """A generated SKILL.md and the style of its description."""

    content: bytes
    style: str


def draw(rng: Random, quantiles: Quantiles) -> float:
    """Return a random value of the distribution with these quantiles."""
    share = rng.random()
    at = bisect_right([limit for limit, _ in quantiles], share)
    (low, first), (high, last) = quantiles[at - 1], quantiles[min(at, len(quantiles) - 1)]
    part = 0.0 if low == high else (share - low) / (high - low)
    return math.exp(math.log(first) + part * (math.log(last) - math.log(first)))


class CollectionWriter:
    """Returns the text of one skill after another."""

    def __init__(self, rng: Random, figures: Figures) -> None:
        self.rng = rng
        self.figures = figures
        self._names: list[str] = []
        self._used: set[str] = set()
        self._body = make_body(rng, LONGEST_FILE)

    def draw_name(self) -> str:
        """Return a new name, or one that an earlier skill has."""
        rng = self.rng
        if self._names and rng.random() < self.figures.repeated_name:
            # Popular names are repeated more often than others.
            return self._names[int(len(self._names) * rng.random() ** 2)]
        parts = [rng.choice(VERBS), rng.choice(SUBJECTS), rng.choice(SUFFIXES)]
        name = "-".join(parts[: rng.choice((2, 3, 3))])
        while name in self._used:
            name = f"{name}-{rng.choice(SUBJECTS)}"
        self._used.add(name)
        self._names.append(name)
        return name

    def registry_text(self, name: str, owner: str) -> SkillText:
        """Return a skill of the registry."""
        rng = self.rng
        style, lines = self._describe()
        nested = [] if rng.random() < 0.002 else _registry_metadata(rng, owner)
        lists = ["tags:", f"  - {rng.choice(SUBJECTS)}"] if rng.random() < 0.002 else []
        flow = [f"tags: [{rng.choice(SUBJECTS)}]"] if rng.random() < 0.005 else []
        return self._finish(style, [f"name: {name}", *lines, *nested, *(lists or flow)])

    def mirror_text(self, name: str) -> SkillText:
        """Return a skill of the mirror."""
        style, lines = self._describe()
        if style == "none":
            return self._finish(style, [])
        fields = _mirror_fields(self.rng)
        return self._finish(style, [f"name: {name}", *lines, *fields])

    def _describe(self) -> tuple[str, list[str]]:
        styles = self.figures.styles
        style = self.rng.choices(tuple(styles), tuple(styles.values()))[0]
        length = round(draw(self.rng, self.figures.description))
        return style, _STYLES[style](self.rng, self.write_description(length))

    def _finish(self, style: str, lines: list[str]) -> SkillText:
        head = "---\n" + "\n".join(lines) + "\n---\n" if lines else ""
        content = head.encode()
        size = max(round(draw(self.rng, self.figures.size)) - len(content), 40)
        return SkillText(content + b"\n# Steps\n\n" + self.write_body(size), style)

    def write_description(self, length: int) -> str:
        """Return a description of about `length` characters."""
        return _description(self.rng, length)

    def write_body(self, size: int) -> bytes:
        """Return a body of about `size` bytes."""
        start = self.rng.randrange(len(self._body) // 2)
        return (self._body[start:] + self._body[:start])[:size]


def _description(rng: Random, length: int) -> str:
    if rng.random() < _CJK:
        return "".join(rng.choices(_CJK_TEXT, k=length // 2)) + "。"
    text = f"{rng.choice(VERBS).capitalize()} {words(rng, length // 5)}. Use when "
    text += words(rng, max(2, (length - len(text)) // 6 + 2))
    return text[: max(length - 1, 12)].rstrip(" :#") + "."


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _double(rng: Random, text: str) -> list[str]:
    if rng.random() < 0.1:  # escapes in quotes
        text = f'{text[:-20]} the "usual" way.'
    elif rng.random() < 0.5:
        text = f"{text[:-20]} steps: one, two."
    return [f'description: "{_quote(text)}"']


def _inline_block(rng: Random, text: str) -> list[str]:
    # Exported by a program that joined the lines of a block scalar.
    return [f"description: {rng.choice(('>-', '>', '|', '|-', '>'))} {text}"]


def _block(rng: Random, text: str) -> list[str]:
    lines, line = [], ""
    for word in text.split(" "):
        line = f"{line} {word}".strip()
        if len(line) > 76:
            lines.append(line)
            line = ""
    lines += [line] if line else []
    style = rng.choice(("|", ">", ">-"))
    return [f"description: {style}", *(f"  {part}" for part in lines)]


def _other(rng: Random, text: str) -> list[str]:
    broken = (
        [f'description: "{text}'],
        [f"description: {text}", f"tags: [{rng.choice(SUBJECTS)}, {rng.choice(SUBJECTS)}"],
        [f"description: `{rng.choice(SUBJECTS)}` {text}"],
        [f'description: "{rng.choice(SUBJECTS)}" {text}'],
    )
    return rng.choice(broken)


_STYLES: dict[str, Callable[[Random, str], list[str]]] = {
    "plain": lambda _, text: [f"description: {text}"],
    "colon": lambda rng, text: [
        f"description: {text[: len(text) // 2]} {rng.choice(SUBJECTS)}: {text[len(text) // 2 :]}"
    ],
    "inline block": _inline_block,
    "double": _double,
    "single": lambda _, text: ["description: '" + text.replace("'", "''") + "'"],
    "block": _block,
    "other": _other,
    "none": lambda _, __: [],
    "missing": lambda _, __: [],
}


def _registry_metadata(rng: Random, owner: str) -> list[str]:
    version = f'"1.{rng.randint(0, 9)}.0"' if rng.random() < 0.3 else ""
    lines = [f"  author: {owner}"] if rng.random() < 0.5 else [f"  category: {rng.choice(VERBS)}"]
    return ["metadata:", *lines, *([f"  version: {version}"] if version else [])]


def _mirror_fields(rng: Random) -> list[str]:
    """Return the fields besides name and description; the median is two."""
    fields: list[str] = []
    if rng.random() < 0.3:
        fields.append(f"license: {rng.choice(LICENSES)}")
    if rng.random() < 0.2:
        fields.append(f"allowed-tools: {rng.choice(TOOLS)}")
    if rng.random() < _MIRROR_METADATA:
        fields += _mirror_metadata(rng)
    if rng.random() < _MIRROR_BLOCK_LIST:
        items = rng.sample(SUBJECTS, rng.randint(2, 5))
        fields += [rng.choice(("triggers:", "keywords:")), *(f"  - {item}" for item in items)]
    if rng.random() < _MIRROR_FLOW:
        items = rng.sample(SUBJECTS, rng.randint(1, 6))
        fields.append(f"{rng.choice(('topics', 'globs', 'requires'))}: [{', '.join(items)}]")
    if rng.random() < _MIRROR_UNKNOWN:
        fields += _unknown_fields(rng)
    return fields


def _mirror_metadata(rng: Random) -> list[str]:
    lines = ["metadata:", f"  author: {rng.choice(AUTHORS)}"]
    lines.append(f'  version: "1.{rng.randint(0, 9)}"' if rng.random() < 0.6 else "  version: 1.0")
    if rng.random() < 0.2:
        first, second = rng.sample(SUBJECTS, 2)
        lines += ["  host:", "    requires:", f"      bins: [{first}, {second}]"]
    return lines


def _unknown_fields(rng: Random) -> list[str]:
    count = rng.choice((1, 1, 2, 2, 3, 3, 4, 5, 5, 6))
    values = {
        "version": f"{rng.randint(0, 3)}.{rng.randint(0, 9)}.0",
        "author": rng.choice(AUTHORS),
        "category": rng.choice(SUBJECTS),
        "tags": ", ".join(rng.sample(SUBJECTS, 3)),
        "model": rng.choice(("sonnet", "opus", "inherit")),
        "user-invocable": rng.choice(("true", "false")),
        "tools": rng.choice(TOOLS),
    }
    names = rng.sample(_UNKNOWN_FIELDS, min(count, len(_UNKNOWN_FIELDS)))
    lines = [f"{name}: {values[name]}" for name in names]
    if rng.random() < 0.1:
        lines.append(f"{rng.choice(_RARE_FIELDS)}: {rng.choice(SUBJECTS)}")
    return lines
