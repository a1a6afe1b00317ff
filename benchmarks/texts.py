"""Text of generated skills: names, frontmatter and bodies.

Every function uses the `random.Random` it gets, so that a seed determines the tree.
"""

import math
import textwrap
from collections.abc import Callable, Sequence
from random import Random
from statistics import NormalDist

KIND_WEIGHTS = {"plain": 60, "structured": 30, "broken": 10}  # percent, as in public collections
RENAMED = 0.13  # share of skills whose name differs from the folder
EXTRA_FIELD = (
    0.47  # share with another field besides name and description; `triggers` raises it to half
)
CRLF = 0.02
CJK = 0.02
DESCRIPTION_MEDIAN, DESCRIPTION_SIGMA, DESCRIPTION_MAX = 190, 0.6, 950
BODY_MEDIAN, BODY_SIGMA, BODY_VARIANTS = 6000, 0.8, 32


def _vocabulary(text: str) -> tuple[str, ...]:
    return tuple(text.split())


VERBS = _vocabulary(
    "analyze audit automate build check clean compare compile compose configure convert "
    "create debug deploy design document draft edit evaluate explain explore export extract "
    "fetch filter fix format generate import inspect install lint manage merge migrate "
    "monitor optimize organize package parse plan prepare profile publish query refactor "
    "release render review rewrite search secure summarize test trace translate tune upgrade "
    "validate visualize write"
)
SUBJECTS = _vocabulary(
    "android api aws azure bash billing branding browser calendar changelog chart cloud "
    "contract css csv customer dashboard database design docker email excel figma finance "
    "flask git github golang graphql helm html image invoice java jira json kafka kubernetes "
    "latex linux log markdown meeting mobile network notebook openapi pandas patent pdf "
    "podcast postgres pytest python react redis research rust schema security seo shell slack "
    "slide spreadsheet sql svelte swift terraform typescript video vue web wiki yaml"
)
SUFFIXES = _vocabulary(
    "adviser agent analysis assistant basics builder checklist cookbook coach companion "
    "expert flow framework generator guide guidelines helper integration kit lab master notes "
    "patterns playbook practices pro recipes report rules skill standards studio style suite "
    "templates toolkit tools tutor utils wizard workflow"
)
FILLERS = _vocabulary(
    "a an and any as at before by each for from in into of on or that the their this to when "
    "with without user's step-by-step end-to-end e.g., etc. (CSV) (optional) `--flag` C# 50% "
    "input/output — don't files, options, errors, existing new large common structured "
    "project team request result section value résumé naïve"
)
WORDS = VERBS + SUBJECTS + FILLERS * 2
CJK_TEXT = "生成分析技能文档测试数据用户需要时使用本工具创建编辑检查代码项目报告"
LICENSES = ("MIT", "Apache-2.0", "BSD-3-Clause", "Proprietary. LICENSE.txt has complete terms")
AUTHORS = ("Ada Example", "sample-team", "Björn Beispiel", "jo@example.com", "Example Labs")
TOOLS = ("Read, Write, Edit", "Bash(git:*) Read", "Read, Grep, Glob", "Bash, WebFetch")

NAME_STRIDE = 100_003  # a prime, so that it is coprime to the number of names and visits each once


def name_at(index: int) -> str:
    """Return the skill name at `index`; names repeat only after every combination."""
    total = len(VERBS) * len(SUBJECTS) * len(SUFFIXES)
    rest, suffix = divmod(index * NAME_STRIDE % total, len(SUFFIXES))
    verb, subject = divmod(rest, len(SUBJECTS))
    return f"{VERBS[verb]}-{SUBJECTS[subject]}-{SUFFIXES[suffix]}"


def draw_kind(rng: Random) -> str:
    """Return `plain`, `structured` or `broken`, weighted by `KIND_WEIGHTS`."""
    return _weighted(rng, KIND_WEIGHTS)


def skill_text(rng: Random, folder: str, kind: str, body: str) -> bytes:
    """Return the bytes of a SKILL.md of this kind."""
    if kind == "broken":
        return _BROKEN[_weighted(rng, _BROKEN_WEIGHTS)](rng, folder, body)
    lines = _plain(rng, folder) if kind == "plain" else _structured(rng, folder)
    text = _fenced(lines, body)
    return (text.replace("\n", "\r\n") if rng.random() < CRLF else text).encode()


def make_bodies(rng: Random) -> tuple[str, ...]:
    """Return a few Markdown bodies with realistic sizes, which skills share."""
    sizes = NormalDist(math.log(BODY_MEDIAN), BODY_SIGMA)
    quantiles = [(step + 0.5) / BODY_VARIANTS for step in range(BODY_VARIANTS)]
    return tuple(_body(rng, round(math.exp(sizes.inv_cdf(share)))) for share in quantiles)


def _weighted(rng: Random, weights: dict[str, int]) -> str:
    return rng.choices(tuple(weights), tuple(weights.values()))[0]


def _fenced(lines: Sequence[str], body: str) -> str:
    return "---\n" + "\n".join(lines) + "\n---\n" + body


def _name(rng: Random, folder: str) -> str:
    if rng.random() >= RENAMED:
        return folder
    words = folder.split("-")
    variants = (
        folder.title().replace("-", " "),
        "_".join(words),
        f"example-{folder}",
        "-".join(words[:2]),
    )
    return rng.choice(variants)


def _description(rng: Random) -> str:
    drawn = round(rng.lognormvariate(math.log(DESCRIPTION_MEDIAN), DESCRIPTION_SIGMA))
    length = min(DESCRIPTION_MAX, max(30, drawn))
    if rng.random() < CJK:
        return "".join(rng.choices(CJK_TEXT, k=length // 2)) + "。"
    words = rng.choices(WORDS, k=length // 5)
    half = len(words) // 2
    what, when = " ".join(words[:half]), " ".join(words[half:])
    text = f"{rng.choice(VERBS).capitalize()} {what}. Use when {when}"
    return text[:length].rsplit(" ", 1)[0] + "."


def _extras(rng: Random) -> list[str]:
    if rng.random() >= EXTRA_FIELD:
        return []
    fields = (
        f"version: {rng.randint(0, 3)}.{rng.randint(0, 9)}{rng.choice(('', '.0', '.1'))}",
        f"author: {rng.choice(AUTHORS)}",
        f"tags: {', '.join(rng.sample(SUBJECTS, 3))}",
        f"license: {rng.choice(LICENSES)}",
    )
    return rng.sample(fields, rng.choice((1, 1, 2, 3)))


def _tools(rng: Random) -> list[str]:
    return [f"allowed-tools: {rng.choice(TOOLS)}"] if rng.random() < 0.1 else []


def _plain(rng: Random, folder: str) -> list[str]:
    return [
        f"name: {_name(rng, folder)}",
        f"description: {_description(rng)}",
        *_extras(rng),
        *_tools(rng),
    ]


def _structured(rng: Random, folder: str) -> list[str]:
    style = _weighted(rng, _STYLE_WEIGHTS)
    described = _STYLES[style](_description(rng))
    nested = _nested(rng) if style == "plain" or rng.random() < 0.3 else []
    return [f"name: {_name(rng, folder)}", *described, *_extras(rng), *nested]


def _double_quoted(text: str) -> list[str]:
    longer = f'{text} Handles "quoted" input: yes, even C:\\temp.'
    escaped = longer.replace("\\", "\\\\").replace('"', '\\"')
    return [f'description: "{escaped}"']


def _single_quoted(text: str) -> list[str]:
    escaped = f"{text} Covers: issue #1, the user's data".replace("'", "''")
    return [f"description: '{escaped}'"]


def _block(indicator: str) -> Callable[[str], list[str]]:
    def write(text: str) -> list[str]:
        lines = textwrap.wrap(text, 78, break_on_hyphens=False)
        return [f"description: {indicator}", *(f"  {line}" for line in lines)]

    return write


_STYLES: dict[str, Callable[[str], list[str]]] = {
    "double": _double_quoted,
    "single": _single_quoted,
    "folded": _block(">"),
    "stripped": _block(">-"),
    "literal": _block("|"),
    "plain": lambda text: [f"description: {text}"],
}
_STYLE_WEIGHTS = {
    "double": 30,
    "single": 10,
    "folded": 14,
    "stripped": 10,
    "literal": 10,
    "plain": 26,
}


def _nested(rng: Random) -> list[str]:
    first, second, third = rng.sample(SUBJECTS, 3)
    choices = (
        [
            "metadata:",
            f"  author: {rng.choice(AUTHORS)}",
            f'  version: "1.{rng.randint(0, 9)}"',
            f"  category: {first}",
        ],
        ["metadata:", "  example:", f"    emoji: '{first}'", f"    requires: [{second}, {third}]"],
        [
            "# Kept short on purpose.",
            "metadata: {short: true, area: " + first + "}  # flow mapping",
        ],
        ["triggers:", f"  - {first}", f"  - {second} {third}"],
        [f"triggers: [{first}, '{second}', \"{third}\"]"],
        ["allowed-tools:", "  - Read", f"  - Bash({first}:*)"],
    )
    return rng.choice(choices)


def _unquoted_colon(rng: Random, folder: str, body: str) -> bytes:
    described = f"description: Use this skill when: {_description(rng)}"
    return _fenced([f"name: {_name(rng, folder)}", described, *_extras(rng)], body).encode()


def _unbalanced_quote(rng: Random, folder: str, body: str) -> bytes:
    return _fenced(
        [f"name: {folder}", f'description: "{_description(rng)}', *_extras(rng)], body
    ).encode()


def _broken_flow(rng: Random, folder: str, body: str) -> bytes:
    first, second = rng.sample(SUBJECTS, 2)
    return _fenced([*_plain(rng, folder), f"triggers: [{first}, {second}"], body).encode()


def _no_frontmatter(_rng: Random, _folder: str, body: str) -> bytes:
    return body.encode()


def _unclosed(rng: Random, folder: str, body: str) -> bytes:
    # A horizontal rule in the body would close the fence, so rules are removed.
    return (
        "---\n" + "\n".join(_plain(rng, folder)) + "\n\n" + body.replace("\n---\n", "\n")
    ).encode()


def _no_description(rng: Random, folder: str, body: str) -> bytes:
    return _fenced([f"name: {folder}", *_extras(rng)], body).encode()


def _not_utf8(rng: Random, folder: str, body: str) -> bytes:
    lines = [f"name: {folder}", f"description: Café résumé {_description(rng)}"]
    return _fenced(lines, body).encode("cp1252", "replace")


def _with_bom(rng: Random, folder: str, body: str) -> bytes:
    return _fenced(_plain(rng, folder), body).encode("utf-8-sig")


_BROKEN: dict[str, Callable[[Random, str, str], bytes]] = {
    "unquoted colon": _unquoted_colon,
    "unbalanced quote": _unbalanced_quote,
    "broken flow list": _broken_flow,
    "no frontmatter": _no_frontmatter,
    "unclosed frontmatter": _unclosed,
    "no description": _no_description,
    "not UTF-8": _not_utf8,
    "byte order mark": _with_bom,
}
_BROKEN_WEIGHTS = {
    "unquoted colon": 65,
    "unbalanced quote": 7,
    "broken flow list": 6,
    "no frontmatter": 5,
    "unclosed frontmatter": 4,
    "no description": 5,
    "not UTF-8": 4,
    "byte order mark": 4,
}


def make_body(rng: Random, size: int) -> bytes:
    """Return at least `size` bytes of Markdown without characters beyond ASCII."""
    return _body(rng, size).encode("ascii", "ignore").ljust(size)


def _body(rng: Random, size: int) -> str:
    parts = [f"\n# {rng.choice(SUBJECTS).title()}\n"]
    written = len(parts[0])
    while written < size:
        part = rng.choice(_SECTIONS)(rng)
        parts.append(part)
        written += len(part) + 1
    return "\n".join(parts)


def words(rng: Random, count: int) -> str:
    """Return random words, separated by spaces."""
    return " ".join(rng.choices(WORDS, k=count))


def _paragraph(rng: Random) -> str:
    return textwrap.fill(words(rng, rng.randint(20, 70)).capitalize() + ".", 100) + "\n"


def _heading(rng: Random) -> str:
    return f"## {words(rng, 3).capitalize()}\n"


def _bullets(rng: Random) -> str:
    return "".join(
        f"- **{rng.choice(SUBJECTS)}**: {words(rng, 9)}\n" for _ in range(rng.randint(3, 8))
    )


def _code(rng: Random) -> str:
    calls = "".join(
        f"{rng.choice(VERBS)} --{rng.choice(SUBJECTS)} <path>\n" for _ in range(rng.randint(2, 6))
    )
    return f"```bash\n{calls}```\n"


def _table(rng: Random) -> str:
    rows = "".join(f"| {rng.choice(SUBJECTS)} | {words(rng, 5)} |\n" for _ in range(4))
    return f"| Case | Step |\n|---|---|\n{rows}"


def _rule(_rng: Random) -> str:
    return "\n---\n"


_SECTIONS = (
    _paragraph,
    _paragraph,
    _paragraph,
    _heading,
    _heading,
    _bullets,
    _bullets,
    _code,
    _table,
    _rule,
)
